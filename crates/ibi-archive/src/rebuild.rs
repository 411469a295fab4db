//! Rebuilds the index from the tree and the journal (clause 2.3).
//!
//! The journal says what to record; the tree confirms it. What the journal lacks, or states
//! differently, is read from the tree.

mod change_bitmap;
mod own_deposits;
mod past_damage;
mod record_cursor;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};

use ibi_store::content::{ClearedStaging, OcflObjectDigest};
use ibi_store::digests::hex;
use ibi_store::index::{IndexRecord, IndexStorage, IndexedItem};
use ibi_store::journal::{
    Journal, JournalEntry, JournalLine, JournalPosition, JournalReadSummary, State, Verb,
};
use ibi_store::{ContentStorage, OcflTree, SqliteIndex, StorageError};

use crate::archive::{ArchiveSettings, current_second, index_path, lock_data_folder, void_unapplied_lines};
use crate::object::{StoredObject, short_digest};
use crate::{ArchiveError, journal_record};
use change_bitmap::ChangeBitmap;
use ibi_mint::clock::SystemClock;
pub(crate) use own_deposits::OwnDeposits;
pub(crate) use past_damage::index_past_damage;
use record_cursor::RecordCursor;

/// Lines and objects per batch.
const REBUILD_BATCH_SIZE: usize = 64;

/// Queue bounds: batches of lines to index, and batches of objects to compare.
const MAX_QUEUED_LINE_BATCHES: usize = 4;
const MAX_QUEUED_OBJECT_BATCHES: usize = 2048;

/// The result of a rebuild.
#[derive(Debug, Default)]
pub struct RebuildReport {
    /// Indexed items.
    pub items: u64,
    /// Leftovers of interrupted work.
    pub swept: ClearedStaging,
    /// Objects that the journal lacks or describes differently: other software wrote them.
    pub adopted: Vec<String>,
    /// Items of the journal that are not in the tree.
    pub missing: Vec<String>,
    /// Objects that cannot be read, and why. They are not indexed.
    pub damaged: Vec<(String, String)>,
}

/// Rebuilds the index of a data folder.
pub fn rebuild(data: &Path, by: &str, progress: &dyn Fn(u64)) -> Result<RebuildReport, ArchiveError> {
    if ArchiveSettings::read(data)?.is_none() {
        return Err(ArchiveError::NoArchive { data: data.to_owned() });
    }
    let _lock = lock_data_folder(data)?;
    let followed = SqliteIndex::open(&index_path(data)).and_then(|index| index.position());
    rebuild_locked(data, by, followed.unwrap_or(JournalPosition::START), None, progress)
}

/// Like [`rebuild`], for a caller that holds the lock and knows how far an index had followed the
/// journal. After a salvage, an item that was deposited here and lost its line is the Original.
pub(crate) fn rebuild_locked(
    data: &Path,
    by: &str,
    followed: JournalPosition,
    own: Option<&OwnDeposits>,
    progress: &dyn Fn(u64),
) -> Result<RebuildReport, ArchiveError> {
    let content = OcflTree::open(data)?;
    let mut rebuilt = RebuildReport { swept: content.clear_staging()?, ..RebuildReport::default() };
    let fresh = data.join("staging/index.sqlite");
    let records = SqliteIndex::create_for_bulk_load(&fresh)?;
    records.begin()?;
    let clock = SystemClock::new();
    let (mut journal, adopted) = std::thread::scope(|scope| {
        // The tree is walked on another core while the journal is read; the queue bounds how far
        // ahead.
        let (found, objects) = mpsc::sync_channel(MAX_QUEUED_OBJECT_BATCHES);
        let tree = &content;
        scope.spawn(move || walk_tree(tree, &found));
        let (told, lines) = mpsc::sync_channel(MAX_QUEUED_LINE_BATCHES);
        let reading = scope.spawn(move || read_journal(data, told));
        index_lines(&records, lines)?;
        let mut reading = reading.join().map_err(|_| ArchiveError::Stopped)??;
        // What the index had committed did happen, whatever became of journal and tree since.
        reading.check_covers_index(data, followed)?;
        reading.last_batch.retain(|entry| entry.change >= followed.next);
        let mut journal = Journal::open(data, &reading)?;
        let void = void_unapplied_lines(&content, &mut journal, &reading, &clock)?;
        remove_void_changes(&records, &void.into_iter().collect::<Vec<_>>())?;
        let time = current_second(&clock).to_string();
        let first = journal.end().next;
        let mut compared = TreeComparison {
            content: &content,
            records: &records,
            recorded: RecordCursor::new(&records),
            seen: ChangeBitmap::default(),
            adopted: Vec::new(),
            time: &time,
            by,
            first,
            own,
        };
        compared.compare_objects(objects, &mut rebuilt, progress)?;
        Ok::<_, ArchiveError>((journal, compared.adopted))
    })?;
    if !adopted.is_empty() {
        journal.append(&adopted)?;
        rebuilt.adopted = adopted.into_iter().map(|entry| entry.path).collect();
    }
    let damaged: BTreeSet<&String> = rebuilt.damaged.iter().map(|(path, _)| path).collect();
    rebuilt.missing = records.missing_items()?.into_iter().filter(|path| !damaged.contains(path)).collect();
    records.commit(journal.end())?;
    drop(records);
    SqliteIndex::replace_index(&fresh, &index_path(data))?;
    Ok(rebuilt)
}

