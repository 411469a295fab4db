//! The index in SQLite: `index.sqlite` in the data folder (`docs/formats/index.md`).
//!
//! The statements use only SQL that PostgreSQL also understands.

mod read_only;
mod rows;
mod statements;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};

use crate::index::{
    FileRecord, IndexMatch, IndexRecord, IndexStorage, IndexedItem, LabelRecord, LabelRole, LinkKind,
    LinkRecord, PlacedStatement,
};
use crate::journal::{JournalEntry, JournalPosition, LinkStatement, LinkStatus};
use crate::{StorageError, disk, shared_memory};
pub use insert::IndexBulkLoader;
use insert::{IndexInsert, IndexTable, insert_event};
use read_only::{immutable_uri, is_write_failure, unshared_uri};
use rows::{read_event, read_file_row, read_indexed_version, read_record, read_u64, role_from_number};
use statements::LinkSide;

/// The schema version. An index of another version is rebuilt, not migrated: it holds no data of
/// its own.
const INDEX_SCHEMA_VERSION: i64 = 7;

// Statement texts are concatenated at compile time: they are the cache keys at every call.
macro_rules! record_columns {
    () => {
        "path, change, version, inventory, state, epoch, properties, metadata"
    };
}

// The same columns for reading. Long metadata are left out (`MAX_INLINE_METADATA_BYTES`), and their
// pages are not even touched.
macro_rules! read_columns {
    () => {
        "path, change, version, inventory, state, epoch, properties,
         CASE WHEN octet_length(metadata) > 65536 THEN '' ELSE metadata END"
    };
}

macro_rules! found_columns {
    () => {
        "SELECT path, role FROM label JOIN item ON number = item WHERE "
    };
}

macro_rules! file_columns {
    () => {
        "name, content, size, sha512, media, blocks"
    };
}

macro_rules! event_columns {
    () => {
        "path, change, batch, time, verb, version, inventory, state, epoch, agent, source, taker, request, note, past, owner, source_state"
    };
}

// These modules must follow the macros that they use.
mod insert;
mod salvage;

