//! Fixity check of another Archive's files: its inventory states what they should be, not what they
//! are.

use std::collections::BTreeMap;
use std::time::Duration;

use ibi_store::ocfl::{INVENTORY_FILE, Inventory};
use sha2::{Digest as _, Sha512};
use tokio::time::timeout;

use crate::replica::object_description::ObjectDescription;
use crate::replica::object_validation::is_version_inventory;
use crate::replication::copy::fetch_small_file;
use crate::replication::fetch;
use crate::replication::peer::{PeerArchive, PeerError};

/// Timeout of a file: this base, plus its length at this rate.
const FIXITY_READ_TIMEOUT: Duration = Duration::from_secs(60);
const MIN_FIXITY_BYTES_PER_SECOND: u64 = 64 << 10;

/// Lengths by SHA-512.
pub(super) type DigestLengths = BTreeMap<String, u64>;

/// The result of a remote fixity check.
#[derive(Debug, Default)]
pub(super) struct RemoteFixity {
    /// Files that are damaged, missing or unreadable there.
    pub(super) damaged: Vec<String>,
    /// Why not all files were read.
    pub(super) unread: Option<String>,
}

impl RemoteFixity {
    pub(super) fn unread(why: &str) -> Self {
        Self { damaged: Vec::new(), unread: Some(why.to_owned()) }
    }
}

/// Reads all files of an item at another Archive whose length is known here.
pub(super) async fn check_remote_files(
    peer: &PeerArchive,
    held: &ObjectDescription,
    lengths: &DigestLengths,
    progress: &(dyn Fn(u64) + Sync),
) -> RemoteFixity {
    let mut there = RemoteFixity::default();
    let inventory = fetch_small_file(peer, held, INVENTORY_FILE, &held.inventory)
        .await
        .map_err(|error| error.to_string());
    let inventory = match inventory.and_then(|bytes| Inventory::parse(&bytes)) {
        Ok(inventory) => inventory,
        Err(error) => return RemoteFixity { unread: Some(error), ..there },
    };
    for number in 1..=inventory.head_number() {
        let version = format!("v{number}");
        let file = format!("{version}/{INVENTORY_FILE}");
        let is_good = match timeout(FIXITY_READ_TIMEOUT, fetch::fetch_inventory(peer, held, &file)).await {
            Ok(Ok(bytes)) => Inventory::parse(&bytes).is_ok_and(|then| {
                is_version_inventory(
                    (&inventory, &held.inventory),
                    &version,
                    (&then, &Inventory::digest(&bytes)),
                )
            }),
            // As below.
            Ok(Err(_)) | Err(_) => match peer.describe_object_within(FIXITY_READ_TIMEOUT, &held.item).await {
                Ok(_) => false,
                Err(error) => return RemoteFixity::unread(&error.to_string()),
            },
        };
        if !is_good {
            there.damaged.push(file);
        }
    }
    for (digest, files) in &inventory.manifest {
        let Some(length) = lengths.get(digest).copied() else { continue };
        for file in files {
            let reading = remote_digest(peer, held, file, length, progress);
            let whole = timeout(
                FIXITY_READ_TIMEOUT + Duration::from_secs(length / MIN_FIXITY_BYTES_PER_SECOND),
                reading,
            )
            .await;
            let is_good = match whole {
                Ok(Ok(found)) => found.as_deref() == Some(digest),
                // It described the item just now: either it went offline since, or this file is the
                // problem.
                Ok(Err(error)) => match peer.describe_object_within(FIXITY_READ_TIMEOUT, &held.item).await {
                    Ok(_) => false,
                    Err(_) => return RemoteFixity { unread: Some(error.to_string()), ..there },
                },
                Err(_) => {
                    let why = format!("{} gives {file} too slowly: it was not read whole", peer.url());
                    return RemoteFixity { unread: Some(why), ..there };
                }
            };
            if !is_good {
                there.damaged.push(file.clone());
            }
        }
    }
    there
}

/// The SHA-512 of a remote file; `None` if it is too long.
async fn remote_digest(
    peer: &PeerArchive,
    held: &ObjectDescription,
    file: &str,
    length: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Option<String>, PeerError> {
    if let Some(bytes) = held.embedded_file(file) {
        return Ok(Some(ibi_store::digests::sha512(&bytes)));
    }
    let mut coming = peer.file(&held.item, file, None).await?;
    let (mut sha512, mut read) = (Sha512::new(), 0_u64);
    while let Some(piece) = coming.next_chunk().await? {
        read += piece.len() as u64;
        if read > length {
            return Ok(None);
        }
        sha512.update(&piece);
        progress(piece.len() as u64);
    }
    Ok(Some(ibi_store::digests::hex(&sha512.finalize())))
}
