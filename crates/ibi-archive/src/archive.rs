//! An Archive: its data folder, opened (`docs/formats/data-folder.md`).

mod opening;
mod settings;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ibi_id::{Instant, Label};
use ibi_store::journal::{Entry, Journal, State, Verb};
use ibi_store::records::{FileRecord, Found, Record, Records, Role};
use ibi_store::{Checked, Content, DataLock, Tree, ocfl};

use crate::dublin_core::DublinCore;
use crate::holders::behind::BehindNotes;
use crate::item::{Item, Spelling};
use crate::mint::Minter;
use crate::mint::clock::{Clock, SystemClock};
use crate::{ArchiveError, object};

pub use opening::{ExistingService, Found as FoundOnOpening, init, init_with_service, open, open_to_read};
pub(crate) use opening::{index, is_made, lock, void_lines};
pub use settings::{Settings, SettingsChange};

/// What an Archive holds, to be read. Others may change it meanwhile.
pub struct Holdings {
    pub(crate) data: PathBuf,
    pub(crate) settings: Settings,
    /// Brought back from a backup, and not confirmed yet: another Archive may have the originals by now.
    pub(crate) restored: bool,
    pub(crate) records: Box<dyn Records>,
    pub(crate) content: Arc<dyn Content>,
    pub(crate) behind_notes: BehindNotes,
}

/// An Archive that this process alone changes.
pub struct Archive {
    pub(crate) holdings: Holdings,
    pub(crate) journal: Journal,
    pub(crate) minter: Option<Minter>,
    pub(crate) clock: SystemClock,
    /// After an error that leaves what is on disk in doubt: opening anew clears it up.
    pub(crate) stopped: bool,
    _lock: DataLock,
}

/// An item with all that is told of it.
#[derive(Debug)]
pub struct Holding {
    /// The path of its object.
    pub path: String,
    /// What it is here.
    pub state: State,
    /// Its version.
    pub version: u32,
    /// How often its original was handed over.
    pub epoch: u64,
    /// The last thing that happened to it.
    pub change: u64,
    /// What it has.
    pub item: Item,
    /// Its metadata.
    pub metadata: RecordedMetadata,
}

/// Metadata as the index has them, read when they are needed: most who ask for an item only want to know where it is.
#[derive(Debug)]
pub struct RecordedMetadata {
    text: String,
    read: OnceLock<DublinCore>,
}

impl Deref for RecordedMetadata {
    type Target = DublinCore;

    fn deref(&self) -> &DublinCore {
        // The index is written by us from metadata; what is no metadata any more is none, until the index is made anew.
        self.read.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }
}

impl Holdings {
    /// The item that a label leads to, and which part of it (clause 1.3).
    pub fn find(&self, label: &str) -> Result<(Holding, Role), ArchiveError> {
        let parsed = parsed(label)?;
        if let Some((record, role)) = self.records.held(&Spelling::folded(&parsed))? {
            return Ok((self.holding(record)?, role));
        }
        let found = self.leads_to(&Spelling::of(&parsed))?;
        if !found.is_empty()
            && let dropped @ ArchiveError::Dropped { .. } = self.absent(label)?
        {
            // The item of this very spelling went elsewhere: one that is spelled otherwise is another
            // (clause 1.3).
            return Err(dropped);
        }
        match &found[..] {
            [] => Err(self.absent(label)?),
            [Found { path, role, .. }] => Ok((self.item(path)?, *role)),
            several => {
                let paths = several.iter().map(|found| found.path.clone()).collect();
                Err(ArchiveError::Ambiguous { label: label.to_owned(), paths })
            }
        }
    }

    pub(crate) fn lookup(&self, label: &str) -> Result<Vec<Found>, ArchiveError> {
        self.leads_to(&Spelling::of(&parsed(label)?))
    }

    fn leads_to(&self, spelling: &Spelling) -> Result<Vec<Found>, ArchiveError> {
        let mut found = self.records.find(&spelling.folded, &spelling.canonical)?;
        // An item may have several labels that are one identifier.
        found.dedup_by(|a, b| a.path == b.path);
        Ok(found)
    }

    /// Why nothing is found: it was never there, or its object is missing or damaged.
    fn absent(&self, label: &str) -> Result<ArchiveError, ArchiveError> {
        let path = Spelling::parse(label).map(|spelling| spelling.folded).unwrap_or_default();
        let label = label.to_owned();
        let last = self.records.events(&path)?.pop();
        Ok(match last {
            None => ArchiveError::Unknown { label },
            Some(last) if last.verb == Verb::Drop => {
                ArchiveError::Dropped { label, to: self.given_to(&path)? }
            }
            Some(_) => ArchiveError::Lost { label },
        })
    }

    /// The Archive that the Original was handed over to from here, if it was.
    pub fn given_to(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        let events = self.records.events(path)?;
        Ok(events.into_iter().rev().find_map(|event| event.to))
    }

    /// The same of an item that is no longer here.
    #[cfg(feature = "web")]
    pub(crate) fn given_to_by_label(&self, label: &str) -> Result<Option<String>, ArchiveError> {
        self.given_to(&Spelling::parse(label).map(|spelling| spelling.folded).unwrap_or_default())
    }

