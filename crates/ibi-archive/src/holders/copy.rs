//! Copies: looked at where they come from, fetched, and put here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;

use super::HolderError;
use super::bring::{Brought, Theirs, Verdict, judge};
use super::fetch::{self, Fetched};
use super::held::Held;
use super::peer::{Peer, PeerError};
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::item::Item;
use crate::object::{DESCRIPTION, short};
use crate::service::Desk;

/// Bytes of an inventory or a description that is read whole.
const LONGEST: usize = 64 << 20;

/// What is here, to be looked at by those who wait for the network in between.
pub trait Here: Send + Sync {
    /// Looks at it, shortly.
    fn look<T>(&self, look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>) -> Result<T, ArchiveError>;
}

impl Here for Mutex<Holdings> {
    fn look<T>(&self, look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Here for Desk {
    fn look<T>(&self, look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        let reader = self.read()?;
        look(&reader)
    }
}

/// Where copies come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The Archive.
    pub peer: Peer,
    /// The operator's word that what was altered here may go.
    pub overwrite: bool,
}

/// Looks at an item there and here.
pub async fn look(here: &impl Here, source: &Source, label: &str) -> Result<(Held, Verdict), HolderError> {
    let held = source.peer.held(label).await?;
    let (stand, ours) = here.look(|here| Ok((here.stand(&held.path)?, here.inventory(&held.path)?)))?;
    let same = stand.inventory.as_deref() == Some(short(&held.inventory));
    let theirs = match ours.clone().filter(|_| same) {
        Some(ours) => ours,
        None => {
            let bytes = small(&source.peer, &held, "inventory.json", &held.inventory).await?;
            Inventory::parse(&bytes).map_err(|what| strange(&source.peer, what))?
        }
    };
    let purged = held.state == State::Deleted && is_purged(&source.peer, &held, &theirs).await?;
    let theirs = Theirs { state: held.state, epoch: held.epoch, inventory: &theirs, purged };
    let verdict = judge(&stand, ours.as_ref(), &theirs);
    Ok((held, if verdict == Verdict::Altered && source.overwrite { Verdict::Behind } else { verdict }))
}

/// Fetches an object whole, into a place of its own that outlives an interruption.
pub async fn fetch(
    here: &impl Here,
    data: &Path,
    source: &Source,
    held: Held,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Brought, HolderError> {
    let known = here.look(|here| known(here, &held.path))?;
    let have = |sha512: &str| known.get(sha512).cloned();
    let place = place(data, &held.path);
    let peer = &source.peer;
    let fetched = fetch::fetch(peer, &held.item, &held, &have, &place, progress).await?;
    let Fetched { inventory, inventories, files, item, metadata } = fetched;
    let history = held.history.into_iter().map(|mut event| {
        event.at.get_or_insert_with(|| held.archive.clone());
        event
    });
    Ok(Brought {
        source: peer.url().to_owned(),
        epoch: held.epoch,
        history: history.collect(),
        inventories,
        inventory,
        files,
        item,
        metadata,
        overwrite: source.overwrite,
    })
}

/// Throws away what was fetched of an item, once it is here.
pub fn clear(data: &Path, path: &str) {
    // Left behind, it is found by the next fetch, and checked.
    let _ = fetch::clear(&place(data, path));
}

/// Brings an item in, by a server.
pub async fn bring_in(
    desk: &Arc<Desk>,
    source: &Source,
    label: &str,
    by: &str,
) -> Result<Verdict, HolderError> {
    let (held, verdict) = look(&**desk, source, label).await?;
    if !verdict.brings() {
        return Ok(verdict);
    }
    let path = held.path.clone();
    let brought = fetch(&**desk, desk.data(), source, held, &|_| ()).await?;
    let by = by.to_owned();
    desk.change(move |archive| archive.prepare_brought(&brought, &by)).await?;
    clear(desk.data(), &path);
    Ok(verdict)
}

/// Where what is fetched of an item lies until it is whole. Labels have no character that a name may not have but the slash.
fn place(data: &Path, path: &str) -> PathBuf {
    data.join("service/copies").join(path.replace('/', "+"))
}

/// Where the bytes with each digest lie here, of an item that is here.
fn known(here: &Holdings, path: &str) -> Result<HashMap<String, PathBuf>, ArchiveError> {
    let object = here.data().join("tree").join(path);
    let manifest = here.inventory(path)?.map(|inventory| inventory.manifest).unwrap_or_default();
    let first =
        manifest.into_iter().filter_map(|(digest, files)| Some((digest, object.join(files.first()?))));
    Ok(first.collect())
}

async fn is_purged(peer: &Peer, held: &Held, theirs: &Inventory) -> Result<bool, HolderError> {
    let description = theirs.files().find(|(name, ..)| *name == DESCRIPTION);
    let Some((_, digest, Some(place))) = description else {
        return Err(strange(peer, format!("its inventory has no {DESCRIPTION}")));
    };
    let item = Item::parse(&small(peer, held, place, digest).await?).map_err(|what| strange(peer, what))?;
    Ok(item.removed.is_some_and(|removed| removed.purged))
}

/// A small file of an object, checked.
pub(super) async fn small(
    peer: &Peer,
    held: &Held,
    file: &str,
    digest: &str,
) -> Result<Vec<u8>, HolderError> {
    let bytes = match held.file(file) {
        Some(bytes) => bytes,
        None => {
            let mut coming = peer.file(&held.item, file, None).await?;
            let mut bytes = Vec::new();
            while let Some(piece) = coming.piece().await? {
                if bytes.len() + piece.len() > LONGEST {
                    let url = peer.url().to_owned();
                    return Err(PeerError::TooLong { url, most: LONGEST as u64 }.into());
                }
                bytes.extend_from_slice(&piece);
            }
            bytes
        }
    };
    if ibi_store::digests::sha512(&bytes) != digest {
        return Err(strange(peer, format!("{file} of {} is not what its digest says", held.item)));
    }
    Ok(bytes)
}

fn strange(peer: &Peer, what: String) -> HolderError {
    PeerError::NotAnArchive { url: peer.url().to_owned(), what }.into()
}
