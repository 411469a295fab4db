//! Starting an Archive, and opening one: whatever a crash cut off is finished or undone, so that an opened Archive is what
//! a rebuilt one would be (clause 2.3).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ibi_id::Label;
use ibi_store::content::Swept;
use ibi_store::journal::{Entry, Journal, Position, Reading, Told, Verb};
use ibi_store::records::Records;
use ibi_store::{Content, DataLock, KeepError, SqliteRecords, StoreError, Tree};

use crate::archive::{Archive, Holdings, Settings};
use crate::holders::behind::BehindNotes;
use crate::item::Spelling;
use crate::mint::clock::{Clock, SystemClock};
use crate::object::{Object, short};
use crate::{ArchiveError, Refusal, deposit, mint};

/// How often the lock is asked for, and how long to wait in between: another command is soon done.
const TRIES: u32 = 100;
const BETWEEN: std::time::Duration = std::time::Duration::from_millis(100);

/// Tells a stranger how to read the tree.
const README: &str = include_str!("tree-readme.md");

/// What opening found to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What interrupted work had left.
    pub swept: Swept,
    /// Changes that were made, and had not been recorded yet.
    pub finished: usize,
    /// Changes that had been begun, and were not made.
    pub undone: usize,
}

/// The service of an Archive that goes on from an existing one: it keeps the labels that it is
/// registered with (clause 2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingService {
    /// Its labels, at most one a form; the first is what resolvers are told. Without any, new ones
    /// are minted.
    pub labels: Vec<String>,
    /// Those of its metadata, likewise.
    pub metadata: Vec<String>,
}

/// Starts an Archive in a data folder: its minter, unless that was started before, its tree, its journal, its index and its
/// service, itself an item.
pub fn init(
    data: &Path,
    from: &mint::From<'_>,
    random: [u8; 16],
    by: &str,
) -> Result<(Archive, Found), ArchiveError> {
    init_with_service(data, from, &ExistingService::default(), random, by)
}

/// The same, with a service that has labels already.
pub fn init_with_service(
    data: &Path,
    from: &mint::From<'_>,
    existing: &ExistingService,
    random: [u8; 16],
    by: &str,
) -> Result<(Archive, Found), ArchiveError> {
    if Settings::read(data)?.is_some() {
        return Err(ArchiveError::AlreadyStarted { data: data.to_owned() });
    }
    // Of an init that was cut off, nothing has happened yet; of an Archive, much may have.
    match Journal::read(data, Position::START, &mut |_| Ok(())) {
        Ok(reading) if reading.end.next == 1 => {}
        Err(KeepError::NoJournal { .. }) => {}
        _ => return Err(ArchiveError::NoDescription { data: data.to_owned() }),
    }
    let clock = SystemClock::new();
    let wanted = mint::subsystem(from, random)?;
    // Before anything is made: what is no label is told while there is nothing to take back.
    let mut known = BTreeSet::new();
    for text in existing.labels.iter().chain(&existing.metadata) {
        let label = Label::parse(text)
            .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
        if !known.insert(Spelling::of(&label).canonical) {
            let what =
                format!("{text} is named twice: the service and its metadata have labels of their own");
            return Err(ArchiveError::Value(what));
        }
    }
    match mint::look(data) {
        Ok(state) => {
            let found = state.subsystem;
            if (&found.rep, &found.ibip) != (&wanted.rep, &wanted.ibip) {
                let found: Vec<String> = [found.rep, found.ibip].into_iter().flatten().collect();
                let found = found.join(" and ");
                return Err(ArchiveError::OtherPrefix { data: data.to_owned(), found });
            }
        }
        Err(Refusal::Store(error))
            if matches!(*error, StoreError::NotStarted { .. } | StoreError::Missing { .. }) =>
        {
            mint::init(data, from, random, &clock)?;
        }
        Err(refusal) => return Err(refusal.into()),
    }
    {
        let _lock = lock(data)?;
        Tree::start(data, README)?;
        Journal::start(data)?;
        SqliteRecords::start_anew(&index(data))?;
        let minter = mint::open(data, clock, mint::Limits::default())?;
        let needed =
            [&existing.labels, &existing.metadata].into_iter().filter(|given| given.is_empty()).count();
        let minted = match needed {
            0 => Vec::new(),
            needed => minter.mint(deposit::request(data, &minter, needed)?)?.labels().collect(),
        };
        let mut labels = minted.into_iter().map(crate::item::Labels::from);
        let state = mint::look(data)?;
        let mut named = |texts: &[String]| match texts {
            [] => Ok(labels.next().unwrap_or_default()),
            texts => deposit::brought(&state, texts).map(|(labels, _)| labels),
        };
        let (service, service_metadata) = (named(&existing.labels)?, named(&existing.metadata)?);
        let registered_label = existing.labels.first().filter(|first| *first != service.primary()).cloned();
        // From here on it is an Archive: opening makes the service, if that is cut off.
        Settings { service, service_metadata, registered_label, platform_software: None }.write(data)?;
    }
    open(data, by)
}

