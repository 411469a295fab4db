//! Alerts: items whose Original several Archives claim (4.2 step 3), and Archives with Copies that
//! are no version of the Original (4.4). An alert stays open until a person resolves it. What
//! untrusted parties can add is bounded.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::evidence::AlertEvidence;
use super::{RegistryStorage, RegistryStorageError};

/// Maximum number of claims per alert.
pub const MAX_ALERT_CLAIMS: usize = 64;

/// Maximum number of Copies that one alert names.
pub const MAX_ALERT_COPIES: usize = 16;

/// Maximum number of open alerts, and of resolved ones that are kept (the newest).
pub const MAX_OPEN_ALERTS: usize = 10_000;

/// Maximum length of a text from outside.
const MAX_ALERT_TEXT_BYTES: usize = 2048;

const ALERT_COLUMNS: &str = "id, item, claims, first_seen, last_seen, times, resolved, resolved_by, note";

/// An alert. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRecord {
    /// Its number.
    pub id: u64,
    /// The item, in all its known forms: `rep … ibip …`; or what names an alert about Copies.
    pub item: String,
    /// The claims of the Original: one per Archive, its latest.
    pub claims: Vec<AlertClaim>,
    /// When it was first raised.
    pub first_seen: i64,
    /// When it was last raised.
    pub last_seen: i64,
    /// How often it was raised.
    pub times: u64,
    /// How it was resolved, if it was.
    pub resolved: Option<AlertResolution>,
}

/// A claim of the Original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertClaim {
    /// The label of the Archive's service.
    pub archive: String,
    /// The URL that the Archive reports.
    pub url: Option<String>,
    /// Its `timestamp`.
    pub timestamp: Option<String>,
    /// When it was last seen.
    pub seen: i64,
    /// What the Archive publicly reports about the item; `None` if it reports nothing, or has not
    /// been queried yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<AlertEvidence>,
    /// The labels of Copies there that are no version of the Original: it does not claim the
    /// Original then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
}

/// The resolution of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertResolution {
    /// The time.
    pub at: i64,
    /// The person.
    pub by: String,
    /// The reason.
    pub note: String,
}

