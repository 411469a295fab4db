//! The journal: what happened to each item here, in order, one line each (`docs/formats/journal.md`).
//!
//! A line is durable before the change that it tells of is made, and names the inventory that the change leaves. So
//! after a crash the last lines, and only those of the last batch, may tell of changes that were not made: whoever opens
//! the journal looks at the tree and appends which of them are void.

mod line;
mod link;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::{KeepError, disk};

pub use line::{Entry, State, Told, Verb};
pub use link::{LinkKind, LinkStatement, LinkStatus};

const TITLE: &str = "ibi journal, format 3\n";

/// Of programs that knew fewer verbs and fields: as long as the other, and every line means the same.
const OLDER_TITLES: [&str; 2] = ["ibi journal, format 1\n", "ibi journal, format 2\n"];

/// A place in the journal, between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the next line.
    pub next: u64,
    /// Where it begins.
    pub place: u64,
}

impl Position {
    /// Before the first line.
    pub const START: Self = Self { next: 1, place: 0 };
}

/// The journal of an Archive, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    end: Position,
    stopped: bool,
}

/// What a reading of the journal found at its end.
#[derive(Debug)]
pub struct Reading {
    /// The lines of the last batch, without what they carry, and without those that are void already: a crash may have made
    /// more of them void.
    pub last_batch: Vec<Entry>,
    /// Behind the last line.
    pub end: Position,
    /// Bytes behind that, of a write that was cut off.
    torn: u64,
}

impl Journal {
    /// Begins the journal of a data folder, unless there is one.
    pub fn start(data: &Path) -> Result<(), KeepError> {
        let path = path(data);
        if path.exists() {
            return Ok(());
        }
        disk::replace_in(&path, &data.join("staging"), TITLE.as_bytes())
    }

    /// Opens the journal of a data folder that was read just now; what was cut off goes.
    pub fn open(data: &Path, reading: &Reading) -> Result<Self, KeepError> {
        let path = path(data);
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let file = opened.map_err(KeepError::io("open", &path))?;
        if reading.torn > 0 {
            file.set_len(reading.end.place).map_err(KeepError::io("write", &path))?;
        }
        // What we found may have been written, and not be durable yet.
        file.sync_all().map_err(KeepError::not_durable(&path))?;
        let mut journal = Self { path, file, end: reading.end, stopped: false };
        let moved = journal.file.seek(SeekFrom::Start(journal.end.place));
        moved.map_err(KeepError::io("open", &journal.path))?;
        Ok(journal)
    }

    /// Whether its title is that of an older format.
    pub fn is_older(&self) -> bool {
        has_older_title(&self.file)
    }

    /// Whether the journal of a data folder has the title of an older format.
    pub fn is_older_in(data: &Path) -> bool {
        File::open(path(data)).is_ok_and(|file| has_older_title(&file))
    }

    /// Gives it the title of this format, once all is in it that the format promises. A program that
    /// knows only older formats would take new verbs for damage. One byte differs: there is no half
    /// of it.
    pub fn renew_title(&self) -> Result<(), KeepError> {
        let written = self.file.write_all_at(TITLE.as_bytes(), 0);
        written.map_err(KeepError::io("write", &self.path))?;
        self.file.sync_data().map_err(KeepError::not_durable(&self.path))
    }

    /// Behind the last line.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Appends lines, durably, as one batch. Their numbers must be the next ones.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), KeepError> {
        let text = entries.iter().map(line::of).collect::<String>();
        self.write(&text, entries.len() as u64)
    }

    /// Appends that lines of the last batch are void.
    pub fn void(&mut self, time: &str, lines: &BTreeSet<u64>) -> Result<(), KeepError> {
        self.write(&line::void(self.end.next, time, lines), 1)
    }

    fn write(&mut self, text: &str, lines: u64) -> Result<(), KeepError> {
        if self.stopped {
            return Err(KeepError::Stopped);
        }
        self.stopped = true;
        self.file.write_all(text.as_bytes()).map_err(KeepError::io("write", &self.path))?;
        self.file.sync_data().map_err(KeepError::not_durable(&self.path))?;
        self.stopped = false;
        self.end.next += lines;
        self.end.place += text.len() as u64;
        Ok(())
    }

    /// Reads the journal of a data folder from a place on, and tells of each line.
    pub fn read(
        data: &Path,
        from: Position,
        tell: &mut dyn FnMut(Told) -> Result<(), KeepError>,
    ) -> Result<Reading, KeepError> {
        let path = path(data);
        let mut reading = Reading { last_batch: Vec::new(), end: from, torn: 0 };
        let mut lines = lines_from(&path, &mut reading.end)?;
        // The number that a line should have had which cannot be read.
        let mut unreadable = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line).map_err(KeepError::io("read", &path))?;
            if read == 0 {
                return Ok(reading);
            }
            match line::parse(&line) {
                Some((number, _, mut told)) if unreadable.is_none() && number == reading.end.next => {
                    reading.end.place += read as u64;
                    reading.end.next += 1;
                    reading.note(&mut told);
                    tell(told)?;
                }
                other => {
                    let bad = *unreadable.get_or_insert(reading.end.next);
                    // A batch that began after the line that is missing was written when that one was durable.
                    if other.is_some_and(|(_, batch, _)| batch > bad) {
                        return Err(KeepError::DamagedJournal { path, line: bad });
                    }
                    reading.torn += read as u64;
                }
            }
        }
    }
}

impl Reading {
    fn note(&mut self, told: &mut Told) {
        match told {
            Told::Entry(entry) => {
                if self.last_batch.first().is_some_and(|other| other.batch != entry.batch) {
                    self.last_batch.clear();
                }
                // What it carries is long, and a batch may be large.
                let record = entry.record.take();
                self.last_batch.push(Entry::clone(entry));
                entry.record = record;
            }
            Told::Void(void) => self.last_batch.retain(|entry| !void.contains(&entry.change)),
        }
    }
}

/// The lines from a place on; the title is checked and passed over.
fn lines_from(path: &Path, from: &mut Position) -> Result<BufReader<File>, KeepError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if disk::absent(&error) => return Err(KeepError::NoJournal { path: path.to_owned() }),
        Err(error) => return Err(KeepError::io("open", path)(error)),
    };
    let length = file.metadata().map_err(KeepError::io("read", path))?.len();
    if length < from.place {
        return Err(KeepError::JournalBehind { path: path.to_owned() });
    }
    file.seek(SeekFrom::Start(from.place)).map_err(KeepError::io("read", path))?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    if from.place == 0 {
        let mut title = Vec::new();
        lines.read_until(b'\n', &mut title).map_err(KeepError::io("read", path))?;
        check_title(&title, path)?;
        from.place = title.len() as u64;
    }
    Ok(lines)
}

fn path(data: &Path) -> PathBuf {
    data.join("journal")
}

fn has_older_title(file: &File) -> bool {
    let mut found = [0; TITLE.len()];
    let read = file.read_exact_at(&mut found, 0);
    read.is_ok() && OLDER_TITLES.iter().any(|title| found == title.as_bytes())
}

fn check_title(line: &[u8], path: &Path) -> Result<(), KeepError> {
    let older = OLDER_TITLES.iter().any(|title| line == title.as_bytes());
    if older || line == TITLE.as_bytes() {
        Ok(())
    } else if line.starts_with(b"ibi journal, format ") {
        Err(KeepError::NewerFormat { path: path.to_owned() })
    } else {
        Err(KeepError::DamagedJournal { path: path.to_owned(), line: 0 })
    }
}
