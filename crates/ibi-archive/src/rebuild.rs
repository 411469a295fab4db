//! The index, made anew from the tree and the journal (clause 2.3).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{self, SyncSender};

use ibi_store::content::Swept;
use ibi_store::journal::{Entry, Journal, Position, State, Told, Verb};
use ibi_store::records::{Full, Record, Records};
use ibi_store::{Content, KeepError, SqliteRecords, Tree};

use crate::ArchiveError;
use crate::archive::{Settings, index, lock, void_lines, whole_second};
use crate::mint::clock::SystemClock;
use crate::object::{Object, short};

/// Objects that are read at a time, by how many threads, and how many times as many wait to be recorded.
const BATCH: usize = 64;
const READERS: usize = 2;
const AHEAD: usize = 4;

/// What rebuilding found.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// Items that are recorded.
    pub items: u64,
    /// What interrupted work had left.
    pub swept: Swept,
    /// Objects that the journal did not tell of, or not as they are: they were written by other hands.
    pub adopted: Vec<String>,
    /// Items that the journal tells of, and that are not in the tree.
    pub missing: Vec<String>,
    /// Objects that cannot be read, and why: they are not recorded.
    pub damaged: Vec<(String, String)>,
}

/// Makes the index of a data folder anew.
pub fn rebuild(data: &Path, by: &str, progress: &dyn Fn(u64)) -> Result<Rebuilt, ArchiveError> {
    if Settings::read(data)?.is_none() {
        return Err(ArchiveError::NoArchive { data: data.to_owned() });
    }
    let _lock = lock(data)?;
    let content = Tree::open(data)?;
    let mut rebuilt = Rebuilt { swept: content.sweep()?, ..Rebuilt::default() };
    let fresh = data.join("staging/index.sqlite");
    let records = SqliteRecords::bulk(&fresh)?;
    records.begin()?;
    let reading = Journal::read(data, Position::START, &mut |told| match told {
        Told::Entry(entry) => records.happened(&entry),
        Told::Void(changes) => records.did_not_happen(&changes),
    })?;
    let clock = SystemClock::new();
    let mut journal = Journal::open(data, &reading)?;
    let void = void_lines(&content, &mut journal, &reading, &clock)?;
    records.did_not_happen(&void.into_iter().collect::<Vec<_>>())?;
    let time = whole_second(&clock).to_string();
    let mut adopted: Vec<Entry> = Vec::new();
    let first = journal.end().next;
    read_all(&content, |path, object| {
        progress(1);
        let adopt = Adopt { change: first + adopted.len() as u64, first, time: &time, by };
        match object.and_then(|object| record(&records, &path, object, &adopt)) {
            Ok(entry) => adopted.extend(entry),
            Err(error @ ArchiveError::Keep(KeepError::Index(_))) => return Err(error),
            Err(error) => {
                rebuilt.damaged.push((path, error.to_string()));
                return Ok(());
            }
        }
        rebuilt.items += 1;
        Ok(())
    })?;
    if !adopted.is_empty() {
        journal.append(&adopted)?;
        rebuilt.adopted = adopted.into_iter().map(|entry| entry.path).collect();
    }
    let damaged: BTreeSet<&String> = rebuilt.damaged.iter().map(|(path, _)| path).collect();
    rebuilt.missing = records.lost()?.into_iter().filter(|path| !damaged.contains(path)).collect();
    records.commit(journal.end())?;
    drop(records);
    SqliteRecords::put_in_place(&fresh, &index(data))?;
    Ok(rebuilt)
}

/// What reading an object gave: its digest, whether it is a tombstone, and what is recorded of it.
type ReadObject = Result<(Object, Full), ArchiveError>;

/// Reads all objects, on other cores, and hands them on in order.
fn read_all(
    content: &Tree,
    mut each: impl FnMut(String, ReadObject) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        let mut filled = Vec::new();
        for _ in 0..READERS {
            let (paths, to_read) = mpsc::sync_channel::<Result<Vec<String>, KeepError>>(AHEAD);
            let (read, objects) = mpsc::sync_channel(AHEAD);
            readers.push(paths);
            filled.push(objects);
            scope.spawn(move || {
                for paths in to_read {
                    let batch =
                        paths.map(|paths| paths.into_iter().map(|path| read_one(content, path)).collect());
                    // Nobody listens any more: the other side failed.
                    if read.send(batch).is_err() {
                        return;
                    }
                }
            });
        }
        scope.spawn(move || hand_out(content, &readers));
        // Each in its turn, as they were handed out; the first that has no more was the last.
        for objects in filled.iter().cycle() {
            let Ok(batch) = objects.recv() else { break };
            let batch: Vec<(String, ReadObject)> = batch?;
            batch.into_iter().try_for_each(|(path, object)| each(path, object))?;
        }
        Ok(())
    })
}

/// Walks the tree, and hands its objects out in batches.
fn hand_out(content: &Tree, readers: &[SyncSender<Result<Vec<String>, KeepError>>]) {
    let mut objects = match content.objects() {
        Ok(objects) => objects,
        Err(error) => return drop(readers.first().map(|reader| reader.send(Err(error)))),
    };
    for reader in readers.iter().cycle() {
        let batch: Result<Vec<String>, KeepError> = objects.by_ref().take(BATCH).collect();
        let is_last = !batch.as_ref().is_ok_and(|batch| batch.len() == BATCH);
        if reader.send(batch).is_err() || is_last {
            return;
        }
    }
}

fn read_one(content: &Tree, path: String) -> (String, ReadObject) {
    let object = Object::read(content, &path)
        .and_then(|object| object.ok_or_else(|| ArchiveError::Unknown { label: path.clone() }))
        // What the journal says of it is put in later.
        .and_then(|object| object.full(&path, 0, State::Copy, 1).map(|full| (object, full)));
    (path, object)
}

/// How an object is adopted that the journal does not tell of.
struct Adopt<'a> {
    change: u64,
    first: u64,
    time: &'a str,
    by: &'a str,
}

/// Records an object with what the journal says of it last; a line more for one that it says something else of.
fn record(
    records: &SqliteRecords,
    path: &str,
    (object, mut full): (Object, Full),
    adopt: &Adopt<'_>,
) -> Result<Option<Entry>, ArchiveError> {
    let last = records.last_event(path)?;
    let inventory = short(&object.digest);
    if let Some(last) = last.as_ref().filter(|last| last.inventory == inventory) {
        full.record = Record { change: last.change, state: last.state, epoch: last.epoch, ..full.record };
        records.put(&full)?;
        return Ok(None);
    }
    // Nobody declared it the Original here (clause 2.1).
    let (state, epoch) = last.map_or((State::Copy, 1), |last| (last.state, last.epoch));
    // A tombstone is never anything else again.
    let state = if object.item.removed.is_some() { State::Deleted } else { state };
    let entry = Entry {
        change: adopt.change,
        batch: adopt.first,
        time: adopt.time.to_owned(),
        verb: Verb::Adopt,
        path: path.to_owned(),
        version: object.inventory.number(),
        inventory: inventory.to_owned(),
        state,
        epoch,
        by: adopt.by.to_owned(),
        source: None,
        key: None,
        note: None,
    };
    full.record = Record { change: entry.change, state, epoch, ..full.record };
    records.put(&full)?;
    records.happened(&entry)?;
    Ok(Some(entry))
}
