//! Creates and opens Archives. Opening finishes or undoes whatever a crash cut off, so an opened
//! Archive equals a rebuilt one (clause 2.3).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ibi_id::Label;
use ibi_store::content::ClearedStaging;
use ibi_store::index::IndexStorage;
use ibi_store::journal::{Journal, JournalEntry, JournalLine, JournalPosition, Verb};
use ibi_store::{ContentStorage, DataFolderLock, MarkStorageError, OcflTree, SqliteIndex, StorageError};

use crate::archive::{
    Archive, ArchiveSettings, Holdings, LazyServiceState, damage_at_opening, index_path, lock_data_folder,
    void_unapplied_lines,
};
use crate::item::LabelKey;
use crate::object::StoredObject;
use crate::salvage::is_damaged_journal;
use crate::{ArchiveError, deposit};
use ibi_mint::MintError;
use ibi_mint::clock::SystemClock;

/// Explains the tree to readers without ibi.
const TREE_README: &str = include_str!("opening/tree-readme.md");

/// What opening had to repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpeningReport {
    /// Leftovers of interrupted work.
    pub swept: ClearedStaging,
    /// Changes that were made but not indexed yet.
    pub finished: usize,
    /// Changes that were begun but not made.
    pub undone: usize,
    /// The damage of the journal, if only the rest can be read.
    pub journal_damage: Option<String>,
    /// Whether other users of the machine had access to the data folder until now.
    pub was_open_to_others: bool,
}

/// The service of an Archive that continues an existing one: it keeps its registered labels (clause
/// 2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingService {
    /// Its labels, at most one per form; the first is announced to resolvers. If empty, labels are
    /// minted.
    pub labels: Vec<String>,
    /// The labels of its metadata, at most one per form.
    pub metadata: Vec<String>,
}

/// Creates an Archive in a data folder: its minter, unless it exists, its tree, journal, index and
/// service, which is itself an item.
pub fn init(
    data: &Path,
    from: &ibi_mint::MinterConfig<'_>,
    random: [u8; 16],
    by: &str,
) -> Result<(Archive, OpeningReport), ArchiveError> {
    init_with_service(data, from, &ExistingService::default(), random, by)
}

/// Like [`init`], for a service that already has labels.
pub fn init_with_service(
    data: &Path,
    from: &ibi_mint::MinterConfig<'_>,
    existing: &ExistingService,
    random: [u8; 16],
    by: &str,
) -> Result<(Archive, OpeningReport), ArchiveError> {
    if ArchiveSettings::read(data)?.is_some() {
        return Err(ArchiveError::AlreadyStarted { data: data.to_owned() });
    }
    // Of an init that was cut off, nothing has happened yet; of an Archive, much may have.
    match Journal::read(data, JournalPosition::START, &mut |_| Ok(())) {
        Ok(reading) if reading.end.next == 1 => {}
        Err(StorageError::NoJournal { .. }) => {}
        _ => return Err(ArchiveError::NoDescription { data: data.to_owned() }),
    }
    let clock = SystemClock::new();
    let wanted = ibi_mint::subsystem(from, random)?;
    // Validate the labels before anything is created that would have to be undone.
    let mut known = BTreeSet::new();
    for text in existing.labels.iter().chain(&existing.metadata) {
        let label = Label::parse(text)
            .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
        if !known.insert(LabelKey::of(&label).canonical) {
            let what =
                format!("{text} is named twice: the service and its metadata have labels of their own");
            return Err(ArchiveError::Value(what));
        }
    }
    match ibi_mint::read_state(data) {
        Ok(state) => {
            let found = state.subsystem;
            if (&found.rep, &found.ibip) != (&wanted.rep, &wanted.ibip) {
                let found: Vec<String> = [found.rep, found.ibip].into_iter().flatten().collect();
                let found = found.join(" and ");
                return Err(ArchiveError::OtherPrefix { data: data.to_owned(), found });
            }
        }
        Err(MintError::Store(error))
            if matches!(*error, MarkStorageError::NotStarted { .. } | MarkStorageError::Missing { .. }) =>
        {
            ibi_mint::init(data, from, random, &clock)?;
        }
        Err(refusal) => return Err(refusal.into()),
    }
    {
        let _lock = lock_data_folder(data)?;
        OcflTree::start(data, TREE_README)?;
        Journal::start(data)?;
        SqliteIndex::create_empty(&index_path(data))?;
        let minter = ibi_mint::open(data, clock, ibi_mint::ClockLimits::default())?;
        let needed =
            [&existing.labels, &existing.metadata].into_iter().filter(|given| given.is_empty()).count();
        let minted = match needed {
            0 => Vec::new(),
            needed => minter.mint(deposit::mint_request(data, &minter, needed)?)?.labels().collect(),
        };
        let mut labels = minted.into_iter().map(crate::item::ItemLabels::from);
        let state = ibi_mint::read_state(data)?;
        let mut named = |texts: &[String]| match texts {
            [] => Ok(labels.next().unwrap_or_default()),
            texts => deposit::parse_supplied_labels(&state, texts).map(|(labels, _)| labels),
        };
        let (service, service_metadata) = (named(&existing.labels)?, named(&existing.metadata)?);
        let registered_label = existing.labels.first().filter(|first| *first != service.primary()).cloned();
        // From here on it is an Archive. If the creation of the service is cut off, opening
        // completes it.
        ArchiveSettings { service, service_metadata, registered_label, ..ArchiveSettings::default() }
            .write(data)?;
    }
    open(data, by)
}

