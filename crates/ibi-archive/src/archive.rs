//! An Archive: its data folder, opened (`docs/formats/data-folder.md`).

mod data_folder;
mod journal_check;
mod service_state;
mod settings;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ibi_id::{Instant, Label};
use ibi_store::index::{FileRecord, IndexMatch, IndexRecord, IndexStorage, LabelRole};
use ibi_store::journal::{Journal, JournalEntry, State, Verb};
use ibi_store::{ContentStorage, DataFolderLock, OcflTree, VerifiedFile, ocfl};

use crate::ArchiveError;
use crate::dublin_core::DublinCore;
use crate::item::{ItemDescription, LabelKey, LongMetadataNote};
use crate::language::Language;
use ibi_mint::Minter;
use ibi_mint::clock::{MintClock, SystemClock};

pub(crate) use data_folder::{
    index_path, is_applied, lock_data_folder, partial_fetch_folder, remove_if_exists, void_unapplied_lines,
};
pub(crate) use journal_check::damage_at_opening;
#[cfg(feature = "web")]
pub(crate) use journal_check::find_damage;
pub(crate) use service_state::LazyServiceState;
pub use settings::{ArchiveSettings, ArchiveSettingsChange, check_operator_name};

/// Read access to what an Archive holds. Another process may change the Archive meanwhile.
pub struct Holdings {
    pub(crate) data: PathBuf,
    pub(crate) settings: ArchiveSettings,
    /// Restored from a backup and not confirmed yet: another Archive may hold the Originals by now.
    pub(crate) restored: bool,
    pub(crate) records: Box<dyn IndexStorage>,
    pub(crate) content: Arc<dyn ContentStorage>,
    pub(crate) behind_notes: LazyServiceState,
}

/// An Archive opened for writing, under an exclusive lock.
pub struct Archive {
    pub(crate) holdings: Holdings,
    pub(crate) journal: Journal,
    pub(crate) minter: Option<Minter>,
    pub(crate) clock: SystemClock,
    /// Set after an error that leaves the state on disk uncertain. Reopening the Archive recovers.
    pub(crate) stopped: bool,
    /// A journal line that is known to be damaged. Writes are refused then.
    pub(crate) journal_damage: Option<u64>,
    pub(crate) _lock: DataFolderLock,
}

/// An item with all that is recorded of it.
#[derive(Debug)]
pub struct HeldItem {
    /// The path of its object.
    pub path: String,
    /// Its state in this Archive.
    pub state: State,
    /// Its version.
    pub version: u32,
    /// How often its Original was handed over.
    pub epoch: u64,
    /// The number of the last change to it.
    pub change: u64,
    /// Its properties.
    pub item: ItemDescription,
    /// Its metadata.
    pub metadata: RecordedMetadata,
    /// The languages of metadata that is too long to be read with the item.
    pub(crate) long_metadata_languages: Vec<Language>,
}

/// Metadata in the form of the index, parsed on demand: most lookups only need to know where an
/// item is. Lookups that skip long metadata can load it later with
/// [`Holdings::load_long_metadata`].
#[derive(Debug)]
pub struct RecordedMetadata {
    text: OnceLock<String>,
    read: OnceLock<DublinCore>,
}

impl RecordedMetadata {
    /// From an index record. An empty text means that long metadata was skipped.
    fn of_record(text: String) -> Self {
        let kept = OnceLock::new();
        if !text.is_empty() {
            // The cell is new: `set` cannot fail.
            let _ = kept.set(text);
        }
        Self { text: kept, read: OnceLock::new() }
    }

    /// Whether long metadata was skipped and is not loaded yet.
    pub fn is_not_loaded(&self) -> bool {
        self.text.get().is_none()
    }

    /// The first title, without parsing the rest; empty if there is none.
    #[cfg(feature = "web")]
    pub(crate) fn first_title(&self) -> String {
        self.text.get().map(|text| crate::dublin_core::first_title(text)).unwrap_or_default()
    }
}

impl Deref for RecordedMetadata {
    type Target = DublinCore;

    fn deref(&self) -> &DublinCore {
        debug_assert!(!self.is_not_loaded(), "long metadata are used only after `Holdings::complete`");
        // We wrote the index from valid metadata. What no longer parses counts as empty until the
        // index is rebuilt.
        self.read.get_or_init(|| {
            self.text.get().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        })
    }
}

impl Holdings {
    /// Resolves a label to an item, and to the part of it that the label names (clause 1.3).
    pub fn find(&self, label: &str) -> Result<(HeldItem, LabelRole), ArchiveError> {
        let (holding, role) = self.find_bare(label)?;
        self.load_long_metadata(&holding)?;
        Ok((holding, role))
    }

