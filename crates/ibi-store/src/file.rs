//! The minter's state in one small text file: `docs/formats/minter-state.md`.
//!
//! Three blocks: who mints, and two places for marks that are written in turns, so that a write that is cut off
//! never harms the mark before it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::claims::open_plain;
use crate::text::{self, BLOCK, Block};
use crate::{Boot, Claims, Edition, Holder, Mark, Marks, StoreError, Subsystem};

const SUBSYSTEM: &str = "ibi minter state, format 1";
const MARK: &str = "mark";
/// A file beside the state: brought back from a backup, and not taken over yet.
const RESTORED: &str = "restored";

/// A mark in a file, held by this process alone.
#[derive(Debug)]
pub struct FileMarks {
    path: PathBuf,
    file: File,
    identity: Identity,
    mark: Mark,
    claims: Claims,
    stopped: bool,
    /// Its lock is the folder's: held until we are gone.
    _folder: File,
}

/// What was found on disk.
#[derive(Debug)]
pub struct State {
    /// Who mints.
    pub subsystem: Subsystem,
    /// The last mark, or why there is none.
    pub mark: Result<Mark, Damage>,
    /// Whether the file is the one that the mark was written to, not a copy of it.
    pub same_file: bool,
}

/// A state whose last mark is in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The marks that can be read, none to two. One: the other place may have held a later mark. Two: they do not
    /// follow each other.
    pub readable: Vec<Mark>,
}

impl FileMarks {
    /// Starts a subsystem in a data folder. `first` makes the first mark, and is told what this machine remembers of
    /// the prefixes.
    pub fn start(
        folder: &Path,
        subsystem: &Subsystem,
        first: impl FnOnce(&Claims) -> Mark,
    ) -> Result<Self, StoreError> {
        let home = folder.join("minter");
        let missing: Vec<PathBuf> =
            home.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let started =
            make_folder(&home, &missing).and_then(|()| Self::start_in(folder, &home, subsystem, first));
        started.inspect_err(|_| {
            // Leave nothing that looks like a minter that lost its state. A folder that is not empty stays.
            missing.iter().for_each(|folder| drop(fs::remove_dir(folder)));
        })
    }

    fn start_in(
        folder: &Path,
        home: &Path,
        subsystem: &Subsystem,
        first: impl FnOnce(&Claims) -> Mark,
    ) -> Result<Self, StoreError> {
        // Checked before the claims too: what is said first should be what matters most.
        let path = home.join("state");
        if path.exists() {
            return Err(StoreError::AlreadyStarted { folder: folder.to_owned() });
        }
        let lock = lock_folder(home)?;
        let claims = Claims::take(subsystem, folder, false)?;
        if path.exists() {
            return Err(StoreError::AlreadyStarted { folder: folder.to_owned() });
        }
        let mark = first(&claims);
        Self::create(path, lock, subsystem, mark, claims)
    }

    /// Opens the subsystem of a data folder, locked. The caller judges what was found.
    pub fn open(folder: &Path) -> Result<(State, Opening), StoreError> {
        Self::open_with(folder, false)
    }

    /// Opens it for an operator who says that this folder is the one that mints from now on.
    pub fn open_to_recover(folder: &Path) -> Result<(State, Opening), StoreError> {
        Self::open_with(folder, true)
    }

    fn open_with(folder: &Path, take_over: bool) -> Result<(State, Opening), StoreError> {
        let home = home_of(folder)?;
        let lock = lock_folder(&home)?;
        if !take_over && home.join(RESTORED).exists() {
            return Err(StoreError::FromBackup { folder: folder.to_owned() });
        }
        let state = read_state(folder)?;
        let claims = Claims::take(&state.subsystem, folder, take_over)?;
        Ok((state, Opening { path: home.join("state"), folder: lock, claims }))
    }