/// Opens an Archive to change it.
pub fn open(data: &Path, by: &str) -> Result<(Archive, Found), ArchiveError> {
    let settings = settings(data)?;
    migrate(data, by)?;
    let lock = lock(data)?;
    let (archive, mut found) = settle(data, settings, lock)?;
    let mut archive = archive;
    let service = archive.holdings.settings.service.primary().to_owned();
    if archive.holdings.lookup(&service)?.is_empty() {
        deposit::deposit_service(&mut archive, by)?;
        found.finished += 1;
    }
    Ok((archive, found))
}

/// Opens an Archive to read it. What a crash left is finished first, unless another process has the Archive.
pub fn open_to_read(data: &Path) -> Result<(Holdings, Found), ArchiveError> {
    let settings = settings(data)?;
    let reader = match holdings(data, settings.clone()) {
        Err(ArchiveError::Keep(KeepError::OtherIndex)) => {
            migrate(data, "ibi")?;
            holdings(data, settings.clone())?
        }
        reader => reader?,
    };
    if is_settled(&reader)? {
        return Ok((reader, Found::default()));
    }
    match DataLock::take(data)? {
        Some(lock) => {
            drop(reader);
            let (archive, found) = settle(data, settings, lock)?;
            Ok((archive.holdings, found))
        }
        None => Ok((reader, Found::default())),
    }
}

/// An index of another form is made anew: nothing is kept there alone.
fn migrate(data: &Path, by: &str) -> Result<(), ArchiveError> {
    match SqliteRecords::open(&index(data)) {
        Err(KeepError::OtherIndex) => crate::rebuild::rebuild(data, by, &|_| ()).map(drop),
        _ => Ok(()),
    }
}

/// Whether nothing is left to do: the index follows the journal to its end, nothing is staged, and the journal is
/// of today's format.
fn is_settled(holdings: &Holdings) -> Result<bool, ArchiveError> {
    let journal = holdings.data.join("journal");
    let length = journal.metadata().map_err(KeepError::io("read", &journal))?.len();
    let is_followed = length == holdings.records.position()?.place;
    Ok(is_followed && holdings.content.is_swept()? && !Journal::is_older_in(&holdings.data))
}

fn settings(data: &Path) -> Result<Settings, ArchiveError> {
    Settings::read(data)?.ok_or_else(|| ArchiveError::NoArchive { data: data.to_owned() })
}

fn holdings(data: &Path, settings: Settings) -> Result<Holdings, ArchiveError> {
    Ok(Holdings {
        data: data.to_owned(),
        restored: crate::backup::is_restored(data),
        settings,
        records: Box::new(SqliteRecords::open(&index(data))?),
        content: Arc::new(Tree::open(data)?),
        behind_notes: BehindNotes::default(),
    })
}

pub(crate) fn index(data: &Path) -> PathBuf {
    data.join("index.sqlite")
}

