//! Rows, read as what they record.

use rusqlite::Row;

use super::Standing;
use crate::journal::{Entry, LinkStatement, State, Verb};
use crate::records::{FileRecord, Record, Role};

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        path: row.get(0)?,
        change: number(row, 1)?,
        version: row.get(2)?,
        inventory: row.get(3)?,
        state: state(row, 4)?,
        epoch: number(row, 5)?,
        properties: row.get(6)?,
        metadata: row.get(7)?,
    })
}

pub(super) fn standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    Ok(Standing { path: row.get(0)?, change: number(row, 1)?, inventory: row.get(2)? })
}

pub(super) fn file(row: &Row<'_>) -> rusqlite::Result<FileRecord> {
    Ok(FileRecord {
        name: row.get(0)?,
        content: row.get(1)?,
        size: number(row, 2)?,
        sha512: row.get(3)?,
        media: row.get(4)?,
        blocks: row.get(5)?,
    })
}

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        path: row.get(0)?,
        change: number(row, 1)?,
        batch: number(row, 2)?,
        time: row.get(3)?,
        verb: Verb::parse(row.get_ref(4)?.as_str()?).ok_or_else(|| unknown(row, 4))?,
        version: row.get(5)?,
        inventory: row.get(6)?,
        state: state(row, 7)?,
        epoch: number(row, 8)?,
        by: row.get(9)?,
        source: row.get(10)?,
        to: row.get(11)?,
        key: row.get(12)?,
        note: row.get(13)?,
        past: row.get(14)?,
        record: None,
        links: Vec::new(),
        depends_on: None,
    })
}

pub(super) fn statement(row: &Row<'_>, column: usize) -> rusqlite::Result<LinkStatement> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|_| unknown(row, column))
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    State::parse(row.get_ref(column)?.as_str()?).ok_or_else(|| unknown(row, column))
}

fn unknown(row: &Row<'_>, column: usize) -> rusqlite::Error {
    let name = row.as_ref().column_name(column).unwrap_or_default().to_owned();
    rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Text)
}

/// Numbers of lines and bytes: far below the sign.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

pub(super) fn role(number: i64) -> Role {
    match number {
        0 => Role::Item,
        1 => Role::Alias,
        _ => Role::Metadata,
    }
}
