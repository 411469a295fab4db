//! What the service of an Archive keeps for itself: how often items were asked for, and which requests were carried out. It
//! cannot be made anew from elsewhere, and nothing else depends on it (`docs/formats/service.md`).

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{KeepError, disk};

/// The form of the tables. Form 1 counted data and metadata of an item together.
const FORM: i64 = 2;

const TABLES: &str = "
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
";

/// From form 1: what was counted then was counted of the item, its metadata included. Nobody can
/// tell them apart now.
const FROM_FORM_1: &str = "
    CREATE TABLE counted_2 (
        path TEXT NOT NULL, contenttype TEXT NOT NULL, day TEXT NOT NULL, what TEXT NOT NULL, robots BIGINT NOT NULL,
        times BIGINT NOT NULL, PRIMARY KEY (path, contenttype, day, what, robots)) WITHOUT ROWID;
    INSERT INTO counted_2 SELECT path, 'Data', day, what, robots, times FROM counted;
    DROP TABLE counted;
    ALTER TABLE counted_2 RENAME TO counted;
    UPDATE form SET form = 2;
";

/// So many times on one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Counted {
    /// The path of the item's object.
    pub path: String,
    /// `Data` or `Metadata`: which of the two was asked for.
    pub contenttype: String,
    /// The day, in UTC: `2026-11-16`.
    pub day: String,
    /// What was done.
    pub what: String,
    /// Whether by robots.
    pub robots: bool,
    /// How often.
    pub times: u64,
}

/// A copy that is known to be behind what another Archive has (clause 2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BehindNote {
    /// The path of the item's object.
    pub path: String,
    /// The version that is here. Once there is another one here, the note means nothing.
    pub version: u32,
    /// The version that was seen elsewhere.
    pub latest: u32,
    /// The URL of the Archive where it was seen.
    pub holder: String,
    /// When.
    pub seen: String,
}

/// A request that was carried out, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// A digest of what was asked.
    pub asked: String,
    /// The status of the answer.
    pub status: u16,
    /// Its body.
    pub answer: String,
}

/// Puts a file in the place of another, durably and at once, for our eyes only. Folders that are missing are made.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), KeepError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let above = path.parent().unwrap_or(path);
    disk::make_folders(above, &mut Vec::new())?;
    let fresh = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(KeepError::io("write", &fresh))?;
    file.write_all(bytes).map_err(KeepError::io("write", &fresh))?;
    file.sync_all().map_err(KeepError::not_durable(&fresh))?;
    disk::rename(&fresh, path)?;
    disk::sync(above)
}

/// The service's own state, in one SQLite file.
#[derive(Debug)]
pub struct ServiceState(Connection);

