//! A temporary index for one command, when the index is lost and the journal is damaged: it covers
//! all that can be read. Nothing is written into the data folder.

use std::path::Path;
use std::sync::mpsc::{self, SyncSender};

use ibi_store::index::IndexStorage as _;
use ibi_store::journal::{JournalLine, JournalPosition, JournalScan, JournalScanPart};
use ibi_store::{OcflTree, SqliteIndex, StorageError};

use super::{
    ChangeBitmap, MAX_QUEUED_LINE_BATCHES, REBUILD_BATCH_SIZE, RebuildLine, RebuildReport, RecordCursor,
    TreeComparison, index_lines,
};
use crate::{ArchiveError, journal_record};

/// Records what the journal tells as far as it can be read, and what the tree has. SQLite keeps it
/// in a file of its own that goes with the connection.
pub(crate) fn index_past_damage(data: &Path) -> Result<SqliteIndex, ArchiveError> {
    let content = OcflTree::open(data)?;
    let records = SqliteIndex::create_for_bulk_load(Path::new(""))?;
    records.begin()?;
    let next = std::thread::scope(|scope| {
        let (told, lines) = mpsc::sync_channel(MAX_QUEUED_LINE_BATCHES);
        let reading = scope.spawn(move || read_past_damage(data, &told));
        index_lines(&records, lines)?;
        reading.join().map_err(|_| ArchiveError::Stopped)?.map_err(ArchiveError::from)
    })?;
    let mut compared = TreeComparison {
        content: &content,
        records: &records,
        recorded: RecordCursor::new(&records),
        seen: ChangeBitmap::default(),
        adopted: Vec::new(),
        time: "",
        by: "",
        first: next,
        own: None,
    };
    let mut objects = content.inventories()?;
    let batches = std::iter::from_fn(|| {
        let batch: Result<Vec<_>, StorageError> = objects.by_ref().take(REBUILD_BATCH_SIZE).collect();
        Some(batch).filter(|batch| !batch.as_ref().is_ok_and(Vec::is_empty))
    });
    compared.compare_objects(batches, &mut RebuildReport::default(), &|_| ())?;
    records.commit(JournalPosition::START)?;
    Ok(records)
}

/// Hands on every line that can be read; tells the number after the last.
fn read_past_damage(data: &Path, lines: &SyncSender<Vec<RebuildLine>>) -> Result<u64, StorageError> {
    let mut scan = JournalScan::new(data)?;
    while let Some(part) = scan.next_part()? {
        let line = match part {
            JournalScanPart::Line { told: JournalLine::Entry(mut entry), .. } => {
                let full = journal_record::read(&entry).map(Box::new);
                entry.record = None;
                RebuildLine::Entry(entry, full)
            }
            JournalScanPart::Line { told: JournalLine::Void(changes), .. } => RebuildLine::Void(changes),
            JournalScanPart::Damage { .. } | JournalScanPart::Torn => continue,
        };
        // Nobody listens any more: the other side failed, and says so.
        let _ = lines.send(vec![line]);
    }
    Ok(scan.next_number())
}
