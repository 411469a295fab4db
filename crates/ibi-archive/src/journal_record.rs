//! The item record that the journal carries, so that the index can be rebuilt without reading
//! description and metadata of every object (`docs/formats/journal.md`). The digest of the
//! inventory beside it binds it to one version.

use std::borrow::Cow;

use ibi_store::digests::hex;
use ibi_store::index::{FileRecord, IndexRecord, IndexedItem};
use ibi_store::journal::JournalEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::item::{ItemDescription, unhex};

/// The largest carried record, in bytes. For items with many or large files, the tree is read
/// instead.
const MAX_JOURNAL_RECORD_BYTES: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
struct JournalItemRecord<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    files: Vec<JournalFileRecord<'a>>,
}

#[derive(Serialize, Deserialize)]
struct JournalFileRecord<'a> {
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
pub(crate) fn write(full: &IndexedItem) -> Option<String> {
    let file = |file: &FileRecord| file.blocks.len() + file.name.len() + file.content.len();
    if full.files.iter().map(file).sum::<usize>() > MAX_JOURNAL_RECORD_BYTES {
        return None;
    }
    let files = full.files.iter().map(|file| JournalFileRecord {
        name: Cow::from(&file.name),
        content: Cow::from(&file.content),
        size: file.size,
        sha512: Cow::from(&file.sha512),
        media: Cow::from(&file.media),
        blocks: hex(&file.blocks),
    });
    let carried = JournalItemRecord {
        item: serde_json::from_str(&full.record.properties).ok()?,
        metadata: serde_json::from_str(&full.record.metadata).ok()?,
        files: files.collect(),
    };
    serde_json::to_string(&carried).ok().filter(|text| text.len() <= MAX_JOURNAL_RECORD_BYTES)
}

/// What is recorded of the version that a line of the journal tells of; nothing if it does not
/// carry it.
pub(crate) fn read(entry: &JournalEntry) -> Option<IndexedItem> {
    let carried: JournalItemRecord<'_> = serde_json::from_str(entry.record.as_ref()?).ok()?;
    let item = ItemDescription::parse(carried.item.get().as_bytes()).ok()?;
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
    Some(IndexedItem {
        labels: item.label_records(),
        links: item.link_records(),
        files: files.collect::<Option<_>>()?,
        record: IndexRecord {
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
