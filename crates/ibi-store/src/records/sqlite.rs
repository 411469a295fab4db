//! Records in SQLite: `index.sqlite` in the data folder (`docs/formats/index.md`).
//!
//! The statements keep to what PostgreSQL understands too.

mod rows;
mod statements;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};

use crate::journal::{Entry, LinkStatement, LinkStatus, Position};
use crate::records::{
    FileRecord, Found, Full, LabelRecord, LinkKind, LinkRecord, PlacedStatement, Record, Records, Role,
};
use crate::{KeepError, disk};
pub use insert::Loader;
use insert::{Insert, Table, happened_by};
use rows::{event, file, number, record, role, standing};
use statements::Side;

/// The form of the tables. Another one is made anew, not migrated: nothing is kept here alone.
const FORM: i64 = 4;

// Texts of statements are put together at compile time: they are looked up by them at every call.
macro_rules! record_columns {
    () => {
        "path, change, version, inventory, state, epoch, properties, metadata"
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
        "path, change, batch, time, verb, version, inventory, state, epoch, agent, source, taker, request, note, past"
    };
}

// After the columns, which it uses.
mod insert;

const TABLES: &str = "
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
        agent TEXT NOT NULL, source TEXT, taker TEXT, request TEXT, note TEXT, past TEXT, PRIMARY KEY (path, change)) WITHOUT ROWID;
    CREATE INDEX event_request ON event (request) WHERE request IS NOT NULL;
    CREATE TABLE statement (
        change BIGINT NOT NULL, place BIGINT NOT NULL, kind BIGINT NOT NULL, older TEXT NOT NULL, newer TEXT NOT NULL,
        status BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (change, place)) WITHOUT ROWID;
    CREATE INDEX statement_older ON statement (older, kind);
    CREATE INDEX statement_newer ON statement (newer, kind);
    CREATE INDEX statement_status ON statement (status, change);
";

/// An item that is recorded: the last thing that happened to it, and the inventory that it left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The path of its object.
    pub path: String,
    /// The number of the line.
    pub change: u64,
    /// The first digits of the inventory's digest.
    pub inventory: String,
}

/// Records in one SQLite file.
#[derive(Debug)]
pub struct SqliteRecords(Connection);

impl SqliteRecords {
    /// Makes the file, in the place of one that was begun.
    pub fn start_anew(path: &Path) -> Result<Self, KeepError> {
        remove(path, &["", "-wal", "-shm"])?;
        let records = Self::connect(path, OpenFlags::default())?;
        let start = format!("BEGIN; {TABLES} INSERT INTO followed VALUES ({FORM}, 1, 0); COMMIT;");
        records.0.execute_batch(&start)?;
        path.parent().map_or(Ok(()), disk::sync)?;
        Ok(records)
    }