    fn create(
        path: PathBuf,
        folder: File,
        subsystem: &Subsystem,
        mark: Mark,
        mut claims: Claims,
    ) -> Result<Self, StoreError> {
        let fresh = path.with_extension("new");
        let failed = |doing| StoreError::io(doing, &fresh);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&fresh)
            .map_err(failed("create"))?;
        let identity = Identity::of(&file);
        give_to_owner(&file, path.parent().unwrap_or(&path)).map_err(failed("give away"))?;
        let blocks = [subsystem_block(subsystem), mark_block(&mark, &identity), mark_block(&mark, &identity)];
        for (number, block) in blocks.into_iter().enumerate() {
            // Two prefixes and 32 runs fit; if they did not, nothing would be started.
            let block = block.ok_or_else(|| failed("write")(std::io::ErrorKind::InvalidData.into()))?;
            file.write_all_at(&block, (number * BLOCK) as u64).map_err(failed("write"))?;
        }
        file.sync_all().map_err(failed("sync"))?;
        fs::rename(&fresh, &path).map_err(failed("rename"))?;
        sync_names(&folder, &path)?;
        claims.remember(&mark).map_err(StoreError::io("write the claim for", &path))?;
        // The state is of now: it was brought back no longer.
        match fs::remove_file(path.with_file_name(RESTORED)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &path.with_file_name(RESTORED))(error));
            }
            _ => {}
        }
        Ok(Self { path, file, identity, mark, claims, stopped: false, _folder: folder })
    }

    /// Marks the minter of a data folder as brought back from a backup: it gives out nothing until an operator takes it over,
    /// for labels may have been given out since.
    pub fn restored(folder: &Path) -> Result<(), StoreError> {
        let path = folder.join("minter").join(RESTORED);
        let made = File::create(&path).and_then(|file| file.sync_all());
        made.map_err(StoreError::io("create", &path))?;
        path.parent().map_or(Ok(()), sync_folder)
    }

    /// The state of a data folder as it is now, also while a minter runs.
    pub fn look(folder: &Path) -> Result<State, StoreError> {
        home_of(folder)?;
        read_state(folder)
    }

    fn write(&mut self, mark: &Mark) -> Result<(), StoreError> {
        let failed = |doing| {
            let path = self.path.clone();
            move |error| StoreError::NotDurable { doing, path, error }
        };
        // Runs are few by the minter's own rule: the block cannot overflow, and if it did nothing would be written.
        let block = mark_block(mark, &self.identity)
            .ok_or(std::io::ErrorKind::InvalidInput.into())
            .map_err(failed("write"))?;
        let place = BLOCK as u64 * (1 + mark.sequence % 2);
        self.file.write_all_at(&block, place).map_err(failed("write"))?;
        self.file.sync_data().map_err(failed("sync"))
    }
}

impl Marks for FileMarks {
    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn advance(&mut self, mark: Mark) -> Result<(), StoreError> {
        self.mark.may_be_followed_by(&mark, self.stopped)?;
        self.stopped = true;
        self.write(&mark)?;
        self.claims.remember(&mark).map_err(StoreError::io("write the claim for", &self.path))?;
        self.stopped = false;
        self.mark = mark;
        Ok(())
    }
}

/// A state that was opened and locked, before its mark is trusted.
#[derive(Debug)]
pub struct Opening {
    path: PathBuf,
    folder: File,
    claims: Claims,
}

impl Opening {
    /// What this machine remembers of the prefixes.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Trusts the mark that was found.
    pub fn trust(mut self, mark: Mark) -> Result<FileMarks, StoreError> {
        let file = open_plain(&self.path, OpenOptions::new().read(true).write(true));
        let file = file.map_err(StoreError::io("open", &self.path))?;
        // Whoever made the file may have died, or been told of an error, before its name was durable.
        sync_names(&self.folder, &self.path)?;
        self.claims.remember(&mark).map_err(StoreError::io("write the claim for", &self.path))?;
        let Self { path, folder, claims } = self;
        let identity = Identity::of(&file);
        Ok(FileMarks { path, file, identity, mark, claims, stopped: false, _folder: folder })
    }

    /// Writes the state anew with a mark that an operator stands for.
    pub fn replace(self, subsystem: &Subsystem, mark: Mark) -> Result<FileMarks, StoreError> {
        FileMarks::create(self.path, self.folder, subsystem, mark, self.claims)
    }
}

/// The id of the state in a data folder, if there is one that can be read.
pub(crate) fn state_id(folder: &Path) -> Option<String> {
    let file = open_plain(&folder.join("minter/state"), OpenOptions::new().read(true)).ok()?;
    let mut block = [0; BLOCK];
    file.read_exact_at(&mut block, 0).ok()?;
    parse_subsystem(&block).map(|subsystem| subsystem.id)
}

fn lock_folder(home: &Path) -> Result<File, StoreError> {
    let folder = File::open(home).map_err(StoreError::io("open", home))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", home)(error)),
        Err(TryLockError::WouldBlock) => {
            let folder = home.parent().unwrap_or(home);
            let holder = match read_state(folder) {
                Ok(state) => crate::claims::holder(&state.subsystem),
                Err(_) => Holder { process: None, folder: Some(folder.to_owned()) },
            };
            Err(StoreError::Held { what: format!("the minter in {}", folder.display()), holder })
        }
    }
}

/// Where the minter of a data folder lives.
fn home_of(folder: &Path) -> Result<PathBuf, StoreError> {
    let home = folder.join("minter");
    match home.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(home),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("look into", &home)(error))
        }
        _ => Err(StoreError::NotStarted { folder: folder.to_owned() }),
    }
}

/// Makes a folder and the `missing` ones above it, innermost first, durably.
fn make_folder(home: &Path, missing: &[PathBuf]) -> Result<(), StoreError> {
    fs::create_dir_all(home).map_err(StoreError::io("create", home))?;
    let home = home.canonicalize().map_err(StoreError::io("find", home))?;
    if let Some(there) = home.ancestors().nth(missing.len()) {
        for folder in home.ancestors().take(missing.len()) {
            let made = File::open(folder).and_then(|folder| give_to_owner(&folder, there));
            made.map_err(StoreError::io("give away", folder))?;
        }
    }
    // All the way up: one that was made by a start that was cut off may not be durable either.
    home.ancestors().skip(1).try_for_each(sync_folder)
}