pub(crate) fn lock(data: &Path) -> Result<DataLock, ArchiveError> {
    for _ in 0..TRIES {
        if let Some(lock) = DataLock::take(data)? {
            return Ok(lock);
        }
        std::thread::sleep(BETWEEN);
    }
    Err(ArchiveError::Held { data: data.to_owned() })
}

/// Follows the journal from where the index stands.
fn settle(data: &Path, settings: Settings, lock: DataLock) -> Result<(Archive, Found), ArchiveError> {
    let holdings = holdings(data, settings)?;
    let clock = SystemClock::new();
    let swept = holdings.content.sweep()?;
    let mut tail = Vec::new();
    let mut void_before = Vec::new();
    let reading = Journal::read(data, holdings.records.position()?, &mut |told| {
        match told {
            Told::Entry(entry) => tail.push(*entry),
            Told::Void(changes) => void_before.extend(changes),
        }
        Ok(())
    })?;
    tail.retain(|entry| !void_before.contains(&entry.change));
    let mut journal = Journal::open(data, &reading)?;
    let void = void_lines(&*holdings.content, &mut journal, &reading, &clock)?;
    let begun = tail.len();
    tail.retain(|entry| !void.contains(&entry.change));
    if journal.end() != holdings.records.position()? {
        let records = &*holdings.records;
        records.begin()?;
        follow(records, &*holdings.content, &tail)
            .and_then(|()| Ok(records.commit(journal.end())?))
            .inspect_err(|_| drop(records.roll_back()))?;
    }
    let found = Found { swept, finished: tail.len(), undone: begun - tail.len() };
    let mut archive = Archive { holdings, journal, minter: None, clock, stopped: false, _lock: lock };
    if archive.journal.is_older() {
        archive.migrate_links()?;
        archive.journal.renew_title()?;
    }
    Ok((archive, found))
}

/// Which lines of the last batch tell of changes that were not made, also appended to the journal.
pub(crate) fn void_lines(
    content: &dyn Content,
    journal: &mut Journal,
    reading: &Reading,
    clock: &dyn Clock,
) -> Result<BTreeSet<u64>, ArchiveError> {
    let (mut void, mut durable) = (BTreeSet::new(), BTreeSet::new());
    for entry in &reading.last_batch {
        let alone = entry.depends_on.is_some_and(|line| void.contains(&line));
        if alone || !is_made(content, entry, &mut durable)? {
            void.insert(entry.change);
        }
    }
    if !void.is_empty() {
        journal.void(&crate::archive::whole_second(clock).to_string(), &void)?;
    }
    Ok(void)
}

/// Whether the tree has what a line tells. Damage is no reason to say that it has not: the line would be struck out for good.
pub(crate) fn is_made(
    content: &dyn Content,
    entry: &Entry,
    durable: &mut BTreeSet<PathBuf>,
) -> Result<bool, ArchiveError> {
    let settled = content.settle(&entry.path, durable);
    if entry.verb == Verb::Drop {
        return Ok(!content.exists(&entry.path)?);
    }
    let is_it = |digest: &str| short(digest) == entry.inventory;
    let found = settled.and_then(|()| content.version(&entry.path, entry.version));
    match found {
        Ok(Some(digest)) if is_it(&digest) => Ok(true),
        // A damaged inventory of a version does not undo what the object's own tells.
        Ok(_) => Ok(content.head(&entry.path)?.is_some_and(|head| is_it(&head.digest))),
        Err(KeepError::DamagedInventory { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Records what lines of the journal tell.
fn follow(records: &dyn Records, content: &dyn Content, lines: &[Entry]) -> Result<(), ArchiveError> {
    lines.iter().try_for_each(|entry| records.happened(entry))?;
    let paths: BTreeSet<&str> = lines.iter().map(|entry| entry.path.as_str()).collect();
    for path in paths {
        let last = records.last_event(path)?;
        match (Object::read(content, path)?, last) {
            (Some(object), Some(last)) => {
                records.put(&object.full(path, last.change, last.state, last.epoch)?)?;
            }
            (None, Some(Entry { verb: Verb::Drop, .. })) => records.forget(path)?,
            _ => {}
        }
    }
    Ok(())
}
