//! Writing records of feeds to the tables of the index, and the keys of those tables
//! (`docs/formats/location-index.md`).

use std::sync::Arc;

use ibi_id::{Form, Label};
use ibi_protocol::State;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::location::{LocationRecord, MAX_LOCATION_FILES};
use ibi_store::{LocationBatch, LocationTable, StorageError};

use super::FollowedRecord;
use super::claims::{ClaimTerms, PriorClaim, after_copy, has_prefix_of, is_original};
use super::posting::{LabelPosting, PostingRole, postings, remove_posting, write_posting};
use crate::archive::RegisteredArchive;

/// Limits of one record. An Archive with a longer one is asked about everything.
const MAX_RECORD_LABELS: usize = 1100;
const MAX_LABEL_BYTES: usize = 400;
const MAX_LINKED_LABELS: usize = 1100;
const MAX_TARGET_BYTES: usize = 8 << 10;
const MAX_INVENTORIES: usize = 64;
/// For times and digests.
const MAX_WORD_BYTES: usize = 128;

/// Maximum number of items of one Archive under one label: a few were imported under one canonical
/// spelling (1.3). Each costs everybody who asks for the label.
const MAX_ITEMS_PER_LABEL: usize = 64;

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
    let linked = || record.next_edition.iter().chain(record.translations.iter().flat_map(|one| &one.labels));
    let is_path =
        |text: &str| text.len() <= MAX_TARGET_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_word = |text: &String| text.len() <= MAX_WORD_BYTES;
    !record.labels.is_empty()
        && labels().count() <= MAX_RECORD_LABELS
        && labels().all(|label| label.len() < MAX_LABEL_BYTES && Label::parse(label).is_ok())
        && record.translations.len() <= MAX_LINKED_LABELS
        && linked().count() <= MAX_LINKED_LABELS
        && linked().all(|label| label.len() < MAX_LABEL_BYTES)
        && (1..MAX_LABEL_BYTES).contains(&record.path.len())
        && is_path(&record.target_path().0)
        && record.files.as_ref().is_none_or(|files| files.len() <= MAX_LOCATION_FILES)
        && record.files.iter().flatten().all(|name| is_path(name))
        && record.inventories.len() <= MAX_INVENTORIES
        && record.inventories.iter().chain(&record.metadata_time).all(is_word)
        && is_word(&record.data_time)
        && record.metadata_languages.len() <= MAX_LINKED_LABELS
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

/// Writes the records of one Archive.
pub(super) struct RecordWriter<'a> {
    pub(super) id: ArchiveId,
    pub(super) now: i64,
    /// All Archives, for the prefixes of their services.
    pub(super) archives: &'a [Arc<RegisteredArchive>],
    /// Labels of items that two Archives claim as Originals.
    pub(super) disputed: Vec<String>,
    /// Whether there was something that the index cannot hold.
    pub(super) is_unfit: bool,
}

