//! Queries for statements about links.

use rusqlite::params;

use super::SqliteIndex;
use super::rows::{read_statement, read_u64};
use crate::StorageError;
use crate::index::PlacedStatement;
use crate::journal::{LinkKind, LinkStatement, LinkStatus};

/// The item by which statements are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) enum LinkSide {
    Older,
    Newer,
}

impl SqliteIndex {
    pub(super) fn statements_by(
        &self,
        side: LinkSide,
        kind: LinkKind,
        label: &str,
    ) -> Result<Vec<LinkStatement>, StorageError> {
        let sql = match side {
            LinkSide::Older => {
                "SELECT body FROM statement WHERE older = ?1 AND kind = ?2 ORDER BY change, place"
            }
            LinkSide::Newer => {
                "SELECT body FROM statement WHERE newer = ?1 AND kind = ?2 ORDER BY change, place"
            }
        };
        self.query_all(sql, params![label, kind as i64], |row| read_statement(row, 0))
    }

    pub(super) fn statements_after(
        &self,
        status: Option<LinkStatus>,
        (change, place): (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, StorageError> {
        // Two queries, each with its matching index.
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
        self.query_all(sql, params![change as i64, place as i64, limit as i64, status], |row| {
            Ok(((read_u64(row, 0)?, read_u64(row, 1)?), read_statement(row, 2)?))
        })
    }
}
