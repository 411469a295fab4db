//! The index in memory, shared by an Archive that reads it and the simulation that writes it.

use std::sync::{Arc, Mutex, PoisonError};

use ibi_store::StorageError;
use ibi_store::index::{
    FileRecord, IndexMatch, IndexRecord, IndexStorage, IndexedItem, LabelRole, LinkKind, LinkRecord,
    MemoryIndex, PlacedStatement,
};
use ibi_store::journal::{JournalEntry, JournalPosition, LinkStatement, LinkStatus};

/// An index; clones share it.
#[derive(Clone, Default)]
pub(crate) struct SharedIndex(Arc<Mutex<MemoryIndex>>);

macro_rules! pass_on {
    ($(fn $name:ident($($given:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl IndexStorage for SharedIndex {
            $(fn $name(&self, $($given: $kind),*) -> Result<$result, StorageError> {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).$name($($given),*)
            })*
        }
    };
}

pass_on! {
    fn position() -> JournalPosition;
    fn find(folded: &str, canonical: &str) -> Vec<IndexMatch>;
    fn find_exact(folded: &str) -> Option<(IndexRecord, LabelRole)>;
    fn item(path: &str) -> Option<IndexRecord>;
    fn list(after: &str, limit: usize) -> Vec<IndexRecord>;
    fn changes(after: u64, limit: usize) -> Vec<IndexRecord>;
    fn metadata(path: &str) -> Option<String>;
    fn metadata_size(path: &str) -> u64;
    fn files(path: &str, after: &str, limit: usize) -> Vec<FileRecord>;
    fn has_more_files(path: &str, many: usize) -> bool;
    fn file(path: &str, name: &str) -> Option<FileRecord>;
    fn total_file_size(path: &str) -> u64;
    fn events(path: &str) -> Vec<JournalEntry>;
    fn last_event(path: &str) -> Option<JournalEntry>;
    fn changed_paths(after: u64, limit: usize) -> Vec<(u64, String)>;
    fn event_at(change: u64) -> Option<JournalEntry>;
    fn links(path: &str) -> Vec<LinkRecord>;
    fn items_with_links(after: &str, limit: usize) -> Vec<String>;
    fn items_linking_to(kind: LinkKind, to: &str) -> Vec<String>;
    fn links_to_older(kind: LinkKind, older: &str) -> Vec<LinkStatement>;
    fn links_from_newer(kind: LinkKind, newer: &str) -> Vec<LinkStatement>;
    fn linked_labels(kind: LinkKind, labels: &[String]) -> Vec<String>;
    fn link_statements(status: Option<LinkStatus>, after: (u64, u64), limit: usize) -> Vec<PlacedStatement>;
    fn by_request(key: &str) -> Option<String>;
    fn begin() -> ();
    fn put_item(item: &IndexedItem) -> ();
    fn remove_item(path: &str) -> ();
    fn missing_items() -> Vec<String>;
    fn set_last_change(path: &str, change: u64) -> ();
    fn add_event(entry: &JournalEntry) -> ();
    fn remove_events(changes: &[u64]) -> ();
    fn commit(position: JournalPosition) -> ();
    fn roll_back() -> ();
}
