//! The registered Archives.

use std::fmt;

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{RegistryStorage, RegistryStorageError};

/// Maximum number of registered Archives.
pub const MAX_ARCHIVES: usize = 100_000;

/// Maximum length of a problem, in bytes.
const MAX_PROBLEM_BYTES: usize = 500;

const ARCHIVE_COLUMNS: &str = "id, canonical, service, key_hash, address, hosts, standing, registered, changed, email, turn, asked, \
                       confirmed, ip, protocol, platform, problem";

/// A registered Archive. Times are seconds since the Unix epoch.
#[derive(Clone, PartialEq, Eq)]
pub struct ArchiveRow {
    /// Its number, never reused.
    pub id: u64,
    /// The canonical spelling of its service's label. Unique.
    pub canonical: String,
    /// The label as the Archive spells it.
    pub service: String,
    /// A hash of its key.
    pub key_hash: String,
    /// Its server address, if known.
    pub address: Option<String>,
    /// Additional hosts of its URLs.
    pub hosts: Vec<String>,
    /// Its status, as one word.
    pub standing: String,
    /// When it was registered.
    pub registered: i64,
    /// When its entry last changed.
    pub changed: i64,
    /// The contact address.
    pub email: Option<String>,
    /// Incremented with every change by the operator or the Archive, so that an operation begun
    /// before a change does not overwrite it.
    pub turn: i64,
    /// When it was last probed.
    pub asked: Option<i64>,
    /// When it last answered a probe.
    pub confirmed: Option<i64>,
    /// Its IP address, as it reports.
    pub ip: Option<String>,
    /// Its protocol, as it reports.
    pub protocol: Option<String>,
    /// Its platform version, as it reports.
    pub platform: Option<String>,
    /// Why it did not confirm the last time, for the operator.
    pub problem: Option<String>,
}

/// Leaves out the key hash.
impl fmt::Debug for ArchiveRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, canonical, service, address, hosts, standing, email, turn, .. } = self;
        write!(f, "{id} {canonical} ({service}) {address:?} {hosts:?} {standing} {email:?} turn {turn}")
    }
}

impl RegistryStorage {
    /// All Archives, by number.
    pub fn archives(&self) -> Result<Vec<ArchiveRow>, RegistryStorageError> {
        let mut statement =
            self.connection.prepare_cached(&format!("SELECT {ARCHIVE_COLUMNS} FROM archive ORDER BY id"))?;
        let rows = statement.query_map([], read_archive_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Changes Archives in one transaction. `change` receives the entry under a canonical label and
    /// returns the new entry (whose `id` and `turn` are set here), or `None` to leave it. Returns
    /// the resulting entries, in the order of the labels.
    pub fn update_archives<E: From<RegistryStorageError>>(
        &mut self,
        labels: &[&str],
        mut change: impl FnMut(usize, Option<&ArchiveRow>) -> Result<Option<ArchiveRow>, E>,
    ) -> Result<Vec<Option<ArchiveRow>>, E> {
        self.transact(|transaction| {
            let mut found = Vec::with_capacity(labels.len());
            for (index, label) in labels.iter().enumerate() {
                let existing = find_archive(transaction, label)?;
                found.push(match change(index, existing.as_ref())? {
                    None => existing,
                    Some(new_row) => Some(upsert_archive(transaction, existing, new_row)?),
                });
            }
            Ok(found)
        })
    }

    /// Records the result of a probe, with what is wrong if it failed, unless the entry changed
    /// since (`turn`): then nothing is recorded, and it returns `false`.
    pub fn record_probe(
        &mut self,
        id: u64,
        turn: i64,
        standing: &str,
        result: Result<(), &str>,
        now: i64,
    ) -> Result<bool, RegistryStorageError> {
        let yes = result.is_ok();
        let problem = result.err().map(|problem| &problem[..problem.floor_char_boundary(MAX_PROBLEM_BYTES)]);
        self.transact(|transaction| -> Result<_, RegistryStorageError> {
            let changed = transaction.execute(
                "UPDATE archive SET asked = ?4, confirmed = CASE WHEN ?5 = 1 THEN ?4 ELSE confirmed END,
                        changed = CASE WHEN standing = ?3 THEN changed ELSE ?4 END, standing = ?3,
                        problem = ?6
                 WHERE id = ?1 AND turn = ?2",
                params![id.cast_signed(), turn, standing, now, i64::from(yes), problem],
            )?;
            Ok(changed == 1)
        })
    }
}

fn find_archive(
    transaction: &Transaction<'_>,
    canonical: &str,
) -> Result<Option<ArchiveRow>, RegistryStorageError> {
    let mut statement =
        transaction.prepare_cached(&format!("SELECT {ARCHIVE_COLUMNS} FROM archive WHERE canonical = ?1"))?;
    Ok(statement.query_row([canonical], read_archive_row).optional()?)
}

fn upsert_archive(
    transaction: &Transaction<'_>,
    existing: Option<ArchiveRow>,
    new_row: ArchiveRow,
) -> Result<ArchiveRow, RegistryStorageError> {
    let (id, turn) = match &existing {
        Some(existing) => (existing.id, existing.turn + 1),
        None => {
            let last: i64 =
                transaction.query_row("SELECT coalesce(max(id), 0) FROM archive", [], |row| row.get(0))?;
            if last.cast_unsigned() >= MAX_ARCHIVES as u64 {
                return Err(RegistryStorageError::Full { what: "Archives", most: MAX_ARCHIVES });
            }
            (last.cast_unsigned() + 1, 1)
        }
    };
    let row = ArchiveRow { id, turn, ..new_row };
    let mut statement = transaction.prepare_cached(
        "INSERT INTO archive (id, canonical, service, key_hash, address, hosts, standing, registered, changed, email,
                              turn, asked, confirmed, ip, protocol, platform, problem)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
         ON CONFLICT (id) DO UPDATE SET service = excluded.service, key_hash = excluded.key_hash,
             address = excluded.address, hosts = excluded.hosts, standing = excluded.standing,
             registered = excluded.registered, changed = excluded.changed, email = excluded.email, turn = excluded.turn,
             asked = excluded.asked, confirmed = excluded.confirmed, ip = excluded.ip,
             protocol = excluded.protocol, platform = excluded.platform, problem = excluded.problem",
    )?;
    statement.execute(params![
        row.id.cast_signed(),
        row.canonical,
        row.service,
        row.key_hash,
        row.address,
        row.hosts.join(" "),
        row.standing,
        row.registered,
        row.changed,
        row.email,
        row.turn,
        row.asked,
        row.confirmed,
        row.ip,
        row.protocol,
        row.platform,
        row.problem
    ])?;
    Ok(row)
}

fn read_archive_row(row: &Row<'_>) -> rusqlite::Result<ArchiveRow> {
    Ok(ArchiveRow {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        canonical: row.get(1)?,
        service: row.get(2)?,
        key_hash: row.get(3)?,
        address: row.get(4)?,
        hosts: row.get::<_, String>(5)?.split_whitespace().map(str::to_owned).collect(),
        standing: row.get(6)?,
        registered: row.get(7)?,
        changed: row.get(8)?,
        email: row.get(9)?,
        turn: row.get(10)?,
        asked: row.get(11)?,
        confirmed: row.get(12)?,
        ip: row.get(13)?,
        protocol: row.get(14)?,
        platform: row.get(15)?,
        problem: row.get(16)?,
    })
}