const INDEX_TABLES_SQL: &str = "
    CREATE TABLE followed (form BIGINT NOT NULL, next BIGINT NOT NULL, place BIGINT NOT NULL);
    CREATE TABLE item (
        number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, change BIGINT NOT NULL, version BIGINT NOT NULL, inventory TEXT NOT NULL,
        state TEXT NOT NULL, epoch BIGINT NOT NULL, properties TEXT NOT NULL, metadata TEXT NOT NULL,
        labels TEXT NOT NULL);
    CREATE INDEX item_change ON item (change);
    CREATE TABLE label (
        folded TEXT PRIMARY KEY, canonical TEXT, role BIGINT NOT NULL, item INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX label_canonical ON label (canonical) WHERE canonical IS NOT NULL;
    CREATE TABLE file (
        path TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL, size BIGINT NOT NULL, sha512 TEXT NOT NULL,
        media TEXT NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY (path, name)) WITHOUT ROWID;
    CREATE TABLE link (
        path TEXT NOT NULL, kind BIGINT NOT NULL, target TEXT NOT NULL, PRIMARY KEY (path, kind)) WITHOUT ROWID;
    CREATE INDEX link_target ON link (target, kind);
    CREATE TABLE event (
        path TEXT NOT NULL, change BIGINT NOT NULL, batch BIGINT NOT NULL, time TEXT NOT NULL, verb TEXT NOT NULL,
        version BIGINT NOT NULL, inventory TEXT NOT NULL, state TEXT NOT NULL, epoch BIGINT NOT NULL,
        agent TEXT NOT NULL, source TEXT, taker TEXT, request TEXT, note TEXT, past TEXT, owner TEXT, source_state TEXT, PRIMARY KEY (path, change)) WITHOUT ROWID;
    CREATE INDEX event_change ON event (change);
    CREATE INDEX event_request ON event (request) WHERE request IS NOT NULL;
    CREATE TABLE statement (
        change BIGINT NOT NULL, place BIGINT NOT NULL, kind BIGINT NOT NULL, older TEXT NOT NULL, newer TEXT NOT NULL,
        status BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (change, place)) WITHOUT ROWID;
    CREATE INDEX statement_older ON statement (older, kind);
    CREATE INDEX statement_newer ON statement (newer, kind);
    CREATE INDEX statement_status ON statement (status, change);
";

/// Labels that one statement of [`IndexStorage::linked_labels`] looks up.
const LABELS_PER_LOOKUP: usize = 16;
const LINKED_OLDER_SQL: &str = "SELECT DISTINCT older FROM statement WHERE kind = ?1 AND older IN
    (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
const LINKED_NEWER_SQL: &str = "SELECT DISTINCT newer FROM statement WHERE kind = ?1 AND newer IN
    (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

/// An indexed item: its last change, and the inventory after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedVersion {
    /// The path of its object.
    pub path: String,
    /// The number of the journal line.
    pub change: u64,
    /// The leading hex digits of the inventory's digest.
    pub inventory: String,
}

/// The index in one SQLite file.
#[derive(Debug)]
pub struct SqliteIndex(Connection);

impl SqliteIndex {
    /// Creates the file, replacing an incomplete one.
    pub fn create_empty(path: &Path) -> Result<Self, StorageError> {
        remove_index_files(path, &["", "-wal", "-shm"])?;
        let records = Self::connect(path, OpenFlags::default())?;
        let start = format!(
            "BEGIN; {INDEX_TABLES_SQL} INSERT INTO followed VALUES ({INDEX_SCHEMA_VERSION}, 1, 0); COMMIT;"
        );
        records.0.execute_batch(&start)?;
        path.parent().map_or(Ok(()), disk::sync)?;
        Ok(records)
    }

    /// Opens an existing file; read-only if the disk is full or not writable.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        if !path.exists() {
            return Err(StorageError::NoIndex { path: path.to_owned() });
        }
        match Self::open_to_write(path) {
            Err(error @ StorageError::NoRoom { .. }) => Self::open_unwritable(path, error),
            Err(StorageError::Index(error)) if is_write_failure(&error) => {
                Self::open_unwritable(path, error.into())
            }
            records => records,
        }
    }

    /// Opens an existing file that can be written.
    pub fn open_to_write(path: &Path) -> Result<Self, StorageError> {
        if !path.exists() {
            return Err(StorageError::NoIndex { path: path.to_owned() });
        }
        shared_memory::check_free_space(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Self::connect(path, flags).and_then(|records| {
            records.check_schema_version()?;
            Ok(records)
        });
        let records = opened.map_err(|error| shared_memory::explain_failure(path, error))?;
        shared_memory::preallocate(path)?;
        Ok(records)
    }

    /// To share the file, SQLite writes files beside it. Where it cannot, the file is read as it
    /// is, with the write-ahead log if a process that was killed left one.
    fn open_unwritable(path: &Path, error: StorageError) -> Result<Self, StorageError> {
        let log = path.with_extension("sqlite-wal");
        let has_log = log.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let uri = if has_log { unshared_uri } else { immutable_uri };
        let Some(name) = path.canonicalize().ok().and_then(|path| path.to_str().map(uri)) else {
            return Err(error);
        };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let records = Self(Connection::open_with_flags(name, flags)?);
        records.check_schema_version()?;
        Ok(records)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StorageError> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(64);
        // Keep query plans independent of values: with partial indexes SQLite would otherwise
        // re-plan at each call.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        // A negative value is in KiB. This is enough for the upper pages of the trees. The lower
        // pages stay in the operating system's page cache, which all readers share: here they would
        // evict each other, and each would fall out of the CPU cache.
        connection.pragma_update(None, "cache_size", -4096)?;
        Ok(Self(connection))
    }

    /// Opens a new file for a rebuild. Nothing is durable until [`IndexStorage::commit`], and not
    /// even that until the file replaces the old index.
    pub fn create_for_bulk_load(path: &Path) -> Result<Self, StorageError> {
        let records = Self(Connection::open(path)?);
        records.0.set_prepared_statement_cache_capacity(64);
        records.0.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        records.0.execute_batch(
            "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -196608;",
        )?;
        records.0.execute_batch(&format!(
            "BEGIN; {INDEX_TABLES_SQL} INSERT INTO followed VALUES ({INDEX_SCHEMA_VERSION}, 1, 0); COMMIT;"
        ))?;
        Ok(records)
    }

    /// Replaces the index in use with a rebuilt file.
    pub fn replace_index(fresh: &Path, path: &Path) -> Result<(), StorageError> {
        disk::sync(fresh)?;
        // A leftover write-ahead log of the old index would be applied to the new one. The old
        // index stays until the rename, so that one always exists.
        let ended = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|old| old.pragma_update(None, "journal_mode", "delete"));
        if ended.is_err() {
            remove_index_files(path, &["-wal", "-shm"])?;
            path.parent().map_or(Ok(()), disk::sync)?;
        }
        disk::rename(fresh, path)?;
        path.parent().map_or(Ok(()), disk::sync)?;
        // Switches to a write-ahead log, since others may read it at any time.
        Self::open(path).map(drop)
    }

    fn check_schema_version(&self) -> Result<(), StorageError> {
        let form = self.0.query_row("SELECT form FROM followed", [], |row| row.get::<_, i64>(0));
        match form {
            Ok(INDEX_SCHEMA_VERSION) => Ok(()),
            Err(error) if is_write_failure(&error) => Err(error.into()),
            _ => Err(StorageError::OtherIndex),
        }
    }

    fn query_all<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StorageError> {
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(statement.query_map(parameters, read)?.collect::<Result<_, _>>()?)
    }

    fn query_optional<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StorageError> {
        Ok(self.0.prepare_cached(sql)?.query_row(parameters, read).optional()?)
    }

    /// Returns the number of changed rows.
    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, StorageError> {
        Ok(self.0.prepare_cached(sql)?.execute(parameters)?)
    }

    /// Deletes the rows that belong to an item, and returns its number. Its labels are listed in
    /// its own row, which saves an index from items to labels.
    fn delete_parts(&self, path: &str) -> Result<Option<i64>, StorageError> {
        let sql = "SELECT number, labels FROM item WHERE path = ?1";
        let recorded: Option<(i64, String)> =
            self.query_optional(sql, [path], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if let Some((number, labels)) = &recorded {
            for label in labels.split_ascii_whitespace() {
                self.execute("DELETE FROM label WHERE folded = ?1 AND item = ?2", params![label, number])?;
            }
        }
        self.execute("DELETE FROM file WHERE path = ?1", [path])?;
        self.execute("DELETE FROM link WHERE path = ?1", [path])?;
        Ok(recorded.map(|(number, _)| number))
    }

    /// The number of indexed items.
    pub fn count(&self) -> Result<u64, StorageError> {
        Ok(self.query_optional("SELECT COUNT(*) FROM item", [], |row| read_u64(row, 0))?.unwrap_or(0))
    }

    /// The indexed version of an item.
    pub fn indexed_version(&self, path: &str) -> Result<Option<IndexedVersion>, StorageError> {
        let sql = "SELECT path, change, inventory FROM item WHERE path = ?1";
        self.query_optional(sql, [path], read_indexed_version)
    }

    /// Indexed versions by path, starting after `after`.
    pub fn list_indexed_versions(
        &self,
        after: &str,
        limit: usize,
    ) -> Result<Vec<IndexedVersion>, StorageError> {
        let sql = "SELECT path, change, inventory FROM item WHERE path > ?1 ORDER BY path LIMIT ?2";
        self.query_all(sql, params![after, limit as i64], read_indexed_version)
    }

    /// Updates the state of an item for a change that left its version as it was. Returns whether
    /// the item was indexed with that inventory.
    pub fn update_state(&self, entry: &JournalEntry) -> Result<bool, StorageError> {
        let sql = "UPDATE item SET change = ?2, state = ?3, epoch = ?4 WHERE path = ?1 AND inventory = ?5";
        let (change, epoch) = (entry.change as i64, entry.epoch as i64);
        Ok(self.execute(sql, params![entry.path, change, entry.state.name(), epoch, entry.inventory])? == 1)
    }

    /// Removes the item whose last change this is.
    pub fn remove_item_by_change(&self, change: u64) -> Result<(), StorageError> {
        let path: Option<String> =
            self.query_optional("SELECT path FROM item WHERE change = ?1", [change as i64], |row| {
                row.get(0)
            })?;
        path.map_or(Ok(()), |path| self.remove_item(&path))
    }

    /// Removes a new item of which only these labels were written.
    fn undo_new_item(&self, path: &str, labels: &[LabelRecord]) -> Result<(), StorageError> {
        self.execute("DELETE FROM item WHERE path = ?1", [path])?;
        for label in labels {
            self.execute("DELETE FROM label WHERE folded = ?1", [&label.folded])?;
        }
        Ok(())
    }

    /// Writes an item through `insert`.
    fn insert_item(&self, item: &IndexedItem, insert: IndexInsert<'_>) -> Result<(), StorageError> {
        let IndexedItem { record, labels, links, files } = item;
        let IndexRecord { path, change, version, inventory, state, epoch, properties, metadata } = record;
        let (change, epoch, state) = (*change as i64, *epoch as i64, state.name());
        let names = labels.iter().map(|label| label.folded.as_str()).collect::<Vec<_>>().join(" ");
        let columns = params![path, change, version, inventory, state, epoch, properties, metadata, names];
        // `RETURNING number` would make SQLite build a temporary table at each call.
        let new = insert(IndexTable::Item, columns)? == 1;
        let item = if new {
            self.0.last_insert_rowid()
        } else {
            let number = self.delete_parts(path)?.ok_or(StorageError::OtherIndex)?;
            let sql =
                "UPDATE item SET change = ?2, version = ?3, inventory = ?4, state = ?5, epoch = ?6, properties = ?7,
                 metadata = ?8, labels = ?9 WHERE path = ?1";
            self.execute(sql, columns)?;
            number
        };
        for (number, label) in labels.iter().enumerate() {
            let canonical = Some(&label.canonical).filter(|canonical| **canonical != label.folded);
            if insert(IndexTable::Label, params![label.folded, canonical, label.role as i64, item])? == 0 {
                if new {
                    self.undo_new_item(path, &labels[..number])?;
                }
                return Err(self.label_taken_error(&label.folded)?);
            }
        }
        for link in links {
            insert(IndexTable::Link, params![path, link.kind as i64, link.to])?;
        }
        for FileRecord { name, content, size, sha512, media, blocks } in files {
            insert(IndexTable::File, params![path, name, content, *size as i64, sha512, media, blocks])?;
        }
        Ok(())
    }

    fn label_taken_error(&self, label: &str) -> Result<StorageError, StorageError> {
        let path =
            self.query_optional(concat!(found_columns!(), "folded = ?1"), [label], |row| row.get(0))?;
        Ok(StorageError::LabelTaken { label: label.to_owned(), path: path.unwrap_or_default() })
    }
}

impl IndexStorage for SqliteIndex {
    fn position(&self) -> Result<JournalPosition, StorageError> {
        let read = |row: &Row<'_>| Ok(JournalPosition { next: read_u64(row, 0)?, place: read_u64(row, 1)? });
        self.query_optional("SELECT next, place FROM followed", [], read)?.ok_or(StorageError::OtherIndex)
    }

    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<IndexMatch>, StorageError> {
        let read = |spelled| {
            move |row: &Row<'_>| {
                Ok(IndexMatch { path: row.get(0)?, role: role_from_number(row.get(1)?), spelled })
            }
        };
        if let Some(found) =
            self.query_optional(concat!(found_columns!(), "folded = ?1"), [folded], read(true))?
        {
            return Ok(vec![found]);
        }
        let mut found =
            self.query_all(concat!(found_columns!(), "canonical = ?1"), [canonical], read(false))?;
        if folded != canonical {
            found.extend(self.query_optional(
                concat!(found_columns!(), "folded = ?1"),
                [canonical],
                read(false),
            )?);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn find_exact(&self, folded: &str) -> Result<Option<(IndexRecord, LabelRole)>, StorageError> {
        let sql = concat!(
            "SELECT item.",
            read_columns!(),
            ", role FROM label JOIN item ON number = item WHERE folded = ?1"
        );
        self.query_optional(sql, [folded], |row| Ok((read_record(row)?, role_from_number(row.get(8)?))))
    }

    fn item(&self, path: &str) -> Result<Option<IndexRecord>, StorageError> {
        self.query_optional(
            concat!("SELECT ", read_columns!(), " FROM item WHERE path = ?1"),
            [path],
            read_record,
        )
    }

    fn list(&self, after: &str, limit: usize) -> Result<Vec<IndexRecord>, StorageError> {
        let sql = concat!("SELECT ", read_columns!(), " FROM item WHERE path > ?1 ORDER BY path LIMIT ?2");
        self.query_all(sql, params![after, limit as i64], read_record)
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<IndexRecord>, StorageError> {
        let sql =
            concat!("SELECT ", read_columns!(), " FROM item WHERE change > ?1 ORDER BY change LIMIT ?2");
        self.query_all(sql, params![after as i64, limit as i64], read_record)
    }

    fn metadata(&self, path: &str) -> Result<Option<String>, StorageError> {
        self.query_optional("SELECT metadata FROM item WHERE path = ?1", [path], |row| row.get(0))
    }

    fn metadata_size(&self, path: &str) -> Result<u64, StorageError> {
        let sql = "SELECT octet_length(metadata) FROM item WHERE path = ?1";
        Ok(self.query_optional(sql, [path], |row| read_u64(row, 0))?.unwrap_or(0))
    }

    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, StorageError> {
        let sql = concat!(
            "SELECT ",
            file_columns!(),
            " FROM file WHERE path = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
        );
        self.query_all(sql, params![path, after, limit as i64], read_file_row)
    }

    fn has_more_files(&self, path: &str, many: usize) -> Result<bool, StorageError> {
        let sql = "SELECT 1 FROM file WHERE path = ?1 LIMIT 1 OFFSET ?2";
        Ok(self.query_optional(sql, params![path, many as i64], |_| Ok(()))?.is_some())
    }

    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, StorageError> {
        let sql = concat!("SELECT ", file_columns!(), " FROM file WHERE path = ?1 AND name = ?2");
        self.query_optional(sql, [path, name], read_file_row)
    }

    fn total_file_size(&self, path: &str) -> Result<u64, StorageError> {
        let sql = "SELECT COALESCE(SUM(size), 0) FROM file WHERE path = ?1";
        Ok(self.query_optional(sql, [path], |row| read_u64(row, 0))?.unwrap_or(0))
    }

    fn events(&self, path: &str) -> Result<Vec<JournalEntry>, StorageError> {
        let sql = concat!("SELECT ", event_columns!(), " FROM event WHERE path = ?1 ORDER BY change");
        self.query_all(sql, [path], read_event)
    }

    fn last_event(&self, path: &str) -> Result<Option<JournalEntry>, StorageError> {
        let sql =
            concat!("SELECT ", event_columns!(), " FROM event WHERE path = ?1 ORDER BY change DESC LIMIT 1");
        self.query_optional(sql, [path], read_event)
    }

    fn changed_paths(&self, after: u64, limit: usize) -> Result<Vec<(u64, String)>, StorageError> {
        let sql = "SELECT change, path FROM event WHERE change > ?1 ORDER BY change LIMIT ?2";
        self.query_all(sql, params![after as i64, limit as i64], |row| Ok((read_u64(row, 0)?, row.get(1)?)))
    }

    fn event_at(&self, change: u64) -> Result<Option<JournalEntry>, StorageError> {
        let sql = concat!("SELECT ", event_columns!(), " FROM event WHERE change = ?1");
        self.query_optional(sql, [change as i64], read_event)
    }

    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, StorageError> {
        self.query_all("SELECT kind, target FROM link WHERE path = ?1 ORDER BY kind", [path], |row| {
            let kind = if row.get::<_, i64>(0)? == 0 { LinkKind::Translation } else { LinkKind::Edition };
            Ok(LinkRecord { kind, to: row.get(1)? })
        })
    }

    fn items_with_links(&self, after: &str, limit: usize) -> Result<Vec<String>, StorageError> {
        let sql = "SELECT DISTINCT path FROM link WHERE path > ?1 ORDER BY path LIMIT ?2";
        self.query_all(sql, params![after, limit as i64], |row| row.get(0))
    }

    fn items_linking_to(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, StorageError> {
        let sql = "SELECT path FROM link WHERE target = ?1 AND kind = ?2 ORDER BY path";
        self.query_all(sql, params![to, kind as i64], |row| row.get(0))
    }

    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, StorageError> {
        self.statements_by(LinkSide::Older, kind, older)
    }

    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, StorageError> {
        self.statements_by(LinkSide::Newer, kind, newer)
    }

    fn linked_labels(&self, kind: LinkKind, labels: &[String]) -> Result<Vec<String>, StorageError> {
        let mut linked = Vec::new();
        // Items have two or three labels; those with hundreds of aliases are looked up many at once.
        for some in labels.chunks(LABELS_PER_LOOKUP) {
            let text = |at: usize| some.get(at).map_or("", String::as_str);
            let texts: [&str; LABELS_PER_LOOKUP] = std::array::from_fn(text);
            for sql in [LINKED_OLDER_SQL, LINKED_NEWER_SQL] {
                let mut statement = self.0.prepare_cached(sql)?;
                let kind = kind as i64;
                let values = std::iter::once(&kind as &dyn rusqlite::ToSql)
                    .chain(texts.iter().map(|text| text as &dyn rusqlite::ToSql));
                let rows =
                    statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(0))?;
                linked.extend(rows.collect::<Result<Vec<_>, _>>()?);
            }
        }
        Ok(labels.iter().filter(|label| linked.contains(label)).cloned().collect())
    }

    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, StorageError> {
        self.statements_after(status, after, limit)
    }

    fn by_request(&self, key: &str) -> Result<Option<String>, StorageError> {
        self.query_optional("SELECT path FROM event WHERE request = ?1", [key], |row| row.get(0))
    }

    fn begin(&self) -> Result<(), StorageError> {
        Ok(self.0.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn put_item(&self, item: &IndexedItem) -> Result<(), StorageError> {
        self.insert_item(item, &mut |into, values| self.execute(into.sql(), values))
    }

    fn remove_item(&self, path: &str) -> Result<(), StorageError> {
        self.delete_parts(path)?;
        self.execute("DELETE FROM item WHERE path = ?1", [path]).map(drop)
    }

    fn missing_items(&self) -> Result<Vec<String>, StorageError> {
        let sql = "SELECT DISTINCT path FROM event AS any_event WHERE path NOT IN (SELECT path FROM item) AND (SELECT verb
                   FROM event WHERE path = any_event.path ORDER BY change DESC LIMIT 1) <> 'drop' ORDER BY path";
        self.query_all(sql, [], |row| row.get(0))
    }

    fn set_last_change(&self, path: &str, change: u64) -> Result<(), StorageError> {
        self.execute("UPDATE item SET change = ?2 WHERE path = ?1", params![path, change as i64]).map(drop)
    }

    fn add_event(&self, entry: &JournalEntry) -> Result<(), StorageError> {
        insert_event(entry, &mut |into, values| self.execute(into.sql(), values))
    }

    fn remove_events(&self, changes: &[u64]) -> Result<(), StorageError> {
        changes.iter().try_for_each(|change| {
            self.execute("DELETE FROM statement WHERE change = ?1", [*change as i64])?;
            self.execute("DELETE FROM event WHERE change = ?1", [*change as i64]).map(drop)
        })
    }

    fn commit(&self, position: JournalPosition) -> Result<(), StorageError> {
        self.execute(
            "UPDATE followed SET next = ?1, place = ?2",
            [position.next as i64, position.place as i64],
        )?;
        Ok(self.0.execute_batch("COMMIT")?)
    }

    fn roll_back(&self) -> Result<(), StorageError> {
        if self.0.is_autocommit() {
            return Ok(());
        }
        Ok(self.0.execute_batch("ROLLBACK")?)
    }
}

/// Removes the file or its companions, given by their suffixes.
fn remove_index_files(path: &Path, suffixes: &[&str]) -> Result<(), StorageError> {
    for suffix in suffixes {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if !disk::is_not_found(&error) => return Err(StorageError::io("remove", path)(error)),
            _ => {}
        }
    }
    Ok(())
}