/// A journal line with the record that it carries.
enum RebuildLine {
    Entry(Box<JournalEntry>, Option<Box<IndexedItem>>),
    Void(Vec<u64>),
}

/// Reads the journal into the queue.
fn read_journal(
    data: &Path,
    lines: SyncSender<Vec<RebuildLine>>,
) -> Result<JournalReadSummary, StorageError> {
    let mut batch = Vec::with_capacity(REBUILD_BATCH_SIZE);
    let reading = Journal::read(data, JournalPosition::START, &mut |told| {
        batch.push(match told {
            JournalLine::Entry(mut entry) => {
                let full = journal_record::read(&entry).map(Box::new);
                entry.record = None;
                RebuildLine::Entry(entry, full)
            }
            JournalLine::Void(changes) => RebuildLine::Void(changes),
        });
        if batch.len() == REBUILD_BATCH_SIZE {
            // If the receiver is gone, the other side failed and reports its error.
            let _ = lines.send(std::mem::replace(&mut batch, Vec::with_capacity(REBUILD_BATCH_SIZE)));
        }
        Ok(())
    })?;
    let _ = lines.send(batch);
    Ok(reading)
}

/// Indexes the journal: an item is indexed if its last line carries its record.
fn index_lines(records: &SqliteIndex, lines: Receiver<Vec<RebuildLine>>) -> Result<(), ArchiveError> {
    let mut loader = records.bulk_loader()?;
    for line in lines.into_iter().flatten() {
        let (entry, full) = match line {
            RebuildLine::Entry(entry, full) => (entry, full),
            RebuildLine::Void(changes) => {
                remove_void_changes(records, &changes)?;
                continue;
            }
        };
        loader.load_event(&entry)?;
        if entry.verb == Verb::Drop {
            records.remove_item(&entry.path)?;
            continue;
        }
        match full.map(|full| loader.load_item(&full)) {
            Some(Ok(())) => {}
            // Compared again once all void lines are removed.
            Some(Err(StorageError::LabelTaken { .. })) => records.remove_item(&entry.path)?,
            Some(Err(error)) => return Err(error.into()),
            None if records.update_state(&entry)? => {}
            None => records.remove_item(&entry.path)?,
        }
    }
    Ok(())
}

/// Removes the changes of void lines.
fn remove_void_changes(records: &SqliteIndex, changes: &[u64]) -> Result<(), StorageError> {
    changes.iter().try_for_each(|change| records.remove_item_by_change(*change))?;
    records.remove_events(changes)
}

/// Objects with the digests of their inventories.
type ObjectBatch = Result<Vec<OcflObjectDigest>, StorageError>;

/// Walks the tree into the queue.
fn walk_tree(content: &OcflTree, found: &SyncSender<ObjectBatch>) {
    let mut objects = match content.inventories() {
        Ok(objects) => objects,
        Err(error) => return drop(found.send(Err(error))),
    };
    loop {
        let batch: ObjectBatch = objects.by_ref().take(REBUILD_BATCH_SIZE).collect();
        let is_last = !batch.as_ref().is_ok_and(|batch| batch.len() == REBUILD_BATCH_SIZE);
        if found.send(batch).is_err() || is_last {
            return;
        }
    }
}

