//! Copies: looked at where they come from, fetched, and put here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ibi_store::journal::{LinkStatement, State};
use ibi_store::ocfl::Inventory;

use super::bring::Brought;
use super::fetch::{self, Fetched};
use super::held::Held;
use super::peer::{Peer, PeerError};
use super::verdict::{Theirs, Verdict, is_meant, judge};
use super::{HolderError, place};
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::audit::Options;
use crate::dublin_core::DublinCore;
use crate::item::Item;
use crate::object::{DESCRIPTION, METADATA, short};
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
    /// The operator's word that this Archive is to be believed, though a copy came from another one.
    pub word: bool,
    /// Whether every byte that is here is looked at, too.
    pub thorough: bool,
    /// Whether it hands the item over to us, and has confirmed that.
    pub gives: bool,
    /// Whether it is asked only because the copy came from it: if it handed the item over since, who has it now is asked.
    pub follows: bool,
}

impl Source {
    /// An Archive of which nothing more is said.
    pub fn new(peer: Peer) -> Self {
        Self { peer, overwrite: false, word: false, thorough: false, gives: false, follows: false }
    }
}

/// What an item is there, and how that stands to what is here.
#[derive(Debug)]
pub struct Looked {
    /// Who has it.
    peer: Peer,
    /// What is there.
    pub held: Held,
    /// How what is here stands to it.
    pub verdict: Verdict,
    /// Whether it is to be fetched.
    pub brings: bool,
    /// Whether its epoch is believed.
    believed: bool,
    /// Whether its removal is all that is brought.
    only_tombstone: bool,
    /// Whether what is here is damaged, and put right by what is there.
    mends: bool,
    /// What it tells of links that is not known here, if the object is the same and it is believed.
    pub link_news: Vec<LinkStatement>,
}

/// Looks at an item there and here.
pub async fn look(here: &impl Here, source: &Source, label: &str) -> Result<Looked, HolderError> {
    let (peer, held) = ask(source, label).await?;
    let peer = &peer;
    if here.look(|here| Ok(here.settings().service.have(&held.archive)))? {
        return Err(HolderError::Itself { url: peer.url().to_owned() });
    }
    let (mine, known) = here.look(|here| Ok((here.mine(&held.path)?, path_of(here, label)?)))?;
    if known.is_some_and(|known| known != held.path) {
        return Err(strange(peer, format!("asked for {label}, it tells of {}", held.item)));
    }
    let same = mine.sound && mine.stand.inventory.as_deref() == Some(short(&held.inventory));
    let theirs = match mine.inventory.clone().filter(|_| same) {
        Some(ours) => ours,
        None => {
            let bytes = small(peer, &held, "inventory.json", &held.inventory).await?;
            Inventory::parse(&bytes).map_err(|what| strange(peer, what))?
        }
    };
    let purged = match held.state {
        State::Deleted => {
            let removed = description(peer, &held, &theirs).await?.removed;
            removed.ok_or_else(|| strange(peer, format!("{} is Deleted, and not removed", held.item)))?.purged
        }
        State::Original | State::Copy => false,
    };
    let known = here.look(|here| here.source(&held.path))?;
    // Also who was named by it.
    let is_source = source.word || known.as_deref() == Some(source.peer.url());
    let believed = match held.state {
        // It is where the copy came from, or was named.
        State::Original => true,
        State::Copy => source.gives,
        State::Deleted => is_source,
    };
    let (state, epoch) = (held.state, held.epoch);
    let told = Theirs { state, epoch, inventory: &theirs, digest: &held.inventory, purged, believed };
    let mut verdict = judge(&mine, &told);
    let damaged = match verdict {
        // What is in the tree cannot be read as what the journal knows, which is just what is there.
        Verdict::Altered => mine.is_damaged(&held.inventory),
        Verdict::Equal | Verdict::Behind => source.thorough && is_damaged(here, &held.path)?,
        _ => false,
    };
    if damaged && source.gives {
        // Nothing of anybody's making is lost: these bytes are to be the Original.
        verdict = if mine.is_damaged(&held.inventory) { Verdict::Equal } else { verdict };
    } else if damaged {
        verdict = Verdict::Altered;
    }
    if verdict == Verdict::Removed && !is_source {
        // Only who the copy came from is believed: a tombstone is for ever (threats S7, S9).
        let (item, url) = (held.item, peer.url().to_owned());
        return Err(HolderError::NotItsSource { item, url, from: known.unwrap_or_default() });
    }
    let ours_now = mine.inventory.as_ref().map_or(0, Inventory::number);
    if mine.stand.state == Some(State::Copy) && matches!(verdict, Verdict::Behind | Verdict::Equal) {
        // Fetched now or not: until then, whoever reads this copy is told (clause 2.1).
        let noted = here.look(|here| here.note_seen(&held.path, (ours_now, held.version), peer.url()));
        if let Err(error) = noted {
            tracing::warn!(%error, "it cannot be remembered whether the copy is behind");
        }
    }
    let mends = damaged && source.gives;
    let brings = mends || is_meant(verdict, &mine, &told, (source.overwrite, source.word));
    let only_tombstone = held.state == State::Deleted && brings && !purged && theirs.number() > ours_now + 1;
    let is_told = verdict == Verdict::Equal && (is_source || held.state == State::Original);
    let link_news = match is_told && !brings {
        true => here.look(|here| here.link_news(&held.links))?,
        false => Vec::new(),
    };
    Ok(Looked { peer: peer.clone(), held, verdict, brings, believed, only_tombstone, mends, link_news })
}

