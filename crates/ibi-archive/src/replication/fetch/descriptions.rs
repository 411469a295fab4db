//! Reads the descriptions of all versions for what they state of an object's files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use ibi_store::digests::DIGEST_BLOCK_BYTES;
use ibi_store::index::LabelRecord;
use ibi_store::ocfl::{Inventory, InventoryVersion};

use super::download::DownloadExpectation;
use crate::dublin_core::DublinCore;
use crate::item::{ItemDescription, LabelKey, unhex};
use crate::object::{DESCRIPTION_FILE, DOC_FOLDER, METADATA_FILE};
use crate::replica::replica_object::ReplicaBytes;

const BLAKE3_DIGEST_BYTES: u64 = 32;

/// An item, and what its descriptions state of the bytes of its files in all versions.
#[derive(Debug)]
pub(super) struct FetchedDescription {
    pub(super) item: ItemDescription,
    pub(super) metadata: DublinCore,
    pub(super) files: BTreeMap<String, DownloadExpectation>,
}

/// Whether a label is another spelling of this one.
pub(super) fn is_same_label(label: &str, record: &LabelRecord) -> bool {
    LabelKey::parse(label)
        .is_ok_and(|spelling| spelling.folded == record.folded || spelling.canonical == record.canonical)
}

/// Reads the descriptions of all versions, and the metadata of the last.
pub(super) fn read_descriptions(
    inventory: &Inventory,
    texts: &BTreeMap<String, ReplicaBytes>,
) -> Result<FetchedDescription, String> {
    let text = |version: &InventoryVersion, name: &str| -> Result<Cow<'_, [u8]>, String> {
        let digest = version.state.iter().find(|(_, paths)| paths.iter().any(|path| path == name));
        let text = digest.and_then(|(digest, _)| texts.get(digest));
        let text = text.ok_or_else(|| format!("{name} is missing"))?.read();
        text.map_err(|error| format!("{name} cannot be read: {error}"))
    };
    let mut files: BTreeMap<String, DownloadExpectation> = BTreeMap::new();
    let mut last = None;
    for number in 1..=inventory.head_number() {
        let name = format!("v{number}");
        let version = inventory.versions.get(&name).ok_or_else(|| format!("{name} is missing"))?;
        let wrong = |error: String| format!("{DESCRIPTION_FILE} of {name}: {error}");
        let item = ItemDescription::parse(&text(version, DESCRIPTION_FILE)?).map_err(wrong)?;
        check_version_files(version, &item, &mut files).map_err(wrong)?;
        last = Some((version, item));
    }
    let (version, item) = last.ok_or("it has no version")?;
    let metadata =
        String::from_utf8(text(version, METADATA_FILE)?.into_owned()).map_err(|error| error.to_string());
    let metadata = metadata.and_then(|xml| DublinCore::from_xml(&xml).map_err(|error| error.to_string()));
    let metadata = metadata.map_err(|error| format!("{METADATA_FILE}: {error}"))?;
    Ok(FetchedDescription { item, metadata, files })
}

/// Checks that a version's description and inventory list the same files.
fn check_version_files(
    version: &InventoryVersion,
    item: &ItemDescription,
    files: &mut BTreeMap<String, DownloadExpectation>,
) -> Result<(), String> {
    let mut told: HashMap<&str, _> = item.files.iter().map(|file| (file.path.as_str(), file)).collect();
    if told.len() != item.files.len() {
        return Err("it lists a file twice".to_owned());
    }
    for (digest, paths) in &version.state {
        for name in paths.iter().filter_map(|path| path.strip_prefix(DOC_FOLDER)) {
            let file = told.remove(name).ok_or_else(|| format!("it does not list {name}"))?;
            let blocks = unhex(&file.blocks).filter(|_| file.blocks.len() % 2 == 0);
            let blocks = blocks.filter(|blocks| {
                blocks.len() as u64
                    == file.size.div_ceil(DIGEST_BLOCK_BYTES as u64).saturating_mul(BLAKE3_DIGEST_BYTES)
            });
            let blocks =
                blocks.ok_or_else(|| format!("the digests of {name} are not those of its blocks"))?;
            let (size, blocks) = (Some(file.size), Some(blocks));
            // Equal bytes have equal lengths and blocks.
            let told = files.entry(digest.clone()).or_insert_with(|| {
                let (blocks, stations) = (blocks.clone(), Vec::new());
                DownloadExpectation { size, most: file.size, blocks, stations }
            });
            if told.size != size || told.blocks != blocks {
                return Err(format!("it contradicts another version about {name}"));
            }
            // Midstates from one version suffice.
            if told.stations.is_empty() {
                told.stations = unhex(&file.stations).unwrap_or_default();
            }
        }
    }
    match told.keys().next() {
        Some(name) => Err(format!("it lists {name}, which is not in the version")),
        None => Ok(()),
    }
}
