//! Backup of an Archive in use, and restore.

mod disk_space;
mod object_copy;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ibi_store::journal::{Journal, JournalLine, JournalPosition, JournalScan};
use ibi_store::journal_salvage::{JournalLineSource, OLDER_JOURNAL_FILE, check_same_history, salvage};
use ibi_store::ocfl::ROOT_DECLARATION;
use ibi_store::private_files::{create_private_folders, restrict_to_owner};
use ibi_store::{FileMarkStorage, IndexStorage as _, OcflTree, ServiceStorage, SqliteIndex, StorageError};

use crate::ArchiveError;
use crate::archive::{
    ArchiveSettings, current_second, index_path, is_applied, lock_data_folder, remove_if_exists,
};
use crate::rebuild::{OwnDeposits, RebuildReport, rebuild_locked};
use ibi_mint::MintError;
use ibi_mint::clock::SystemClock;

pub use object_copy::TreeCopyReport;

/// Marks a folder as a complete backup. Holds the time of the backup and the length of the journal
/// when it began.
const BACKUP_MARKER_FILE: &str = "backup";
/// Marks a restored Archive that is not confirmed yet.
const RESTORED_MARKER_FILE: &str = "restored";
/// Prefix of the content of [`RESTORED_MARKER_FILE`] if no backup was restored, but journal lines
/// were lost in a salvage.
const SALVAGED_MARKER_PREFIX: &str = "salvaged";

/// Whether the Archive was restored from a backup and is not confirmed yet.
pub(crate) fn is_restored(data: &Path) -> bool {
    data.join(RESTORED_MARKER_FILE).exists()
}

