//! The bytes that another Archive has of an item, read through: its inventory tells what they should be, not what they are.

use std::collections::BTreeMap;
use std::time::Duration;

use ibi_store::ocfl::{INVENTORY, Inventory};
use sha2::{Digest as _, Sha512};
use tokio::time::timeout;

use crate::holders::copy::small;
use crate::holders::fetch;
use crate::holders::held::Held;
use crate::holders::peer::{Peer, PeerError};
use crate::holders::whole::is_version;

/// How long a file may take: so long, and longer by its length at this rate, in bytes a second.
const PATIENCE: Duration = Duration::from_secs(60);
const SLOWEST: u64 = 64 << 10;

/// Lengths of bytes, by their SHA-512.
pub(super) type Lengths = BTreeMap<String, u64>;

/// What reading another Archive's bytes told.
#[derive(Debug, Default)]
pub(super) struct There {
    /// Files that are damaged, missing or cannot be read there.
    pub(super) damaged: Vec<String>,
    /// Why not all of them were read.
    pub(super) unread: Option<String>,
}

impl There {
    pub(super) fn unread(why: &str) -> Self {
        Self { damaged: Vec::new(), unread: Some(why.to_owned()) }
    }
}

/// Reads all bytes of an item that another Archive has and whose length is known here.
pub(super) async fn read(
    peer: &Peer,
    held: &Held,
    lengths: &Lengths,
    progress: &(dyn Fn(u64) + Sync),
) -> There {
    let mut there = There::default();
    let inventory = small(peer, held, INVENTORY, &held.inventory).await.map_err(|error| error.to_string());
    let inventory = match inventory.and_then(|bytes| Inventory::parse(&bytes)) {
        Ok(inventory) => inventory,
        Err(error) => return There { unread: Some(error), ..there },
    };
    for number in 1..=inventory.number() {
        let version = format!("v{number}");
        let file = format!("{version}/{INVENTORY}");
        let is_good = match timeout(PATIENCE, fetch::inventory(peer, held, &file)).await {
            Ok(Ok(bytes)) => Inventory::parse(&bytes).is_ok_and(|then| {
                is_version((&inventory, &held.inventory), &version, (&then, &Inventory::digest(&bytes)))
            }),
            // As below.
            Ok(Err(_)) | Err(_) => match peer.held_within(PATIENCE, &held.item).await {
                Ok(_) => false,
                Err(error) => return There::unread(&error.to_string()),
            },
        };
        if !is_good {
            there.damaged.push(file);
        }
    }
    for (digest, files) in &inventory.manifest {
        let Some(length) = lengths.get(digest).copied() else { continue };
        for file in files {
            let reading = through(peer, held, file, length, progress);
            let whole = timeout(PATIENCE + Duration::from_secs(length / SLOWEST), reading).await;
            let is_good = match whole {
                Ok(Ok(found)) => found.as_deref() == Some(digest),
                // It told of the item just now: either it has gone meanwhile, or this file is the trouble.
                Ok(Err(error)) => match peer.held_within(PATIENCE, &held.item).await {
                    Ok(_) => false,
                    Err(_) => return There { unread: Some(error.to_string()), ..there },
                },
                Err(_) => {
                    let why = format!("{} gives {file} too slowly: it was not read whole", peer.url());
                    return There { unread: Some(why), ..there };
                }
            };
            if !is_good {
                there.damaged.push(file.clone());
            }
        }
    }
    there
}

/// The SHA-512 of a file there; nothing if it is longer than it should be.
async fn through(
    peer: &Peer,
    held: &Held,
    file: &str,
    length: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Option<String>, PeerError> {
    if let Some(bytes) = held.file(file) {
        return Ok(Some(ibi_store::digests::sha512(&bytes)));
    }
    let mut coming = peer.file(&held.item, file, None).await?;
    let (mut sha512, mut read) = (Sha512::new(), 0_u64);
    while let Some(piece) = coming.piece().await? {
        read += piece.len() as u64;
        if read > length {
            return Ok(None);
        }
        sha512.update(&piece);
        progress(piece.len() as u64);
    }
    Ok(Some(ibi_store::digests::hex(&sha512.finalize())))
}
