//! The journal: the history of all items at this Archive, one line per event
//! (`docs/formats/journal.md`).
//!
//! A line is durable before its change is made, and names the inventory after the change. After a
//! crash, some lines of the last batch, and only of that one, may describe changes that were not
//! made. Whoever opens the journal compares these lines with the tree and appends which of them are
//! void.

pub(crate) mod correction;
pub(crate) mod line;
mod link;
mod scan;
mod torn_tail;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::{StorageError, disk};

pub use line::{JournalEntry, JournalLine, State, Verb};
pub use link::{LinkKind, LinkStatement, LinkStatus};
pub use scan::{JournalScan, JournalScanPart};
use torn_tail::UnreadableTail;

const JOURNAL_TITLE: &str = "ibi journal, format 5\n";

/// Titles of formats with fewer verbs and fields. They have the same length as the current one, and
/// every line keeps its meaning.
const OLDER_TITLES: [&str; 4] = [
    "ibi journal, format 1\n",
    "ibi journal, format 2\n",
    "ibi journal, format 3\n",
    "ibi journal, format 4\n",
];

/// The number of older titles from before links existed (clause 2.4).
const TITLES_WITHOUT_LINKS: usize = 2;

/// A position in the journal, between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalPosition {
    /// The number of the next line.
    pub next: u64,
    /// Its byte offset.
    pub place: u64,
}

impl JournalPosition {
    /// Before the first line.
    pub const START: Self = Self { next: 1, place: 0 };
}

/// The journal of an Archive, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    end: JournalPosition,
    stopped: bool,
}

/// The end of the journal, as found by reading it.
#[derive(Debug)]
pub struct JournalReadSummary {
    /// The entries of the last batch, without their `record` and without those already void. A
    /// crash may have made more of them void.
    pub last_batch: Vec<JournalEntry>,
    /// The position after the last line.
    pub end: JournalPosition,
    /// The number of bytes after it, from a torn write.
    torn: u64,
}

impl Journal {
    /// Creates the journal of a data folder, unless it exists.
    pub fn start(data: &Path) -> Result<(), StorageError> {
        let path = path(data);
        if path.exists() {
            return Ok(());
        }
        disk::replace_in(&path, &data.join("staging"), JOURNAL_TITLE.as_bytes())
    }

    /// Opens the journal of a data folder that was just read, and truncates a torn write.
    pub fn open(data: &Path, reading: &JournalReadSummary) -> Result<Self, StorageError> {
        let path = path(data);
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let file = opened.map_err(StorageError::io("open", &path))?;
        if reading.torn > 0 {
            file.set_len(reading.end.place).map_err(StorageError::io("write", &path))?;
        }
        // What was read may not be durable yet.
        file.sync_all().map_err(StorageError::not_durable(&path))?;
        let mut journal = Self { path, file, end: reading.end, stopped: false };
        let moved = journal.file.seek(SeekFrom::Start(journal.end.place));
        moved.map_err(StorageError::io("open", &journal.path))?;
        Ok(journal)
    }

    /// Whether its title is that of an older format.
    pub fn has_older_title(&self) -> bool {
        has_title_of(&self.file, &OLDER_TITLES)
    }

    /// Whether its title is that of a format that had no links.
    pub fn is_older_than_links(&self) -> bool {
        has_title_of(&self.file, &OLDER_TITLES[..TITLES_WITHOUT_LINKS])
    }

    /// Whether the journal of a data folder has the title of an older format.
    pub fn has_older_title_in(data: &Path) -> bool {
        File::open(path(data)).is_ok_and(|file| has_title_of(&file, &OLDER_TITLES))
    }

    /// Writes the title of the current format, once the journal has everything that the format
    /// requires. A program that knows only older formats would take new verbs for damage. The
    /// titles differ in one byte, so the write cannot be torn.
    pub fn write_current_title(&self) -> Result<(), StorageError> {
        let written = self.file.write_all_at(JOURNAL_TITLE.as_bytes(), 0);
        written.map_err(StorageError::io("write", &self.path))?;
        self.file.sync_data().map_err(StorageError::not_durable(&self.path))
    }

    /// The position after the last line.
    pub fn end(&self) -> JournalPosition {
        self.end
    }

    /// Durably appends lines as one batch. They must have the next numbers.
    pub fn append(&mut self, entries: &[JournalEntry]) -> Result<(), StorageError> {
        let text = entries.iter().map(line::format_entry).collect::<String>();
        self.write(&text, entries.len() as u64)
    }

    /// Appends a line that voids lines of the last batch.
    pub fn void(&mut self, time: &str, lines: &BTreeSet<u64>) -> Result<(), StorageError> {
        self.write(&line::format_void(self.end.next, time, lines), 1)
    }

