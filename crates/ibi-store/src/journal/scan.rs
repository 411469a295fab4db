//! Reads a damaged journal: every readable line, and where lines are missing.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::line::{self, JournalLine};
use super::torn_tail::UnreadableTail;
use super::{JOURNAL_TITLE, check_title, path};
use crate::{StorageError, disk};

/// Maximum number of damaged bytes that are kept for recovery. The rest of a larger region is
/// skipped.
const MAX_DAMAGED_BYTES: usize = 16 << 20;

/// A part of a journal.
#[derive(Debug)]
pub enum JournalScanPart {
    /// A line with a correct checksum.
    Line {
        /// Its number.
        number: u64,
        /// Its content.
        told: JournalLine,
        /// The line, including its newline.
        bytes: Vec<u8>,
    },
    /// One or more lines that are unreadable or missing.
    Damage {
        /// The number of the first of them.
        first: u64,
        /// The number of the next readable line; `None` at the end of the file.
        next: Option<u64>,
        /// The bytes found in their place.
        bytes: Vec<u8>,
    },
    /// A torn write at the end.
    Torn,
}

/// Iterates over the parts of a journal.
#[derive(Debug)]
pub struct JournalScan {
    path: PathBuf,
    lines: BufReader<File>,
    offset: u64,
    next: u64,
    /// A line that was read while searching for the end of a damaged region.
    waiting: Option<JournalScanPart>,
    is_over: bool,
    title: Vec<u8>,
}

impl JournalScan {
    /// Starts at the first line of a folder's journal.
    pub fn new(data: &Path) -> Result<Self, StorageError> {
        Self::of_file(path(data))
    }

    pub(crate) fn of_file(path: PathBuf) -> Result<Self, StorageError> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if disk::is_not_found(&error) => return Err(StorageError::NoJournal { path }),
            Err(error) => return Err(StorageError::io("open", &path)(error)),
        };
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let mut title = Vec::new();
        lines.read_until(b'\n', &mut title).map_err(StorageError::io("read", &path))?;
        let offset = title.len() as u64;
        Ok(Self { path, lines, offset, next: 1, waiting: None, is_over: false, title })
    }

    /// The correct title: the current one if the title is unreadable, together with the error.
    pub(crate) fn repaired_title(&self) -> (Vec<u8>, Option<StorageError>) {
        match check_title(&self.title, &self.path) {
            Ok(()) => (self.title.clone(), None),
            Err(error) => (JOURNAL_TITLE.as_bytes().to_vec(), Some(error)),
        }
    }

    /// The number after that of the last returned line.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The next part; `None` at the end.
    pub fn next_part(&mut self) -> Result<Option<JournalScanPart>, StorageError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        if self.is_over {
            return Ok(None);
        }
        let (first, mut damaged, mut tail) = (self.next, Vec::new(), UnreadableTail::default());
        let mut has_damage = false;
        loop {
            let mut bytes = Vec::new();
            let read =
                self.lines.read_until(b'\n', &mut bytes).map_err(StorageError::io("read", &self.path))?;
            if read == 0 {
                self.is_over = true;
                return Ok(match (has_damage, tail.is_torn()) {
                    (false, _) => None,
                    (true, true) => Some(JournalScanPart::Torn),
                    (true, false) => Some(JournalScanPart::Damage { first, next: None, bytes: damaged }),
                });
            }
            let offset = self.offset;
            self.offset += read as u64;
            match line::parse(&bytes) {
                Some((number, _, told)) if number >= first => {
                    self.next = number + 1;
                    let line = JournalScanPart::Line { number, told, bytes };
                    if number == first && !has_damage {
                        return Ok(Some(line));
                    }
                    self.waiting = Some(line);
                    return Ok(Some(JournalScanPart::Damage { first, next: Some(number), bytes: damaged }));
                }
                _ => {
                    has_damage = true;
                    tail.add(&bytes, offset);
                    let remaining = MAX_DAMAGED_BYTES.saturating_sub(damaged.len());
                    damaged.extend_from_slice(bytes.get(..remaining).unwrap_or(&bytes));
                }
            }
        }
    }
}
