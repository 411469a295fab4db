//! Writing records of feeds to the tables of the index, and the keys of those tables
//! (`docs/formats/location-index.md`).

use ibi_id::{Form, Label};
use ibi_protocol::State;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::location::LocationRecord;
use ibi_store::{LocationBatch, LocationTable, StorageError};

use super::FollowedRecord;
use super::posting::{LabelPosting, PostingRole, postings, remove_posting, write_posting};

/// Limits of one record. An Archive with a longer one is asked about everything.
const MAX_RECORD_LABELS: usize = 1100;
const MAX_LABEL_BYTES: usize = 400;

/// The key of a label (its canonical spelling) and its own spelling, both folded (1.3).
pub(super) fn label_keys(label: &Label<impl AsRef<str>>) -> (Vec<u8>, String) {
    let fold = |mut text: String| {
        if label.form() != Form::Legacy {
            text.make_ascii_lowercase();
        }
        text
    };
    let mut key = fold(label.to_string()).into_bytes();
    key.truncate(MAX_LABEL_BYTES);
    (key, fold(label.spelling().to_owned()))
}

pub(super) fn archive_key(id: ArchiveId) -> Vec<u8> {
    [b"a", &id.0.to_be_bytes()[..]].concat()
}

pub(super) fn item_key(id: ArchiveId, path: &str) -> Vec<u8> {
    [&id.0.to_be_bytes()[..], path.as_bytes()].concat()
}

pub(super) fn read_followed(
    batch: &LocationBatch<'_>,
    id: ArchiveId,
) -> Result<FollowedRecord, StorageError> {
    let stored = batch.get(LocationTable::Archives, &archive_key(id))?;
    Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

pub(super) fn write_followed(
    batch: &mut LocationBatch<'_>,
    id: ArchiveId,
    record: &FollowedRecord,
) -> Result<(), StorageError> {
    // Strings and numbers only: serialization cannot fail.
    batch.put(LocationTable::Archives, &archive_key(id), &serde_json::to_vec(record).unwrap_or_default())
}

/// Whether a record fits the index.
pub(super) fn is_plausible(record: &LocationRecord) -> bool {
    let labels = || record.labels.iter().chain(&record.metadata).chain(&record.aliases);
    let is_path = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    !record.labels.is_empty()
        && labels().count() <= MAX_RECORD_LABELS
        && labels().all(|label| label.len() < MAX_LABEL_BYTES && Label::parse(label).is_ok())
        && (1..MAX_LABEL_BYTES).contains(&record.path.len())
        && is_path(&record.target_path().0)
        && record.files.iter().flatten().all(|name| is_path(name))
}

/// Each label of a record with its role.
pub(super) fn roles(record: &LocationRecord) -> impl Iterator<Item = (&str, PostingRole)> {
    let item = record.labels.iter().map(|label| (label.as_str(), PostingRole::Item));
    let aliases = record.aliases.iter().map(|label| (label.as_str(), PostingRole::Alias));
    let metadata = record.metadata.iter().map(|label| (label.as_str(), PostingRole::Metadata));
    item.chain(aliases).chain(metadata)
}

/// What an item takes in the index: postings of labels, and the bytes of these and of its record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IndexedSize {
    pub(super) labels: u64,
    pub(super) bytes: u64,
}

impl IndexedSize {
    fn add(&mut self, labels: usize, bytes: usize) {
        self.labels += labels as u64;
        self.bytes += bytes as u64;
    }
}

pub(super) fn put_item(
    batch: &mut LocationBatch<'_>,
    id: ArchiveId,
    record: &LocationRecord,
    since: i64,
    disputed: &mut Vec<String>,
) -> Result<IndexedSize, StorageError> {
    let mut size = IndexedSize::default();
    let (target, contenttype) = record.target_path();
    for (label, role) in roles(record) {
        let Ok(parsed) = Label::parse(label) else { continue };
        let (key, folded) = label_keys(&parsed);
        let mut value = batch.get(LocationTable::Labels, &key)?.unwrap_or_default();
        let others = || postings(&value).filter(|posting| posting.archive != id.0);
        let is_claimed = others().any(|posting| posting.state == State::Original);
        if role == PostingRole::Item && record.state == State::Original && is_claimed {
            disputed.push(label.to_owned());
        }
        let before = value.len();
        write_posting(
            &mut value,
            &LabelPosting {
                archive: id.0,
                role,
                state: record.state,
                is_open: !record.ask && record.state != State::Deleted,
                contenttype,
                since,
                spelling: folded.as_bytes(),
                path: record.path.as_bytes(),
                target: if role == PostingRole::Item { target.as_bytes() } else { b"" },
            },
        );
        size.add(1, value.len() - before);
        batch.put(LocationTable::Labels, &key, &value)?;
    }
    let text = serde_json::to_vec(record).unwrap_or_default();
    let key = item_key(id, &record.path);
    size.add(0, key.len() + text.len());
    batch.put(LocationTable::Items, &key, &text)?;
    Ok(size)
}

/// Since when an Archive claims an item in the state of this record, if it did before.
pub(super) fn first_claim(
    batch: &LocationBatch<'_>,
    id: ArchiveId,
    record: &LocationRecord,
) -> Result<Option<i64>, StorageError> {
    let Some(Ok(label)) = record.labels.first().map(|label| Label::parse(label)) else { return Ok(None) };
    let value = batch.get(LocationTable::Labels, &label_keys(&label).0)?.unwrap_or_default();
    let mut own = postings(&value).filter(|posting| posting.archive == id.0);
    Ok(own.find(|posting| posting.state == record.state).map(|posting| posting.since))
}

/// Removes an item; returns what it took, if it was there.
pub(super) fn remove_item(
    batch: &mut LocationBatch<'_>,
    id: ArchiveId,
    path: &str,
) -> Result<Option<IndexedSize>, StorageError> {
    if !(1..MAX_LABEL_BYTES).contains(&path.len()) {
        return Ok(None);
    }
    let key = item_key(id, path);
    let Some(bytes) = batch.get(LocationTable::Items, &key)? else { return Ok(None) };
    let mut size = IndexedSize::default();
    size.add(0, key.len() + bytes.len());
    if let Ok(record) = serde_json::from_slice::<LocationRecord>(&bytes) {
        for (label, _) in roles(&record) {
            let Ok(parsed) = Label::parse(label) else { continue };
            let (key, _) = label_keys(&parsed);
            let Some(mut value) = batch.get(LocationTable::Labels, &key)? else { continue };
            let (count, length) = (postings(&value).count(), value.len());
            remove_posting(&mut value, id.0, record.path.as_bytes());
            size.add(count - postings(&value).count(), length - value.len());
            match value.is_empty() {
                true => batch.delete(LocationTable::Labels, &key)?,
                false => batch.put(LocationTable::Labels, &key, &value)?,
            }
        }
    }
    batch.delete(LocationTable::Items, &key)?;
    Ok(Some(size))
}

/// Removes all items of an Archive.
pub(super) fn clear_items(batch: &mut LocationBatch<'_>, id: ArchiveId) -> Result<(), StorageError> {
    const ITEMS_PER_STEP: usize = 1000;
    let prefix = id.0.to_be_bytes();
    loop {
        let keys = batch.keys(LocationTable::Items, &prefix, ITEMS_PER_STEP)?;
        if keys.is_empty() {
            return Ok(());
        }
        for key in &keys {
            let path = String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default()).into_owned();
            remove_item(batch, id, &path)?;
            batch.delete(LocationTable::Items, key)?;
        }
    }
}