/// Opens an Archive for writing.
pub fn open(data: &Path, by: &str) -> Result<(Archive, OpeningReport), ArchiveError> {
    let settings = read_settings(data)?;
    migrate_index(data, by)?;
    let lock = lock_data_folder(data)?;
    let (archive, mut found) = recover_and_open(data, settings, lock)?;
    let mut archive = archive;
    // Optional: without the reserve everything works, but operations that free space may fail on a
    // full disk.
    let _ = ibi_store::reserve::allocate_reserve(data);
    let service = archive.holdings.settings.service.primary().to_owned();
    if archive.holdings.lookup(&service)?.is_empty() {
        deposit::deposit_service(&mut archive, by)?;
        found.finished += 1;
    }
    Ok((archive, found))
}

/// Opens an Archive for reading. Finishes what a crash left, unless another process holds the lock.
pub fn open_to_read(data: &Path) -> Result<(Holdings, OpeningReport), ArchiveError> {
    open_reader(data, false)
}

/// Like [`open_to_read`], for one command: if the journal is damaged and the index is lost, reads
/// what can be read.
pub fn open_to_read_past_damage(data: &Path) -> Result<(Holdings, OpeningReport), ArchiveError> {
    open_reader(data, true)
}

fn open_reader(data: &Path, past_damage: bool) -> Result<(Holdings, OpeningReport), ArchiveError> {
    let settings = read_settings(data)?;
    let reader = match open_holdings(data, settings.clone()) {
        Err(ArchiveError::Storage(StorageError::OtherIndex)) => match migrate_index(data, "ibi") {
            Err(error) if past_damage && is_damaged_journal(&error) => {
                return open_past_damage(data, settings, &error);
            }
            migrated => migrated.and_then(|()| open_holdings(data, settings.clone()))?,
        },
        Err(error @ ArchiveError::Storage(StorageError::NoIndex { .. })) if past_damage => {
            let damage =
                Journal::read(data, JournalPosition::START, &mut |_| Ok(())).err().map(ArchiveError::from);
            return match damage.filter(is_damaged_journal) {
                Some(damage) => open_past_damage(data, settings, &damage),
                None => Err(error),
            };
        }
        reader => reader?,
    };
    if is_recovered(&reader)? {
        return Ok((reader, OpeningReport::default()));
    }
    let lock = match DataFolderLock::try_lock(data) {
        // What can be read counts as it is until somebody can write here.
        Err(error) if error.is_unwritable() => None,
        lock => lock?,
    };
    match lock {
        Some(lock) => {
            drop(reader);
            match recover_and_open(data, settings.clone(), lock) {
                Err(error) if is_damaged_journal(&error) => {
                    let found =
                        OpeningReport { journal_damage: Some(error.to_string()), ..OpeningReport::default() };
                    Ok((open_holdings(data, settings)?, found))
                }
                Err(ArchiveError::Storage(error)) if error.is_unwritable() => {
                    Ok((open_holdings(data, settings)?, OpeningReport::default()))
                }
                settled => settled.map(|(archive, found)| (archive.holdings, found)),
            }
        }
        None => Ok((reader, OpeningReport::default())),
    }
}

/// Opens what the index has, without recovering anything: for a server that knows that the journal
/// is damaged.
#[cfg(feature = "web")]
pub(crate) fn open_as_indexed(data: &Path) -> Result<Holdings, ArchiveError> {
    open_holdings(data, read_settings(data)?)
}

/// Opens what can be read without an index and with a damaged journal.
fn open_past_damage(
    data: &Path,
    settings: ArchiveSettings,
    damage: &ArchiveError,
) -> Result<(Holdings, OpeningReport), ArchiveError> {
    let records = Box::new(crate::rebuild::index_past_damage(data)?);
    let found = OpeningReport { journal_damage: Some(damage.to_string()), ..OpeningReport::default() };
    Ok((open_holdings_with(data, settings, records)?, found))
}