    /// Opens the file that is there. On a disk that is full or cannot be written, to be read.
    pub fn open(path: &Path) -> Result<Self, KeepError> {
        if !path.exists() {
            return Err(KeepError::NoIndex { path: path.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let records = Self::connect(path, flags).and_then(|records| records.check_form().map(|()| records));
        match records {
            Err(KeepError::Index(error)) if cannot_write(&error) => Self::open_unwritable(path, error),
            records => records,
        }
    }

    /// SQLite needs files beside its own to share it. Without them it can be read as it lies there, if its log was taken over.
    fn open_unwritable(path: &Path, error: rusqlite::Error) -> Result<Self, KeepError> {
        let log = path.with_extension("sqlite-wal");
        let has_log = log.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let Some(name) =
            path.canonicalize().ok().filter(|_| !has_log).and_then(|path| path.to_str().map(uri))
        else {
            return Err(error.into());
        };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let records = Self(Connection::open_with_flags(name, flags)?);
        records.check_form()?;
        Ok(records)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, KeepError> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(64);
        // Plans are the same for all values: with partial indexes SQLite would make a new one at each call.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        // In KiB, if negative: for the upper pages. The lower ones are left to the system, which has them for all who read: here
        // they would push each other out, and each out of the processor's cache.
        connection.pragma_update(None, "cache_size", -4096)?;
        Ok(Self(connection))
    }

    /// For making it anew: nothing is durable until [`Records::commit`], and not even that before the file is put in its
    /// place.
    pub fn bulk(path: &Path) -> Result<Self, KeepError> {
        let records = Self(Connection::open(path)?);
        records.0.set_prepared_statement_cache_capacity(64);
        records.0.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        records.0.execute_batch(
            "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -196608;",
        )?;
        records
            .0
            .execute_batch(&format!("BEGIN; {TABLES} INSERT INTO followed VALUES ({FORM}, 1, 0); COMMIT;"))?;
        Ok(records)
    }

    /// Puts a file that was made anew in the place of the one that was used.
    pub fn put_in_place(fresh: &Path, path: &Path) -> Result<(), KeepError> {
        disk::sync(fresh)?;
        // What the old one has not taken over from its log would be taken for the new one's. The old one stays until the new
        // one takes its place, so that there always is one.
        let ended = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|old| old.pragma_update(None, "journal_mode", "delete"));
        if ended.is_err() {
            remove(path, &["-wal", "-shm"])?;
            path.parent().map_or(Ok(()), disk::sync)?;
        }
        disk::rename(fresh, path)?;
        path.parent().map_or(Ok(()), disk::sync)?;
        // From now on with a log, as others may read it any time.
        Self::open(path).map(drop)
    }

    fn check_form(&self) -> Result<(), KeepError> {
        let form = self.0.query_row("SELECT form FROM followed", [], |row| row.get::<_, i64>(0));
        match form {
            Ok(FORM) => Ok(()),
            Err(error) if cannot_write(&error) => Err(error.into()),
            _ => Err(KeepError::OtherIndex),
        }
    }

    fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, KeepError> {
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(statement.query_map(parameters, read)?.collect::<Result<_, _>>()?)
    }

    fn row<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, KeepError> {
        Ok(self.0.prepare_cached(sql)?.query_row(parameters, read).optional()?)
    }

    /// How many rows it changed.
    fn run(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, KeepError> {
        Ok(self.0.prepare_cached(sql)?.execute(parameters)?)
    }

    /// Takes out what an item has, and tells its number. Its labels stand in its own row, so that no index leads from items
    /// to labels.
    fn forget_parts(&self, path: &str) -> Result<Option<i64>, KeepError> {
        let sql = "SELECT number, labels FROM item WHERE path = ?1";
        let recorded: Option<(i64, String)> = self.row(sql, [path], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if let Some((number, labels)) = &recorded {
            for label in labels.split_ascii_whitespace() {
                self.run("DELETE FROM label WHERE folded = ?1 AND item = ?2", params![label, number])?;
            }
        }
        self.run("DELETE FROM file WHERE path = ?1", [path])?;
        self.run("DELETE FROM link WHERE path = ?1", [path])?;
        Ok(recorded.map(|(number, _)| number))
    }

    /// How many items are recorded.
    pub fn count(&self) -> Result<u64, KeepError> {
        Ok(self.row("SELECT COUNT(*) FROM item", [], |row| number(row, 0))?.unwrap_or(0))
    }

    /// How an item is recorded.
    pub fn stands(&self, path: &str) -> Result<Option<Standing>, KeepError> {
        let sql = "SELECT path, change, inventory FROM item WHERE path = ?1";
        self.row(sql, [path], standing)
    }

    /// The same of items in order of their paths, after one.
    pub fn standing(&self, after: &str, limit: usize) -> Result<Vec<Standing>, KeepError> {
        let sql = "SELECT path, change, inventory FROM item WHERE path > ?1 ORDER BY path LIMIT ?2";
        self.rows(sql, params![after, limit as i64], standing)
    }

    /// What an item is from another change on that left its version as it is. Tells whether the item was so recorded.
    pub fn restate(&self, entry: &Entry) -> Result<bool, KeepError> {
        let sql = "UPDATE item SET change = ?2, state = ?3, epoch = ?4 WHERE path = ?1 AND inventory = ?5";
        let (change, epoch) = (entry.change as i64, entry.epoch as i64);
        Ok(self.run(sql, params![entry.path, change, entry.state.name(), epoch, entry.inventory])? == 1)
    }

    /// Takes out the item to which this happened last.
    pub fn forget_change(&self, change: u64) -> Result<(), KeepError> {
        let path: Option<String> =
            self.row("SELECT path FROM item WHERE change = ?1", [change as i64], |row| row.get(0))?;
        path.map_or(Ok(()), |path| self.forget(&path))
    }

    /// Takes out a new item of which no more than these labels was written.
    fn take_back(&self, path: &str, labels: &[LabelRecord]) -> Result<(), KeepError> {
        self.run("DELETE FROM item WHERE path = ?1", [path])?;
        for label in labels {
            self.run("DELETE FROM label WHERE folded = ?1", [&label.folded])?;
        }
        Ok(())
    }

    /// Records an item by what runs an insertion.
    fn put_by(&self, item: &Full, insert: Insert<'_>) -> Result<(), KeepError> {
        let Full { record, labels, links, files } = item;
        let Record { path, change, version, inventory, state, epoch, properties, metadata } = record;
        let (change, epoch, state) = (*change as i64, *epoch as i64, state.name());
        let names = labels.iter().map(|label| label.folded.as_str()).collect::<Vec<_>>().join(" ");
        let columns = params![path, change, version, inventory, state, epoch, properties, metadata, names];
        // `RETURNING number` would cost SQLite a table of its own at each call.
        let new = insert(Table::Item, columns)? == 1;
        let item = if new {
            self.0.last_insert_rowid()
        } else {
            let number = self.forget_parts(path)?.ok_or(KeepError::OtherIndex)?;
            let sql =
                "UPDATE item SET change = ?2, version = ?3, inventory = ?4, state = ?5, epoch = ?6, properties = ?7,
                 metadata = ?8, labels = ?9 WHERE path = ?1";
            self.run(sql, columns)?;
            number
        };
        for (number, label) in labels.iter().enumerate() {
            let canonical = Some(&label.canonical).filter(|canonical| **canonical != label.folded);
            if insert(Table::Label, params![label.folded, canonical, label.role as i64, item])? == 0 {
                if new {
                    self.take_back(path, &labels[..number])?;
                }
                return Err(self.taken(&label.folded)?);
            }
        }
        for link in links {
            insert(Table::Link, params![path, link.kind as i64, link.to])?;
        }
        for FileRecord { name, content, size, sha512, media, blocks } in files {
            insert(Table::File, params![path, name, content, *size as i64, sha512, media, blocks])?;
        }
        Ok(())
    }

    fn taken(&self, label: &str) -> Result<KeepError, KeepError> {
        let path = self.row(concat!(found_columns!(), "folded = ?1"), [label], |row| row.get(0))?;
        Ok(KeepError::LabelTaken { label: label.to_owned(), path: path.unwrap_or_default() })
    }
}

impl Records for SqliteRecords {
    fn position(&self) -> Result<Position, KeepError> {
        let read = |row: &Row<'_>| Ok(Position { next: number(row, 0)?, place: number(row, 1)? });
        self.row("SELECT next, place FROM followed", [], read)?.ok_or(KeepError::OtherIndex)
    }

    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<Found>, KeepError> {
        let read =
            |spelled| move |row: &Row<'_>| Ok(Found { path: row.get(0)?, role: role(row.get(1)?), spelled });
        if let Some(found) = self.row(concat!(found_columns!(), "folded = ?1"), [folded], read(true))? {
            return Ok(vec![found]);
        }
        let mut found = self.rows(concat!(found_columns!(), "canonical = ?1"), [canonical], read(false))?;
        if folded != canonical {
            found.extend(self.row(concat!(found_columns!(), "folded = ?1"), [canonical], read(false))?);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn held(&self, folded: &str) -> Result<Option<(Record, Role)>, KeepError> {
        let sql = concat!(
            "SELECT item.",
            record_columns!(),
            ", role FROM label JOIN item ON number = item WHERE folded = ?1"
        );
        self.row(sql, [folded], |row| Ok((record(row)?, role(row.get(8)?))))
    }

    fn item(&self, path: &str) -> Result<Option<Record>, KeepError> {
        self.row(concat!("SELECT ", record_columns!(), " FROM item WHERE path = ?1"), [path], record)
    }

    fn list(&self, after: &str, limit: usize) -> Result<Vec<Record>, KeepError> {
        let sql = concat!("SELECT ", record_columns!(), " FROM item WHERE path > ?1 ORDER BY path LIMIT ?2");
        self.rows(sql, params![after, limit as i64], record)
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<Record>, KeepError> {
        let sql =
            concat!("SELECT ", record_columns!(), " FROM item WHERE change > ?1 ORDER BY change LIMIT ?2");
        self.rows(sql, params![after as i64, limit as i64], record)
    }

    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, KeepError> {
        let sql = concat!(
            "SELECT ",
            file_columns!(),
            " FROM file WHERE path = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
        );
        self.rows(sql, params![path, after, limit as i64], file)
    }

    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, KeepError> {
        let sql = concat!("SELECT ", file_columns!(), " FROM file WHERE path = ?1 AND name = ?2");
        self.row(sql, [path, name], file)
    }

    fn size(&self, path: &str) -> Result<u64, KeepError> {
        let sql = "SELECT COALESCE(SUM(size), 0) FROM file WHERE path = ?1";
        Ok(self.row(sql, [path], |row| number(row, 0))?.unwrap_or(0))
    }

    fn events(&self, path: &str) -> Result<Vec<Entry>, KeepError> {
        let sql = concat!("SELECT ", event_columns!(), " FROM event WHERE path = ?1 ORDER BY change");
        self.rows(sql, [path], event)
    }

    fn last_event(&self, path: &str) -> Result<Option<Entry>, KeepError> {
        let sql =
            concat!("SELECT ", event_columns!(), " FROM event WHERE path = ?1 ORDER BY change DESC LIMIT 1");
        self.row(sql, [path], event)
    }

    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, KeepError> {
        self.rows("SELECT kind, target FROM link WHERE path = ?1 ORDER BY kind", [path], |row| {
            let kind = if row.get::<_, i64>(0)? == 0 { LinkKind::Translation } else { LinkKind::Edition };
            Ok(LinkRecord { kind, to: row.get(1)? })
        })
    }

    fn linking(&self, after: &str, limit: usize) -> Result<Vec<String>, KeepError> {
        let sql = "SELECT DISTINCT path FROM link WHERE path > ?1 ORDER BY path LIMIT ?2";
        self.rows(sql, params![after, limit as i64], |row| row.get(0))
    }

    fn linked(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, KeepError> {
        let sql = "SELECT path FROM link WHERE target = ?1 AND kind = ?2 ORDER BY path";
        self.rows(sql, params![to, kind as i64], |row| row.get(0))
    }

    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, KeepError> {
        self.statements_by(Side::Older, kind, older)
    }

    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, KeepError> {
        self.statements_by(Side::Newer, kind, newer)
    }

    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, KeepError> {
        self.statements_after(status, after, limit)
    }

    fn made_by(&self, key: &str) -> Result<Option<String>, KeepError> {
        self.row("SELECT path FROM event WHERE request = ?1", [key], |row| row.get(0))
    }

    fn begin(&self) -> Result<(), KeepError> {
        Ok(self.0.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn put(&self, item: &Full) -> Result<(), KeepError> {
        self.put_by(item, &mut |into, values| self.run(into.sql(), values))
    }

    fn forget(&self, path: &str) -> Result<(), KeepError> {
        self.forget_parts(path)?;
        self.run("DELETE FROM item WHERE path = ?1", [path]).map(drop)
    }

    fn lost(&self) -> Result<Vec<String>, KeepError> {
        let sql = "SELECT DISTINCT path FROM event AS any_event WHERE path NOT IN (SELECT path FROM item) AND (SELECT verb
                   FROM event WHERE path = any_event.path ORDER BY change DESC LIMIT 1) <> 'drop' ORDER BY path";
        self.rows(sql, [], |row| row.get(0))
    }

    fn touch(&self, path: &str, change: u64) -> Result<(), KeepError> {
        self.run("UPDATE item SET change = ?2 WHERE path = ?1", params![path, change as i64]).map(drop)
    }

    fn happened(&self, entry: &Entry) -> Result<(), KeepError> {
        happened_by(entry, &mut |into, values| self.run(into.sql(), values))
    }

    fn did_not_happen(&self, changes: &[u64]) -> Result<(), KeepError> {
        changes.iter().try_for_each(|change| {
            self.run("DELETE FROM statement WHERE change = ?1", [*change as i64])?;
            self.run("DELETE FROM event WHERE change = ?1", [*change as i64]).map(drop)
        })
    }

    fn commit(&self, position: Position) -> Result<(), KeepError> {
        self.run("UPDATE followed SET next = ?1, place = ?2", [position.next as i64, position.place as i64])?;
        Ok(self.0.execute_batch("COMMIT")?)
    }

    fn roll_back(&self) -> Result<(), KeepError> {
        if self.0.is_autocommit() {
            return Ok(());
        }
        Ok(self.0.execute_batch("ROLLBACK")?)
    }
}

/// Removes the file, or what lies beside it.
fn remove(path: &Path, suffixes: &[&str]) -> Result<(), KeepError> {
    for suffix in suffixes {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if !disk::absent(&error) => return Err(KeepError::io("remove", path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// An address of the file that makes SQLite read it as it lies there.
fn uri(path: &str) -> String {
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn cannot_write(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    let code = error.sqlite_error_code();
    code.is_some_and(|code| {
        matches!(code, CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
    })
}