/// What is there of an item, and at which Archive: at the one that has it now, if it was handed over since. A token is for none but
/// the first.
async fn ask(source: &Source, label: &str) -> Result<(Peer, Held), PeerError> {
    const MOST: usize = 5;
    let mut peer = source.peer.clone();
    for _ in 0..MOST {
        match peer.held(label).await {
            Err(PeerError::Unknown { given_to: Some(url), .. }) if source.follows => {
                peer = Peer::new(&url, None)?;
            }
            held => return Ok((peer, held?)),
        }
    }
    Err(peer.not_an_archive(format!("{label} was handed over more than {MOST} times, from one to the next")))
}

/// Where the item of a label lies here, if it does.
pub(super) fn path_of(here: &Holdings, label: &str) -> Result<Option<String>, ArchiveError> {
    match here.find(label) {
        Ok((holding, _)) => Ok(Some(holding.path)),
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_damaged(here: &impl Here, path: &str) -> Result<bool, ArchiveError> {
    let options = Options { rate: None, anew: true, tell: &|_| (), progress: &|_| () };
    let audit = || here.look(|here| here.audit_item(path, &options));
    Ok(!tokio::task::block_in_place(audit)?.findings.is_empty())
}

/// Fetches what was looked at, into a place of its own that outlives an interruption.
pub async fn fetch(
    here: &impl Here,
    data: &Path,
    source: &Source,
    (label, looked): (&str, Looked),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Brought, HolderError> {
    let Looked { peer, held, only_tombstone, believed, mends, .. } = looked;
    let peer = &peer;
    let fetched = if only_tombstone {
        tombstone(peer, &held).await?
    } else {
        let known = here.look(|here| known(here, &held.path))?;
        let have = |sha512: &str| known.get(sha512).cloned();
        fetch::fetch(peer, label, &held, &have, &place(data, &held.path), progress).await?
    };
    let Fetched { inventory, inventories, files, item, metadata } = fetched;
    let history = held.history.into_iter().map(|mut event| {
        event.at.get_or_insert_with(|| held.archive.clone());
        event
    });
    Ok(Brought {
        source: peer.url().to_owned(),
        state: held.state,
        epoch: held.epoch,
        believed,
        history: history.collect(),
        links: held.links,
        inventories,
        inventory,
        files,
        item,
        metadata,
        overwrite: source.overwrite,
        word: source.word,
        only_tombstone,
        mends,
    })
}

/// What is told of a removed item, without any of its files.
async fn tombstone(peer: &Peer, held: &Held) -> Result<Fetched, HolderError> {
    let bytes = small(peer, held, "inventory.json", &held.inventory).await?;
    let inventory = Inventory::parse(&bytes).map_err(|what| strange(peer, what))?;
    let item = description(peer, held, &inventory).await?;
    let metadata = text(peer, held, &inventory, METADATA).await?;
    let metadata = String::from_utf8(metadata).map_err(|error| strange(peer, error.to_string()))?;
    let metadata = DublinCore::from_xml(&metadata).map_err(|error| strange(peer, error.to_string()))?;
    if item.object_path().ok().as_deref() != Some(&held.path) {
        return Err(strange(peer, format!("it describes {} as {}", held.item, item.labels.primary())));
    }
    Ok(Fetched { inventory, inventories: vec![bytes], files: Vec::new(), item, metadata })
}

/// Throws away what was fetched of an item, once it is here.
pub fn clear(data: &Path, path: &str) {
    // Left behind, it is found by the next fetch, and checked.
    let _ = fetch::clear(&place(data, path));
}

/// Brings an item in, by a server. Tells how what was here stood to what is there, and whether that was brought.
pub async fn bring_in(
    desk: &Arc<Desk>,
    source: &Source,
    label: &str,
    by: &str,
) -> Result<(Verdict, bool), HolderError> {
    let looked = look(&**desk, source, label).await?;
    let verdict = looked.verdict;
    let path = looked.held.path.clone();
    if !looked.brings {
        // A kill may have left what was fetched before.
        clear(desk.data(), &path);
        let links = looked.link_news;
        let noted = !links.is_empty() && desk.work(move |archive| archive.note_links(&path, &links)).await?;
        return Ok((verdict, noted));
    }
    let brought = fetch(&**desk, desk.data(), source, (label, looked), &|_| ()).await?;
    let by = by.to_owned();
    let changed = desk.change(move |archive| archive.prepare_brought(&brought, &by)).await?;
    clear(desk.data(), &path);
    Ok((verdict, changed.is_some()))
}

/// Where the bytes with each digest lie here, of an item that is here.
fn known(here: &Holdings, path: &str) -> Result<HashMap<String, PathBuf>, ArchiveError> {
    let object = here.data().join("tree").join(path);
    let manifest = here.mine(path)?.inventory.map(|inventory| inventory.manifest).unwrap_or_default();
    let first =
        manifest.into_iter().filter_map(|(digest, files)| Some((digest, object.join(files.first()?))));
    Ok(first.collect())
}

async fn description(peer: &Peer, held: &Held, theirs: &Inventory) -> Result<Item, HolderError> {
    Item::parse(&text(peer, held, theirs, DESCRIPTION).await?).map_err(|what| strange(peer, what))
}

async fn text(peer: &Peer, held: &Held, theirs: &Inventory, name: &str) -> Result<Vec<u8>, HolderError> {
    let found = theirs.files().find(|(logical, ..)| *logical == name);
    let Some((_, digest, Some(place))) = found else {
        return Err(strange(peer, format!("its inventory has no {name}")));
    };
    small(peer, held, place, digest).await
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