impl RecordWriter<'_> {
    /// Writes a record in the place of the one with the same path; returns what that one took, and
    /// what this one takes.
    pub(super) fn put(
        &mut self,
        batch: &mut LocationBatch<'_>,
        record: &LocationRecord,
    ) -> Result<(Option<IndexedSize>, IndexedSize), StorageError> {
        let mut size = IndexedSize::default();
        let mut labels = Vec::new();
        for (label, role) in roles(record) {
            let Ok(parsed) = Label::parse(label) else { continue };
            let (key, folded) = label_keys(&parsed);
            let value = batch.get(LocationTable::Labels, &key)?.unwrap_or_default();
            let prior = PriorClaim::find(postings(&value), self.id.0, record.state);
            labels.push((label, parsed, role, key, folded, prior));
        }
        let removed = remove_item(batch, self.id, &record.path)?;
        let (target, contenttype) = record.target_path();
        for (label, parsed, role, key, folded, prior) in labels {
            let mut value = batch.get(LocationTable::Labels, &key)?.unwrap_or_default();
            if postings(&value).filter(|posting| posting.archive == self.id.0).count() >= MAX_ITEMS_PER_LABEL
            {
                self.is_unfit = true;
                continue;
            }
            let is_claimed =
                postings(&value).any(|posting| posting.archive != self.id.0 && is_original(&posting));
            if role == PostingRole::Item && record.state == State::Original && is_claimed {
                self.disputed.push(label.to_owned());
            }
            let is_owner = |archive: u64| self.is_owner(archive, &parsed);
            let others = || postings(&value).filter(|posting| posting.archive != self.id.0);
            let terms = ClaimTerms::new(self.id.0, record.state, prior.as_ref(), others, &is_owner, self.now);
            if role == PostingRole::Item && record.state == State::Copy && is_claimed {
                let lets_go = prior.is_some_and(|prior| prior.lets_go(record.state));
                value = self.after_copy(&value, lets_go, is_owner(self.id.0));
            }
            let before = value.len();
            write_posting(
                &mut value,
                &LabelPosting {
                    archive: self.id.0,
                    role,
                    state: record.state,
                    is_open: !record.ask && record.state != State::Deleted,
                    contenttype,
                    since: terms.since,
                    is_late: terms.is_late,
                    is_granted: terms.is_granted,
                    spelling: folded.as_bytes(),
                    path: record.path.as_bytes(),
                    target: if role == PostingRole::Item { target.as_bytes() } else { b"" },
                },
            );
            size.add(1, value.len() - before);
            batch.put(LocationTable::Labels, &key, &value)?;
        }
        let text = serde_json::to_vec(record).unwrap_or_default();
        let key = item_key(self.id, &record.path);
        size.add(0, key.len() + text.len());
        batch.put(LocationTable::Items, &key, &text)?;
        Ok((removed, size))
    }

    /// Removes an item that the Archive no longer has. The holder of an Original does that only after
    /// it was handed over: later claims are then no longer late.
    pub(super) fn remove(
        &self,
        batch: &mut LocationBatch<'_>,
        path: &str,
    ) -> Result<Option<IndexedSize>, StorageError> {
        let stored = batch.get(LocationTable::Items, &item_key(self.id, path))?;
        let record = stored.and_then(|bytes| serde_json::from_slice::<LocationRecord>(&bytes).ok());
        let mut let_go = Vec::new();
        for (label, role) in record.iter().flat_map(roles) {
            let Some(parsed) = Label::parse(label).ok().filter(|_| role == PostingRole::Item) else {
                continue;
            };
            let (key, _) = label_keys(&parsed);
            let value = batch.get(LocationTable::Labels, &key)?.unwrap_or_default();
            let prior = PriorClaim::find(postings(&value), self.id.0, State::Original);
            if prior.is_some_and(|prior| prior.lets_go(State::Copy)) {
                let_go.push((key, self.is_owner(self.id.0, &parsed)));
            }
        }
        let removed = remove_item(batch, self.id, path)?;
        for (key, is_owner) in let_go {
            if let Some(value) = batch.get(LocationTable::Labels, &key)? {
                batch.put(LocationTable::Labels, &key, &self.after_copy(&value, true, is_owner))?;
            }
        }
        Ok(removed)
    }

    /// Whether an Archive's service has the prefix of a label.
    fn is_owner(&self, archive: u64, label: &Label<impl AsRef<str>>) -> bool {
        let archive = self.archives.iter().find(|other| other.id.0 == archive);
        archive.is_some_and(|archive| has_prefix_of(label, &archive.service))
    }

    /// The postings of a label once this Archive says that it has a Copy.
    fn after_copy(&self, value: &[u8], lets_go: bool, is_owner: bool) -> Vec<u8> {
        let is_claim = |posting: &LabelPosting<'_>| is_original(posting) && posting.archive != self.id.0;
        let is_only = postings(value).filter(is_claim).count() == 1;
        let mut changed = Vec::with_capacity(value.len());
        for mut posting in postings(value) {
            if is_claim(&posting) {
                let terms = after_copy(&posting, is_only, lets_go, is_owner, self.now);
                (posting.since, posting.is_late) = (terms.since, terms.is_late);
                posting.is_granted = terms.is_granted;
            }
            write_posting(&mut changed, &posting);
        }
        changed
    }
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
