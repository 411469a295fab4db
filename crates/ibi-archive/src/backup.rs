//! Backups, while the Archive is in use, and bringing one back.

mod copying;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ibi_store::journal::{Journal, Position, Told};
use ibi_store::ocfl::ROOT_DECLARATION;
use ibi_store::{FileMarks, KeepError, ServiceState, Tree};

use crate::archive::{Settings, is_made, lock, whole_second};
use crate::mint::clock::SystemClock;
use crate::rebuild::{Rebuilt, rebuild};
use crate::{ArchiveError, Refusal};

pub use copying::Copied;

/// The file that makes a folder a backup: it tells when, and how long the journal was when it began.
const MARKER: &str = "backup";
/// The file that says that an Archive was brought back, and not confirmed yet.
const RESTORED: &str = "restored";

/// Whether an Archive was brought back from a backup, and not confirmed yet.
pub(crate) fn is_restored(data: &Path) -> bool {
    data.join(RESTORED).exists()
}

/// Copies an Archive into a folder, which is new or an earlier backup of the same Archive: then only what is new is
/// copied. Others may change the Archive meanwhile. Every byte is checked on its way.
pub fn backup(data: &Path, out: &Path, progress: &dyn Fn(u64)) -> Result<Copied, ArchiveError> {
    let settings = Settings::read(data)?.ok_or_else(|| ArchiveError::NoArchive { data: data.to_owned() })?;
    let there = out.exists() && fs::read_dir(out).map_err(ArchiveError::io("read", out))?.next().is_some();
    if there && Settings::read(out)?.is_none_or(|other| other.service != settings.service) {
        let what =
            format!("{} is neither empty nor a backup of this Archive: name another folder", out.display());
        return Err(ArchiveError::Value(what));
    }
    check_place(data, out)?;
    let start = Journal::read(data, Position::START, &mut |_| Ok(()))?.end.next;
    for folder in ["tree", "minter"] {
        let folder = out.join(folder);
        fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
    }
    // Until it is whole it is none; the description comes first, so that an interrupted one can be gone on with.
    remove_if_there(&out.join(MARKER))?;
    copy_file(data, out, "archive")?;
    for name in [ROOT_DECLARATION.0, "README.md"] {
        copy_file(&data.join("tree"), &out.join("tree"), name)?;
    }
    let copied = copying::objects(data, out, progress)?;
    // Before the journal: a grant that it tells of has its note, so that the hand-over goes on by itself.
    copy_handovers(data, out)?;
    // The journal comes after what it tells of; restoring strikes out what came in between.
    copy_file(data, out, "journal")?;
    copy_minter(data, out)?;
    copy_service(data, out)?;
    sync(out)?;
    let now = whole_second(&SystemClock::new());
    let marker = out.join(MARKER);
    let text = format!("ibi backup 1\nmade {now}\njournal {start}\n");
    fs::write(&marker, text).map_err(ArchiveError::io("write", &marker))?;
    sync(out)?;
    Ok(copied)
}

/// Copies the minter's state, and what the operator set of it.
fn copy_minter(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let (from, to) = (from.join("minter"), to.join("minter"));
    copy_file(&from, &to, "state")?;
    if from.join("settings").exists() {
        return copy_file(&from, &to, "settings");
    }
    remove_if_there(&to.join("settings"))
}

/// Copies what else the service keeps for itself, as far as there is any: counts, tokens, the key of
/// decisions about links and the Archives that are trusted. Drafts are not in a backup.
fn copy_service(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let state = "service/state.sqlite";
    if from.join(state).exists() {
        ServiceState::open(&from.join(state))?.copy(&to.join(state))?;
    }
    for file in ["service/tokens.json", "service/link-key", "service/trusted-archives"] {
        match fs::read(from.join(file)) {
            Ok(bytes) => ibi_store::service::replace(&to.join(file), &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ArchiveError::io("read", &from.join(file))(error)),
        }
    }
    Ok(())
}

/// Copies the notes of hand-overs that are not over (`docs/formats/holders.md`), and no others.
fn copy_handovers(from: &Path, to: &Path) -> Result<(), ArchiveError> {
    let name = "service/handovers";
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
            // A token is in it: readable by its owner only.
            Ok(bytes) => ibi_store::service::replace(&to.join(name), &bytes)?,
            // It was over just now.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        }
    }
    Ok(())
}

/// A folder that is written from a data folder lies neither in it nor around it.
pub(crate) fn check_apart(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    let whole = |path: &Path| std::path::absolute(path).map_err(ArchiveError::io("find", path));
    let (from, to) = (data.canonicalize().map_err(ArchiveError::io("find", data))?, whole(out)?);
    let to = to.canonicalize().unwrap_or(to);
    if to.starts_with(&from) || from.starts_with(&to) {
        return Err(ArchiveError::Itself { path: out.to_owned() });
    }
    Ok(())
}