impl ServiceState {
    /// Opens the file, made if it is not there.
    pub fn open(path: &Path) -> Result<Self, KeepError> {
        if let Some(above) = path.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let tables = connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {TABLES} INSERT INTO form SELECT {FORM} WHERE NOT EXISTS (SELECT 1 FROM form); COMMIT;"
        ));
        tables?;
        if form(&connection)? == 1 {
            migrate(&connection)?;
        }
        if form(&connection)? != FORM {
            return Err(KeepError::NewerService { path: path.to_owned() });
        }
        Ok(Self(connection))
    }

    /// Writes a copy of it, as it is at this moment, in the place of what is there.
    pub fn copy(&self, to: &Path) -> Result<(), KeepError> {
        if let Some(above) = to.parent() {
            disk::make_folders(above, &mut Vec::new())?;
        }
        let fresh = to.with_extension("new");
        if fresh.exists() {
            std::fs::remove_file(&fresh).map_err(KeepError::io("remove", &fresh))?;
        }
        self.0.execute("VACUUM INTO ?1", [fresh.to_string_lossy()])?;
        disk::rename(&fresh, to)
    }

    /// Adds to what was counted, all or nothing.
    pub fn count(&self, more: &[Counted]) -> Result<(), KeepError> {
        let transaction = self.0.unchecked_transaction()?;
        {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO counted (path, contenttype, day, what, robots, times) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (path, contenttype, day, what, robots)
                 DO UPDATE SET times = counted.times + excluded.times",
            )?;
            for Counted { path, contenttype, day, what, robots, times } in more {
                statement.execute(params![
                    path,
                    contenttype,
                    day,
                    what,
                    i64::from(*robots),
                    *times as i64
                ])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// What was counted of the data or the metadata of an item, day by day.
    pub fn counted(&self, path: &str, contenttype: &str) -> Result<Vec<Counted>, KeepError> {
        let mut statement = self.0.prepare_cached(
            "SELECT path, contenttype, day, what, robots, times FROM counted WHERE path = ?1 AND contenttype = ?2
             ORDER BY day, what, robots",
        )?;
        let rows = statement.query_map([path, contenttype], |row| {
            Ok(Counted {
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

    /// Remembers that a copy is behind what another Archive has, in the place of what was known of
    /// it.
    pub fn note_behind(&self, behind: &BehindNote) -> Result<(), KeepError> {
        let BehindNote { path, version, latest, holder, seen } = behind;
        self.0.execute(
            "INSERT INTO behind (path, version, latest, holder, seen) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (path) DO UPDATE SET
             version = excluded.version, latest = excluded.latest, holder = excluded.holder, seen = excluded.seen",
            params![path, version, latest, holder, seen],
        )?;
        Ok(())
    }

    /// Forgets it.
    pub fn clear_behind(&self, path: &str) -> Result<(), KeepError> {
        self.0.execute("DELETE FROM behind WHERE path = ?1", [path])?;
        Ok(())
    }

    /// What is known of a copy that is behind.
    pub fn behind(&self, path: &str) -> Result<Option<BehindNote>, KeepError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT path, version, latest, holder, seen FROM behind WHERE path = ?1")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(BehindNote {
                path: row.get(0)?,
                version: row.get(1)?,
                latest: row.get(2)?,
                holder: row.get(3)?,
                seen: row.get(4)?,
            })
        };
        Ok(statement.query_row([path], read).optional()?)
    }

    /// The answer to a request of this name.
    pub fn answered(&self, owner: &str, name: &str) -> Result<Option<Answered>, KeepError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT asked, status, answer FROM request WHERE owner = ?1 AND name = ?2")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Answered { asked: row.get(0)?, status: row.get(1)?, answer: row.get(2)? })
        };
        Ok(statement.query_row([owner, name], read).optional()?)
    }

    /// Remembers the answer to a request, and forgets those from before a time.
    pub fn answer(
        &self,
        owner: &str,
        name: &str,
        answered: &Answered,
        time: i64,
        forget_before: i64,
    ) -> Result<(), KeepError> {
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

fn form(connection: &Connection) -> Result<i64, KeepError> {
    Ok(connection.query_row("SELECT form FROM form", [], |row| row.get(0))?)
}

/// Makes form 2 of form 1, wholly or not at all. Another process may be doing the same.
fn migrate(connection: &Connection) -> Result<(), KeepError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let migrated = form(connection).and_then(|form| match form {
        1 => Ok(connection.execute_batch(FROM_FORM_1)?),
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
        let count = |robots, times| Counted {
            path: "a/b".to_owned(),
            contenttype: "Data".to_owned(),
            day: "2026-11-16".to_owned(),
            what: "download".to_owned(),
            robots,
            times,
        };
        let answered = Answered { asked: "digest".to_owned(), status: 201, answer: "{}".to_owned() };
        {
            let state = ServiceState::open(&path).unwrap();
            state.count(&[count(false, 2), count(true, 1)]).unwrap();
            state.count(&[count(false, 3)]).unwrap();
            state.answer("me", "key", &answered, 100, 0).unwrap();
        }
        let state = ServiceState::open(&path).unwrap();
        assert_eq!(state.counted("a/b", "Data").unwrap(), [count(false, 5), count(true, 1)]);
        assert_eq!(state.counted("a/b", "Metadata").unwrap(), []);
        assert_eq!(state.counted("a/c", "Data").unwrap(), []);
        assert_eq!(state.answered("me", "key").unwrap(), Some(answered.clone()));
        assert_eq!(state.answered("you", "key").unwrap(), None);
        // The first answer stays, and old ones go.
        let other = Answered { status: 500, ..answered.clone() };
        state.answer("me", "key", &other, 100, 0).unwrap();
        assert_eq!(state.answered("me", "key").unwrap(), Some(answered));
        state.answer("me", "new", &other, 300, 200).unwrap();
        assert_eq!(state.answered("me", "key").unwrap(), None);
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
            let state = ServiceState::open(&path).unwrap();
            assert_eq!(state.counted("a/b", "Data").unwrap()[0].times, 7);
            assert_eq!(state.counted("a/b", "Metadata").unwrap(), []);
        }
    }

    #[test]
    fn clause_2_1_a_copy_is_known_to_be_behind_until_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        let note = BehindNote {
            path: "a/b".to_owned(),
            version: 1,
            latest: 2,
            holder: "http://a.br".to_owned(),
            seen: "2026-11-16T00:00:00Z".to_owned(),
        };
        ServiceState::open(&path).unwrap().note_behind(&BehindNote { latest: 3, ..note.clone() }).unwrap();
        let state = ServiceState::open(&path).unwrap();
        state.note_behind(&note).unwrap();
        assert_eq!(state.behind("a/b").unwrap(), Some(note));
        state.clear_behind("a/b").unwrap();
        assert_eq!(state.behind("a/b").unwrap(), None);
    }

    #[test]
    fn a_newer_form_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        drop(ServiceState::open(&path).unwrap());
        Connection::open(&path).unwrap().execute("UPDATE form SET form = 3", []).unwrap();
        assert!(matches!(ServiceState::open(&path), Err(KeepError::NewerService { .. })));
    }
}
