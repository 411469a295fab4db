//! Alerts: items whose original several Archives claim (4.2 step 3). Each stays until a person has resolved it. What strangers
//! can add to them is bounded.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::{RegistryError, RegistryStore};

/// The most claims that one alert keeps.
pub const MOST_CLAIMS: usize = 64;

/// The most alerts that are open at once, and the most resolved ones that are kept: the newest.
pub const MOST_OPEN: usize = 10_000;

/// The most bytes of a text from outside.
const LONGEST: usize = 2048;

const COLUMNS: &str = "id, item, claims, first_seen, last_seen, times, resolved, resolved_by, note";

/// An alert. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRecord {
    /// Its number.
    pub id: u64,
    /// The item, in all forms that are known: `rep … ibip …`.
    pub item: String,
    /// Who claims the original: each Archive once, with what it said last.
    pub claims: Vec<Claim>,
    /// When it was raised.
    pub first_seen: i64,
    /// When it was raised the last time.
    pub last_seen: i64,
    /// How often.
    pub times: u64,
    /// Who put an end to it.
    pub resolved: Option<Resolved>,
}

/// A claim of the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The label of the Archive's service.
    pub archive: String,
    /// The URL that it gives.
    pub url: Option<String>,
    /// Its `timestamp`.
    pub timestamp: Option<String>,
    /// When it was seen the last time.
    pub seen: i64,
    /// What its Archive tells of the item to whoever asks; nothing if it tells nothing, or was not asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// The end of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// When.
    pub at: i64,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
}