/// Rebuilds an index of another schema: it holds nothing that is not stored elsewhere.
fn migrate_index(data: &Path, by: &str) -> Result<(), ArchiveError> {
    match SqliteIndex::open(&index_path(data)) {
        Err(StorageError::OtherIndex) => crate::rebuild::rebuild(data, by, &|_| ()).map(drop),
        _ => Ok(()),
    }
}

/// Whether there is nothing to recover: the index covers the whole journal, nothing is staged, and
/// the journal has the current format.
fn is_recovered(holdings: &Holdings) -> Result<bool, ArchiveError> {
    let journal = holdings.data.join("journal");
    let length = journal.metadata().map_err(StorageError::io("read", &journal))?.len();
    let is_followed = length == holdings.records.position()?.place;
    Ok(is_followed && holdings.content.is_staging_empty()? && !Journal::has_older_title_in(&holdings.data))
}

fn read_settings(data: &Path) -> Result<ArchiveSettings, ArchiveError> {
    ArchiveSettings::read(data)?.ok_or_else(|| ArchiveError::NoArchive { data: data.to_owned() })
}

fn open_holdings(data: &Path, settings: ArchiveSettings) -> Result<Holdings, ArchiveError> {
    open_holdings_with(data, settings, Box::new(SqliteIndex::open(&index_path(data))?))
}

/// Opens what an index holds, whichever keeps it: the folder has the tree.
pub fn open_holdings_with(
    data: &Path,
    settings: ArchiveSettings,
    records: Box<dyn IndexStorage>,
) -> Result<Holdings, ArchiveError> {
    Ok(Holdings {
        data: data.to_owned(),
        restored: crate::backup::is_restored(data),
        settings,
        records,
        content: Arc::new(OcflTree::open(data)?),
        behind_notes: LazyServiceState::default(),
    })
}

/// Replays the journal from the position of the index.
fn recover_and_open(
    data: &Path,
    settings: ArchiveSettings,
    lock: DataFolderLock,
) -> Result<(Archive, OpeningReport), ArchiveError> {
    // An index that was opened to be read would refuse changes long after there is room again.
    let records = Box::new(SqliteIndex::open_to_write(&index_path(data))?);
    let holdings = open_holdings_with(data, settings, records)?;
    let journal_damage = damage_at_opening(data, holdings.records.position()?)?;
    let clock = SystemClock::new();
    let swept = holdings.content.clear_staging()?;
    let mut tail = Vec::new();
    let mut void_before = Vec::new();
    let reading = Journal::read(data, holdings.records.position()?, &mut |told| {
        match told {
            JournalLine::Entry(entry) => tail.push(*entry),
            JournalLine::Void(changes) => void_before.extend(changes),
        }
        Ok(())
    })?;
    tail.retain(|entry| !void_before.contains(&entry.change));
    let mut journal = Journal::open(data, &reading)?;
    let void = void_unapplied_lines(&*holdings.content, &mut journal, &reading, &clock)?;
    let begun = tail.len();
    tail.retain(|entry| !void.contains(&entry.change));
    if journal.end() != holdings.records.position()? {
        let records = &*holdings.records;
        records.begin()?;
        index_entries(records, &*holdings.content, &tail)
            .and_then(|()| Ok(records.commit(journal.end())?))
            .inspect_err(|_| drop(records.roll_back()))?;
    }
    let found = OpeningReport {
        swept,
        finished: tail.len(),
        undone: begun - tail.len(),
        journal_damage: None,
        was_open_to_others: lock.was_open_to_others(),
    };
    let mut archive =
        Archive { holdings, journal, minter: None, clock, stopped: false, journal_damage, _lock: lock };
    if archive.journal.has_older_title() {
        if archive.journal.is_older_than_links() {
            archive.migrate_links()?;
        }
        archive.journal.write_current_title()?;
    }
    Ok((archive, found))
}

/// Indexes journal lines.
fn index_entries(
    records: &dyn IndexStorage,
    content: &dyn ContentStorage,
    lines: &[JournalEntry],
) -> Result<(), ArchiveError> {
    lines.iter().try_for_each(|entry| records.add_event(entry))?;
    let paths: BTreeSet<&str> = lines.iter().map(|entry| entry.path.as_str()).collect();
    for path in paths {
        let last = records.last_event(path)?;
        match (StoredObject::read(content, path)?, last) {
            (Some(object), Some(last)) => {
                records.put_item(&object.to_indexed_item(path, last.change, last.state, last.epoch)?)?;
            }
            (None, Some(JournalEntry { verb: Verb::Drop, .. })) => records.remove_item(path)?,
            _ => {}
        }
    }
    Ok(())
}
