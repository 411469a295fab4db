//! The state of an Archive's service: usage counts and the responses to completed requests. It
//! cannot be rebuilt from other data, and nothing else depends on it (`docs/formats/service.md`).

use std::path::Path;
use std::time::Duration;

use ibi_id::Instant;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{IssuedRange, StorageError, check_disk_space, disk, shared_memory};

/// The schema version. Version 1 counted data and metadata of an item together; version 2 did not
/// record who minted a label.
const SERVICE_SCHEMA_VERSION: i64 = 3;

const SERVICE_TABLES_SQL: &str = "
    CREATE TABLE IF NOT EXISTS form (form BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS counted (
        path TEXT NOT NULL, contenttype TEXT NOT NULL, day TEXT NOT NULL, what TEXT NOT NULL, robots BIGINT NOT NULL,
        times BIGINT NOT NULL, PRIMARY KEY (path, contenttype, day, what, robots)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS behind (
        path TEXT PRIMARY KEY, version BIGINT NOT NULL, latest BIGINT NOT NULL, holder TEXT NOT NULL, seen TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS request (
        owner TEXT NOT NULL, name TEXT NOT NULL, asked TEXT NOT NULL, status BIGINT NOT NULL, answer TEXT NOT NULL,
        time BIGINT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS request_time ON request (time);
    CREATE TABLE IF NOT EXISTS usage_report (
        resolver TEXT PRIMARY KEY, sequence BIGINT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS minted (
        first TEXT PRIMARY KEY, last TEXT NOT NULL, owner TEXT NOT NULL) WITHOUT ROWID;
";

/// From version 1: its counts include requests for metadata. The two cannot be separated now, so
/// all count as data.
const MIGRATE_FROM_1_SQL: &str = "
    CREATE TABLE counted_2 (
        path TEXT NOT NULL, contenttype TEXT NOT NULL, day TEXT NOT NULL, what TEXT NOT NULL, robots BIGINT NOT NULL,
        times BIGINT NOT NULL, PRIMARY KEY (path, contenttype, day, what, robots)) WITHOUT ROWID;
    INSERT INTO counted_2 SELECT path, 'Data', day, what, robots, times FROM counted;
    DROP TABLE counted;
    ALTER TABLE counted_2 RENAME TO counted;
    UPDATE form SET form = 2;
";

/// From version 2: who minted the earlier labels is unknown, so they belong to the operators alone.
const MIGRATE_FROM_2_SQL: &str = "UPDATE form SET form = 3;";

/// A usage count for one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UsageCount {
    /// The path of the item's object.
    pub path: String,
    /// `Data` or `Metadata`: what was requested.
    pub contenttype: String,
    /// The day, in UTC: `2026-11-16`.
    pub day: String,
    /// The kind of use.
    pub what: String,
    /// Whether the clients were robots.
    pub robots: bool,
    /// The count.
    pub times: u64,
}

/// A note that a Copy is older than what another Archive has (clause 2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleCopyNote {
    /// The path of the item's object.
    pub path: String,
    /// The version here. The note is void once the version here changes.
    pub version: u32,
    /// The version seen at the other Archive.
    pub latest: u32,
    /// The URL of that Archive.
    pub holder: String,
    /// The time it was seen.
    pub seen: String,
}

/// A completed request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedResponse {
    /// A digest of the request.
    pub asked: String,
    /// The status of the response.
    pub status: u16,
    /// The body of the response.
    pub answer: String,
}

/// Size of SQLite's write-ahead log that triggers a checkpoint, not counting the current
/// transaction.
const MAX_WAL_BYTES: u64 = 1 << 20;

/// The service state, in one SQLite file.
#[derive(Debug)]
pub struct ServiceStorage(Connection);

impl ServiceStorage {
    /// Opens the file, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        shared_memory::check_free_space(path)?;
        Self::open_shared(path).map_err(|error| shared_memory::explain_failure(path, error))
    }

    fn open_shared(path: &Path) -> Result<Self, StorageError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(
            None,
            "wal_autocheckpoint",
            MAX_WAL_BYTES.cast_signed() / page_bytes.max(1),
        )?;
        connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES.cast_signed())?;
        let tables = connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {SERVICE_TABLES_SQL} INSERT INTO form SELECT {SERVICE_SCHEMA_VERSION} WHERE NOT EXISTS (SELECT 1 FROM form); COMMIT;"
        ));
        tables?;
        shared_memory::preallocate(path)?;
        if service_schema_version(&connection)? < SERVICE_SCHEMA_VERSION {
            migrate(&connection)?;
        }
        if service_schema_version(&connection)? != SERVICE_SCHEMA_VERSION {
            return Err(StorageError::NewerService { path: path.to_owned() });
        }
        Ok(Self(connection))
    }

    /// Writes a snapshot, replacing the file at `to`.
    pub fn backup_to(&self, to: &Path) -> Result<(), StorageError> {
        if let Some(above) = to.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        let fresh = to.with_extension("new");
        if fresh.exists() {
            std::fs::remove_file(&fresh).map_err(StorageError::io("remove", &fresh))?;
        }
        self.0.execute("VACUUM INTO ?1", [fresh.to_string_lossy()])?;
        disk::rename(&fresh, to)
    }

    /// Checks that `bytes` more fit without cutting into the disk's reserve. Each byte is written
    /// to the log and to the file, and so is the log's present content.
    pub fn check_log_space(&self, bytes: u64) -> Result<(), StorageError> {
        let path = Path::new(self.0.path().unwrap_or_default());
        check_disk_space(path.parent().unwrap_or(path), 2 * (MAX_WAL_BYTES + bytes))
    }

    /// Adds counts in one transaction.
    pub fn add_counts(&self, more: &[UsageCount]) -> Result<(), StorageError> {
        let transaction = self.0.unchecked_transaction()?;
        Self::insert_counts(&transaction, more)?;
        Ok(transaction.commit()?)
    }

    /// Adds the counts that a resolver reports, unless its report with this number, or a later one,
    /// was added before. Returns whether they were added.
    pub fn add_report(
        &self,
        resolver: &str,
        sequence: u64,
        more: &[UsageCount],
    ) -> Result<bool, StorageError> {
        let transaction = self.0.unchecked_transaction()?;
        let is_new = transaction.execute(
            "INSERT INTO usage_report (resolver, sequence) VALUES (?1, ?2) ON CONFLICT (resolver)
             DO UPDATE SET sequence = excluded.sequence WHERE excluded.sequence > usage_report.sequence",
            params![resolver, sequence.cast_signed()],
        )? > 0;
        if is_new {
            Self::insert_counts(&transaction, more)?;
        }
        transaction.commit()?;
        Ok(is_new)
    }

    fn insert_counts(transaction: &Connection, more: &[UsageCount]) -> Result<(), StorageError> {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO counted (path, contenttype, day, what, robots, times) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (path, contenttype, day, what, robots)
             DO UPDATE SET times = counted.times + excluded.times",
        )?;
        for UsageCount { path, contenttype, day, what, robots, times } in more {
            let (robots, times) = (i64::from(*robots), times.cast_signed());
            statement.execute(params![path, contenttype, day, what, robots, times])?;
        }
        Ok(())
    }

    /// The daily counts for the data or the metadata of an item.
    pub fn usage_counts(&self, path: &str, contenttype: &str) -> Result<Vec<UsageCount>, StorageError> {
        let mut statement = self.0.prepare_cached(
            "SELECT path, contenttype, day, what, robots, times FROM counted WHERE path = ?1 AND contenttype = ?2
             ORDER BY day, what, robots",
        )?;
        let rows = statement.query_map([path, contenttype], |row| {
            Ok(UsageCount {
                path: row.get(0)?,
                contenttype: row.get(1)?,
                day: row.get(2)?,
                what: row.get(3)?,
                robots: row.get::<_, i64>(4)? != 0,
                times: row.get::<_, i64>(5)?.cast_unsigned(),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Records that a Copy is stale, replacing the previous note about it.
    pub fn record_stale_copy(&self, behind: &StaleCopyNote) -> Result<(), StorageError> {
        let StaleCopyNote { path, version, latest, holder, seen } = behind;
        self.0.execute(
            "INSERT INTO behind (path, version, latest, holder, seen) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (path) DO UPDATE SET
             version = excluded.version, latest = excluded.latest, holder = excluded.holder, seen = excluded.seen",
            params![path, version, latest, holder, seen],
        )?;
        Ok(())
    }

    /// Deletes the note about a stale Copy.
    pub fn clear_stale_copy(&self, path: &str) -> Result<(), StorageError> {
        self.0.execute("DELETE FROM behind WHERE path = ?1", [path])?;
        Ok(())
    }

    /// The note about a stale Copy.
    pub fn stale_copy(&self, path: &str) -> Result<Option<StaleCopyNote>, StorageError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT path, version, latest, holder, seen FROM behind WHERE path = ?1")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(StaleCopyNote {
                path: row.get(0)?,
                version: row.get(1)?,
                latest: row.get(2)?,
                holder: row.get(3)?,
                seen: row.get(4)?,
            })
        };
        Ok(statement.query_row([path], read).optional()?)
    }

    /// Records who minted the labels of these ranges of instants. Ranges never overlap: no instant
    /// is issued twice.
    pub fn record_minted(&self, owner: &str, runs: &[IssuedRange]) -> Result<(), StorageError> {
        let transaction = self.0.unchecked_transaction()?;
        {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO minted (first, last, owner) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?;
            for run in runs {
                statement.execute(params![sort_key(run.first), sort_key(run.last), owner])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Who minted the labels of an instant, if recorded.
    pub fn minted_by(&self, instant: Instant) -> Result<Option<String>, StorageError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT last, owner FROM minted WHERE first <= ?1 ORDER BY first DESC LIMIT 1")?;
        let at = sort_key(instant);
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
        let found = statement.query_row([&at], read).optional()?;
        Ok(found.filter(|(last, _)| at <= *last).map(|(_, owner)| owner))
    }

    /// The recorded response to the request with this name.
    pub fn recorded_response(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<Option<RecordedResponse>, StorageError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT asked, status, answer FROM request WHERE owner = ?1 AND name = ?2")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(RecordedResponse { asked: row.get(0)?, status: row.get(1)?, answer: row.get(2)? })
        };
        Ok(statement.query_row([owner, name], read).optional()?)
    }

    /// Records the response to a request, and deletes those from before `forget_before`.
    pub fn record_response(
        &self,
        owner: &str,
        name: &str,
        answered: &RecordedResponse,
        time: i64,
        forget_before: i64,
    ) -> Result<(), StorageError> {
        let transaction = self.0.unchecked_transaction()?;
        transaction.execute("DELETE FROM request WHERE time < ?1", [forget_before])?;
        transaction.execute(
            "INSERT INTO request (owner, name, asked, status, answer, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO NOTHING",
            params![owner, name, answered.asked, answered.status, answered.answer, time],
        )?;
        Ok(transaction.commit()?)
    }
}

/// An instant as text that sorts by time. No label is older than 1995.
fn sort_key(instant: Instant) -> String {
    format!("{:011}.{:012}", instant.seconds().max(0), instant.picos())
}

fn service_schema_version(connection: &Connection) -> Result<i64, StorageError> {
    Ok(connection.query_row("SELECT form FROM form", [], |row| row.get(0))?)
}

/// Migrates an older schema in one transaction. Another process may be doing the same.
fn migrate(connection: &Connection) -> Result<(), StorageError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let migrated = service_schema_version(connection).and_then(|form| match form {
        1 => Ok(connection.execute_batch(&format!("{MIGRATE_FROM_1_SQL} {MIGRATE_FROM_2_SQL}"))?),
        2 => Ok(connection.execute_batch(MIGRATE_FROM_2_SQL)?),
        _ => Ok(()),
    });
    connection.execute_batch(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    migrated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_answers_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service/state.sqlite");
        let count = |robots, times| UsageCount {
            path: "a/b".to_owned(),
            contenttype: "Data".to_owned(),
            day: "2026-11-16".to_owned(),
            what: "download".to_owned(),
            robots,
            times,
        };
        let answered = RecordedResponse { asked: "digest".to_owned(), status: 201, answer: "{}".to_owned() };
        {
            let state = ServiceStorage::open(&path).unwrap();
            state.add_counts(&[count(false, 2), count(true, 1)]).unwrap();
            state.add_counts(&[count(false, 3)]).unwrap();
            state.record_response("me", "key", &answered, 100, 0).unwrap();
        }
        let state = ServiceStorage::open(&path).unwrap();
        assert_eq!(state.usage_counts("a/b", "Data").unwrap(), [count(false, 5), count(true, 1)]);
        assert_eq!(state.usage_counts("a/b", "Metadata").unwrap(), []);
        assert_eq!(state.usage_counts("a/c", "Data").unwrap(), []);
        assert_eq!(state.recorded_response("me", "key").unwrap(), Some(answered.clone()));
        assert_eq!(state.recorded_response("you", "key").unwrap(), None);
        // The first response is kept, and old ones are deleted.
        let other = RecordedResponse { status: 500, ..answered.clone() };
        state.record_response("me", "key", &other, 100, 0).unwrap();
        assert_eq!(state.recorded_response("me", "key").unwrap(), Some(answered));
        state.record_response("me", "new", &other, 300, 200).unwrap();
        assert_eq!(state.recorded_response("me", "key").unwrap(), None);
    }

    #[test]
    fn clause_3_5_counts_of_form_1_become_those_of_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        Connection::open(&path)
            .unwrap()
            .execute_batch(
                "CREATE TABLE form (form BIGINT NOT NULL); INSERT INTO form VALUES (1);
                 CREATE TABLE counted (
                    path TEXT NOT NULL, day TEXT NOT NULL, what TEXT NOT NULL, robots BIGINT NOT NULL, times BIGINT NOT NULL,
                    PRIMARY KEY (path, day, what, robots)) WITHOUT ROWID;
                 INSERT INTO counted VALUES ('a/b', '2026-11-16', 'view', 0, 7);",
            )
            .unwrap();
        for _ in 0..2 {
            let state = ServiceStorage::open(&path).unwrap();
            assert_eq!(state.usage_counts("a/b", "Data").unwrap()[0].times, 7);
            assert_eq!(state.usage_counts("a/b", "Metadata").unwrap(), []);
        }
    }

    #[test]
    fn clause_2_1_a_copy_is_known_to_be_behind_until_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        let note = StaleCopyNote {
            path: "a/b".to_owned(),
            version: 1,
            latest: 2,
            holder: "http://a.br".to_owned(),
            seen: "2026-11-16T00:00:00Z".to_owned(),
        };
        ServiceStorage::open(&path)
            .unwrap()
            .record_stale_copy(&StaleCopyNote { latest: 3, ..note.clone() })
            .unwrap();
        let state = ServiceStorage::open(&path).unwrap();
        state.record_stale_copy(&note).unwrap();
        assert_eq!(state.stale_copy("a/b").unwrap(), Some(note));
        state.clear_stale_copy("a/b").unwrap();
        assert_eq!(state.stale_copy("a/b").unwrap(), None);
    }

    #[test]
    fn the_minter_of_a_label_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let state = ServiceStorage::open(&folder.path().join("state.sqlite")).unwrap();
        let at = |seconds: i64, picos| Instant::new(1_800_000_000 + seconds, picos).unwrap();
        let run = |first, last| IssuedRange { first, last };
        state.record_minted("ana", &[run(at(0, 0), at(0, 5)), run(at(20, 0), at(30, 0))]).unwrap();
        state.record_minted("rui", &[run(at(0, 6), at(10, 0))]).unwrap();
        let who = |instant| state.minted_by(instant).unwrap();
        for (instant, owner) in [
            (at(-1, 0), None),
            (at(0, 0), Some("ana")),
            (at(0, 5), Some("ana")),
            (at(0, 6), Some("rui")),
            (at(9, 999_999_999_999), Some("rui")),
            (at(10, 1), None),
            (at(25, 0), Some("ana")),
            (at(31, 0), None),
        ] {
            assert_eq!(who(instant).as_deref(), owner, "{instant}");
        }
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        drop(ServiceStorage::open(&path).unwrap());
        Connection::open(&path).unwrap().execute("UPDATE form SET form = 4", []).unwrap();
        assert!(matches!(ServiceStorage::open(&path), Err(StorageError::NewerService { .. })));
    }
}
