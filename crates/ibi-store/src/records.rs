//! Records: what an Archive looks up. They are an index over the tree and the journal, and can be made anew from those.

mod memory;
mod sqlite;

use crate::KeepError;
use crate::journal::{Entry, LinkStatement, LinkStatus, Position, State};

pub use crate::journal::LinkKind;
pub use memory::MemoryRecords;
pub use sqlite::{Loader, SqliteRecords, Standing};

/// An item, as far as it is looked up and listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The path of its object.
    pub path: String,
    /// The last thing that happened to it.
    pub change: u64,
    /// Its version.
    pub version: u32,
    /// The first 32 hex digits of the SHA-512 of its inventory.
    pub inventory: String,
    /// What it is here.
    pub state: State,
    /// How often its original was handed over.
    pub epoch: u64,
    /// Its properties, without its files: JSON that only the Archive understands.
    pub properties: String,
    /// Its metadata, likewise.
    pub metadata: String,
}

/// What a label leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The item.
    Item,
    /// The item, by another name.
    Alias,
    /// The item's metadata.
    Metadata,
}

/// A label of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRecord {
    /// As it is spelled, folded: unique (clause 1.3).
    pub folded: String,
    /// The canonical spelling, folded.
    pub canonical: String,
    /// What it leads to.
    pub role: Role,
}

/// A file of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its logical path, below `doc/`.
    pub name: String,
    /// Its path in the object.
    pub content: String,
    /// Bytes.
    pub size: u64,
    /// SHA-512 in hex.
    pub sha512: String,
    /// Media type.
    pub media: String,
    /// BLAKE3 of each block.
    pub blocks: Vec<u8>,
}

/// A statement about a link, with the number of its line and its place in it.
pub type PlacedStatement = ((u64, u64), LinkStatement);

/// A link from an item to a label, which may be of an item that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecord {
    /// Its kind.
    pub kind: LinkKind,
    /// The canonical spelling of the label, folded.
    pub to: String,
}

/// All that is recorded of an item but its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    /// The item.
    pub record: Record,
    /// Its labels.
    pub labels: Vec<LabelRecord>,
    /// Its links.
    pub links: Vec<LinkRecord>,
    /// Its files.
    pub files: Vec<FileRecord>,
}

/// A label that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path of the item's object.
    pub path: String,
    /// What of it the label leads to.
    pub role: Role,
    /// Whether it is spelled so, and not only the same identifier.
    pub spelled: bool,
}

/// A store of records. Reads between [`Records::begin`] and [`Records::commit`] see what was written there.
pub trait Records: Send {
    /// How far the journal was followed.
    fn position(&self) -> Result<Position, KeepError>;

    /// What a label leads to: by its folded spelling, and if there is none, by its canonical one. More than one only
    /// where items with different spellings of one label were brought in (clause 1.3).
    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<Found>, KeepError>;

    /// The item that a label leads to which is spelled so, in one step, and what of it.
    fn held(&self, folded: &str) -> Result<Option<(Record, Role)>, KeepError>;

    /// An item.
    fn item(&self, path: &str) -> Result<Option<Record>, KeepError>;

    /// Items in order of their paths, after one.
    fn list(&self, after: &str, limit: usize) -> Result<Vec<Record>, KeepError>;

    /// Items in order of the last thing that happened to them, after one.
    fn changes(&self, after: u64, limit: usize) -> Result<Vec<Record>, KeepError>;

    /// The files of an item in order of their names, after one.
    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, KeepError>;

    /// One file of an item.
    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, KeepError>;

    /// The bytes of all files of an item.
    fn size(&self, path: &str) -> Result<u64, KeepError>;

    /// What happened to an item.
    fn events(&self, path: &str) -> Result<Vec<Entry>, KeepError>;

    /// The last thing that happened to an item.
    fn last_event(&self, path: &str) -> Result<Option<Entry>, KeepError>;

    /// Where an item links to.
    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, KeepError>;

    /// Items that link to others, in order of their paths, after one.
    fn linking(&self, after: &str, limit: usize) -> Result<Vec<String>, KeepError>;

    /// Items that link to a label.
    fn linked(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, KeepError>;

    /// All statements about links of a kind to an older item, by a label of it, in order of their lines.
    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, KeepError>;

    /// All statements about links of a kind from a newer item, likewise.
    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, KeepError>;

    /// Statements that say so in order of their lines, after one and a number in it; each with that place.
    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, KeepError>;

    /// The item that a request made.
    fn made_by(&self, key: &str) -> Result<Option<String>, KeepError>;

    /// Begins to write.
    fn begin(&self) -> Result<(), KeepError>;

    /// Writes an item, in the place of what was recorded of it. [`KeepError::LabelTaken`] if another item has one of its
    /// labels: nothing is recorded then of an item that is new, and all that was begun is to be rolled back of one that is
    /// not.
    fn put(&self, item: &Full) -> Result<(), KeepError>;

    /// Takes an item out: its object is not there. What happened to it stays.
    fn forget(&self, path: &str) -> Result<(), KeepError>;

    /// Paths to which something happened, and where no item is recorded, though it was not dropped.
    fn lost(&self) -> Result<Vec<String>, KeepError>;

    /// Writes which change was the last to an item that it left as it was.
    fn touch(&self, path: &str, change: u64) -> Result<(), KeepError>;

    /// Writes something that happened.
    fn happened(&self, entry: &Entry) -> Result<(), KeepError>;

    /// Takes out things that did not happen.
    fn did_not_happen(&self, changes: &[u64]) -> Result<(), KeepError>;

    /// Ends writing, durably, with the journal followed up to a place.
    fn commit(&self, position: Position) -> Result<(), KeepError>;

    /// Ends writing as if it had not begun.
    fn roll_back(&self) -> Result<(), KeepError>;
}
