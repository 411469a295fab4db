//! Rewrites a journal with damaged lines. Each line is recovered from its own bytes, from a backup,
//! or from the index, in this order. A line that none of them has is marked as lost. No number is
//! reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::index::IndexStorage as _;
use crate::journal::{JournalLine, JournalScan, JournalScanPart, correction, line, path};
use crate::{SqliteIndex, StorageError, disk};

/// Maximum number of lines to recover one by one. Beyond it, restore a backup instead.
const MAX_MISSING_LINES: u64 = 1_000_000;

/// In a backup of a damaged journal: the journal that the backup had before.
pub const OLDER_JOURNAL_FILE: &str = "journal.older";

/// The source of a recovered line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JournalLineSource {
    /// Its own bytes: one bit was flipped, as the checksum shows.
    OneBit,
    /// A backup.
    Backup,
    /// The index, which has everything but the line's `record`.
    Index,
    /// Not recovered.
    Lost,
}

impl JournalLineSource {
    /// The name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            JournalLineSource::OneBit => "one bit corrected",
            JournalLineSource::Backup => "backup",
            JournalLineSource::Index => "index",
            JournalLineSource::Lost => "lost",
        }
    }
}

/// A rewritten journal that is not yet installed.
#[derive(Debug)]
pub struct SalvagedJournal {
    /// Each line that was unreadable, with its source.
    pub lines: BTreeMap<u64, JournalLineSource>,
    /// Whether the title was damaged.
    pub title: bool,
    /// The number of unreadable lines at the end that the index never followed. They were not
    /// acknowledged, and are left out.
    pub unacknowledged: u64,
    path: PathBuf,
    fresh: PathBuf,
}

impl SalvagedJournal {
    /// Durably replaces the damaged journal, and keeps that one as `kept`.
    pub fn install(&self, kept: &Path) -> Result<(), StorageError> {
        match std::fs::hard_link(&self.path, kept) {
            // An earlier run got this far.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            linked => linked.map_err(StorageError::io("create", kept))?,
        }
        let parent = || self.path.parent().map_or(Ok(()), disk::sync);
        parent()?;
        disk::rename(&self.fresh, &self.path)?;
        parent()
    }
}

/// Rewrites the journal of a folder. `None` if it is intact up to the position that the index has
/// reached.
pub fn salvage(
    data: &Path,
    index: Option<&SqliteIndex>,
    backup: Option<&Path>,
) -> Result<Option<SalvagedJournal>, StorageError> {
    let followed = index.map_or(Ok(1), |index| index.position().map(|position| position.next))?;
    let (title, title_error) = JournalScan::new(data)?.repaired_title();
    let mut plan = JournalSalvagePlan::default();
    let mut scan = JournalScan::new(data)?;
    while let Some(part) = scan.next_part()? {
        let JournalScanPart::Damage { first, next, bytes } = part else { continue };
        let corrected = correction::correct_lines(&bytes, first, next);
        let complete = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let last = corrected.last().map_or(first, |(number, _)| *number + 1);
        let end = match (next, index) {
            (Some(next), _) => next,
            // A change is acknowledged once the index has followed it: what lies behind that and
            // cannot be read never counted.
            (None, Some(_)) => {
                plan.unacknowledged +=
                    (first + complete.max(1)).saturating_sub(last.max(followed).max(first));
                last.max(followed)
            }
            (None, None) => (first + complete.max(1)).max(last),
        };
        plan.add_missing(first, end, data)?;
        plan.found.extend(
            corrected.into_iter().map(|(number, bytes)| (number, (JournalLineSource::OneBit, bytes))),
        );
    }
    let end = plan.missing.last().map_or(0, |last| last + 1).max(scan.next_number());
    plan.add_missing(end, followed, data)?;
    // If this program can read all lines, the title is damaged, not that of a newer format.
    if let Some(error) = title_error.as_ref().filter(|_| !plan.missing.is_empty()) {
        return match error {
            StorageError::NewerFormat { path } => Err(StorageError::NewerFormat { path: path.clone() }),
            _ => plan.finish(data, &title, true, index, backup).map(Some),
        };
    }
    match (plan.missing.is_empty() && plan.unacknowledged == 0, title_error) {
        (true, None) => Ok(None),
        (_, title_error) => plan.finish(data, &title, title_error.is_some(), index, backup).map(Some),
    }
}

/// Checks that a backup's journal and that of a folder share the same history: the lines that are
/// readable in both must be equal.
pub fn check_same_history(data: &Path, backup: &Path) -> Result<(), StorageError> {
    JournalSalvagePlan::default().recover_from_backup(data, &path(backup))
}

/// The missing lines, and those recovered so far.
#[derive(Debug, Default)]
struct JournalSalvagePlan {
    missing: BTreeSet<u64>,
    found: BTreeMap<u64, (JournalLineSource, Vec<u8>)>,
    unacknowledged: u64,
}

impl JournalSalvagePlan {
    fn add_missing(&mut self, first: u64, end: u64, data: &Path) -> Result<(), StorageError> {
        if end.saturating_sub(first) + self.missing.len() as u64 > MAX_MISSING_LINES {
            return Err(StorageError::DamagedJournal { path: path(data), line: first });
        }
        self.missing.extend(first..end);
        Ok(())
    }

    fn is_unrecovered(&self, number: u64) -> bool {
        self.missing.contains(&number) && !self.found.contains_key(&number)
    }

