//! The index, made anew from the tree and the journal (clause 2.3).
//!
//! The journal says what is to be recorded; the tree says whether that is so. Whatever the journal does not tell of, or
//! tells otherwise, is read from the tree.

mod recorded;
mod seen;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};

use ibi_store::content::{Inventoried, Swept};
use ibi_store::digests::hex;
use ibi_store::journal::{Entry, Journal, Position, Reading, State, Told, Verb};
use ibi_store::records::{Full, Record, Records};
use ibi_store::{Content, KeepError, SqliteRecords, Tree};

use crate::archive::{Settings, index, lock, void_lines, whole_second};
use crate::mint::clock::SystemClock;
use crate::object::{Object, short};
use crate::{ArchiveError, carried};
use recorded::Recorded;
use seen::Seen;

/// Lines and objects that are handed on at a time.
const BATCH: usize = 64;

/// Batches of lines that wait to be recorded, and of objects that wait to be compared.
const LINES_AHEAD: usize = 4;
const OBJECTS_AHEAD: usize = 2048;

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
    // What the index had committed had happened, whatever has become of the tree since.
    let known = SqliteRecords::open(&index(data)).and_then(|index| index.position());
    let known = known.map_or(0, |position| position.next);
    let fresh = data.join("staging/index.sqlite");
    let records = SqliteRecords::bulk(&fresh)?;
    records.begin()?;
    let clock = SystemClock::new();
    let (mut journal, adopted) = std::thread::scope(|scope| {
        // The tree is walked while the journal is followed: on another core, and not too far ahead.
        let (found, objects) = mpsc::sync_channel(OBJECTS_AHEAD);
        let tree = &content;
        scope.spawn(move || walk(tree, &found));
        let (told, lines) = mpsc::sync_channel(LINES_AHEAD);
        let reading = scope.spawn(move || read(data, told));
        follow(&records, lines)?;
        let mut reading = reading.join().map_err(|_| ArchiveError::Stopped)??;
        reading.last_batch.retain(|entry| entry.change >= known);
        let mut journal = Journal::open(data, &reading)?;
        let void = void_lines(&content, &mut journal, &reading, &clock)?;
        strike_out(&records, &void.into_iter().collect::<Vec<_>>())?;
        let time = whole_second(&clock).to_string();
        let first = journal.end().next;
        let mut compared = Compared {
            content: &content,
            records: &records,
            recorded: Recorded::new(&records),
            seen: Seen::default(),
            adopted: Vec::new(),
            time: &time,
            by,
            first,
        };
        for batch in objects {
            for object in batch? {
                progress(1);
                match compared.object(&object) {
                    Ok(()) => rebuilt.items += 1,
                    Err(error @ ArchiveError::Keep(KeepError::Index(_))) => return Err(error),
                    Err(error) => {
                        records.forget(&object.path)?;
                        rebuilt.damaged.push((object.path.into(), error.to_string()));
                    }
                }
            }
        }
        if records.count()? != rebuilt.items {
            compared.forget_unseen()?;
        }
        Ok((journal, compared.adopted))
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

/// A line of the journal, with what it carries.
enum Line {
    Entry(Box<Entry>, Option<Box<Full>>),
    Void(Vec<u64>),
}

/// Reads the journal, and hands it on.
fn read(data: &Path, lines: SyncSender<Vec<Line>>) -> Result<Reading, KeepError> {
    let mut batch = Vec::with_capacity(BATCH);
    let reading = Journal::read(data, Position::START, &mut |told| {
        batch.push(match told {
            Told::Entry(mut entry) => {
                let full = carried::read(&entry).map(Box::new);
                entry.record = None;
                Line::Entry(entry, full)
            }
            Told::Void(changes) => Line::Void(changes),
        });
        if batch.len() == BATCH {
            // Nobody listens any more: the other side failed, and says so.
            let _ = lines.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)));
        }
        Ok(())
    })?;
    let _ = lines.send(batch);
    Ok(reading)
}