/// Whether its tokens come from an unconfirmed backup: some may have been revoked since.
pub fn has_tokens_in_doubt(data: &Path) -> bool {
    match fs::read_to_string(data.join(RESTORED_MARKER_FILE)) {
        Ok(text) => !text.starts_with(SALVAGED_MARKER_PREFIX),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Puts an Archive in doubt: its transferable Originals answer Copy until the operator confirms.
pub(crate) fn mark_in_doubt(data: &Path, why: &str) -> Result<(), ArchiveError> {
    ibi_store::small_file::replace(&data.join(RESTORED_MARKER_FILE), format!("{why}\n").as_bytes())?;
    sync(data)
}

/// Clears the doubt, if a salvage caused it.
pub(crate) fn unmark_salvaged(data: &Path) -> Result<(), ArchiveError> {
    let marker = data.join(RESTORED_MARKER_FILE);
    let text = fs::read_to_string(&marker).map_err(ArchiveError::io("read", &marker))?;
    if text.starts_with(SALVAGED_MARKER_PREFIX) {
        remove_if_exists(&marker)?;
    }
    sync(data)
}

/// Copies an Archive into a new folder, or updates an earlier backup of the same Archive, copying
/// only what is new. The Archive may change meanwhile. Every byte is verified while it is copied.
pub fn backup(data: &Path, out: &Path, progress: &dyn Fn(u64)) -> Result<TreeCopyReport, ArchiveError> {
    let settings =
        ArchiveSettings::read(data)?.ok_or_else(|| ArchiveError::NoArchive { data: data.to_owned() })?;
    let there = out.exists() && fs::read_dir(out).map_err(ArchiveError::io("read", out))?.next().is_some();
    if there && ArchiveSettings::read(out)?.is_none_or(|other| other.service != settings.service) {
        let what =
            format!("{} is neither empty nor a backup of this Archive: name another folder", out.display());
        return Err(ArchiveError::Value(what));
    }
    check_backup_folder(data, out)?;
    disk_space::check_backup(data, out)?;
    let (start, journal_damage) = inspect_journal(data, out)?;
    for folder in ["tree", "minter"] {
        let folder = out.join(folder);
        create_private_folders(&folder).map_err(ArchiveError::io("create", &folder))?;
    }
    restrict_to_owner(out).map_err(ArchiveError::io("close to others", out))?;
    // Without its marker the folder is not a backup. The settings are copied first, so that an
    // interrupted backup can be resumed.
    remove_if_exists(&out.join(BACKUP_MARKER_FILE))?;
    copy_file(data, out, "archive")?;
    for name in [ROOT_DECLARATION.0, "README.md"] {
        copy_file(&data.join("tree"), &out.join("tree"), name)?;
    }
    let copied = TreeCopyReport { journal_damage, ..object_copy::copy_objects(data, out, progress)? };
    // Before the journal: if the journal records a grant, its note must be in the backup, so that
    // the transfer can continue.
    copy_handovers(data, out)?;
    // The journal is copied after the objects. A restore voids the lines that were added in
    // between.
    copy_file(data, out, "journal")?;
    copy_minter(data, out)?;
    copy_service(data, out)?;
    sync(out)?;
    let now = current_second(&SystemClock::new());
    let marker = out.join(BACKUP_MARKER_FILE);
    let text = format!("ibi backup 1\nmade {now}\njournal {start}\n");
    ibi_store::small_file::replace(&marker, text.as_bytes())?;
    sync(out)?;
    Ok(copied)
}

/// The number of the next line, and the damage of the journal, if any. A damaged journal is one
/// more reason to back up the rest. The journal of an earlier backup is kept then, because it may
/// have the damaged lines.
fn inspect_journal(data: &Path, out: &Path) -> Result<(u64, Option<String>), ArchiveError> {
    let followed = SqliteIndex::open(&index_path(data)).and_then(|index| index.position());
    let reading = Journal::read(data, JournalPosition::START, &mut |_| Ok(()));
    let reading = reading.and_then(|reading| {
        followed.map_or(Ok(()), |followed| reading.check_covers_index(data, followed)).map(|()| reading)
    });
    let damage = match reading {
        Ok(reading) => return Ok((reading.end.next, None)),
        Err(error @ StorageError::DamagedJournal { .. }) => error.to_string(),
        Err(error) => return Err(error.into()),
    };
    let (before, kept) = (out.join("journal"), out.join(OLDER_JOURNAL_FILE));
    if before.exists() && !kept.exists() {
        fs::hard_link(&before, &kept).map_err(ArchiveError::io("create", &kept))?;
    }
    let mut scan = JournalScan::new(data)?;
    while scan.next_part()?.is_some() {}
    Ok((scan.next_number(), Some(damage)))
}

/// Copies the minter's state and settings.
fn copy_minter(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let (from, to) = (from.join("minter"), to.join("minter"));
    copy_file(&from, &to, "state")?;
    if from.join("settings").exists() {
        return copy_file(&from, &to, "settings");
    }
    remove_if_exists(&to.join("settings"))
}

/// Copies the remaining state of the service, where present: counts, tokens, the key of link
/// decisions and the trusted Archives. Drafts are not backed up.
fn copy_service(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let state = "service/state.sqlite";
    if from.join(state).exists() {
        ServiceStorage::open(&from.join(state))?.backup_to(&to.join(state))?;
    }
    for file in
        ["service/tokens.json", "service/link-key", "service/trusted-archives", "service/trusted-givers"]
    {
        match fs::read(from.join(file)) {
            Ok(bytes) => ibi_store::small_file::replace(&to.join(file), &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ArchiveError::io("read", &from.join(file))(error)),
        }
    }
    Ok(())
}

/// Copies the notes of transfers that are under way (`docs/formats/holders.md`), and no others.
fn copy_handovers(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let name = "service/handovers";
    let locked = to.join("service");
    let (from, to) = (from.join(name), to.join(name));
    match fs::remove_dir_all(&to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(ArchiveError::io("remove", &to)(error));
        }
        _ => {}
    }
    let entries = match fs::read_dir(&from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ArchiveError::io("read", &from)(error)),
    };
    for entry in entries {
        let path = entry.map_err(ArchiveError::io("read", &from))?.path();
        let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|end| end == "json"))
        else {
            continue;
        };
        match fs::read(&path) {
            // It holds a token: readable by its owner only.
            Ok(bytes) => ibi_store::small_file::replace_below(&locked, &to.join(name), &bytes)?,
            // The transfer has just ended.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        }
    }
    Ok(())
}

