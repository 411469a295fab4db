//! What is recorded, looked up in the order in which the tree is walked.

use std::vec::IntoIter;

use ibi_store::records::Standing;
use ibi_store::{KeepError, SqliteRecords};

/// Items that are read at a time.
const PAGE: usize = 256;

/// Reads on in the index as the walk goes on, which costs far less than looking up each by itself. The index orders paths as
/// text and the walk name by name, so that here and there one is not next: that one is looked up.
pub(super) struct Recorded<'a> {
    records: &'a SqliteRecords,
    page: IntoIter<Standing>,
    /// The last one that was read.
    last: String,
}

impl<'a> Recorded<'a> {
    pub(super) fn new(records: &'a SqliteRecords) -> Self {
        Self { records, page: Vec::new().into_iter(), last: String::new() }
    }

    /// How the item at a path is recorded. What changes meanwhile are items that the walk has passed.
    pub(super) fn at(&mut self, path: &str) -> Result<Option<Standing>, KeepError> {
        loop {
            match self.page.as_slice().first() {
                Some(next) if next.path == path => return Ok(self.page.next()),
                Some(next) if next.path.as_str() > path => return self.records.stands(path),
                Some(_) => drop(self.page.next()),
                None if self.last.as_str() >= path => return self.records.stands(path),
                None => {
                    let page = self.records.standing(&self.last, PAGE)?;
                    let Some(last) = page.last() else { return self.records.stands(path) };
                    self.last.clone_from(&last.path);
                    self.page = page.into_iter();
                }
            }
        }
    }
}
