//! What is recorded, looked up in the order in which the tree is walked.

use std::vec::IntoIter;

use ibi_store::index::IndexedVersion;
use ibi_store::{SqliteIndex, StorageError};

/// Items that are read at a time.
const RECORD_PAGE_ITEMS: usize = 256;

/// Reads ahead in the index along with the walk, which costs far less than single lookups. The
/// index orders paths as text, the walk by name per folder, so a few paths are out of order: those
/// are looked up.
pub(super) struct RecordCursor<'a> {
    records: &'a SqliteIndex,
    page: IntoIter<IndexedVersion>,
    /// The last one that was read.
    last: String,
}

impl<'a> RecordCursor<'a> {
    pub(super) fn new(records: &'a SqliteIndex) -> Self {
        Self { records, page: Vec::new().into_iter(), last: String::new() }
    }

    /// How the item at a path is recorded. What changes meanwhile are items that the walk has
    /// passed.
    pub(super) fn record_at(&mut self, path: &str) -> Result<Option<IndexedVersion>, StorageError> {
        loop {
            match self.page.as_slice().first() {
                Some(next) if next.path == path => return Ok(self.page.next()),
                Some(next) if next.path.as_str() > path => return self.records.indexed_version(path),
                Some(_) => drop(self.page.next()),
                None if self.last.as_str() >= path => return self.records.indexed_version(path),
                None => {
                    let page = self.records.list_indexed_versions(&self.last, RECORD_PAGE_ITEMS)?;
                    let Some(last) = page.last() else { return self.records.indexed_version(path) };
                    self.last.clone_from(&last.path);
                    self.page = page.into_iter();
                }
            }
        }
    }
}