    fn write(&mut self, text: &str, lines: u64) -> Result<(), StorageError> {
        if self.stopped {
            return Err(StorageError::Stopped);
        }
        self.stopped = true;
        // Somebody else cut it off or appended to it: behind that, nothing could be read.
        let length = self.file.metadata().map_err(StorageError::io("read", &self.path))?.len();
        if length != self.end.place {
            return Err(StorageError::DamagedJournal { path: self.path.clone(), line: self.end.next });
        }
        self.file.write_all(text.as_bytes()).map_err(StorageError::io("write", &self.path))?;
        self.file.sync_data().map_err(StorageError::not_durable(&self.path))?;
        self.stopped = false;
        self.end.next += lines;
        self.end.place += text.len() as u64;
        Ok(())
    }

    /// Reads the journal of a data folder from a position on, and passes each line to `on_line`.
    pub fn read(
        data: &Path,
        from: JournalPosition,
        on_line: &mut dyn FnMut(JournalLine) -> Result<(), StorageError>,
    ) -> Result<JournalReadSummary, StorageError> {
        let path = path(data);
        let mut reading = JournalReadSummary { last_batch: Vec::new(), end: from, torn: 0 };
        let mut lines = lines_from(&path, &mut reading.end)?;
        // The number that the first unreadable line should have had.
        let mut unreadable = None;
        let mut tail = UnreadableTail::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line).map_err(StorageError::io("read", &path))?;
            if read == 0 {
                return match unreadable.filter(|_| !tail.is_torn()) {
                    Some(line) => Err(StorageError::DamagedJournal { path, line }),
                    None => Ok(reading),
                };
            }
            match line::parse(&line) {
                Some((number, _, mut content)) if unreadable.is_none() && number == reading.end.next => {
                    reading.end.place += read as u64;
                    reading.end.next += 1;
                    reading.track_last_batch(&mut content);
                    on_line(content)?;
                }
                other => {
                    let bad = *unreadable.get_or_insert(reading.end.next);
                    // A later batch is written only once the missing line is durable, so that line
                    // is damaged and not torn.
                    if other.is_some_and(|(_, batch, _)| batch > bad) {
                        return Err(StorageError::DamagedJournal { path, line: bad });
                    }
                    tail.add(&line, reading.end.place + reading.torn);
                    reading.torn += read as u64;
                }
            }
        }
    }
}

impl JournalReadSummary {
    /// Rejects a journal that ends before the position that the index has reached: everything up to
    /// there was acknowledged.
    pub fn check_covers_index(&self, data: &Path, followed: JournalPosition) -> Result<(), StorageError> {
        if self.end.next >= followed.next {
            return Ok(());
        }
        Err(StorageError::DamagedJournal { path: path(data), line: self.end.next })
    }

    fn track_last_batch(&mut self, content: &mut JournalLine) {
        match content {
            JournalLine::Entry(entry) => {
                if self.last_batch.first().is_some_and(|other| other.batch != entry.batch) {
                    self.last_batch.clear();
                }
                // The record is long, and a batch may be large.
                let record = entry.record.take();
                self.last_batch.push(JournalEntry::clone(entry));
                entry.record = record;
            }
            JournalLine::Void(void) => self.last_batch.retain(|entry| !void.contains(&entry.change)),
        }
    }
}

/// Opens the journal at a position. Checks and skips the title.
fn lines_from(path: &Path, from: &mut JournalPosition) -> Result<BufReader<File>, StorageError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if disk::is_not_found(&error) => {
            return Err(StorageError::NoJournal { path: path.to_owned() });
        }
        Err(error) => return Err(StorageError::io("open", path)(error)),
    };
    let length = file.metadata().map_err(StorageError::io("read", path))?.len();
    if length < from.place {
        return Err(StorageError::JournalBehind { path: path.to_owned() });
    }
    file.seek(SeekFrom::Start(from.place)).map_err(StorageError::io("read", path))?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    if from.place == 0 {
        let mut title = Vec::new();
        lines.read_until(b'\n', &mut title).map_err(StorageError::io("read", path))?;
        check_title(&title, path)?;
        from.place = title.len() as u64;
    }
    Ok(lines)
}

pub(crate) fn path(data: &Path) -> PathBuf {
    data.join("journal")
}

fn has_title_of(file: &File, titles: &[&str]) -> bool {
    let mut found = [0; JOURNAL_TITLE.len()];
    let read = file.read_exact_at(&mut found, 0);
    read.is_ok() && titles.iter().any(|title| found == title.as_bytes())
}

fn check_title(line: &[u8], path: &Path) -> Result<(), StorageError> {
    let older = OLDER_TITLES.iter().any(|title| line == title.as_bytes());
    if older || line == JOURNAL_TITLE.as_bytes() {
        Ok(())
    } else if line.starts_with(b"ibi journal, format ") {
        Err(StorageError::NewerFormat { path: path.to_owned() })
    } else {
        Err(StorageError::DamagedJournal { path: path.to_owned(), line: 0 })
    }
}
