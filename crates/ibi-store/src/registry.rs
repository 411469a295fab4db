//! The registry of a resolver: the registered Archives, and alerts (`docs/formats/registry.md`).

mod alerts;
mod archives;
mod evidence;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use crate::{StorageError, disk};

pub use alerts::{
    AlertClaim, AlertRecord, AlertResolution, MAX_ALERT_CLAIMS, MAX_ALERT_COPIES, MAX_OPEN_ALERTS,
};
pub use archives::{ArchiveRow, MAX_ARCHIVES};
pub use evidence::{AlertEvidence, MAX_EVIDENCE_VERSIONS, VersionDigest};

/// The schema version.
const REGISTRY_SCHEMA_VERSION: i64 = 3;

/// From version 1 to 2: what an Archive reports about itself when it comes online (3.3), and the
/// evidence of alerts.
const MIGRATE_TO_2_SQL: &str = "
    ALTER TABLE archive ADD COLUMN ip TEXT;
    ALTER TABLE archive ADD COLUMN protocol TEXT;
    ALTER TABLE archive ADD COLUMN platform TEXT;
    UPDATE form SET form = 2;
";

/// From version 2 to 3: why an Archive does not confirm.
const MIGRATE_TO_3_SQL: &str = "
    ALTER TABLE archive ADD COLUMN problem TEXT;
    UPDATE form SET form = 3;
";

const REGISTRY_TABLES_SQL: &str = "
    CREATE TABLE form (form BIGINT NOT NULL);
    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE archive (
        id BIGINT PRIMARY KEY, canonical TEXT NOT NULL UNIQUE, service TEXT NOT NULL, key_hash TEXT NOT NULL,
        address TEXT, hosts TEXT NOT NULL, standing TEXT NOT NULL, registered BIGINT NOT NULL, changed BIGINT NOT NULL,
        email TEXT, turn BIGINT NOT NULL, asked BIGINT, confirmed BIGINT, ip TEXT, protocol TEXT, platform TEXT,
        problem TEXT);
    CREATE TABLE alert (
        id BIGINT PRIMARY KEY, item TEXT NOT NULL, claims TEXT NOT NULL, first_seen BIGINT NOT NULL,
        last_seen BIGINT NOT NULL, times BIGINT NOT NULL, resolved BIGINT, resolved_by TEXT, note TEXT);
    CREATE UNIQUE INDEX alert_open ON alert (item) WHERE resolved IS NULL;
";

/// The operator's settings from the creation of the resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrySettingsRow {
    /// The base of its persistent URLs.
    pub public_url: String,
    /// The label of its own service.
    pub service: String,
}

/// Changes with every change by any process: equal versions mean equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryVersion {
    others: i64,
    own: u64,
}

/// The registry of a resolver, in one SQLite file that several processes may use at once.
pub struct RegistryStorage {
    connection: Connection,
    changes: u64,
}

impl RegistryStorage {
    /// Creates the file, readable by its owner only: it contains key digests.
    pub fn create(path: &Path, settings: &RegistrySettingsRow) -> Result<Self, RegistryStorageError> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let above = path.parent().unwrap_or(path);
        disk::make_folders(above, &mut Vec::new())?;
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(RegistryStorageError::Exists { path: path.to_owned() });
            }
            made => drop(made.map_err(StorageError::io("create", path))?),
        }
        let mut store = Self::connect(path)?;
        store.transact(|transaction| -> Result<_, RegistryStorageError> {
            transaction.execute_batch(REGISTRY_TABLES_SQL)?;
            transaction.execute("INSERT INTO form (form) VALUES (?1)", [REGISTRY_SCHEMA_VERSION])?;
            let mut insert = transaction.prepare("INSERT INTO setting (name, value) VALUES (?1, ?2)")?;
            insert.execute(params!["public-url", settings.public_url])?;
            insert.execute(params!["service", settings.service])?;
            Ok(())
        })?;
        disk::sync(above)?;
        Ok(store)
    }

    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self, RegistryStorageError> {
        if !path.exists() {
            return Err(RegistryStorageError::Missing { path: path.to_owned() });
        }
        let mut store = Self::connect(path)?;
        let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'form'";
        if store.connection.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0 {
            return Err(RegistryStorageError::Unfinished { path: path.to_owned() });
        }
        if store.registry_schema_version()? < REGISTRY_SCHEMA_VERSION {
            // Checked again within the transaction: another process may have migrated it first.
            store.transact(|transaction| -> Result<_, RegistryStorageError> {
                let form: i64 = transaction.query_row("SELECT form FROM form", [], |row| row.get(0))?;
                if form == 1 {
                    transaction.execute_batch(MIGRATE_TO_2_SQL)?;
                }
                if matches!(form, 1 | 2) {
                    transaction.execute_batch(MIGRATE_TO_3_SQL)?;
                }
                Ok(())
            })?;
        }
        if store.registry_schema_version()? != REGISTRY_SCHEMA_VERSION {
            return Err(RegistryStorageError::Newer { path: path.to_owned() });
        }
        Ok(store)
    }

    fn registry_schema_version(&self) -> Result<i64, RegistryStorageError> {
        Ok(self.connection.query_row("SELECT form FROM form", [], |row| row.get(0))?)
    }

    fn connect(path: &Path) -> Result<Self, RegistryStorageError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(Self { connection, changes: 0 })
    }

    /// The operator's settings from the creation of the resolver.
    pub fn settings(&self) -> Result<RegistrySettingsRow, RegistryStorageError> {
        let get = |name: &str| {
            let found =
                self.connection
                    .query_row("SELECT value FROM setting WHERE name = ?1", [name], |row| row.get(0));
            found.map_err(RegistryStorageError::from)
        };
        Ok(RegistrySettingsRow { public_url: get("public-url")?, service: get("service")? })
    }

    /// The version of the contents. It takes a few microseconds and never waits for a lock.
    pub fn version(&self) -> Result<RegistryVersion, RegistryStorageError> {
        let others = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        Ok(RegistryVersion { others, own: self.changes })
    }

    /// Runs a write transaction, which excludes all other writers.
    fn transact<T, E: From<RegistryStorageError>>(
        &mut self,
        make: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(RegistryStorageError::from)?;
        let made = make(&transaction)?;
        transaction.commit().map_err(RegistryStorageError::from)?;
        self.changes += 1;
        Ok(made)
    }
}

impl fmt::Debug for RegistryStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistryStore(…)")
    }
}

/// A failed operation on the registry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryStorageError {
    /// The registry already exists.
    #[error("a resolver already exists in this folder ({} found)", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The registry is missing.
    #[error("no resolver in this folder ({} not found). `ibi resolver init` creates one", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Its creation was interrupted.
    #[error("the creation of {} was interrupted: remove it, and run `ibi resolver init` again", .path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// A limit is reached that keeps untrusted parties from filling the disk.
    #[error("there are {most} {what} already, which is the limit")]
    Full {
        /// What is limited.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Keep(#[from] StorageError),
    /// The database failed.
    #[error("the registry failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The claims of an alert could not be parsed or serialized.
    #[error("an alert of the registry is damaged: {0}")]
    Claims(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests;