/// Records what the journal tells: an item is recorded if the last line about it carries it.
fn follow(records: &SqliteRecords, lines: Receiver<Vec<Line>>) -> Result<(), ArchiveError> {
    let mut loader = records.loader()?;
    for line in lines.into_iter().flatten() {
        let (entry, full) = match line {
            Line::Entry(entry, full) => (entry, full),
            Line::Void(changes) => {
                strike_out(records, &changes)?;
                continue;
            }
        };
        loader.happened(&entry)?;
        if entry.verb == Verb::Drop {
            records.forget(&entry.path)?;
            continue;
        }
        match full.map(|full| loader.put(&full)) {
            Some(Ok(())) => {}
            // It is looked at once more when all that was void is gone.
            Some(Err(KeepError::LabelTaken { .. })) => records.forget(&entry.path)?,
            Some(Err(error)) => return Err(error.into()),
            None if records.restate(&entry)? => {}
            None => records.forget(&entry.path)?,
        }
    }
    Ok(())
}

/// Takes back what lines told that are void.
fn strike_out(records: &SqliteRecords, changes: &[u64]) -> Result<(), KeepError> {
    changes.iter().try_for_each(|change| records.forget_change(*change))?;
    records.did_not_happen(changes)
}

/// Objects with the digests of their inventories.
type Objects = Result<Vec<Inventoried>, KeepError>;

/// Walks the tree, and hands on what it finds.
fn walk(content: &Tree, found: &SyncSender<Objects>) {
    let mut objects = match content.inventories() {
        Ok(objects) => objects,
        Err(error) => return drop(found.send(Err(error))),
    };
    loop {
        let batch: Objects = objects.by_ref().take(BATCH).collect();
        let is_last = !batch.as_ref().is_ok_and(|batch| batch.len() == BATCH);
        if found.send(batch).is_err() || is_last {
            return;
        }
    }
}

/// What is recorded, compared with the tree.
struct Compared<'a> {
    content: &'a Tree,
    records: &'a SqliteRecords,
    recorded: Recorded<'a>,
    seen: Seen,
    /// Lines that are to be told of objects that the journal does not know, or not so.
    adopted: Vec<Entry>,
    time: &'a str,
    by: &'a str,
    /// The number of the first of those lines.
    first: u64,
}

impl Compared<'_> {
    fn object(&mut self, object: &Inventoried) -> Result<(), ArchiveError> {
        let stands = self.recorded.at(&object.path)?;
        let digest = object.digest.map(|digest| hex(&digest));
        let change = match stands.filter(|stands| digest.as_ref() == Some(&stands.inventory)) {
            Some(stands) => stands.change,
            None => self.read(&object.path)?,
        };
        self.seen.add(change);
        Ok(())
    }

    /// Records an object as it is, with what the journal says of it last; a line more for one that it says something else of.
    fn read(&mut self, path: &str) -> Result<u64, ArchiveError> {
        let object = Object::read(self.content, path)?;
        let object = object.ok_or_else(|| ArchiveError::Unknown { label: path.to_owned() })?;
        let last = self.records.last_event(path)?;
        if let Some(last) = last.as_ref().filter(|last| last.inventory == short(&object.digest)) {
            self.records.put(&object.full(path, last.change, last.state, last.epoch)?)?;
            return Ok(last.change);
        }
        // Nobody declared it the Original here (clause 2.1).
        let (state, epoch) = last.map_or((State::Copy, 1), |last| (last.state, last.epoch));
        // A tombstone is never anything else again.
        let state = if object.item.removed.is_some() { State::Deleted } else { state };
        let change = self.first + self.adopted.len() as u64;
        let full = object.full(path, change, state, epoch)?;
        let Record { version, inventory, .. } = &full.record;
        let entry = Entry {
            change,
            batch: self.first,
            time: self.time.to_owned(),
            verb: Verb::Adopt,
            path: path.to_owned(),
            version: *version,
            inventory: inventory.clone(),
            state,
            epoch,
            by: self.by.to_owned(),
            source: None,
            to: None,
            key: None,
            note: None,
            past: None,
            record: carried::write(&full),
            links: Vec::new(),
            depends_on: None,
        };
        self.records.put(&full)?;
        self.records.happened(&entry)?;
        self.adopted.push(entry);
        Ok(change)
    }

    /// Takes out what the journal tells of and the tree does not have.
    fn forget_unseen(&self) -> Result<(), ArchiveError> {
        let mut after = 0;
        loop {
            let page = self.records.changes(after, BATCH)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.change;
            for record in page.iter().filter(|record| !self.seen.has(record.change)) {
                self.records.forget(&record.path)?;
            }
        }
    }
}
