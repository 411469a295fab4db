//! Insertions: one by one, or in bulk with prepared statements.

use rusqlite::{Statement, ToSql, params};

use super::SqliteIndex;
use crate::StorageError;
use crate::index::IndexedItem;
use crate::journal::{JournalEntry, State};

/// The target table of an insertion.
#[derive(Debug, Clone, Copy)]
pub(super) enum IndexTable {
    Item,
    Label,
    Link,
    File,
    Event,
    Statement,
}

/// Runs an insertion, and returns the number of inserted rows.
pub(super) type IndexInsert<'a> = &'a mut dyn FnMut(IndexTable, &[&dyn ToSql]) -> Result<usize, StorageError>;

impl IndexTable {
    const ALL: [Self; 6] = [Self::Item, Self::Label, Self::Link, Self::File, Self::Event, Self::Statement];

    pub(super) const fn sql(self) -> &'static str {
        match self {
            Self::Item => concat!(
                "INSERT INTO item (",
                record_columns!(),
                ", labels) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING"
            ),
            Self::Label => {
                "INSERT INTO label (folded, canonical, role, item) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
            }
            Self::Link => "INSERT INTO link (path, kind, target) VALUES (?1, ?2, ?3)",
            Self::File => {
                concat!("INSERT INTO file (path, ", file_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
            }
            Self::Event => concat!(
                "INSERT INTO event (",
                event_columns!(),
                ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) ON CONFLICT DO NOTHING"
            ),
            Self::Statement => {
                "INSERT INTO statement (change, place, kind, older, newer, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT DO NOTHING"
            }
        }
    }
}

/// Bulk insertion with statements that stay prepared: looking them up each time costs a tenth as
/// much as running them.
pub struct IndexBulkLoader<'a> {
    records: &'a SqliteIndex,
    statements: [Statement<'a>; 6],
}

impl IndexBulkLoader<'_> {
    /// Like [`IndexStorage::put_item`](crate::IndexStorage::put_item).
    pub fn load_item(&mut self, item: &IndexedItem) -> Result<(), StorageError> {
        let statements = &mut self.statements;
        self.records.insert_item(item, &mut |into, values| Ok(statements[into as usize].execute(values)?))
    }

    /// Like [`IndexStorage::add_event`](crate::IndexStorage::add_event).
    pub fn load_event(&mut self, entry: &JournalEntry) -> Result<(), StorageError> {
        let statements = &mut self.statements;
        insert_event(entry, &mut |into, values| Ok(statements[into as usize].execute(values)?))
    }
}

impl std::fmt::Debug for IndexBulkLoader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("records", self.records).finish_non_exhaustive()
    }
}

/// Writes a journal entry through `insert`.
pub(super) fn insert_event(entry: &JournalEntry, insert: IndexInsert<'_>) -> Result<(), StorageError> {
    let parameters = params![
        entry.path,
        entry.change as i64,
        entry.batch as i64,
        entry.time,
        entry.verb.name(),
        entry.version,
        entry.inventory,
        entry.state.name(),
        entry.epoch as i64,
        entry.by,
        entry.source,
        entry.to,
        entry.key,
        entry.note,
        entry.past,
        entry.owner,
        entry.source_state.map(State::name)
    ];
    insert(IndexTable::Event, parameters)?;
    for (link, place) in entry.links.iter().zip(0_i64..) {
        // Only strings and numbers: serialization to JSON cannot fail.
        let body = serde_json::to_string(link).unwrap_or_default();
        let kind = link.kind as i64;
        let status = link.status as i64;
        let values = params![entry.change as i64, place, kind, link.older, link.newer, status, body];
        insert(IndexTable::Statement, values)?;
    }
    Ok(())
}

impl SqliteIndex {
    /// Prepares the statements for bulk insertion.
    pub fn bulk_loader(&self) -> Result<IndexBulkLoader<'_>, StorageError> {
        let prepare = |into: IndexTable| self.0.prepare(into.sql());
        let [item, label, link, file, event, statement] = IndexTable::ALL.map(prepare);
        let statements = [item?, label?, link?, file?, event?, statement?];
        Ok(IndexBulkLoader { records: self, statements })
    }
}
