//! What the journal carries of an item, so that the index is made anew without reading description and metadata of every
//! object (`docs/formats/journal.md`). The digest of the inventory beside it binds it to one version.

use std::borrow::Cow;

use ibi_store::digests::hex;
use ibi_store::journal::Entry;
use ibi_store::records::{FileRecord, Full, Record};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::item::{Item, unhex};

/// The longest that is carried, in bytes. Of items with many or large files the tree is read instead.
const MOST: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
struct Carried<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    files: Vec<File<'a>>,
}

#[derive(Serialize, Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    content: Cow<'a, str>,
    size: u64,
    #[serde(borrow)]
    sha512: Cow<'a, str>,
    #[serde(borrow)]
    media: Cow<'a, str>,
    blocks: String,
}

/// What is carried of an item; nothing if it is too long.
pub(crate) fn write(full: &Full) -> Option<String> {
    let file = |file: &FileRecord| file.blocks.len() + file.name.len() + file.content.len();
    if full.files.iter().map(file).sum::<usize>() > MOST {
        return None;
    }
    let files = full.files.iter().map(|file| File {
        name: Cow::from(&file.name),
        content: Cow::from(&file.content),
        size: file.size,
        sha512: Cow::from(&file.sha512),
        media: Cow::from(&file.media),
        blocks: hex(&file.blocks),
    });
    let carried = Carried {
        item: serde_json::from_str(&full.record.properties).ok()?,
        metadata: serde_json::from_str(&full.record.metadata).ok()?,
        files: files.collect(),
    };
    serde_json::to_string(&carried).ok().filter(|text| text.len() <= MOST)
}

/// What is recorded of the version that a line of the journal tells of; nothing if it does not carry it.
pub(crate) fn read(entry: &Entry) -> Option<Full> {
    let carried: Carried<'_> = serde_json::from_str(entry.record.as_ref()?).ok()?;
    let item = Item::parse(carried.item.get().as_bytes()).ok()?;
    let files = carried.files.into_iter().map(|file| {
        Some(FileRecord {
            blocks: unhex(&file.blocks)?,
            name: file.name.into_owned(),
            content: file.content.into_owned(),
            size: file.size,
            sha512: file.sha512.into_owned(),
            media: file.media.into_owned(),
        })
    });
    Some(Full {
        labels: item.label_records(),
        links: item.link_records(),
        files: files.collect::<Option<_>>()?,
        record: Record {
            path: entry.path.clone(),
            change: entry.change,
            version: entry.version,
            inventory: entry.inventory.clone(),
            state: entry.state,
            epoch: entry.epoch,
            properties: carried.item.get().to_owned(),
            metadata: carried.metadata.get().to_owned(),
        },
    })
}
