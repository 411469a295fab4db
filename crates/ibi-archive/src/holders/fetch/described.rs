//! What the descriptions of all versions tell of the files of an object.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use ibi_store::digests::BLOCK;
use ibi_store::ocfl::{Inventory, Version};
use ibi_store::records::LabelRecord;

use super::arriving::Expected;
use crate::dublin_core::DublinCore;
use crate::holders::bring::Bytes;
use crate::item::{Item, Spelling, unhex};
use crate::object::{DESCRIPTION, DOC, METADATA};

/// Bytes of a BLAKE3.
const BLAKE3: u64 = 32;

/// An item, and what is told of the bytes of its files in all versions.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) item: Item,
    pub(super) metadata: DublinCore,
    pub(super) files: BTreeMap<String, Expected>,
}

/// Whether a label leads to an item that has this one.
pub(super) fn is_same(label: &str, record: &LabelRecord) -> bool {
    Spelling::parse(label)
        .is_ok_and(|spelling| spelling.folded == record.folded || spelling.canonical == record.canonical)
}

/// Reads the descriptions of all versions, and the metadata of the last.
pub(super) fn read(inventory: &Inventory, texts: &BTreeMap<String, Bytes>) -> Result<Described, String> {
    let text = |version: &Version, name: &str| -> Result<Cow<'_, [u8]>, String> {
        let digest = version.state.iter().find(|(_, paths)| paths.iter().any(|path| path == name));
        let text = digest.and_then(|(digest, _)| texts.get(digest));
        let text = text.ok_or_else(|| format!("{name} is missing"))?.read();
        text.map_err(|error| format!("{name} cannot be read: {error}"))
    };
    let mut files: BTreeMap<String, Expected> = BTreeMap::new();
    let mut last = None;
    for number in 1..=inventory.number() {
        let name = format!("v{number}");
        let version = inventory.versions.get(&name).ok_or_else(|| format!("{name} is missing"))?;
        let wrong = |error: String| format!("{DESCRIPTION} of {name}: {error}");
        let item = Item::parse(&text(version, DESCRIPTION)?).map_err(wrong)?;
        one_version(version, &item, &mut files).map_err(wrong)?;
        last = Some((version, item));
    }
    let (version, item) = last.ok_or("it has no version")?;
    let metadata =
        String::from_utf8(text(version, METADATA)?.into_owned()).map_err(|error| error.to_string());
    let metadata = metadata.and_then(|xml| DublinCore::from_xml(&xml).map_err(|error| error.to_string()));
    let metadata = metadata.map_err(|error| format!("{METADATA}: {error}"))?;
    Ok(Described { item, metadata, files })
}

/// The description of a version and its inventory list the same files.
fn one_version(version: &Version, item: &Item, files: &mut BTreeMap<String, Expected>) -> Result<(), String> {
    let mut told: HashMap<&str, _> = item.files.iter().map(|file| (file.path.as_str(), file)).collect();
    if told.len() != item.files.len() {
        return Err("it lists a file twice".to_owned());
    }
    for (digest, paths) in &version.state {
        for name in paths.iter().filter_map(|path| path.strip_prefix(DOC)) {
            let file = told.remove(name).ok_or_else(|| format!("it does not list {name}"))?;
            let blocks = unhex(&file.blocks).filter(|_| file.blocks.len() % 2 == 0);
            let blocks = blocks.filter(|blocks| {
                blocks.len() as u64 == file.size.div_ceil(BLOCK as u64).saturating_mul(BLAKE3)
            });
            let blocks =
                blocks.ok_or_else(|| format!("the digests of {name} are not those of its blocks"))?;
            let (size, blocks) = (Some(file.size), Some(blocks));
            // The same bytes have one length, and the same blocks.
            let told = files.entry(digest.clone()).or_insert_with(|| {
                let (blocks, stations) = (blocks.clone(), Vec::new());
                Expected { size, most: file.size, blocks, stations }
            });
            if told.size != size || told.blocks != blocks {
                return Err(format!("it tells of the bytes of {name} other than another version does"));
            }
            // One version that has them is enough.
            if told.stations.is_empty() {
                told.stations = unhex(&file.stations).unwrap_or_default();
            }
        }
    }
    match told.keys().next() {
        Some(name) => Err(format!("it lists {name}, which the version has not")),
        None => Ok(()),
    }
}