/// Makes the names of the state, of its folder and of the data folder durable.
fn sync_names(home: &File, path: &Path) -> Result<(), StoreError> {
    home.sync_all().map_err(StoreError::io("sync the folder of", path))?;
    let path = path.canonicalize().map_err(StoreError::io("find", path))?;
    path.ancestors().skip(2).take(2).try_for_each(sync_folder)
}

/// What root makes in somebody's folder is that somebody's: they could not go on with it otherwise.
pub(crate) fn give_to_owner(file: &File, folder: &Path) -> std::io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (owner, ours) = (folder.metadata()?, file.metadata()?);
    if (owner.uid(), owner.gid()) == (ours.uid(), ours.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Makes the names in a folder durable. One that we may not look into was not made by us, nor were its names.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    match File::open(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened.and_then(|folder| folder.sync_all()).map_err(StoreError::io("sync", folder)),
    }
}

fn read_state(folder: &Path) -> Result<State, StoreError> {
    let path = folder.join("minter").join("state");
    let file = open_plain(&path, OpenOptions::new().read(true)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => StoreError::Missing { path: path.clone() },
        _ => StoreError::io("open", &path)(error),
    })?;
    let mut bytes = vec![0; 3 * BLOCK];
    let length = read_up_to(&file, &mut bytes).map_err(StoreError::io("read", &path))?;
    bytes.truncate(length);
    let block = |number: usize| bytes.get(number * BLOCK..(number + 1) * BLOCK);
    let subsystem = block(0).and_then(parse_subsystem).ok_or_else(|| {
        if bytes.starts_with(b"ibi minter state, format ") && !bytes.starts_with(SUBSYSTEM.as_bytes()) {
            StoreError::NewerFormat { path: path.clone() }
        } else {
            StoreError::Damaged { path: path.clone() }
        }
    })?;
    let marks = [1, 2].map(|number| block(number).and_then(parse_mark));
    let identity = Identity::of(&file);
    let same_file = marks.iter().flatten().all(|(_, written)| *written == identity);
    let mut readable: Vec<Mark> = marks.into_iter().flatten().map(|(mark, _)| mark).collect();
    readable.sort_by_key(|mark| mark.sequence);
    // The first mark, and that of a recovery, fills both places; after it they follow each other.
    let mark = match &readable[..] {
        [older, newer] if newer.sequence == older.sequence + 1 || newer == older => Ok(newer.clone()),
        _ => Err(Damage { readable }),
    };
    Ok(State { subsystem, mark, same_file })
}

fn read_up_to(file: &File, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// What tells a file from a copy of it: device, number, and when it was made.
#[derive(Debug, PartialEq, Eq)]
struct Identity(String);

impl Identity {
    fn of(file: &File) -> Self {
        let Ok(metadata) = file.metadata() else { return Self("unknown".to_owned()) };
        let made = metadata.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
        Self(format!("{}.{}.{}", metadata.dev(), metadata.ino(), made.unwrap_or_default().as_nanos()))
    }
}

fn subsystem_block(subsystem: &Subsystem) -> Option<Vec<u8>> {
    let mut block = Block::new(SUBSYSTEM);
    block.line("id", &subsystem.id);
    for (name, prefix) in [("rep", &subsystem.rep), ("ibip", &subsystem.ibip)] {
        if let Some(prefix) = prefix {
            block.line(name, prefix);
        }
    }
    block.line("edition", subsystem.edition);
    block.finish(BLOCK)
}

fn parse_subsystem(block: &[u8]) -> Option<Subsystem> {
    let lines = text::read(block, SUBSYSTEM)?;
    let value = |name| text::value(&lines, name).map(str::to_owned);
    let edition: Edition = text::value(&lines, "edition")?.parse().ok()?;
    Some(Subsystem { id: value("id")?, rep: value("rep"), ibip: value("ibip"), edition })
}

fn mark_block(mark: &Mark, identity: &Identity) -> Option<Vec<u8>> {
    let mut block = Block::new(MARK);
    block.line("sequence", mark.sequence);
    block.line("last", mark.last.unix());
    for run in &mark.used {
        block.line("used", run);
    }
    block.line("wall", mark.wall.unix());
    block.line("machine", &mark.boot.machine);
    block.line("boot", &mark.boot.id);
    block.line("since-boot", mark.boot.nanos);
    block.line("file", &identity.0);
    block.finish(BLOCK)
}

fn parse_mark(block: &[u8]) -> Option<(Mark, Identity)> {
    let lines = text::read(block, MARK)?;
    let value = |name| text::value(&lines, name);
    let mark = Mark {
        sequence: value("sequence")?.parse().ok()?,
        last: value("last")?.parse().ok()?,
        used: text::runs(&lines)?,
        wall: value("wall")?.parse().ok()?,
        boot: Boot {
            machine: value("machine")?.to_owned(),
            id: value("boot")?.to_owned(),
            nanos: value("since-boot")?.parse().ok()?,
        },
    };
    Some((mark, Identity(value("file")?.to_owned())))
}
