//! Conversion of rows to records.

use rusqlite::Row;

use super::IndexedVersion;
use crate::index::{FileRecord, IndexRecord, LabelRole};
use crate::journal::{JournalEntry, LinkStatement, State, Verb};

pub(super) fn read_record(row: &Row<'_>) -> rusqlite::Result<IndexRecord> {
    Ok(IndexRecord {
        path: row.get(0)?,
        change: read_u64(row, 1)?,
        version: row.get(2)?,
        inventory: row.get(3)?,
        state: read_item_state(row, 4)?,
        epoch: read_u64(row, 5)?,
        properties: row.get(6)?,
        metadata: row.get(7)?,
    })
}

pub(super) fn read_indexed_version(row: &Row<'_>) -> rusqlite::Result<IndexedVersion> {
    Ok(IndexedVersion { path: row.get(0)?, change: read_u64(row, 1)?, inventory: row.get(2)? })
}

pub(super) fn read_file_row(row: &Row<'_>) -> rusqlite::Result<FileRecord> {
    Ok(FileRecord {
        name: row.get(0)?,
        content: row.get(1)?,
        size: read_u64(row, 2)?,
        sha512: row.get(3)?,
        media: row.get(4)?,
        blocks: row.get(5)?,
    })
}

pub(super) fn read_event(row: &Row<'_>) -> rusqlite::Result<JournalEntry> {
    Ok(JournalEntry {
        path: row.get(0)?,
        change: read_u64(row, 1)?,
        batch: read_u64(row, 2)?,
        time: row.get(3)?,
        verb: Verb::parse(row.get_ref(4)?.as_str()?).ok_or_else(|| invalid_column(row, 4))?,
        version: row.get(5)?,
        inventory: row.get(6)?,
        state: read_item_state(row, 7)?,
        epoch: read_u64(row, 8)?,
        by: row.get(9)?,
        source: row.get(10)?,
        to: row.get(11)?,
        key: row.get(12)?,
        note: row.get(13)?,
        past: row.get(14)?,
        owner: row.get(15)?,
        source_state: match row.get_ref(16)?.as_str_or_null()? {
            Some(_) => Some(read_item_state(row, 16)?),
            None => None,
        },
        record: None,
        links: Vec::new(),
        depends_on: None,
    })
}

pub(super) fn read_statement(row: &Row<'_>, column: usize) -> rusqlite::Result<LinkStatement> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|_| invalid_column(row, column))
}

fn read_item_state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    State::parse(row.get_ref(column)?.as_str()?).ok_or_else(|| invalid_column(row, column))
}

fn invalid_column(row: &Row<'_>, column: usize) -> rusqlite::Error {
    let name = row.as_ref().column_name(column).unwrap_or_default().to_owned();
    rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Text)
}

/// Line numbers and byte counts are far below `i64::MAX`.
pub(super) fn read_u64(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

pub(super) fn role_from_number(number: i64) -> LabelRole {
    match number {
        0 => LabelRole::Item,
        1 => LabelRole::Alias,
        _ => LabelRole::Metadata,
    }
}