impl RegistryStore {
    /// Raises an alert. One that is open for the same item is brought up to date; a resolved one stays resolved, and a new one
    /// is made.
    pub fn raise(&mut self, item: &str, claims: &[Claim], now: i64) -> Result<AlertRecord, RegistryError> {
        let item = cut(item);
        self.change(|transaction| -> Result<_, RegistryError> {
            let open = format!("SELECT {COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
            let there = transaction.query_row(&open, [item], |row| Ok(read(row))).optional()?;
            let mut alert = match there.transpose()? {
                Some(alert) => AlertRecord { last_seen: now, times: alert.times.saturating_add(1), ..alert },
                None => new(transaction, item, now)?,
            };
            merge(&mut alert.claims, claims);
            transaction.execute(
                "INSERT INTO alert (id, item, claims, first_seen, last_seen, times) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET claims = excluded.claims, last_seen = excluded.last_seen,
                     times = excluded.times",
                params![
                    alert.id.cast_signed(),
                    alert.item,
                    serde_json::to_string(&alert.claims)?,
                    alert.first_seen,
                    alert.last_seen,
                    alert.times.cast_signed()
                ],
            )?;
            Ok(alert)
        })
    }

    /// Adds what Archives tell of the item of an open alert, by the labels of their services. Nothing happens if there is no
    /// such alert any more.
    pub fn add_evidence(&mut self, item: &str, told: &[(String, Evidence)]) -> Result<(), RegistryError> {
        let item = cut(item);
        self.change(|transaction| -> Result<_, RegistryError> {
            let open = format!("SELECT {COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
            let there = transaction.query_row(&open, [item], |row| Ok(read(row))).optional()?;
            let Some(mut alert) = there.transpose()? else { return Ok(()) };
            for (archive, evidence) in told {
                if let Some(claim) = alert.claims.iter_mut().find(|claim| claim.archive == cut(archive)) {
                    claim.evidence = Some(evidence.bounded());
                }
            }
            let claims = serde_json::to_string(&alert.claims)?;
            transaction.execute(
                "UPDATE alert SET claims = ?2 WHERE id = ?1",
                params![alert.id.cast_signed(), claims],
            )?;
            Ok(())
        })
    }

    /// The alerts, the newest first.
    pub fn alerts(&self, include_resolved: bool) -> Result<Vec<AlertRecord>, RegistryError> {
        let which = if include_resolved { "" } else { "WHERE resolved IS NULL" };
        let mut statement = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM alert {which} ORDER BY id DESC"))?;
        let rows = statement.query_map([], |row| Ok(read(row)))?;
        rows.map(|row| row?).collect()
    }

    /// The open alert for an item, if there is one.
    pub fn open_alert(&self, item: &str) -> Result<Option<AlertRecord>, RegistryError> {
        let open = format!("SELECT {COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
        let found = self.connection.query_row(&open, [cut(item)], |row| Ok(read(row))).optional()?;
        found.transpose()
    }

    /// How many are open.
    pub fn open_alerts(&self) -> Result<u64, RegistryError> {
        count(&self.connection).map(i64::cast_unsigned)
    }

    /// The alert of this number.
    pub fn alert(&self, id: u64) -> Result<Option<AlertRecord>, RegistryError> {
        let one = format!("SELECT {COLUMNS} FROM alert WHERE id = ?1");
        let found = self.connection.query_row(&one, [id.cast_signed()], |row| Ok(read(row))).optional()?;
        found.transpose()
    }

    /// Puts an end to an alert; gives it as it is afterwards, or nothing if there is none of this number. Who resolved it first
    /// stays.
    pub fn resolve_alert(
        &mut self,
        id: u64,
        by: &str,
        note: &str,
        now: i64,
    ) -> Result<Option<AlertRecord>, RegistryError> {
        self.change(|transaction| -> Result<_, RegistryError> {
            transaction.execute(
                "UPDATE alert SET resolved = ?2, resolved_by = ?3, note = ?4 WHERE id = ?1 AND resolved IS NULL",
                params![id.cast_signed(), now, cut(by), cut(note)],
            )?;
            transaction.execute(
                "DELETE FROM alert WHERE resolved IS NOT NULL AND id NOT IN
                     (SELECT id FROM alert WHERE resolved IS NOT NULL ORDER BY resolved DESC, id DESC LIMIT ?1)",
                [MOST_OPEN as i64],
            )?;
            Ok(())
        })?;
        self.alert(id)
    }
}

fn new(transaction: &Transaction<'_>, item: &str, now: i64) -> Result<AlertRecord, RegistryError> {
    if count(transaction)? >= MOST_OPEN as i64 {
        return Err(RegistryError::Full { what: "open alerts", most: MOST_OPEN });
    }
    let last: i64 = transaction.query_row("SELECT coalesce(max(id), 0) FROM alert", [], |row| row.get(0))?;
    Ok(AlertRecord {
        id: last.cast_unsigned() + 1,
        item: item.to_owned(),
        claims: Vec::new(),
        first_seen: now,
        last_seen: now,
        times: 1,
        resolved: None,
    })
}

fn count(connection: &rusqlite::Connection) -> Result<i64, RegistryError> {
    let open = "SELECT count(*) FROM alert WHERE resolved IS NULL";
    Ok(connection.query_row(open, [], |row| row.get(0))?)
}

/// Adds claims to those that are known. Beyond the bound new ones are not kept: who claims first is the one to look at.
fn merge(known: &mut Vec<Claim>, more: &[Claim]) {
    for claim in more {
        let claim = Claim {
            archive: cut(&claim.archive).to_owned(),
            url: claim.url.as_deref().map(|url| cut(url).to_owned()),
            timestamp: claim.timestamp.as_deref().map(|time| cut(time).to_owned()),
            seen: claim.seen,
            evidence: claim.evidence.as_ref().map(Evidence::bounded),
        };
        match known.iter().position(|own| own.archive == claim.archive) {
            // What was told before stays until it is told anew.
            Some(own) => {
                let evidence = claim.evidence.or_else(|| known[own].evidence.take());
                known[own] = Claim { evidence, ..claim };
            }
            None if known.len() < MOST_CLAIMS => known.push(claim),
            None => {}
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

fn read(row: &Row<'_>) -> Result<AlertRecord, RegistryError> {
    let resolved: Option<i64> = row.get(6)?;
    Ok(AlertRecord {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        item: row.get(1)?,
        claims: serde_json::from_str(&row.get::<_, String>(2)?)?,
        first_seen: row.get(3)?,
        last_seen: row.get(4)?,
        times: row.get::<_, i64>(5)?.cast_unsigned(),
        resolved: match resolved {
            None => None,
            Some(at) => Some(Resolved { at, by: row.get(7)?, note: row.get(8)? }),
        },
    })
}
