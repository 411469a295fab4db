//! An item compared with what other holders have of it, and damaged files put right: only with bytes that have the digest which the
//! item's own inventory tells, and that inventory is the one that the journal knows (threats S5, S7).

mod asking;
mod bytes;
mod there;

use std::path::Path;

use ibi_store::journal::{State, Verb};
use ibi_store::ocfl::{INVENTORY, Inventory};
use serde::Serialize;

use super::HolderError;
use super::bring::Bytes;
use super::copy::{Here, small};
use super::fetch;
use super::held::Held;
use super::peer::{Peer, PeerError};
use super::whole::{self, Compared};
use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::audit::{Finding, Options};
use crate::item::Spelling;
use crate::links::LinksCompared;
use crate::object::{Object, short};
use crate::restate::Restated;

pub use asking::Asked;
use asking::ask;
use there::{Lengths, There};

/// Who gives a token to several Archives gives it away.
pub const ONE_TOKEN: &str = "a token is for one Archive: compare with that one by itself";

/// What a comparison found.
#[derive(Debug)]
pub struct Comparison {
    /// The path of the item's object.
    pub path: String,
    /// What is told of it.
    pub report: Report,
    /// What can be put right.
    pub repairs: Vec<Repair>,
}

/// What is told of a comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The item.
    pub item: String,
    /// The first 32 hex digits of the SHA-512 of its inventory, as the journal has them.
    pub inventory: String,
    /// What is wrong here.
    pub findings: Vec<Finding>,
    /// What others have.
    pub holders: Vec<Other>,
    /// Files that are put right.
    pub repaired: Vec<String>,
    /// What somebody should look into.
    pub alarms: Vec<String>,
}