    /// Like [`Holdings::find`], without long metadata.
    pub fn find_bare(&self, label: &str) -> Result<(HeldItem, LabelRole), ArchiveError> {
        let parsed = parse_label(label)?;
        if let Some((record, role)) = self.records.find_exact(&LabelKey::folded(&parsed))? {
            return Ok((self.to_held_item(record)?, role));
        }
        let found = self.find_by_key(&LabelKey::of(&parsed))?;
        if !found.is_empty()
            && let dropped @ ArchiveError::Dropped { .. } = self.not_found_error(label)?
        {
            // The item with exactly this spelling is no longer kept here; one spelled differently
            // is another item (clause 1.3).
            return Err(dropped);
        }
        match &found[..] {
            [] => Err(self.not_found_error(label)?),
            [IndexMatch { path, role, .. }] => Ok((self.item_bare(path)?, *role)),
            several => {
                let paths = several.iter().map(|found| found.path.clone()).collect();
                Err(ArchiveError::Ambiguous { label: label.to_owned(), paths })
            }
        }
    }

    pub(crate) fn lookup(&self, label: &str) -> Result<Vec<IndexMatch>, ArchiveError> {
        self.find_by_key(&LabelKey::of(&parse_label(label)?))
    }

    fn find_by_key(&self, spelling: &LabelKey) -> Result<Vec<IndexMatch>, ArchiveError> {
        let mut found = self.records.find(&spelling.folded, &spelling.canonical)?;
        // An item may have several labels that are the same identifier.
        found.dedup_by(|a, b| a.path == b.path);
        Ok(found)
    }

    /// Why a lookup fails: the item was never here, or its object is missing or damaged.
    fn not_found_error(&self, label: &str) -> Result<ArchiveError, ArchiveError> {
        let path = LabelKey::parse(label).map(|spelling| spelling.folded).unwrap_or_default();
        let label = label.to_owned();
        let last = self.records.events(&path)?.pop();
        Ok(match last {
            None => ArchiveError::Unknown { label },
            Some(last) if last.verb == Verb::Drop => {
                ArchiveError::Dropped { label, to: self.transfer_recipient(&path)? }
            }
            Some(_) => ArchiveError::Lost { label },
        })
    }

    /// The Archive that received the Original from here, if any.
    pub fn transfer_recipient(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        let events = self.records.events(path)?;
        Ok(events.into_iter().rev().find_map(|event| event.to))
    }

    /// The same for an item that is no longer here.
    #[cfg(feature = "web")]
    pub(crate) fn transfer_recipient_by_label(&self, label: &str) -> Result<Option<String>, ArchiveError> {
        self.transfer_recipient(&LabelKey::parse(label).map(|spelling| spelling.folded).unwrap_or_default())
    }

    /// The items with a label that is the same identifier as this one, in any spelling (clause
    /// 1.3).
    pub fn same_identifier(&self, label: &str) -> Result<Vec<String>, ArchiveError> {
        let canonical = Label::parse(label).map(|label| LabelKey::of(&label).canonical).unwrap_or_default();
        let found = self.records.find("", &canonical)?;
        Ok(found.into_iter().map(|found| found.path).collect())
    }

    /// The item at a path.
    pub fn item(&self, path: &str) -> Result<HeldItem, ArchiveError> {
        let holding = self.item_bare(path)?;
        self.load_long_metadata(&holding)?;
        Ok(holding)
    }

    /// Loads long metadata that the lookup skipped.
    pub fn load_long_metadata(&self, holding: &HeldItem) -> Result<(), ArchiveError> {
        if holding.metadata.is_not_loaded() {
            let text = self.records.metadata(&holding.path)?;
            let text = text.ok_or_else(|| ArchiveError::Unknown { label: holding.path.clone() })?;
            // Another thread may have set the same value.
            let _ = holding.metadata.text.set(text);
        }
        Ok(())
    }

    /// The size of an item's metadata in the index, in bytes.
    #[cfg(feature = "web")]
    pub(crate) fn metadata_size(&self, path: &str) -> Result<u64, ArchiveError> {
        Ok(self.records.metadata_size(path)?)
    }

    /// The item at a path, without long metadata.
    pub(crate) fn item_bare(&self, path: &str) -> Result<HeldItem, ArchiveError> {
        let record = self.records.item(path)?;
        let record = record.ok_or_else(|| ArchiveError::Unknown { label: path.to_owned() })?;
        self.to_held_item(record)
    }

    /// Up to `limit` items in path order, starting after `after`.
    pub fn list(&self, after: &str, limit: usize) -> Result<Vec<HeldItem>, ArchiveError> {
        let items = self.list_bare(after, limit)?;
        items.iter().try_for_each(|holding| self.load_long_metadata(holding))?;
        Ok(items)
    }

    /// Like [`Holdings::list`], without long metadata.
    pub fn list_bare(&self, after: &str, limit: usize) -> Result<Vec<HeldItem>, ArchiveError> {
        self.records.list(after, limit)?.into_iter().map(|record| self.to_held_item(record)).collect()
    }

