//! Compares an item with other replicas and repairs damaged files. Only bytes with the digest that
//! the item's own inventory states are used, and only if the journal vouches for that inventory
//! (threats S5, S7).

mod peer_poll;
mod remote_fixity;
mod repair_sources;

use std::path::Path;

use ibi_store::journal::State;
use ibi_store::ocfl::{INVENTORY_FILE, Inventory};
use serde::Serialize;

use super::ReplicationError;
use super::copy::{LocalView, fetch_small_file};
use super::fetch;
use super::peer::{PeerArchive, PeerError};
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::audit::{AuditFinding, AuditOptions};
use crate::item::LabelKey;
use crate::links::LinkComparison;
use crate::object::short_digest;
use crate::replica::file_repair::FileRepair;
use crate::replica::object_description::ObjectDescription;
use crate::replica::object_validation::{self, HistoryComparison};

pub use peer_poll::PeerCandidate;
use peer_poll::poll_peers;
use remote_fixity::{DigestLengths, RemoteFixity};

/// Sending one token to several Archives would disclose it.
pub const ONE_TOKEN_MESSAGE: &str = "pass a token only when comparing with one Archive";

/// The result of a comparison.
#[derive(Debug)]
pub struct RepairPlan {
    /// The path of the item's object.
    pub path: String,
    /// The report.
    pub report: RepairReport,
    /// Possible repairs.
    pub repairs: Vec<FileRepair>,
}

/// The report of a comparison.
#[derive(Debug, Serialize)]
pub struct RepairReport {
    /// The item.
    pub item: String,
    /// The first 32 hex digits of the SHA-512 of its inventory, from the journal.
    pub inventory: String,
    /// Local findings.
    pub findings: Vec<AuditFinding>,
    /// The replicas elsewhere.
    pub holders: Vec<PeerReplica>,
    /// Repaired files.
    pub repaired: Vec<String>,
    /// What an operator should investigate.
    pub alarms: Vec<String>,
}