impl RegistryStorage {
    /// Raises an alert. Updates the open alert of the same item, if any; a resolved one stays
    /// resolved, and a new one is created.
    pub fn raise_alert(
        &mut self,
        item: &str,
        claims: &[AlertClaim],
        now: i64,
    ) -> Result<AlertRecord, RegistryStorageError> {
        let item = truncate_text(item);
        self.transact(|transaction| -> Result<_, RegistryStorageError> {
            let open = format!("SELECT {ALERT_COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
            let open_alert = transaction.query_row(&open, [item], |row| Ok(read_alert(row))).optional()?;
            let mut alert = match open_alert.transpose()? {
                Some(alert) => AlertRecord { last_seen: now, times: alert.times.saturating_add(1), ..alert },
                None => new_alert(transaction, item, now)?,
            };
            merge_claims(&mut alert.claims, claims);
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

    /// Adds what Archives report about the item of an open alert, by the labels of their services.
    /// Does nothing if there is no such alert any more.
    pub fn add_evidence(
        &mut self,
        item: &str,
        reports: &[(String, AlertEvidence)],
    ) -> Result<(), RegistryStorageError> {
        let item = truncate_text(item);
        self.transact(|transaction| -> Result<_, RegistryStorageError> {
            let open = format!("SELECT {ALERT_COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
            let open_alert = transaction.query_row(&open, [item], |row| Ok(read_alert(row))).optional()?;
            let Some(mut alert) = open_alert.transpose()? else { return Ok(()) };
            for (archive, evidence) in reports {
                if let Some(claim) =
                    alert.claims.iter_mut().find(|claim| claim.archive == truncate_text(archive))
                {
                    claim.evidence = Some(evidence.truncated());
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

    /// All alerts, newest first.
    pub fn alerts(&self, include_resolved: bool) -> Result<Vec<AlertRecord>, RegistryStorageError> {
        let which = if include_resolved { "" } else { "WHERE resolved IS NULL" };
        let mut statement = self
            .connection
            .prepare_cached(&format!("SELECT {ALERT_COLUMNS} FROM alert {which} ORDER BY id DESC"))?;
        let rows = statement.query_map([], |row| Ok(read_alert(row)))?;
        rows.map(|row| row?).collect()
    }

    /// The open alert for an item, if there is one.
    pub fn open_alert(&self, item: &str) -> Result<Option<AlertRecord>, RegistryStorageError> {
        let open = format!("SELECT {ALERT_COLUMNS} FROM alert WHERE item = ?1 AND resolved IS NULL");
        let found =
            self.connection.query_row(&open, [truncate_text(item)], |row| Ok(read_alert(row))).optional()?;
        found.transpose()
    }

    /// The number of open alerts.
    pub fn open_alert_count(&self) -> Result<u64, RegistryStorageError> {
        count_open_alerts(&self.connection).map(i64::cast_unsigned)
    }

    /// The alert with this number.
    pub fn alert(&self, id: u64) -> Result<Option<AlertRecord>, RegistryStorageError> {
        let by_id = format!("SELECT {ALERT_COLUMNS} FROM alert WHERE id = ?1");
        let found =
            self.connection.query_row(&by_id, [id.cast_signed()], |row| Ok(read_alert(row))).optional()?;
        found.transpose()
    }

    /// Resolves an alert and returns it as it is afterwards; `None` if there is no such alert. The
    /// first resolution is kept.
    pub fn resolve_alert(
        &mut self,
        id: u64,
        by: &str,
        note: &str,
        now: i64,
    ) -> Result<Option<AlertRecord>, RegistryStorageError> {
        self.transact(|transaction| -> Result<_, RegistryStorageError> {
            transaction.execute(
                "UPDATE alert SET resolved = ?2, resolved_by = ?3, note = ?4 WHERE id = ?1 AND resolved IS NULL",
                params![id.cast_signed(), now, truncate_text(by), truncate_text(note)],
            )?;
            transaction.execute(
                "DELETE FROM alert WHERE resolved IS NOT NULL AND id NOT IN
                     (SELECT id FROM alert WHERE resolved IS NOT NULL ORDER BY resolved DESC, id DESC LIMIT ?1)",
                [MAX_OPEN_ALERTS as i64],
            )?;
            Ok(())
        })?;
        self.alert(id)
    }
}

fn new_alert(
    transaction: &Transaction<'_>,
    item: &str,
    now: i64,
) -> Result<AlertRecord, RegistryStorageError> {
    if count_open_alerts(transaction)? >= MAX_OPEN_ALERTS as i64 {
        return Err(RegistryStorageError::Full { what: "open alerts", most: MAX_OPEN_ALERTS });
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

fn count_open_alerts(connection: &rusqlite::Connection) -> Result<i64, RegistryStorageError> {
    let open = "SELECT count(*) FROM alert WHERE resolved IS NULL";
    Ok(connection.query_row(open, [], |row| row.get(0))?)
}

/// Merges claims. New ones beyond the bound are discarded: the earliest claims are the ones to
/// examine.
fn merge_claims(known: &mut Vec<AlertClaim>, more: &[AlertClaim]) {
    for claim in more {
        let claim = AlertClaim {
            archive: truncate_text(&claim.archive).to_owned(),
            url: claim.url.as_deref().map(|url| truncate_text(url).to_owned()),
            timestamp: claim.timestamp.as_deref().map(|time| truncate_text(time).to_owned()),
            seen: claim.seen,
            evidence: claim.evidence.as_ref().map(AlertEvidence::truncated),
            copies: claim.copies.iter().map(|label| truncate_text(label).to_owned()).collect(),
        };
        match known.iter().position(|earlier| earlier.archive == claim.archive) {
            // Earlier evidence is kept until there is new evidence.
            Some(index) => {
                let evidence = claim.evidence.or_else(|| known[index].evidence.take());
                let mut copies = std::mem::take(&mut known[index].copies);
                let more: Vec<String> =
                    claim.copies.iter().filter(|label| !copies.contains(label)).cloned().collect();
                copies.extend(more);
                copies.truncate(MAX_ALERT_COPIES);
                known[index] = AlertClaim { evidence, copies, ..claim };
            }
            None if known.len() < MAX_ALERT_CLAIMS => {
                let mut claim = claim;
                claim.copies.truncate(MAX_ALERT_COPIES);
                known.push(claim);
            }
            None => {}
        }
    }
}

fn truncate_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ALERT_TEXT_BYTES)]
}

fn read_alert(row: &Row<'_>) -> Result<AlertRecord, RegistryStorageError> {
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
            Some(at) => Some(AlertResolution { at, by: row.get(7)?, note: row.get(8)? }),
        },
    })
}
