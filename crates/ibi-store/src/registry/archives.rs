//! The Archives that are registered.

use std::fmt;

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{RegistryError, RegistryStore};

/// The most Archives that are registered.
pub const MOST_ARCHIVES: usize = 100_000;

const COLUMNS: &str = "id, canonical, service, key_hash, address, hosts, standing, registered, changed, email, turn, asked, \
                       confirmed, ip, protocol, platform";

/// An Archive as it is kept. Times are seconds since the Unix epoch.
#[derive(Clone, PartialEq, Eq)]
pub struct ArchiveRow {
    /// Its number, never given to another.
    pub id: u64,
    /// The canonical spelling of its service's label: no two have the same.
    pub canonical: String,
    /// The spelling that it uses itself.
    pub service: String,
    /// What is kept of its key.
    pub key_hash: String,
    /// Where it is.
    pub address: Option<String>,
    /// Further hosts of its URLs.
    pub hosts: Vec<String>,
    /// How it stands, in one word.
    pub standing: String,
    /// When it was registered.
    pub registered: i64,
    /// When something about it changed.
    pub changed: i64,
    /// Whom to write to.
    pub email: Option<String>,
    /// Goes up with every change by operator or Archive, so that what was begun before one does not undo it.
    pub turn: i64,
    /// When it was asked the last time whether it is there.
    pub asked: Option<i64>,
    /// When it said so the last time.
    pub confirmed: Option<i64>,
    /// Its IP address, as it says itself.
    pub ip: Option<String>,
    /// How it is spoken to, as it says itself.
    pub protocol: Option<String>,
    /// The version of its platform, as it says itself.
    pub platform: Option<String>,
}

/// Without what is kept of the key.
impl fmt::Debug for ArchiveRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, canonical, service, address, hosts, standing, email, turn, .. } = self;
        write!(f, "{id} {canonical} ({service}) {address:?} {hosts:?} {standing} {email:?} turn {turn}")
    }
}

impl RegistryStore {
    /// All Archives, by number.
    pub fn archives(&self) -> Result<Vec<ArchiveRow>, RegistryError> {
        let mut statement =
            self.connection.prepare_cached(&format!("SELECT {COLUMNS} FROM archive ORDER BY id"))?;
        let rows = statement.query_map([], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Changes Archives, all or nothing: `change` is given what is there under a canonical label and says what shall be (its
    /// `id` and `turn` are set here), or nothing to leave it. Gives what is there afterwards, in the order of the labels.
    pub fn update<E: From<RegistryError>>(
        &mut self,
        labels: &[&str],
        mut change: impl FnMut(usize, Option<&ArchiveRow>) -> Result<Option<ArchiveRow>, E>,
    ) -> Result<Vec<Option<ArchiveRow>>, E> {
        self.change(|transaction| {
            let mut found = Vec::with_capacity(labels.len());
            for (index, label) in labels.iter().enumerate() {
                let there = find(transaction, label)?;
                found.push(match change(index, there.as_ref())? {
                    None => there,
                    Some(wanted) => Some(put(transaction, there, wanted)?),
                });
            }
            Ok(found)
        })
    }

    /// Notes whether an Archive said that it is there, unless something else changed since (`turn`): then nothing is noted,
    /// and the answer is no.
    pub fn confirmed(
        &mut self,
        id: u64,
        turn: i64,
        standing: &str,
        yes: bool,
        now: i64,
    ) -> Result<bool, RegistryError> {
        self.change(|transaction| -> Result<_, RegistryError> {
            let changed = transaction.execute(
                "UPDATE archive SET asked = ?4, confirmed = CASE WHEN ?5 = 1 THEN ?4 ELSE confirmed END,
                        changed = CASE WHEN standing = ?3 THEN changed ELSE ?4 END, standing = ?3
                 WHERE id = ?1 AND turn = ?2",
                params![id.cast_signed(), turn, standing, now, i64::from(yes)],
            )?;
            Ok(changed == 1)
        })
    }
}

fn find(transaction: &Transaction<'_>, canonical: &str) -> Result<Option<ArchiveRow>, RegistryError> {
    let mut statement =
        transaction.prepare_cached(&format!("SELECT {COLUMNS} FROM archive WHERE canonical = ?1"))?;
    Ok(statement.query_row([canonical], read).optional()?)
}

fn put(
    transaction: &Transaction<'_>,
    there: Option<ArchiveRow>,
    wanted: ArchiveRow,
) -> Result<ArchiveRow, RegistryError> {
    let (id, turn) = match &there {
        Some(there) => (there.id, there.turn + 1),
        None => {
            let last: i64 =
                transaction.query_row("SELECT coalesce(max(id), 0) FROM archive", [], |row| row.get(0))?;
            if last.cast_unsigned() >= MOST_ARCHIVES as u64 {
                return Err(RegistryError::Full { what: "Archives", most: MOST_ARCHIVES });
            }
            (last.cast_unsigned() + 1, 1)
        }
    };
    let row = ArchiveRow { id, turn, ..wanted };
    let mut statement = transaction.prepare_cached(
        "INSERT INTO archive (id, canonical, service, key_hash, address, hosts, standing, registered, changed, email,
                              turn, asked, confirmed, ip, protocol, platform)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (id) DO UPDATE SET service = excluded.service, key_hash = excluded.key_hash,
             address = excluded.address, hosts = excluded.hosts, standing = excluded.standing,
             registered = excluded.registered, changed = excluded.changed, email = excluded.email, turn = excluded.turn,
             asked = excluded.asked, confirmed = excluded.confirmed, ip = excluded.ip,
             protocol = excluded.protocol, platform = excluded.platform",
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
        row.platform
    ])?;
    Ok(row)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ArchiveRow> {
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
    })
}