/// Another Archive's replica of an item.
#[derive(Debug, Serialize)]
pub struct PeerReplica {
    /// The Archive.
    pub archive: String,
    /// Its state there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Its version there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether its inventory is equal.
    pub equal: bool,
    /// How its knowledge of the item's links compares with ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkComparison>,
    /// Files that are damaged, missing or unreadable there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Why not all bytes were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Why the replica is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The local state of an item.
struct RepairSubject {
    path: String,
    label: String,
    /// The leading digits of its inventory's digest, from the journal.
    truth: String,
    version: u32,
    is_original: bool,
    is_removed: bool,
    findings: Vec<AuditFinding>,
    /// The inventory that the journal vouches for, if still here.
    inventory: Option<Vec<u8>>,
    /// The lengths of its files, if its descriptions are still here.
    lengths: Option<DigestLengths>,
    source: Option<String>,
}

/// Compares an item with replicas elsewhere, reading every byte on both sides. With `repair`, also
/// fetches bytes to repair local damage. `progress` is called with the number of bytes received.
pub async fn compare_with_peers(
    here: &impl LocalView,
    data: &Path,
    label: &str,
    mut asked: Vec<PeerCandidate>,
    token: Option<String>,
    repair: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<RepairPlan, ReplicationError> {
    // Reads every byte: slow.
    let mut known = tokio::task::block_in_place(|| here.with_holdings(|here| inspect_local(here, label)))?;
    if let Some(source) = known.source.as_ref().filter(|_| asked.is_empty()) {
        asked.push(PeerArchive::new(source, token)?.into());
    }
    let mut comparison = RepairPlan {
        path: known.path.clone(),
        report: RepairReport {
            item: known.label.clone(),
            inventory: known.truth.clone(),
            findings: known.findings.clone(),
            holders: Vec::new(),
            repaired: Vec::new(),
            alarms: Vec::new(),
        },
        repairs: Vec::new(),
    };
    let own = here.with_holdings(|here| Ok(here.settings().service.clone()))?;
    let mut holders: Vec<(PeerArchive, ObjectDescription)> = Vec::new();
    for (PeerCandidate { peer, perhaps }, held) in poll_peers(asked, &known.label).await {
        let archive = peer.url().to_owned();
        let other = match held {
            Err(PeerError::Unknown { .. }) if perhaps => continue,
            Err(error) => {
                if let PeerError::Refused { status: 500, .. } = error {
                    let alarm =
                        format!("the object of {} is damaged or cannot be read at {archive}", known.label);
                    comparison.report.alarms.push(alarm);
                }
                PeerReplica { error: Some(error.to_string()), ..PeerReplica::unknown(archive) }
            }
            // The same Archive under another address counts once, and this Archive not at all.
            Ok(held)
                if own.has_label(&held.archive)
                    || holders.iter().any(|(_, other)| other.archive == held.archive) =>
            {
                continue;
            }
            Ok(held) => {
                if is_altered(&peer, &held, &known).await {
                    comparison.report.alarms.push(format!(
                        "version {} of {} at {} differs from every local version: one of the two was altered",
                        held.version,
                        known.label,
                        peer.url()
                    ));
                }
                let RemoteFixity { damaged, unread } = match &known.lengths {
                    // The bytes of a removed item are not available.
                    _ if held.state == State::Deleted => RemoteFixity::default(),
                    Some(lengths) => remote_fixity::check_remote_files(&peer, &held, lengths, progress).await,
                    // Local damage is repaired first.
                    None if repair => RemoteFixity::default(),
                    None => RemoteFixity::unread("local damage must be repaired first"),
                };
                comparison.report.alarms.extend(damaged.iter().map(|file| {
                    let label = &known.label;
                    format!(
                        "{file} of {label} is damaged or missing at {archive}: its operator puts it right with `ibi archive \
                         audit {label} --with … --repair`"
                    )
                }));
                let equal = short_digest(&held.inventory) == known.truth;
                let (state, version) = (Some(held.state.name()), Some(held.version));
                let links = Some(here.with_holdings(|here| here.compare_links(&known.path, &held.links))?);
                holders.push((peer.clone(), held));
                PeerReplica { state, version, equal, links, damaged, unread, ..PeerReplica::unknown(archive) }
            }
        };
        comparison.report.holders.push(other);
    }
    comparison.report.alarms.extend(two_originals(&known, &holders));
    // Only the holder of the Original knows the latest version (clause 2.1).
    let mut originals = holders.iter().filter(|(_, held)| held.state == State::Original);
    if let (Some((peer, held)), None, false) = (originals.next(), originals.next(), known.is_original) {
        let noted = here.with_holdings(|here| {
            here.record_peer_version(&known.path, (known.version, held.version), peer.url())
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "cannot record that the copy is outdated");
        }
    }
    if repair && !known.findings.is_empty() {
        if known.inventory.is_none() {
            // Damage can be identified only with a trusted inventory.
            known.inventory = repair_sources::fetch_trusted_inventory(&known, &holders).await;
            let inventory = known.inventory.as_deref();
            let again = || here.with_holdings(|here| audit_findings(here, &known.path, inventory));
            known.findings = tokio::task::block_in_place(again)?;
            comparison.report.findings.clone_from(&known.findings);
        }
        repair_sources::find_repairs(&known, &holders, data, &mut comparison).await;
    }
    Ok(comparison)
}

impl PeerReplica {
    fn unknown(archive: String) -> Self {
        let (damaged, unread) = (Vec::new(), None);
        Self { archive, state: None, version: None, equal: false, links: None, damaged, unread, error: None }
    }
}

/// Whether the remote object is neither an earlier nor a later version of the local one.
async fn is_altered(peer: &PeerArchive, held: &ObjectDescription, known: &RepairSubject) -> bool {
    // A copy that had missed an update creates its own tombstone.
    if short_digest(&held.inventory) == known.truth || held.state == State::Deleted || known.is_removed {
        return false;
    }
    let ours = known.inventory.as_ref().and_then(|bytes| Inventory::parse(bytes).ok());
    let theirs = fetch_small_file(peer, held, INVENTORY_FILE, &held.inventory).await.ok();
    match ours.zip(theirs.and_then(|bytes| Inventory::parse(&bytes).ok())) {
        Some((ours, theirs)) => {
            object_validation::compare_inventories(&ours, &theirs) == HistoryComparison::Altered
        }
        // All that is known of either is the digest of one version.
        None => held.version == known.version,
    }
}

/// Alarm if there is more than one Original (clause 2.1).
fn two_originals(known: &RepairSubject, holders: &[(PeerArchive, ObjectDescription)]) -> Option<String> {
    let there = holders.iter().filter(|(_, held)| held.state == State::Original).map(|(peer, _)| peer.url());
    let all: Vec<&str> = known.is_original.then_some("this Archive").into_iter().chain(there).collect();
    (all.len() > 1).then(|| {
        format!(
            "{} claim the Original of {}: find out with their operators which one has it",
            all.join(" and "),
            known.label
        )
    })
}

fn inspect_local(here: &Holdings, label: &str) -> Result<RepairSubject, ArchiveError> {
    let (path, label) = match here.find(label) {
        Ok((holding, _)) => (holding.path, holding.item.labels.primary().to_owned()),
        // Its object is unreadable: that is what gets repaired.
        Err(ArchiveError::Lost { .. }) => {
            (LabelKey::parse(label).map(|label| label.folded).unwrap_or_default(), label.to_owned())
        }
        Err(error) => return Err(error),
    };
    let last = here.records.last_event(&path)?;
    let last = last.ok_or_else(|| ArchiveError::Unknown { label: label.clone() })?;
    if here.content.is_free(&path)? {
        // The whole object is lost: nothing to repair.
        return Err(ArchiveError::Lost { label });
    }
    let names = [INVENTORY_FILE.to_owned(), format!("v{}/{INVENTORY_FILE}", last.version)];
    let inventory = names
        .iter()
        .filter_map(|name| here.read_unverified_file(&path, name))
        .find(|bytes| short_digest(&Inventory::digest(bytes)) == last.inventory);
    let findings = audit_findings(here, &path, inventory.as_deref())?;
    let parsed = inventory.as_ref().and_then(|bytes| Inventory::parse(bytes).ok());
    let lengths = parsed
        .and_then(|parsed| fetch::content_lengths(&parsed, |name| here.read_unverified_file(&path, name)));
    let source = here.replica_source(&path)?;
    // A restored, unconfirmed Archive does not claim the Original.
    let is_original = last.state == State::Original && !here.is_restored();
    let is_removed = last.state == State::Deleted;
    let (truth, version) = (last.inventory, last.version);
    Ok(RepairSubject {
        path,
        label,
        truth,
        version,
        is_original,
        is_removed,
        findings,
        inventory,
        lengths,
        source,
    })
}

/// Audits an object against the inventory that the journal vouches for, if known.
fn audit_findings(
    here: &Holdings,
    path: &str,
    inventory: Option<&[u8]>,
) -> Result<Vec<AuditFinding>, ArchiveError> {
    let options = AuditOptions { rate: None, anew: true, tell: &|_| (), progress: &|_| () };
    Ok(here.audit_by_inventory(path, &options, inventory)?.findings)
}