    /// The items whose labels are the same identifier as this one, however they are spelled (clause 1.3).
    pub fn same_identifier(&self, label: &str) -> Result<Vec<String>, ArchiveError> {
        let canonical = Label::parse(label).map(|label| Spelling::of(&label).canonical).unwrap_or_default();
        let found = self.records.find("", &canonical)?;
        Ok(found.into_iter().map(|found| found.path).collect())
    }

    /// The item at a path.
    pub fn item(&self, path: &str) -> Result<Holding, ArchiveError> {
        let record = self.records.item(path)?;
        let record = record.ok_or_else(|| ArchiveError::Unknown { label: path.to_owned() })?;
        self.holding(record)
    }

    /// Items in order of their paths, after one.
    pub fn list(&self, after: &str, limit: usize) -> Result<Vec<Holding>, ArchiveError> {
        self.records.list(after, limit)?.into_iter().map(|record| self.holding(record)).collect()
    }

    /// The files of an item in order, after one.
    pub fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, ArchiveError> {
        Ok(self.records.files(path, after, limit)?)
    }

    /// One file of an item.
    pub fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, ArchiveError> {
        Ok(self.records.file(path, name)?)
    }

    /// A file by its name in the bytes that it was deposited with, or as the inventory has it, with or without a leading
    /// `/`.
    pub fn file_named(&self, path: &str, name: &[u8]) -> Result<Option<FileRecord>, ArchiveError> {
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let file = match ocfl::logical(name) {
            Ok(logical) => self.file(path, &logical)?,
            Err(_) => None,
        };
        match (file, std::str::from_utf8(name)) {
            (None, Ok(name)) => self.file(path, name),
            (file, _) => Ok(file),
        }
    }

    /// A file of an item as an older version had it.
    pub fn file_of_version(
        &self,
        path: &str,
        version: u32,
        name: &str,
    ) -> Result<Option<FileRecord>, ArchiveError> {
        object::file_of_version(&*self.content, path, version, name)
    }

    /// An item as an older version described it.
    pub fn item_of_version(&self, path: &str, version: u32) -> Result<Option<Item>, ArchiveError> {
        object::item_of_version(&*self.content, path, version)
    }

    /// Items in order of the last thing that happened to them, after one.
    pub fn changes(&self, after: u64, limit: usize) -> Result<Vec<Holding>, ArchiveError> {
        self.records.changes(after, limit)?.into_iter().map(|record| self.holding(record)).collect()
    }

    /// The number of the last thing that happened here.
    pub fn last_change(&self) -> Result<u64, ArchiveError> {
        Ok(self.records.position()?.next - 1)
    }

    /// The item that a request of this name made.
    pub fn made_by(&self, key: &str) -> Result<Option<String>, ArchiveError> {
        Ok(self.records.made_by(key)?)
    }

    /// The bytes of all files of an item.
    pub fn size(&self, path: &str) -> Result<u64, ArchiveError> {
        Ok(self.records.size(path)?)
    }

    /// When the last thing happened to an item here: not the date that it may have from elsewhere.
    #[cfg(feature = "web")]
    pub(crate) fn changed_at(&self, path: &str) -> Option<String> {
        self.records.last_event(path).ok().flatten().map(|event| event.time)
    }

    /// What happened to an item.
    pub fn history(&self, path: &str) -> Result<Vec<Entry>, ArchiveError> {
        Ok(self.records.events(path)?)
    }

    /// A file of an item, which gives out no damaged block.
    pub fn open_file(&self, path: &str, file: &FileRecord) -> Result<Checked, ArchiveError> {
        Ok(Checked::open(&*self.content, path, file)?)
    }

    fn holding(&self, record: Record) -> Result<Holding, ArchiveError> {
        let damaged = |what: String| ArchiveError::DamagedObject { path: record.path.clone(), what };
        let item = Item::parse(record.properties.as_bytes()).map_err(damaged)?;
        // Clause 2.1: restored, it answers Copy for what may have been handed over since.
        let doubted = self.restored && item.transferable && record.state == State::Original;
        Ok(Holding {
            state: if doubted { State::Copy } else { record.state },
            version: record.version,
            epoch: record.epoch,
            change: record.change,
            path: record.path,
            item,
            metadata: RecordedMetadata { text: record.metadata, read: OnceLock::new() },
        })
    }

    /// Whether it was brought back from a backup, and not confirmed yet.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// What the Archive is.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many more items of one file its filesystem has inodes for; nothing if it does not count them.
    pub fn items_that_fit(&self) -> Result<Option<u64>, ArchiveError> {
        Ok(Tree::items_that_fit(&self.data)?)
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

impl Archive {
    /// What it holds.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// This instant, in whole seconds.
    pub(crate) fn now(&self) -> Instant {
        whole_second(&self.clock)
    }
}

fn parsed(label: &str) -> Result<Label<&str>, ArchiveError> {
    Label::parse(label)
        .map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })
}

pub(crate) fn whole_second(clock: &dyn Clock) -> Instant {
    let now = clock.read().wall;
    Instant::new(now.seconds(), 0).unwrap_or(now)
}
