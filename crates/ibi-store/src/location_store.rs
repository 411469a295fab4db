//! The tables of a resolver's location index, in LMDB: `locations/` in its data folder
//! (`docs/formats/location-index.md`, ADR 0016).
//!
//! Readers see the last committed state and never wait for the writer. Pages of the file are mapped
//! and shared with the page cache: opening reads none of them.

use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use crate::{StorageError, check_disk_space};

/// Maximum size of the file. Address space only: the file grows as needed.
const MAX_INDEX_BYTES: usize = 256 << 30;

/// Maximum number of concurrent readers.
const MAX_INDEX_READERS: u32 = 1024;

/// Free space that a batch needs beyond the disk's reserve.
const MAX_BATCH_BYTES: u64 = 64 << 20;

/// The schema version. An index of another version is deleted and filled again.
const LOCATION_SCHEMA_VERSION: &[u8] = b"1";

/// A table of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationTable {
    /// Labels, each with what every Archive has under it.
    Labels,
    /// Items by Archive and path.
    Items,
    /// Followed Archives.
    Archives,
    /// Counts of redirects that are not reported yet.
    Usage,
}

const LOCATION_TABLES: [(LocationTable, &str); 4] = [
    (LocationTable::Labels, "labels"),
    (LocationTable::Items, "items"),
    (LocationTable::Archives, "archives"),
    (LocationTable::Usage, "usage"),
];

type LocationDatabase = Database<Bytes, Bytes>;

/// A key and its value.
pub type LocationEntry = (Vec<u8>, Vec<u8>);

/// An open location index.
#[derive(Clone)]
pub struct LocationStore {
    env: Env<WithoutTls>,
    tables: [LocationDatabase; 4],
    folder: PathBuf,
}

/// Writes that are committed together.
pub struct LocationBatch<'a> {
    transaction: RwTxn<'a>,
    store: &'a LocationStore,
}

impl LocationStore {
    /// Opens the index in a folder; creates it if it is missing, and anew if it has another schema
    /// or is damaged.
    pub fn open(folder: &Path) -> Result<Self, StorageError> {
        if let Ok(store) = Self::open_existing(folder)
            && store.is_current()?
        {
            return Ok(store);
        }
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(StorageError::io("remove", folder))?;
        }
        let store = Self::open_existing(folder)?;
        store.write(|batch| batch.put(LocationTable::Archives, b"schema", LOCATION_SCHEMA_VERSION))?;
        Ok(store)
    }

    fn open_existing(folder: &Path) -> Result<Self, StorageError> {
        std::fs::create_dir_all(folder).map_err(StorageError::io("create", folder))?;
        let failed = |error: heed::Error| location_error(folder, &error);
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAX_INDEX_BYTES).max_dbs(8).max_readers(MAX_INDEX_READERS);
        // SAFETY: the file is mapped, so nobody else may cut it off or write to it otherwise. It is
        // in a private folder (mode 700) whose lock the one server holds that opens it, and this is
        // the only place that opens it.
        #[expect(unsafe_code, reason = "the only way to open LMDB; see ADR 0016")]
        let env = unsafe { options.open(folder) }.map_err(failed)?;
        let mut transaction = env.write_txn().map_err(failed)?;
        let mut open = |name| env.create_database::<Bytes, Bytes>(&mut transaction, Some(name));
        let tables = [open("labels"), open("items"), open("archives"), open("usage")];
        let [labels, items, archives, usage] = tables;
        let tables = [
            labels.map_err(failed)?,
            items.map_err(failed)?,
            archives.map_err(failed)?,
            usage.map_err(failed)?,
        ];
        transaction.commit().map_err(failed)?;
        Ok(Self { env, tables, folder: folder.to_owned() })
    }

    fn is_current(&self) -> Result<bool, StorageError> {
        Ok(self.get(LocationTable::Archives, b"schema")?.as_deref() == Some(LOCATION_SCHEMA_VERSION))
    }

    fn table(&self, table: LocationTable) -> LocationDatabase {
        let at = LOCATION_TABLES.iter().position(|(other, _)| *other == table).unwrap_or(0);
        self.tables[at]
    }

    fn read_txn(&self) -> Result<RoTxn<'_, WithoutTls>, StorageError> {
        self.env.read_txn().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &heed::Error) -> StorageError {
        location_error(&self.folder, error)
    }

    /// Reads a value in place.
    pub fn read<T>(
        &self,
        table: LocationTable,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, StorageError> {
        let transaction = self.read_txn()?;
        let value = self.table(table).get(&transaction, key).map_err(|error| self.failed(&error))?;
        Ok(value.map(read))
    }

    /// A value.
    pub fn get(&self, table: LocationTable, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.read(table, key, <[u8]>::to_vec)
    }

    /// Up to `limit` entries whose keys begin with a prefix, in order.
    pub fn scan(
        &self,
        table: LocationTable,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<LocationEntry>, StorageError> {
        let transaction = self.read_txn()?;
        let entries = self.table(table).prefix_iter(&transaction, prefix);
        let entries = entries.map_err(|error| self.failed(&error))?;
        let read = |entry: Result<(&[u8], &[u8]), heed::Error>| {
            let (key, value) = entry.map_err(|error| self.failed(&error))?;
            Ok((key.to_vec(), value.to_vec()))
        };
        entries.take(limit).map(read).collect()
    }

    /// The number of entries of a table.
    pub fn count(&self, table: LocationTable) -> Result<u64, StorageError> {
        let transaction = self.read_txn()?;
        self.table(table).len(&transaction).map_err(|error| self.failed(&error))
    }

    /// The size of the file.
    pub fn file_bytes(&self) -> u64 {
        std::fs::metadata(self.folder.join("data.mdb")).map_or(0, |file| file.len())
    }

    /// Makes changes and commits them durably together, or none of them.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&mut LocationBatch<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        check_disk_space(&self.folder, MAX_BATCH_BYTES)?;
        let transaction = self.env.write_txn().map_err(|error| self.failed(&error))?;
        let mut batch = LocationBatch { transaction, store: self };
        let done = work(&mut batch)?;
        batch.transaction.commit().map_err(|error| self.failed(&error))?;
        Ok(done)
    }
}

