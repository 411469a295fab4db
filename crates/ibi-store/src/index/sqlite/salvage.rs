//! Recovers single journal lines from the index, for a journal that lost them.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::SqliteIndex;
use super::rows::{read_event, read_statement};
use crate::StorageError;
use crate::journal::JournalEntry;

impl SqliteIndex {
    /// Checkpoints the write-ahead log into the file, as far as possible, before the file is moved.
    pub fn checkpoint_wal(path: &Path) {
        let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        // Anything that cannot be checkpointed is in the journal as well.
        let _ = opened.and_then(|old| old.pragma_update(None, "journal_mode", "delete"));
    }

    /// Indexes events by line number, for the lifetime of this connection. The index file itself is
    /// unchanged.
    pub fn index_events_by_change(&self) -> Result<(), StorageError> {
        Ok(self.0.execute_batch(
            "CREATE TEMP TABLE numbered AS SELECT change, path FROM event;
             CREATE UNIQUE INDEX temp.numbered_change ON numbered (change);",
        )?)
    }

    /// The event of one journal line; `None` if that line has no effect. Requires
    /// [`SqliteIndex::index_events_by_change`].
    pub fn event_by_change(&self, change: u64) -> Result<Option<JournalEntry>, StorageError> {
        let number = change.cast_signed();
        let sql = "SELECT path FROM temp.numbered WHERE change = ?1";
        let path: Option<String> =
            self.0.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()?;
        let Some(path) = path else { return Ok(None) };
        let sql = concat!("SELECT ", event_columns!(), " FROM event WHERE path = ?1 AND change = ?2");
        let Some(mut entry) = self.query_optional(sql, params![path, number], read_event)? else {
            return Ok(None);
        };
        let sql = "SELECT body FROM statement WHERE change = ?1 ORDER BY place";
        entry.links = self.query_all(sql, [number], |row| read_statement(row, 0))?;
        Ok(Some(entry))
    }

    /// Paths whose history lacks a line: it does not begin with the arrival of the item, or it
    /// skips a version. One entry for each line that must be missing.
    pub fn gaps_in_history(&self) -> Result<Vec<String>, StorageError> {
        let sql = "SELECT path FROM (
                SELECT path, verb, version, LAG(version) OVER (PARTITION BY path ORDER BY change) AS before FROM event)
            WHERE (before IS NULL AND verb NOT IN ('deposit', 'copy', 'adopt', 'accept'))
                OR (before IS NOT NULL AND verb IN ('update', 'remove') AND version > before + 1)
            ORDER BY path";
        self.query_all(sql, [], |row| row.get(0))
    }
}
