//! Copies that are no version of the Original (4.4): they are no answer, and an operator is told.

use ibi_id::Label;
use ibi_protocol::State;
use ibi_protocol::analysis::{ArchiveId, RoundQuery};
use ibi_protocol::location::LocationRecord;
use ibi_store::{LocationBatch, LocationTable, StorageError};

use super::posting::{LabelPosting, postings};
use super::records::{item_key, label_keys};
use super::{ArchiveLookup, IndexedAnswers, IndexedEntry, LocationIndex};

/// A Copy whose newest version is none that the Archive of the Original reported. That one's feed
/// may only be behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspectCopy {
    /// The label of the item.
    pub label: String,
    /// The Archive of the Original.
    pub original: ArchiveId,
    /// The Archive of the Copy.
    pub copy: ArchiveId,
}

/// What the index says of a suspect Copy once the feeds were asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyVerdict {
    /// It is no version of the Original.
    Differs,
    /// It is a version of the Original, or one of them is gone.
    Fits,
    /// The Archive of the Original was not heard from: its versions may not all be known.
    Unknown,
}

/// Whether the newest version of a Copy is none of those of the Original.
fn is_other_item(original: &LocationRecord, copy: &LocationRecord) -> bool {
    let newest = copy.inventories.last();
    !original.inventories.is_empty() && newest.is_some_and(|newest| !original.inventories.contains(newest))
}

/// The suspect Copies under the label of a record that was just written.
pub(super) fn suspect_copies(
    batch: &LocationBatch<'_>,
    record: &LocationRecord,
) -> Result<Vec<SuspectCopy>, StorageError> {
    let mut suspects = Vec::new();
    let Some(Ok(label)) = record.labels.first().map(|label| Label::parse(label)) else { return Ok(suspects) };
    let (key, folded) = label_keys(&label);
    let value = batch.get(LocationTable::Labels, &key)?.unwrap_or_default();
    // Other spellings are other items (1.3).
    let same = || postings(&value).filter(|posting| posting.spelling == folded.as_bytes());
    let read = |posting: &LabelPosting<'_>| {
        let path = String::from_utf8_lossy(posting.path);
        let stored = batch.get(LocationTable::Items, &item_key(ArchiveId(posting.archive), &path))?;
        Ok::<_, StorageError>(stored.and_then(|bytes| serde_json::from_slice::<LocationRecord>(&bytes).ok()))
    };
    let mut originals = same().filter(|posting| posting.state == State::Original && !posting.is_late);
    let (Some(original), None) = (originals.next(), originals.next()) else { return Ok(suspects) };
    let mut copies = same().filter(|posting| posting.state == State::Copy).peekable();
    if copies.peek().is_none() {
        return Ok(suspects);
    }
    let Some(original_record) = read(&original)? else { return Ok(suspects) };
    for copy in copies {
        if read(&copy)?.is_some_and(|copy| is_other_item(&original_record, &copy)) {
            suspects.push(SuspectCopy {
                label: label.spelling().to_owned(),
                original: ArchiveId(original.archive),
                copy: ArchiveId(copy.archive),
            });
        }
    }
    Ok(suspects)
}

impl LocationIndex {
    /// Looks at a suspect Copy again.
    pub(crate) fn judge_copy(&self, suspect: &SuspectCopy) -> Result<CopyVerdict, StorageError> {
        let Ok(label) = suspect.label.parse::<Label>() else { return Ok(CopyVerdict::Fits) };
        let found = self.find(&RoundQuery::new(label))?;
        let mut own = found.entries.iter().filter(|entry| entry.archive == suspect.copy && entry.is_spelled);
        let Some(copy) = own.find(|entry| entry.state == State::Copy) else { return Ok(CopyVerdict::Fits) };
        let differs = self.is_forged_copy(&found, copy)?;
        let is_known = self.age(&self.followed(suspect.original)).is_some();
        Ok(match (differs, is_known) {
            (false, _) => CopyVerdict::Fits,
            (true, true) => CopyVerdict::Differs,
            (true, false) => CopyVerdict::Unknown,
        })
    }

    /// Whether the newest version of a Copy is none that the Archive of the Original ever had
    /// (4.4).
    pub(super) fn is_forged_copy(
        &self,
        found: &IndexedAnswers,
        copy: &IndexedEntry,
    ) -> Result<bool, StorageError> {
        // Other spellings are other items (1.3).
        let is_holder =
            |entry: &&IndexedEntry| entry.is_spelled && entry.state == State::Original && !entry.is_late;
        let mut originals = found.entries.iter().filter(is_holder);
        let (Some(original), None) = (originals.next(), originals.next()) else { return Ok(false) };
        let item =
            |entry: &IndexedEntry| ArchiveLookup { index: self, archive: entry.archive }.item(&entry.path);
        let (Some(original), Some(copy)) = (item(original)?, item(copy)?) else { return Ok(false) };
        Ok(is_other_item(&original, &copy))
    }
}