impl LocationBatch<'_> {
    /// A value, with the writes of this batch.
    pub fn get(&self, table: LocationTable, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let value = self.store.table(table).get(&self.transaction, key);
        Ok(value.map_err(|error| self.store.failed(&error))?.map(<[u8]>::to_vec))
    }

    /// Writes a value.
    pub fn put(&mut self, table: LocationTable, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        let put = self.store.table(table).put(&mut self.transaction, key, value);
        put.map_err(|error| self.store.failed(&error))
    }

    /// Deletes a value.
    pub fn delete(&mut self, table: LocationTable, key: &[u8]) -> Result<(), StorageError> {
        let deleted = self.store.table(table).delete(&mut self.transaction, key);
        deleted.map(drop).map_err(|error| self.store.failed(&error))
    }

    /// Up to `limit` keys that begin with a prefix.
    pub fn keys(
        &self,
        table: LocationTable,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StorageError> {
        let entries = self.store.table(table).prefix_iter(&self.transaction, prefix);
        let entries = entries.map_err(|error| self.store.failed(&error))?;
        let key = |entry: Result<(&[u8], &[u8]), heed::Error>| {
            entry.map(|(key, _)| key.to_vec()).map_err(|error| self.store.failed(&error))
        };
        entries.take(limit).map(key).collect()
    }
}

impl std::fmt::Debug for LocationStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocationStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn location_error(folder: &Path, error: &heed::Error) -> StorageError {
    StorageError::LocationIndex { folder: folder.to_owned(), error: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_there_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locations");
        {
            let store = LocationStore::open(&place).unwrap();
            store
                .write(|batch| {
                    batch.put(LocationTable::Labels, b"a/1", b"x")?;
                    batch.put(LocationTable::Labels, b"a/2", b"y")
                })
                .unwrap();
            let failed = store.write(|batch| {
                batch.delete(LocationTable::Labels, b"a/1")?;
                Err::<(), _>(StorageError::OtherIndex)
            });
            assert!(failed.is_err());
            assert_eq!(store.get(LocationTable::Labels, b"a/1").unwrap().as_deref(), Some(&b"x"[..]));
            assert_eq!(store.get(LocationTable::Items, b"a/1").unwrap(), None, "tables are apart");
            assert_eq!(store.scan(LocationTable::Labels, b"a/", 1).unwrap().len(), 1);
        }
        let store = LocationStore::open(&place).unwrap();
        assert_eq!(store.count(LocationTable::Labels).unwrap(), 2, "it is still there");
    }

    #[test]
    fn a_damaged_index_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locations");
        drop(LocationStore::open(&place).unwrap());
        std::fs::write(place.join("data.mdb"), b"this is not a database").unwrap();
        let store = LocationStore::open(&place).unwrap();
        assert_eq!(store.count(LocationTable::Labels).unwrap(), 0);
    }
}
