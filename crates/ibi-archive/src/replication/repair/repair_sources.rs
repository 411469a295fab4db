//! Finds bytes to repair local damage, by digest, from any replica.

use std::collections::BTreeSet;
use std::path::Path;

use ibi_store::ocfl::{INVENTORY_FILE, Inventory, OBJECT_DECLARATION, SIDECAR_FILE, sidecar};

use super::{RepairPlan, RepairSubject};
use crate::audit::FixityFault;
use crate::object::short_digest;
use crate::replica::file_repair::FileRepair;
use crate::replica::object_description::ObjectDescription;
use crate::replica::object_validation::inventory_at;
use crate::replica::replica_object::ReplicaBytes;
use crate::replication::copy::fetch_small_file;
use crate::replication::fetch;
use crate::replication::peer::PeerArchive;

/// Finds bytes for all local damage.
pub(super) async fn find_repairs(
    known: &RepairSubject,
    holders: &[(PeerArchive, ObjectDescription)],
    data: &Path,
    comparison: &mut RepairPlan,
) {
    let wrong = known.findings.iter().filter(|finding| finding.wrong != FixityFault::Unexpected);
    let files: Vec<&str> = wrong.map(|finding| finding.file.as_str()).collect();
    let nobody = match comparison.report.holders.is_empty() {
        true => "no source was given: name an Archive that has the item (`--with`)",
        false => "no source has a file with the required digest",
    };
    let alarm = |file: &str| format!("{file} of {} is damaged here, and {nobody}", known.label);
    if files.is_empty() {
        return;
    }
    let Some(inventory) = &known.inventory else {
        comparison.report.alarms.push(alarm(INVENTORY_FILE));
        return;
    };
    // An inventory and its sidecar belong together.
    let mut both = BTreeSet::new();
    for file in files {
        both.insert(file.to_owned());
        both.extend(file.strip_suffix(INVENTORY_FILE).map(|folder| format!("{folder}{SIDECAR_FILE}")));
        both.extend(file.strip_suffix(SIDECAR_FILE).map(|folder| format!("{folder}{INVENTORY_FILE}")));
    }
    for file in &both {
        match find_file_bytes(known, inventory, holders, data, file).await {
            Some(repair) => {
                comparison.report.repaired.push(repair.file.clone());
                comparison.repairs.push(repair);
            }
            None => comparison.report.alarms.push(alarm(file)),
        }
    }
}

/// The inventory that the journal vouches for, from a replica with the same digest.
pub(super) async fn fetch_trusted_inventory(
    known: &RepairSubject,
    holders: &[(PeerArchive, ObjectDescription)],
) -> Option<Vec<u8>> {
    for (peer, held) in holders.iter().filter(|(_, held)| short_digest(&held.inventory) == known.truth) {
        if let Ok(bytes) = fetch_small_file(peer, held, INVENTORY_FILE, &held.inventory).await {
            return Some(bytes);
        }
    }
    None
}

async fn find_file_bytes(
    known: &RepairSubject,
    inventory: &[u8],
    holders: &[(PeerArchive, ObjectDescription)],
    data: &Path,
    file: &str,
) -> Option<FileRepair> {
    let from_here = |bytes: Vec<u8>| {
        Some(FileRepair { file: file.to_owned(), bytes: ReplicaBytes::Here(bytes), source: None })
    };
    let parsed = Inventory::parse(inventory).ok()?;
    let last = format!("v{}/", parsed.head_number());
    match file {
        _ if file == OBJECT_DECLARATION.0 => return from_here(OBJECT_DECLARATION.1.as_bytes().to_vec()),
        _ if file == INVENTORY_FILE || file.strip_prefix(&last) == Some(INVENTORY_FILE) => {
            return from_here(inventory.to_vec());
        }
        _ if file == SIDECAR_FILE || file.strip_prefix(&last) == Some(SIDECAR_FILE) => {
            return from_here(sidecar(&Inventory::digest(inventory)).into_bytes());
        }
        _ => {}
    }
    let content = parsed.manifest.iter().find(|(_, files)| files.iter().any(|known| known == file));
    for (peer, held) in holders {
        let source = Some(peer.url().to_owned());
        let found = match content {
            Some((digest, _)) => {
                let place =
                    data.join("service/copies").join(format!("{}+repair", known.path.replace('/', "+")));
                let length = known.lengths.as_ref().and_then(|lengths| lengths.get(digest).copied());
                fetch_by_digest(peer, held, digest, length.unwrap_or(u64::MAX), &place).await
            }
            None => fetch_earlier_inventory(peer, held, &parsed, file).await.map(ReplicaBytes::Here),
        };
        if let Some(bytes) = found {
            return Some(FileRepair { file: file.to_owned(), bytes, source });
        }
    }
    None
}

/// Fetches bytes by digest, from any path in a remote object.
async fn fetch_by_digest(
    peer: &PeerArchive,
    held: &ObjectDescription,
    digest: &str,
    most: u64,
    place: &Path,
) -> Option<ReplicaBytes> {
    let theirs =
        Inventory::parse(&fetch_small_file(peer, held, INVENTORY_FILE, &held.inventory).await.ok()?).ok()?;
    let file = theirs.manifest.get(digest)?.first()?;
    fetch::fetch_file(peer, held, file, digest, most, place).await.ok()
}

/// The inventory of an earlier version, or its sidecar: it must match what the last one states of
/// that version.
async fn fetch_earlier_inventory(
    peer: &PeerArchive,
    held: &ObjectDescription,
    last: &Inventory,
    file: &str,
) -> Option<Vec<u8>> {
    let (version, name) = file.split_once('/')?;
    let number: u32 = version.strip_prefix('v')?.parse().ok()?;
    let bytes = fetch::fetch_inventory(peer, held, &format!("{version}/{INVENTORY_FILE}")).await.ok()?;
    if Inventory::parse(&bytes).ok()? != inventory_at(last, number) {
        return None;
    }
    match name {
        INVENTORY_FILE => Some(bytes),
        SIDECAR_FILE => Some(sidecar(&Inventory::digest(&bytes)).into_bytes()),
        _ => None,
    }
}