/// Fails if one of the two folders contains the other.
pub(crate) fn check_separate_folders(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    let whole = |path: &Path| std::path::absolute(path).map_err(ArchiveError::io("find", path));
    let (from, to) = (data.canonicalize().map_err(ArchiveError::io("find", data))?, whole(out)?);
    let to = to.canonicalize().unwrap_or(to);
    if to.starts_with(&from) || from.starts_with(&to) {
        return Err(ArchiveError::OverlapsDataFolder { path: out.to_owned() });
    }
    Ok(())
}

/// Fails if a backup folder overlaps the data folder, or holds another history of the Archive.
fn check_backup_folder(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    check_separate_folders(data, out)?;
    let read = |folder: &Path| fs::read(folder.join("journal"));
    let (Ok(before), Ok(now)) = (read(out), read(data)) else { return Ok(()) };
    // The first line is the format, which may be newer now.
    let lines =
        |journal: &[u8]| journal.iter().position(|byte| *byte == b'\n').map(|end| journal[end..].to_vec());
    if lines(&now).zip(lines(&before)).is_some_and(|(now, before)| !now.starts_with(&before)) {
        // Unreadable lines do not make it another history.
        if is_damaged(data) && check_same_history(data, out).is_ok() {
            return Ok(());
        }
        let what = format!(
            "{} is a backup of a diverged history of this Archive, with items that this folder does not \
             have: choose another folder",
            out.display()
        );
        return Err(ArchiveError::Value(what));
    }
    Ok(())
}

fn is_damaged(data: &Path) -> bool {
    let read = Journal::read(data, JournalPosition::START, &mut |_| Ok(()));
    matches!(read, Err(StorageError::DamagedJournal { .. }))
}

/// The result of a restore.
#[derive(Debug)]
pub struct RestoreReport {
    /// What was copied.
    pub copied: TreeCopyReport,
    /// When the backup was made.
    pub made: String,
    /// The rebuilt index.
    pub rebuilt: RebuildReport,
    /// Journal lines that were damaged when the backup was made, with the source that each was
    /// recovered from.
    pub salvaged: BTreeMap<u64, JournalLineSource>,
}

/// Restores a backup into a folder that must not exist yet. The restored Archive cannot mint until
/// `ibi minter recover`. It answers Copy for what may have been handed over since, until the
/// operator confirms (clause 2.1).
pub fn restore(
    from: &Path,
    data: &Path,
    by: &str,
    progress: &dyn Fn(u64),
) -> Result<RestoreReport, ArchiveError> {
    let (made, start) = read_backup_marker(from)?;
    if data.exists() && fs::read_dir(data).map_err(ArchiveError::io("read", data))?.next().is_some() {
        return Err(ArchiveError::Value(format!(
            "{} is not empty: restore into a new folder",
            data.display()
        )));
    }
    disk_space::check_restoration(from, data)?;
    for folder in ["tree", "minter", "staging"] {
        let folder = data.join(folder);
        create_private_folders(&folder).map_err(ArchiveError::io("create", &folder))?;
    }
    restrict_to_owner(data).map_err(ArchiveError::io("close to others", data))?;
    // First of all: whatever happens from here on, it does not pass for the Archive that it is a
    // copy of.
    let restored = data.join(RESTORED_MARKER_FILE);
    ibi_store::small_file::replace(&restored, format!("from a backup made {made}\n").as_bytes())?;
    FileMarkStorage::mark_restored(data).map_err(MintError::from)?;
    sync(data)?;
    for name in [ROOT_DECLARATION.0, "README.md"] {
        copy_file(&from.join("tree"), &data.join("tree"), name)?;
    }
    let copied = object_copy::copy_objects(from, data, progress)?;
    copy_file(from, data, "journal")?;
    copy_minter(from, data)?;
    copy_handovers(from, data)?;
    copy_service(from, data)?;
    sync(data)?;
    copy_file(from, data, "archive")?;
    sync(data)?;
    let salvaged = match salvage(data, None, Some(from))? {
        Some(found) => {
            found.install(&data.join("journal.damaged"))?;
            found.lines
        }
        None => BTreeMap::new(),
    };
    void_late_lines(data, start)?;
    let own = if salvaged.is_empty() { None } else { Some(OwnDeposits::of(data)?) };
    let _lock = lock_data_folder(data)?;
    let rebuilt = rebuild_locked(data, by, JournalPosition::START, own.as_ref(), &|_| ())?;
    Ok(RestoreReport { copied, made, rebuilt, salvaged })
}

