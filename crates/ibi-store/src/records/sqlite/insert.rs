//! Insertions: one by one, or many with statements that are held.

use rusqlite::{Statement, ToSql, params};

use super::SqliteRecords;
use crate::KeepError;
use crate::journal::Entry;
use crate::records::Full;

/// What an insertion goes into.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Item,
    Label,
    Link,
    File,
    Event,
    Statement,
}

/// Runs an insertion, and tells how many rows it made.
pub(super) type Insert<'a> = &'a mut dyn FnMut(Table, &[&dyn ToSql]) -> Result<usize, KeepError>;

impl Table {
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
                ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING"
            ),
            Self::Statement => {
                "INSERT INTO statement (change, place, kind, older, newer, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT DO NOTHING"
            }
        }
    }
}

/// Records many, with statements that are held: looking them up each time costs a tenth as much as running them.
pub struct Loader<'a> {
    records: &'a SqliteRecords,
    statements: [Statement<'a>; 6],
}

impl Loader<'_> {
    /// Like [`Records::put`](crate::Records::put).
    pub fn put(&mut self, item: &Full) -> Result<(), KeepError> {
        let statements = &mut self.statements;
        self.records.put_by(item, &mut |into, values| Ok(statements[into as usize].execute(values)?))
    }

    /// Like [`Records::happened`](crate::Records::happened).
    pub fn happened(&mut self, entry: &Entry) -> Result<(), KeepError> {
        let statements = &mut self.statements;
        happened_by(entry, &mut |into, values| Ok(statements[into as usize].execute(values)?))
    }
}

impl std::fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("records", self.records).finish_non_exhaustive()
    }
}

/// Records a line of the journal by what runs an insertion.
pub(super) fn happened_by(entry: &Entry, insert: Insert<'_>) -> Result<(), KeepError> {
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
        entry.past
    ];
    insert(Table::Event, parameters)?;
    for (link, place) in entry.links.iter().zip(0_i64..) {
        // Texts and numbers: nothing that JSON could refuse.
        let body = serde_json::to_string(link).unwrap_or_default();
        let kind = link.kind as i64;
        let status = link.status as i64;
        let values = params![entry.change as i64, place, kind, link.older, link.newer, status, body];
        insert(Table::Statement, values)?;
    }
    Ok(())
}

impl SqliteRecords {
    /// For recording many.
    pub fn loader(&self) -> Result<Loader<'_>, KeepError> {
        let prepare = |into: Table| self.0.prepare(into.sql());
        let [item, label, link, file, event, statement] = Table::ALL.map(prepare);
        let statements = [item?, label?, link?, file?, event?, statement?];
        Ok(Loader { records: self, statements })
    }
}