    fn finish(
        mut self,
        data: &Path,
        title: &[u8],
        is_title_damaged: bool,
        index: Option<&SqliteIndex>,
        backup: Option<&Path>,
    ) -> Result<SalvagedJournal, StorageError> {
        for name in ["journal", OLDER_JOURNAL_FILE] {
            let theirs = backup.map(|backup| backup.join(name)).filter(|path| path.exists());
            theirs.map_or(Ok(()), |theirs| self.recover_from_backup(data, &theirs))?;
        }
        if let Some(index) = index {
            self.recover_from_index(data, index)?;
        }
        let (path, unacknowledged) = (path(data), self.unacknowledged);
        let fresh = path.with_extension("new");
        let file = File::create(&fresh).map_err(StorageError::io("create", &fresh))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let lines = self.write(data, title, &mut out, &fresh)?;
        let file = out.into_inner().map_err(|error| StorageError::io("write", &fresh)(error.into_error()))?;
        file.sync_all().map_err(StorageError::not_durable(&fresh))?;
        Ok(SalvagedJournal { lines, title: is_title_damaged, unacknowledged, path, fresh })
    }

    /// Recovers lines from a backup with the same history: the lines that are readable in both must
    /// be equal.
    fn recover_from_backup(&mut self, data: &Path, backup: &Path) -> Result<(), StorageError> {
        let (mut ours, mut theirs) = (ReadableLines::of(path(data))?, ReadableLines::of(backup.to_owned())?);
        let mut our_line = ours.next()?;
        while let Some((number, _, bytes)) = theirs.next()? {
            while our_line.as_ref().is_some_and(|(ours, ..)| *ours < number) {
                our_line = ours.next()?;
            }
            match &our_line {
                Some((ours, _, our_bytes)) if *ours == number && *our_bytes != bytes => {
                    return Err(StorageError::DivergedBackup { path: backup.to_owned(), line: number });
                }
                _ if self.is_unrecovered(number) => {
                    self.found.insert(number, (JournalLineSource::Backup, bytes));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Recovers lines from the index. A line without an event in the index had no effect when it
    /// was indexed: it was void, or it voided others.
    fn recover_from_index(&mut self, data: &Path, index: &SqliteIndex) -> Result<(), StorageError> {
        let followed = index.position()?.next;
        let open: Vec<u64> =
            self.missing.range(..followed).copied().filter(|number| self.is_unrecovered(*number)).collect();
        index.index_events_by_change()?;
        let mut silent = BTreeSet::new();
        for number in open {
            match index.event_by_change(number)? {
                Some(entry) => {
                    let line = line::format_entry(&entry).into_bytes();
                    self.found.insert(number, (JournalLineSource::Index, line));
                }
                None => drop(silent.insert(number)),
            }
        }
        if silent.is_empty() {
            return Ok(());
        }
        let mut struck: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let (mut uncounted, mut told_void) = (BTreeSet::new(), BTreeSet::new());
        let (mut lines, mut time) = (ReadableLines::of(path(data))?, String::new());
        while let Some((number, content, _)) = lines.next()?.filter(|(number, ..)| *number < followed) {
            match content {
                JournalLine::Entry(entry) => {
                    time = entry.time;
                    if index.event_by_change(number)?.is_none() {
                        uncounted.insert(number);
                    }
                }
                JournalLine::Void(numbers) => told_void.extend(numbers),
            }
        }
        for number in uncounted.difference(&told_void) {
            if let Some(by) = silent.range(number..).next() {
                struck.entry(*by).or_default().insert(*number);
            }
        }
        for number in silent {
            // A line that was itself void is written as voiding itself.
            let numbers = struck.remove(&number).unwrap_or_else(|| BTreeSet::from([number]));
            let line = line::format_void(number, &time, &numbers).into_bytes();
            self.found.insert(number, (JournalLineSource::Index, line));
        }
        Ok(())
    }

    fn write(
        mut self,
        data: &Path,
        title: &[u8],
        out: &mut dyn std::io::Write,
        fresh: &Path,
    ) -> Result<BTreeMap<u64, JournalLineSource>, StorageError> {
        let mut sources = BTreeMap::new();
        let (mut time, mut next) = ("1970-01-01T00:00:00Z".to_owned(), 1);
        out.write_all(title).map_err(StorageError::io("write", fresh))?;
        let end = self.missing.last().map_or(1, |last| last + 1);
        let mut lines = ReadableLines::of(path(data))?;
        loop {
            let line = lines.next()?;
            let upto = line.as_ref().map_or(end, |(number, ..)| *number);
            for number in next..upto {
                let (source, bytes) = self.found.remove(&number).unwrap_or_else(|| {
                    (JournalLineSource::Lost, line::format_lost(number, &time).into_bytes())
                });
                sources.insert(number, source);
                out.write_all(&bytes).map_err(StorageError::io("write", fresh))?;
            }
            let Some((number, content, bytes)) = line else { return Ok(sources) };
            if let JournalLine::Entry(entry) = content {
                time = entry.time;
            }
            out.write_all(&bytes).map_err(StorageError::io("write", fresh))?;
            next = number + 1;
        }
    }
}

/// The readable lines of a journal, each with its number.
struct ReadableLines(JournalScan);

impl ReadableLines {
    fn of(path: PathBuf) -> Result<Self, StorageError> {
        Ok(Self(JournalScan::of_file(path)?))
    }

    fn next(&mut self) -> Result<Option<(u64, JournalLine, Vec<u8>)>, StorageError> {
        while let Some(part) = self.0.next_part()? {
            if let JournalScanPart::Line { number, told, bytes } = part {
                return Ok(Some((number, told, bytes)));
            }
        }
        Ok(None)
    }
}