/// A backup lies outside of what it is a backup of, and goes on from where it was.
fn check_place(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    check_apart(data, out)?;
    let read = |folder: &Path| fs::read(folder.join("journal"));
    let (Ok(before), Ok(now)) = (read(out), read(data)) else { return Ok(()) };
    // The first line tells the format, which may be newer by now.
    let lines =
        |journal: &[u8]| journal.iter().position(|byte| *byte == b'\n').map(|end| journal[end..].to_vec());
    if lines(&now).zip(lines(&before)).is_some_and(|(now, before)| !now.starts_with(&before)) {
        let what = format!(
            "{} is a backup of another course of this Archive, with items that this folder does not know of: name another \
             folder",
            out.display()
        );
        return Err(ArchiveError::Value(what));
    }
    Ok(())
}

/// What a restoration did.
#[derive(Debug)]
pub struct Restoration {
    /// What was copied.
    pub copied: Copied,
    /// When the backup was made.
    pub made: String,
    /// What is there now.
    pub rebuilt: Rebuilt,
}

/// Brings a backup back, into a folder that is not there yet. It comes up unable to mint until `ibi minter recover`, and
/// answers Copy for what may have been handed over since, until that is confirmed (clause 2.1).
pub fn restore(
    from: &Path,
    data: &Path,
    by: &str,
    progress: &dyn Fn(u64),
) -> Result<Restoration, ArchiveError> {
    let (made, start) = marker(from)?;
    if data.exists() && fs::read_dir(data).map_err(ArchiveError::io("read", data))?.next().is_some() {
        return Err(ArchiveError::Value(format!(
            "{} is not empty: restore into a new folder",
            data.display()
        )));
    }
    for folder in ["tree", "minter", "staging"] {
        let folder = data.join(folder);
        fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
    }
    // First of all: whatever happens from here on, it does not pass for the Archive that it is a copy of.
    let restored = data.join(RESTORED);
    fs::write(&restored, format!("from a backup made {made}\n"))
        .map_err(ArchiveError::io("write", &restored))?;
    FileMarks::restored(data).map_err(Refusal::from)?;
    sync(data)?;
    for name in [ROOT_DECLARATION.0, "README.md"] {
        copy_file(&from.join("tree"), &data.join("tree"), name)?;
    }
    let copied = copying::objects(from, data, progress)?;
    copy_file(from, data, "journal")?;
    copy_minter(from, data)?;
    copy_handovers(from, data)?;
    copy_service(from, data)?;
    sync(data)?;
    copy_file(from, data, "archive")?;
    sync(data)?;
    strike_out(data, start)?;
    let rebuilt = rebuild(data, by, &|_| ())?;
    Ok(Restoration { copied, made, rebuilt })
}

/// The operator says that no original was handed over since the backup: the Archive answers for them again.
pub fn confirm(data: &Path) -> Result<bool, ArchiveError> {
    if Settings::read(data)?.is_none() {
        return Err(ArchiveError::NoArchive { data: data.to_owned() });
    }
    let _lock = lock(data)?;
    if !is_restored(data) {
        return Ok(false);
    }
    remove_if_there(&data.join(RESTORED))?;
    sync(data)?;
    Ok(true)
}

/// Lines that were written while the backup was made, of versions that it does not have, are void.
fn strike_out(data: &Path, start: u64) -> Result<(), ArchiveError> {
    let content = Tree::open(data)?;
    let mut late = Vec::new();
    let (mut void, mut durable) = (BTreeSet::new(), BTreeSet::new());
    let reading = Journal::read(data, Position::START, &mut |told| {
        match told {
            Told::Entry(entry) if entry.change >= start => late.push(*entry),
            Told::Entry(_) => {}
            Told::Void(changes) => late.retain(|entry| !changes.contains(&entry.change)),
        }
        Ok(())
    })?;
    for entry in late {
        if !is_made(&content, &entry, &mut durable)? {
            void.insert(entry.change);
        }
    }
    let mut journal = Journal::open(data, &reading)?;
    if !void.is_empty() {
        journal.void(&whole_second(&SystemClock::new()).to_string(), &void)?;
    }
    Ok(())
}

fn marker(from: &Path) -> Result<(String, u64), ArchiveError> {
    let path = from.join(MARKER);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!(
                "{} is not a whole backup: it has no file `{MARKER}`. Run `ibi backup` again",
                from.display()
            );
            return Err(ArchiveError::Value(what));
        }
        Err(error) => return Err(ArchiveError::io("read", &path)(error)),
    };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    if !text.starts_with("ibi backup 1\n") {
        return Err(KeepError::NewerFormat { path }.into());
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

fn remove_if_there(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ArchiveError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Makes all that was written in a folder durable, with what is below it.
fn sync(folder: &Path) -> Result<(), ArchiveError> {
    let opened = File::open(folder).map_err(ArchiveError::io("sync", folder))?;
    rustix::fs::syncfs(&opened).map_err(|error| ArchiveError::io("sync", folder)(error.into()))?;
    opened.sync_all().map_err(ArchiveError::io("sync", folder))
}
