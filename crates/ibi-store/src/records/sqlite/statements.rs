//! Statements about links, read.

use rusqlite::params;

use super::SqliteRecords;
use super::rows::{number, statement};
use crate::KeepError;
use crate::journal::{LinkKind, LinkStatement, LinkStatus};
use crate::records::PlacedStatement;

/// By which of the two items statements are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Older,
    Newer,
}

impl SqliteRecords {
    pub(super) fn statements_by(
        &self,
        side: Side,
        kind: LinkKind,
        label: &str,
    ) -> Result<Vec<LinkStatement>, KeepError> {
        let sql = match side {
            Side::Older => "SELECT body FROM statement WHERE older = ?1 AND kind = ?2 ORDER BY change, place",
            Side::Newer => "SELECT body FROM statement WHERE newer = ?1 AND kind = ?2 ORDER BY change, place",
        };
        self.rows(sql, params![label, kind as i64], |row| statement(row, 0))
    }

    pub(super) fn statements_after(
        &self,
        status: Option<LinkStatus>,
        (change, place): (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, KeepError> {
        // Two statements, each with the index that suits it.
        let sql = match status {
            Some(_) => {
                "SELECT change, place, body FROM statement WHERE status = ?4
                 AND (change > ?1 OR (change = ?1 AND place > ?2)) ORDER BY change, place LIMIT ?3"
            }
            None => {
                "SELECT change, place, body FROM statement WHERE ?4 IS NULL
                 AND (change > ?1 OR (change = ?1 AND place > ?2)) ORDER BY change, place LIMIT ?3"
            }
        };
        let status = status.map(|status| status as i64);
        self.rows(sql, params![change as i64, place as i64, limit as i64, status], |row| {
            Ok(((number(row, 0)?, number(row, 1)?), statement(row, 2)?))
        })
    }
}
