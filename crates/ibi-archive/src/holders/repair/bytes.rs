//! Bytes for what is damaged here: by their digests, wherever they are.

use std::collections::BTreeSet;
use std::path::Path;

use ibi_store::ocfl::{INVENTORY, Inventory, OBJECT_DECLARATION, SIDECAR, sidecar};

use super::{Comparison, Known, Repair};
use crate::audit::Wrong;
use crate::holders::bring::Bytes;
use crate::holders::copy::small;
use crate::holders::fetch;
use crate::holders::held::Held;
use crate::holders::peer::Peer;
use crate::holders::whole::cut_back;
use crate::object::short;

/// Looks for bytes for all that is wrong here.
pub(super) async fn find(known: &Known, holders: &[(Peer, Held)], data: &Path, comparison: &mut Comparison) {
    let wrong = known.findings.iter().filter(|finding| finding.wrong != Wrong::Unexpected);
    let files: Vec<&str> = wrong.map(|finding| finding.file.as_str()).collect();
    let nobody = match comparison.report.holders.is_empty() {
        true => "nobody was asked for it: name an Archive that has the item (`--with`)",
        false => "nobody who was asked has it as the item's own inventory tells",
    };
    let alarm = |file: &str| format!("{file} of {} is damaged here, and {nobody}", known.label);
    if files.is_empty() {
        return;
    }
    let Some(inventory) = &known.inventory else {
        comparison.report.alarms.push(alarm(INVENTORY));
        return;
    };
    // An inventory and its sidecar are one thing.
    let mut both = BTreeSet::new();
    for file in files {
        both.insert(file.to_owned());
        both.extend(file.strip_suffix(INVENTORY).map(|folder| format!("{folder}{SIDECAR}")));
        both.extend(file.strip_suffix(SIDECAR).map(|folder| format!("{folder}{INVENTORY}")));
    }
    for file in &both {
        match bytes_of(known, inventory, holders, data, file).await {
            Some(repair) => {
                comparison.report.repaired.push(repair.file.clone());
                comparison.repairs.push(repair);
            }
            None => comparison.report.alarms.push(alarm(file)),
        }
    }
}

/// The inventory that the journal vouches for, from who has the same.
pub(super) async fn trusted(known: &Known, holders: &[(Peer, Held)]) -> Option<Vec<u8>> {
    for (peer, held) in holders.iter().filter(|(_, held)| short(&held.inventory) == known.truth) {
        if let Ok(bytes) = small(peer, held, INVENTORY, &held.inventory).await {
            return Some(bytes);
        }
    }
    None
}

async fn bytes_of(
    known: &Known,
    inventory: &[u8],
    holders: &[(Peer, Held)],
    data: &Path,
    file: &str,
) -> Option<Repair> {
    let from_here =
        |bytes: Vec<u8>| Some(Repair { file: file.to_owned(), bytes: Bytes::Here(bytes), source: None });
    let parsed = Inventory::parse(inventory).ok()?;
    let last = format!("v{}/", parsed.number());
    match file {
        _ if file == OBJECT_DECLARATION.0 => return from_here(OBJECT_DECLARATION.1.as_bytes().to_vec()),
        _ if file == INVENTORY || file.strip_prefix(&last) == Some(INVENTORY) => {
            return from_here(inventory.to_vec());
        }
        _ if file == SIDECAR || file.strip_prefix(&last) == Some(SIDECAR) => {
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
                elsewhere(peer, held, digest, length.unwrap_or(u64::MAX), &place).await
            }
            None => earlier(peer, held, &parsed, file).await.map(Bytes::Here),
        };
        if let Some(bytes) = found {
            return Some(Repair { file: file.to_owned(), bytes, source });
        }
    }
    None
}

/// Bytes by their digest, wherever they lie in what another Archive has.
async fn elsewhere(peer: &Peer, held: &Held, digest: &str, most: u64, place: &Path) -> Option<Bytes> {
    let theirs = Inventory::parse(&small(peer, held, INVENTORY, &held.inventory).await.ok()?).ok()?;
    let file = theirs.manifest.get(digest)?.first()?;
    fetch::file(peer, held, file, digest, most, place).await.ok()
}

/// The inventory of an earlier version, or its sidecar: it must tell what the last one tells of that version.
async fn earlier(peer: &Peer, held: &Held, last: &Inventory, file: &str) -> Option<Vec<u8>> {
    let (version, name) = file.split_once('/')?;
    let number: u32 = version.strip_prefix('v')?.parse().ok()?;
    let bytes = fetch::inventory(peer, held, &format!("{version}/{INVENTORY}")).await.ok()?;
    if Inventory::parse(&bytes).ok()? != cut_back(last, number) {
        return None;
    }
    match name {
        INVENTORY => Some(bytes),
        SIDECAR => Some(sidecar(&Inventory::digest(&bytes)).into_bytes()),
        _ => None,
    }
}
