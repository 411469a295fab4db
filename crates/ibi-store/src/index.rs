//! The index: what an Archive looks up. It can be rebuilt from the OCFL tree and the journal.

mod memory;
mod sqlite;

use crate::StorageError;
use crate::journal::{JournalEntry, JournalPosition, LinkStatement, LinkStatus, State};

pub use crate::journal::LinkKind;
pub use memory::MemoryIndex;
pub use sqlite::{IndexBulkLoader, IndexedVersion, SqliteIndex};

/// Reads leave longer metadata out of an [`IndexRecord`]: most callers do not need them, and the
/// cost of listing items must not grow with their metadata. [`IndexStorage::metadata`] reads them.
pub const MAX_INLINE_METADATA_BYTES: usize = 64 << 10;

/// The fields of an item that are looked up and listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRecord {
    /// The path of its OCFL object.
    pub path: String,
    /// The number of the last journal line about it.
    pub change: u64,
    /// Its latest version here.
    pub version: u32,
    /// The first 32 hex digits of the SHA-512 of its inventory.
    pub inventory: String,
    /// Its state at this Archive.
    pub state: State,
    /// How often the Original was handed over.
    pub epoch: u64,
    /// Its properties without its files, as JSON that only the Archive interprets.
    pub properties: String,
    /// Its metadata, likewise. Empty if longer than [`MAX_INLINE_METADATA_BYTES`].
    pub metadata: String,
}

/// The target of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelRole {
    /// The item.
    Item,
    /// The item, by an alias.
    Alias,
    /// The item's metadata.
    Metadata,
}

/// A label of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRecord {
    /// The label as spelled, folded. Unique (clause 1.3).
    pub folded: String,
    /// The canonical spelling, folded.
    pub canonical: String,
    /// The target.
    pub role: LabelRole,
}

/// A file of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its logical path, below `doc/`.
    pub name: String,
    /// Its content path in the object.
    pub content: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-512 in hex.
    pub sha512: String,
    /// Media type.
    pub media: String,
    /// The BLAKE3 hashes of all blocks, concatenated.
    pub blocks: Vec<u8>,
}

/// A statement about a link, with its journal line number and its position in that line.
pub type PlacedStatement = ((u64, u64), LinkStatement);

/// A link from an item to a label. The label's item may be at another Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecord {
    /// Its kind.
    pub kind: LinkKind,
    /// The canonical spelling of the label, folded.
    pub to: String,
}

/// An item as indexed, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedItem {
    /// The item.
    pub record: IndexRecord,
    /// Its labels.
    pub labels: Vec<LabelRecord>,
    /// Its links.
    pub links: Vec<LinkRecord>,
    /// Its files.
    pub files: Vec<FileRecord>,
}

/// The result of a label lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMatch {
    /// The path of the item's object.
    pub path: String,
    /// The target of the label.
    pub role: LabelRole,
    /// Whether the spelling matches too, not only the identifier.
    pub spelled: bool,
}

/// A store for the index. Reads between [`IndexStorage::begin`] and [`IndexStorage::commit`] see
/// the uncommitted writes.
pub trait IndexStorage: Send {
    /// The journal position up to which the index is current.
    fn position(&self) -> Result<JournalPosition, StorageError>;

    /// Looks a label up by its folded spelling, or, if that has no match, by its canonical one.
    /// Returns more than one match only where items with different spellings of one label were
    /// imported (clause 1.3).
    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<IndexMatch>, StorageError>;

    /// Looks an item up by the exact folded spelling of a label, in one query.
    fn find_exact(&self, folded: &str) -> Result<Option<(IndexRecord, LabelRole)>, StorageError>;

    /// An item by the path of its object.
    fn item(&self, path: &str) -> Result<Option<IndexRecord>, StorageError>;

    /// Items by path, starting after `after`.
    fn list(&self, after: &str, limit: usize) -> Result<Vec<IndexRecord>, StorageError>;

    /// Items by their last change, starting after `after`.
    fn changes(&self, after: u64, limit: usize) -> Result<Vec<IndexRecord>, StorageError>;

    /// The metadata of an item, at any length.
    fn metadata(&self, path: &str) -> Result<Option<String>, StorageError>;

    /// The size of the metadata in bytes; 0 if there is no such item.
    fn metadata_size(&self, path: &str) -> Result<u64, StorageError>;

    /// The files of an item by name, starting after `after`.
    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, StorageError>;

    /// Whether an item has more than `many` files, without reading them all.
    fn has_more_files(&self, path: &str, many: usize) -> Result<bool, StorageError>;

    /// One file of an item.
    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, StorageError>;

    /// The total size of an item's files in bytes.
    fn total_file_size(&self, path: &str) -> Result<u64, StorageError>;

    /// The history of an item.
    fn events(&self, path: &str) -> Result<Vec<JournalEntry>, StorageError>;

    /// The last event of an item.
    fn last_event(&self, path: &str) -> Result<Option<JournalEntry>, StorageError>;

    /// The numbers and paths of changes after `after`, in order.
    fn changed_paths(&self, after: u64, limit: usize) -> Result<Vec<(u64, String)>, StorageError>;

    /// The event of a change.
    fn event_at(&self, change: u64) -> Result<Option<JournalEntry>, StorageError>;

    /// The links of an item.
    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, StorageError>;

    /// The paths of items that have links, by path, starting after `after`.
    fn items_with_links(&self, after: &str, limit: usize) -> Result<Vec<String>, StorageError>;

    /// The paths of items that link to a label.
    fn items_linking_to(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, StorageError>;

    /// All statements about links of a kind to an older item, given by one of its labels, in
    /// journal order.
    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, StorageError>;

    /// All statements about links of a kind from a newer item, likewise.
    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, StorageError>;

    /// Which of these labels have statements about links of a kind, as the older or the newer item.
    fn linked_labels(&self, kind: LinkKind, labels: &[String]) -> Result<Vec<String>, StorageError>;

    /// Statements with this status in journal order, starting after a line number and a position in
    /// that line. Each comes with its own position.
    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, StorageError>;

    /// The path of the item that the request with this key created.
    fn by_request(&self, key: &str) -> Result<Option<String>, StorageError>;

    /// Begins a transaction.
    fn begin(&self) -> Result<(), StorageError>;

    /// Writes an item, replacing its previous record. Fails with [`StorageError::LabelTaken`] if
    /// another item has one of its labels. In that case a new item leaves no record; for an
    /// existing item the caller must roll the transaction back.
    fn put_item(&self, item: &IndexedItem) -> Result<(), StorageError>;

    /// Removes an item whose object no longer exists. Its history stays.
    fn remove_item(&self, path: &str) -> Result<(), StorageError>;

    /// Paths that have events but no item record, although the item was not dropped.
    fn missing_items(&self) -> Result<Vec<String>, StorageError>;

    /// Records the last change of an item for a change that left the item itself as it was.
    fn set_last_change(&self, path: &str, change: u64) -> Result<(), StorageError>;

    /// Adds an event.
    fn add_event(&self, entry: &JournalEntry) -> Result<(), StorageError>;

    /// Removes events that were voided.
    fn remove_events(&self, changes: &[u64]) -> Result<(), StorageError>;

    /// Commits the transaction durably, with the journal position that the index now reflects.
    fn commit(&self, position: JournalPosition) -> Result<(), StorageError>;

    /// Rolls the transaction back.
    fn roll_back(&self) -> Result<(), StorageError>;
}