/// The operator confirms that no Original was handed over since the backup. The Archive answers for
/// its Originals again.
pub fn confirm_restored(data: &Path) -> Result<bool, ArchiveError> {
    if ArchiveSettings::read(data)?.is_none() {
        return Err(ArchiveError::NoArchive { data: data.to_owned() });
    }
    let _lock = lock_data_folder(data)?;
    if !is_restored(data) {
        return Ok(false);
    }
    remove_if_exists(&data.join(RESTORED_MARKER_FILE))?;
    sync(data)?;
    Ok(true)
}

/// Voids lines that were written during the backup for versions that it does not contain.
fn void_late_lines(data: &Path, start: u64) -> Result<(), ArchiveError> {
    let content = OcflTree::open(data)?;
    let mut late = Vec::new();
    let (mut void, mut durable) = (BTreeSet::new(), BTreeSet::new());
    let reading = Journal::read(data, JournalPosition::START, &mut |told| {
        match told {
            JournalLine::Entry(entry) if entry.change >= start => late.push(*entry),
            JournalLine::Entry(_) => {}
            JournalLine::Void(changes) => late.retain(|entry| !changes.contains(&entry.change)),
        }
        Ok(())
    })?;
    for entry in late {
        if !is_applied(&content, &entry, &mut durable)? {
            void.insert(entry.change);
        }
    }
    let mut journal = Journal::open(data, &reading)?;
    if !void.is_empty() {
        journal.void(&current_second(&SystemClock::new()).to_string(), &void)?;
    }
    Ok(())
}

fn read_backup_marker(from: &Path) -> Result<(String, u64), ArchiveError> {
    let path = from.join(BACKUP_MARKER_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!(
                "{} is not a whole backup: it has no file `{BACKUP_MARKER_FILE}`. Run `ibi backup` again",
                from.display()
            );
            return Err(ArchiveError::Value(what));
        }
        Err(error) => return Err(ArchiveError::io("read", &path)(error)),
    };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    if !text.starts_with("ibi backup 1\n") {
        return Err(StorageError::NewerFormat { path }.into());
    }
    let start = value("journal").and_then(|number| number.parse().ok());
    match (value("made"), start) {
        (Some(made), Some(start)) => Ok((made.to_owned(), start)),
        _ => Err(ArchiveError::Value(format!("{} is damaged: take another backup", path.display()))),
    }
}

fn copy_file(from: &Path, to: &Path, name: &str) -> Result<(), ArchiveError> {
    let (from, to) = (from.join(name), to.join(name));
    let bytes = fs::read(&from).map_err(ArchiveError::io("read", &from))?;
    let fresh: PathBuf = to.with_extension("new");
    fs::write(&fresh, bytes).map_err(ArchiveError::io("write", &fresh))?;
    fs::rename(&fresh, &to).map_err(ArchiveError::io("write", &to))
}

/// Makes everything in a folder durable, recursively.
pub(crate) fn sync(folder: &Path) -> Result<(), ArchiveError> {
    let opened = File::open(folder).map_err(ArchiveError::io("sync", folder))?;
    rustix::fs::syncfs(&opened).map_err(|error| ArchiveError::io("sync", folder)(error.into()))?;
    opened.sync_all().map_err(ArchiveError::io("sync", folder))
}