    /// Up to `limit` files of an item in order, starting after `after`.
    pub fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, ArchiveError> {
        Ok(self.records.files(path, after, limit)?)
    }

    /// Whether an item has more than `many` files.
    #[cfg(feature = "web")]
    pub(crate) fn has_more_files(&self, path: &str, many: usize) -> Result<bool, ArchiveError> {
        Ok(self.records.has_more_files(path, many)?)
    }

    /// One file of an item.
    pub fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, ArchiveError> {
        Ok(self.records.file(path, name)?)
    }

    /// Finds a file by its name as deposited (raw bytes) or as in the inventory, with or without a
    /// leading `/`.
    pub fn file_named(&self, path: &str, name: &[u8]) -> Result<Option<FileRecord>, ArchiveError> {
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let file = match ocfl::logical_path(name) {
            Ok(logical) => self.file(path, &logical)?,
            Err(_) => None,
        };
        match (file, std::str::from_utf8(name)) {
            (None, Ok(name)) => self.file(path, name),
            (file, _) => Ok(file),
        }
    }

    /// Up to `limit` items in the order of their last changes, starting after change `after`,
    /// without long metadata.
    pub fn changes_bare(&self, after: u64, limit: usize) -> Result<Vec<HeldItem>, ArchiveError> {
        self.records.changes(after, limit)?.into_iter().map(|record| self.to_held_item(record)).collect()
    }

    /// The number of the last change in this Archive.
    pub fn last_change(&self) -> Result<u64, ArchiveError> {
        Ok(self.records.position()?.next - 1)
    }

    /// The item that the request with this idempotency key created.
    pub fn item_by_request(&self, key: &str) -> Result<Option<String>, ArchiveError> {
        Ok(self.records.by_request(key)?)
    }

    /// The total size of an item's files, in bytes.
    pub fn size(&self, path: &str) -> Result<u64, ArchiveError> {
        Ok(self.records.total_file_size(path)?)
    }

    /// When the item last changed in this Archive, not the date it may carry from elsewhere.
    #[cfg(feature = "web")]
    pub(crate) fn changed_at(&self, path: &str) -> Option<String> {
        self.records.last_event(path).ok().flatten().map(|event| event.time)
    }

    /// The journal entries of an item.
    pub fn history(&self, path: &str) -> Result<Vec<JournalEntry>, ArchiveError> {
        Ok(self.records.events(path)?)
    }

    /// Opens a file of an item. The reader never returns a damaged block.
    pub fn open_file(&self, path: &str, file: &FileRecord) -> Result<VerifiedFile, ArchiveError> {
        Ok(VerifiedFile::open(&*self.content, path, file)?)
    }

    fn to_held_item(&self, record: IndexRecord) -> Result<HeldItem, ArchiveError> {
        let damaged = |what: String| ArchiveError::DamagedObject { path: record.path.clone(), what };
        let item = ItemDescription::parse(record.properties.as_bytes()).map_err(damaged)?;
        // Clause 2.1: a restored Archive answers Copy for what may have been handed over since.
        let doubted = self.restored && item.transferable && record.state == State::Original;
        let long_metadata_languages = match record.metadata.is_empty() {
            true => LongMetadataNote::parse(&record.properties).metadata_languages,
            false => Vec::new(),
        };
        Ok(HeldItem {
            long_metadata_languages,
            state: if doubted { State::Copy } else { record.state },
            version: record.version,
            epoch: record.epoch,
            change: record.change,
            path: record.path,
            item,
            metadata: RecordedMetadata::of_record(record.metadata),
        })
    }

    /// Whether the Archive was restored from a backup and is not confirmed yet.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// What the Archive is.
    pub fn settings(&self) -> &ArchiveSettings {
        &self.settings
    }

    /// How many more items of one file the filesystem has inodes for; `None` if it does not count
    /// inodes.
    pub fn items_that_fit(&self) -> Result<Option<u64>, ArchiveError> {
        Ok(OcflTree::remaining_item_capacity(&self.data)?)
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

    /// Begins a transaction and rolls it back.
    #[cfg(feature = "web")]
    pub fn try_to_write(&mut self) -> Result<(), ArchiveError> {
        self.check_changeable()?;
        self.holdings.records.begin()?;
        self.holdings.records.roll_back()?;
        self.check_minting()
    }

    /// The current time, in whole seconds.
    pub(crate) fn now(&self) -> Instant {
        current_second(&self.clock)
    }
}

fn parse_label(label: &str) -> Result<Label<&str>, ArchiveError> {
    Label::parse(label)
        .map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })
}

pub(crate) fn current_second(clock: &dyn MintClock) -> Instant {
    let now = clock.read().wall;
    Instant::new(now.seconds(), 0).unwrap_or(now)
}