/// Compares the index with the tree.
struct TreeComparison<'a> {
    content: &'a OcflTree,
    records: &'a SqliteIndex,
    recorded: RecordCursor<'a>,
    seen: ChangeBitmap,
    /// New journal lines for objects that the journal lacks or describes differently.
    adopted: Vec<JournalEntry>,
    time: &'a str,
    by: &'a str,
    /// The number of the first of these lines.
    first: u64,
    /// After a salvage: recognizes items that were deposited here.
    own: Option<&'a OwnDeposits>,
}

impl TreeComparison<'_> {
    /// Compares all objects of the tree.
    fn compare_objects(
        &mut self,
        objects: impl IntoIterator<Item = ObjectBatch>,
        rebuilt: &mut RebuildReport,
        progress: &dyn Fn(u64),
    ) -> Result<(), ArchiveError> {
        for batch in objects {
            for object in batch? {
                progress(1);
                match self.compare_object(&object) {
                    Ok(()) => rebuilt.items += 1,
                    Err(error @ ArchiveError::Storage(StorageError::Index(_))) => return Err(error),
                    Err(error) => {
                        self.records.remove_item(&object.path)?;
                        rebuilt.damaged.push((object.path.into(), error.to_string()));
                    }
                }
            }
        }
        if self.records.count()? != rebuilt.items {
            self.forget_unseen()?;
        }
        Ok(())
    }

    fn compare_object(&mut self, object: &OcflObjectDigest) -> Result<(), ArchiveError> {
        let stands = self.recorded.record_at(&object.path)?;
        let digest = object.digest.map(|digest| hex(&digest));
        let change = match stands.filter(|stands| digest.as_ref() == Some(&stands.inventory)) {
            Some(stands) => stands.change,
            None => self.index_object(&object.path)?,
        };
        self.seen.add(change);
        Ok(())
    }

    /// Indexes an object as it is, with its last state from the journal. Adds a line if the journal
    /// describes it differently.
    fn index_object(&mut self, path: &str) -> Result<u64, ArchiveError> {
        let object = StoredObject::read(self.content, path)?;
        let object = object.ok_or_else(|| ArchiveError::Unknown { label: path.to_owned() })?;
        let last = self.records.last_event(path)?;
        if let Some(last) = last.as_ref().filter(|last| last.inventory == short_digest(&object.digest)) {
            self.records.put_item(&object.to_indexed_item(path, last.change, last.state, last.epoch)?)?;
            return Ok(last.change);
        }
        // Nobody declared it the Original here (clause 2.1), unless the line that did was lost.
        let is_own = self.own.is_some_and(|own| own.is_own_deposit(&object));
        let unknown = if is_own { State::Original } else { State::Copy };
        let (state, epoch) = last.map_or((unknown, 1), |last| (last.state, last.epoch));
        // A tombstone is final.
        let state = if object.item.removed.is_some() { State::Deleted } else { state };
        let change = self.first + self.adopted.len() as u64;
        let full = object.to_indexed_item(path, change, state, epoch)?;
        let IndexRecord { version, inventory, .. } = &full.record;
        let entry = JournalEntry {
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
            owner: None,
            source: None,
            source_state: None,
            to: None,
            key: None,
            note: self.own.map(|_| "its line was lost".to_owned()),
            past: None,
            record: journal_record::write(&full),
            links: Vec::new(),
            depends_on: None,
        };
        self.records.put_item(&full)?;
        self.records.add_event(&entry)?;
        self.adopted.push(entry);
        Ok(change)
    }

    /// Removes index entries of items that are not in the tree.
    fn forget_unseen(&self) -> Result<(), ArchiveError> {
        let mut after = 0;
        loop {
            let page = self.records.changes(after, REBUILD_BATCH_SIZE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.change;
            for record in page.iter().filter(|record| !self.seen.has(record.change)) {
                self.records.remove_item(&record.path)?;
            }
        }
    }
}
