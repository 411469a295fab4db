//! What a resolver keeps: the Archives that are registered with it, and alerts (`docs/formats/registry.md`).

mod alerts;
mod archives;
mod evidence;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use crate::{KeepError, disk};

pub use alerts::{AlertRecord, Claim, MOST_CLAIMS, MOST_OPEN, Resolved};
pub use archives::{ArchiveRow, MOST_ARCHIVES};
pub use evidence::{Evidence, MAX_EVIDENCE_VERSIONS, VersionDigest};

/// The form of the tables.
const FORM: i64 = 2;

/// From form 1 to form 2: what an Archive says of itself when it comes on line (3.3), and the evidence of alerts.
const TO_FORM_2: &str = "
    ALTER TABLE archive ADD COLUMN ip TEXT;
    ALTER TABLE archive ADD COLUMN protocol TEXT;
    ALTER TABLE archive ADD COLUMN platform TEXT;
    UPDATE form SET form = 2;
";

const TABLES: &str = "
    CREATE TABLE form (form BIGINT NOT NULL);
    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE archive (
        id BIGINT PRIMARY KEY, canonical TEXT NOT NULL UNIQUE, service TEXT NOT NULL, key_hash TEXT NOT NULL,
        address TEXT, hosts TEXT NOT NULL, standing TEXT NOT NULL, registered BIGINT NOT NULL, changed BIGINT NOT NULL,
        email TEXT, turn BIGINT NOT NULL, asked BIGINT, confirmed BIGINT, ip TEXT, protocol TEXT, platform TEXT);
    CREATE TABLE alert (
        id BIGINT PRIMARY KEY, item TEXT NOT NULL, claims TEXT NOT NULL, first_seen BIGINT NOT NULL,
        last_seen BIGINT NOT NULL, times BIGINT NOT NULL, resolved BIGINT, resolved_by TEXT, note TEXT);
    CREATE UNIQUE INDEX alert_open ON alert (item) WHERE resolved IS NULL;
";

/// What the operator said when the resolver was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsRow {
    /// The base of its persistent URLs.
    pub public_url: String,
    /// The label of its own service.
    pub service: String,
}

/// Changes whenever anybody changed something: equal versions, equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    others: i64,
    own: u64,
}

/// The registry of a resolver, in one SQLite file that several processes may use at once.
pub struct RegistryStore {
    connection: Connection,
    changes: u64,
}

impl RegistryStore {
    /// Makes the file, for our eyes only: digests of keys are in it.
    pub fn create(path: &Path, settings: &SettingsRow) -> Result<Self, RegistryError> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let above = path.parent().unwrap_or(path);
        disk::make_folders(above, &mut Vec::new())?;
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(RegistryError::Exists { path: path.to_owned() });
            }
            made => drop(made.map_err(KeepError::io("create", path))?),
        }
        let mut store = Self::connect(path)?;
        store.change(|transaction| -> Result<_, RegistryError> {
            transaction.execute_batch(TABLES)?;
            transaction.execute("INSERT INTO form (form) VALUES (?1)", [FORM])?;
            let mut insert = transaction.prepare("INSERT INTO setting (name, value) VALUES (?1, ?2)")?;
            insert.execute(params!["public-url", settings.public_url])?;
            insert.execute(params!["service", settings.service])?;
            Ok(())
        })?;
        disk::sync(above)?;
        Ok(store)
    }

    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self, RegistryError> {
        if !path.exists() {
            return Err(RegistryError::Missing { path: path.to_owned() });
        }
        let mut store = Self::connect(path)?;
        let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'form'";
        if store.connection.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0 {
            return Err(RegistryError::Unfinished { path: path.to_owned() });
        }
        if store.form()? == 1 {
            // Looked at again within the transaction: another process may have been faster.
            store.change(|transaction| -> Result<_, RegistryError> {
                let form: i64 = transaction.query_row("SELECT form FROM form", [], |row| row.get(0))?;
                if form == 1 {
                    transaction.execute_batch(TO_FORM_2)?;
                }
                Ok(())
            })?;
        }
        if store.form()? != FORM {
            return Err(RegistryError::Newer { path: path.to_owned() });
        }
        Ok(store)
    }

    fn form(&self) -> Result<i64, RegistryError> {
        Ok(self.connection.query_row("SELECT form FROM form", [], |row| row.get(0))?)
    }

    fn connect(path: &Path) -> Result<Self, RegistryError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(Self { connection, changes: 0 })
    }

    /// What the operator said when the resolver was made.
    pub fn settings(&self) -> Result<SettingsRow, RegistryError> {
        let get = |name: &str| {
            let found =
                self.connection
                    .query_row("SELECT value FROM setting WHERE name = ?1", [name], |row| row.get(0));
            found.map_err(RegistryError::from)
        };
        Ok(SettingsRow { public_url: get("public-url")?, service: get("service")? })
    }

    /// The version of what is kept. It costs a few microseconds and waits for nobody.
    pub fn version(&self) -> Result<Version, RegistryError> {
        let others = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        Ok(Version { others, own: self.changes })
    }

    /// Changes all or nothing; nobody else changes anything meanwhile.
    fn change<T, E: From<RegistryError>>(
        &mut self,
        make: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(RegistryError::from)?;
        let made = make(&transaction)?;
        transaction.commit().map_err(RegistryError::from)?;
        self.changes += 1;
        Ok(made)
    }
}

impl fmt::Debug for RegistryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistryStore(…)")
    }
}

/// Why the registry could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// There is one already.
    #[error("there is a resolver already: {} is there", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is none.
    #[error("there is no resolver here: {} is not there. `ibi resolver init` makes one", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Its making was cut off.
    #[error("{} was never finished: remove it, and run `ibi resolver init` again", .path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer program.
    #[error("{} has a form that this program does not know: use the newer program that wrote it", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// A bound that keeps strangers from filling the disk.
    #[error("there are {most} {what}: no more are kept")]
    Full {
        /// Of what.
        what: &'static str,
        /// As many as are kept.
        most: usize,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// The database failed.
    #[error("the registry failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The claims of an alert cannot be read or written.
    #[error("an alert of the registry is damaged: {0}")]
    Claims(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests;