/// What another Archive has of an item.
#[derive(Debug, Serialize)]
pub struct Other {
    /// The Archive.
    pub archive: String,
    /// What it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Its version there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether it has the same inventory.
    pub equal: bool,
    /// What it knows of the item's links, beside what is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinksCompared>,
    /// Files that are damaged, missing or cannot be read there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Why not all its bytes were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Why nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A file that can be put right.
#[derive(Debug)]
pub struct Repair {
    /// Its path in the object.
    file: String,
    bytes: Bytes,
    /// The Archive that it comes from; nothing if it follows from what is here.
    source: Option<String>,
}

/// What is known of an item here.
struct Known {
    path: String,
    label: String,
    /// The first digits of its inventory's digest, as the journal has them.
    truth: String,
    version: u32,
    is_original: bool,
    is_removed: bool,
    findings: Vec<Finding>,
    /// The inventory that the journal vouches for, if it is still here.
    inventory: Option<Vec<u8>>,
    /// How long its files are, if its descriptions are still here.
    lengths: Option<Lengths>,
    source: Option<String>,
}

/// Compares an item with what others have, every byte here and there; `repair`: also looks for bytes to put right what is
/// wrong here. `progress` is told of bytes that came.
pub async fn compare(
    here: &impl Here,
    data: &Path,
    label: &str,
    mut asked: Vec<Asked>,
    token: Option<String>,
    repair: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Comparison, HolderError> {
    // Every byte is read: that takes its time.
    let mut known = tokio::task::block_in_place(|| here.look(|here| look(here, label)))?;
    if let Some(source) = known.source.as_ref().filter(|_| asked.is_empty()) {
        asked.push(Peer::new(source, token)?.into());
    }
    let mut comparison = Comparison {
        path: known.path.clone(),
        report: Report {
            item: known.label.clone(),
            inventory: known.truth.clone(),
            findings: known.findings.clone(),
            holders: Vec::new(),
            repaired: Vec::new(),
            alarms: Vec::new(),
        },
        repairs: Vec::new(),
    };
    let own = here.look(|here| Ok(here.settings().service.clone()))?;
    let mut holders: Vec<(Peer, Held)> = Vec::new();
    for (Asked { peer, perhaps }, held) in ask(asked, &known.label).await {
        let archive = peer.url().to_owned();
        let other = match held {
            Err(PeerError::Unknown { .. }) if perhaps => continue,
            Err(error) => {
                if let PeerError::Refused { status: 500, .. } = error {
                    let alarm =
                        format!("the object of {} is damaged or cannot be read at {archive}", known.label);
                    comparison.report.alarms.push(alarm);
                }
                Other { error: Some(error.to_string()), ..Other::unknown(archive) }
            }
            // Under whatever address: it is told of once, and not at all if it is this one.
            Ok(held)
                if own.have(&held.archive)
                    || holders.iter().any(|(_, other)| other.archive == held.archive) =>
            {
                continue;
            }
            Ok(held) => {
                if is_altered(&peer, &held, &known).await {
                    comparison.report.alarms.push(format!(
                        "{} has another version {} of {} than was ever here: one of the two was altered",
                        peer.url(),
                        held.version,
                        known.label
                    ));
                }
                let There { damaged, unread } = match &known.lengths {
                    // The bytes of what was removed are not to be had.
                    _ if held.state == State::Deleted => There::default(),
                    Some(lengths) => there::read(&peer, &held, lengths, progress).await,
                    // What is damaged here is put right first.
                    None if repair => There::default(),
                    None => There::unread("what is damaged here is to be put right first"),
                };
                comparison.report.alarms.extend(damaged.iter().map(|file| {
                    let label = &known.label;
                    format!(
                        "{file} of {label} is damaged or missing at {archive}: its operator puts it right with `ibi archive \
                         audit {label} --with … --repair`"
                    )
                }));
                let equal = short(&held.inventory) == known.truth;
                let (state, version) = (Some(held.state.name()), Some(held.version));
                let links = Some(here.look(|here| here.compare_links(&known.path, &held.links))?);
                holders.push((peer.clone(), held));
                Other { state, version, equal, links, damaged, unread, ..Other::unknown(archive) }
            }
        };
        comparison.report.holders.push(other);
    }
    comparison.report.alarms.extend(two_originals(&known, &holders));
    // Only who has the Original knows which version is the latest (clause 2.1).
    let mut originals = holders.iter().filter(|(_, held)| held.state == State::Original);
    if let (Some((peer, held)), None, false) = (originals.next(), originals.next(), known.is_original) {
        let noted = here.look(|here| here.note_seen(&known.path, (known.version, held.version), peer.url()));
        if let Err(error) = noted {
            tracing::warn!(%error, "it cannot be remembered whether the copy is behind");
        }
    }
    if repair && !known.findings.is_empty() {
        if known.inventory.is_none() {
            // What is wrong shows only by an inventory that is right.
            known.inventory = bytes::trusted(&known, &holders).await;
            let inventory = known.inventory.as_deref();
            let again = || here.look(|here| audited(here, &known.path, inventory));
            known.findings = tokio::task::block_in_place(again)?;
            comparison.report.findings.clone_from(&known.findings);
        }
        bytes::find(&known, &holders, data, &mut comparison).await;
    }
    Ok(comparison)
}

impl Other {
    fn unknown(archive: String) -> Self {
        let (damaged, unread) = (Vec::new(), None);
        Self { archive, state: None, version: None, equal: false, links: None, damaged, unread, error: None }
    }
}

/// Whether what is there is neither an earlier nor a later state of what is here.
async fn is_altered(peer: &Peer, held: &Held, known: &Known) -> bool {
    // A copy that had missed an update has a tombstone of its own making.
    if short(&held.inventory) == known.truth || held.state == State::Deleted || known.is_removed {
        return false;
    }
    let ours = known.inventory.as_ref().and_then(|bytes| Inventory::parse(bytes).ok());
    let theirs = small(peer, held, INVENTORY, &held.inventory).await.ok();
    match ours.zip(theirs.and_then(|bytes| Inventory::parse(&bytes).ok())) {
        Some((ours, theirs)) => whole::compare(&ours, &theirs) == Compared::Altered,
        // No more is known of either than the digest of one version.
        None => held.version == known.version,
    }
}

/// There is one Original in the world (clause 2.1).
fn two_originals(known: &Known, holders: &[(Peer, Held)]) -> Option<String> {
    let there = holders.iter().filter(|(_, held)| held.state == State::Original).map(|(peer, _)| peer.url());
    let all: Vec<&str> = known.is_original.then_some("this Archive").into_iter().chain(there).collect();
    (all.len() > 1).then(|| {
        format!(
            "{} say that they have the Original of {}: find out which one has it, with their operators",
            all.join(" and "),
            known.label
        )
    })
}

fn look(here: &Holdings, label: &str) -> Result<Known, ArchiveError> {
    let (path, label) = match here.find(label) {
        Ok((holding, _)) => (holding.path, holding.item.labels.primary().to_owned()),
        // Its object cannot be read: that is what is to be put right.
        Err(ArchiveError::Lost { .. }) => {
            (Spelling::parse(label).map(|label| label.folded).unwrap_or_default(), label.to_owned())
        }
        Err(error) => return Err(error),
    };
    let last = here.records.last_event(&path)?;
    let last = last.ok_or_else(|| ArchiveError::Unknown { label: label.clone() })?;
    if here.content.is_free(&path)? {
        // All of it is lost: there is nothing to put right.
        return Err(ArchiveError::Lost { label });
    }
    let names = [INVENTORY.to_owned(), format!("v{}/{INVENTORY}", last.version)];
    let inventory = names
        .iter()
        .filter_map(|name| here.raw_file(&path, name))
        .find(|bytes| short(&Inventory::digest(bytes)) == last.inventory);
    let findings = audited(here, &path, inventory.as_deref())?;
    let parsed = inventory.as_ref().and_then(|bytes| Inventory::parse(bytes).ok());
    let lengths = parsed.and_then(|parsed| fetch::lengths(&parsed, |name| here.raw_file(&path, name)));
    let source = here.source(&path)?;
    // Restored and not confirmed, it does not say so.
    let is_original = last.state == State::Original && !here.is_restored();
    let is_removed = last.state == State::Deleted;
    let (truth, version) = (last.inventory, last.version);
    Ok(Known { path, label, truth, version, is_original, is_removed, findings, inventory, lengths, source })
}

/// What is wrong with an object, by the inventory that the journal vouches for, if that is known.
fn audited(here: &Holdings, path: &str, inventory: Option<&[u8]>) -> Result<Vec<Finding>, ArchiveError> {
    let options = Options { rate: None, anew: true, tell: &|_| (), progress: &|_| () };
    Ok(here.audit_by(path, &options, inventory)?.findings)
}

impl Archive {
    /// Puts files of an item right. What is put there is checked once more.
    pub fn mend(&mut self, path: &str, repairs: &[Repair], by: &str) -> Result<(), ArchiveError> {
        let content = &*self.holdings.content;
        for repair in repairs {
            let staging = content.stage()?;
            let put = repair.bytes.put(content, &staging, "file");
            let mended = put.and_then(|()| content.mend(&staging, "file", path, &repair.file));
            content.discard(&staging)?;
            mended?;
        }
        let object = Object::read(content, path)?;
        let last = self.holdings.records.last_event(path)?;
        let Some((object, last)) = object.zip(last) else {
            return Err(ArchiveError::Lost { label: path.to_owned() });
        };
        let files: Vec<&str> = repairs.iter().map(|repair| repair.file.as_str()).collect();
        let restated = Restated {
            source: repairs.iter().find_map(|repair| repair.source.clone()),
            note: Some(files.join(", ")),
            ..Restated::new(Verb::Repair, last.state, last.epoch, by)
        };
        self.restate(path, &object, restated)?;
        for place in repairs.iter().filter_map(|repair| match &repair.bytes {
            Bytes::At(place) => place.parent(),
            Bytes::Here(_) => None,
        }) {
            // Left behind, it is found by the next repair.
            let _ = fetch::clear(place);
        }
        Ok(())
    }
}

impl Holdings {
    /// A small file of an object, whatever it is worth.
    fn raw_file(&self, path: &str, name: &str) -> Option<Vec<u8>> {
        const MOST: usize = 64 << 20;
        let file = self.content.open(path, name).ok()?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 16];
        while bytes.len() < MOST {
            match file.read_at(&mut buffer, bytes.len() as u64).ok()? {
                0 => return Some(bytes),
                read => bytes.extend_from_slice(&buffer[..read]),
            }
        }
        None
    }
}
