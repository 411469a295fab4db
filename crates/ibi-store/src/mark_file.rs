//! The minter's state in one small text file: `docs/formats/minter-state.md`.
//!
//! It has three blocks: the subsystem, and two slots for marks that are written alternately, so
//! that a torn write never damages the previous mark.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::private_files::{chown_to_folder_owner, open_regular_file};
use crate::subsystem_block::{STATE_TITLE, parse_subsystem, subsystem_block};
use crate::text_block::{self, ChecksummedBlock, TEXT_BLOCK_BYTES};
use crate::{
    BootTime, MarkStorage, MarkStorageError, MintMark, PrefixHolder, PrefixLock, Subsystem, private_files,
};

const MARK_TITLE: &str = "mark";
/// A flag file beside the state: restored from a backup, and not yet recovered by an operator.
const RESTORED_FLAG_FILE: &str = "restored";

/// A mark in a file, locked by this process.
#[derive(Debug)]
pub struct FileMarkStorage {
    path: PathBuf,
    file: File,
    identity: MarkFileIdentity,
    mark: MintMark,
    claims: PrefixLock,
    stopped: bool,
    _home: MinterFolderLock,
}

/// A minter's folder, locked until this is dropped.
#[derive(Debug)]
struct MinterFolderLock {
    folder: File,
    _lock: File,
}

/// The state as found on disk.
#[derive(Debug)]
pub struct MarkFileState {
    /// The subsystem that mints.
    pub subsystem: Subsystem,
    /// The last mark, or why there is none.
    pub mark: Result<MintMark, MarkDamage>,
    /// Whether this is the file that the mark was written to, and not a copy of it.
    pub same_file: bool,
}

/// A state whose last mark is uncertain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkDamage {
    /// The readable marks, none to two. One: the other slot may have held a later mark. Two: their
    /// sequence numbers are not consecutive.
    pub readable: Vec<MintMark>,
}

impl FileMarkStorage {
    /// Creates a subsystem in a data folder. `first` returns the first mark; it is passed what this
    /// machine has recorded about the prefixes.
    pub fn start(
        folder: &Path,
        subsystem: &Subsystem,
        first: impl FnOnce(&PrefixLock) -> MintMark,
    ) -> Result<Self, MarkStorageError> {
        let home = folder.join("minter");
        let missing: Vec<PathBuf> =
            home.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let started =
            make_folder(&home, &missing).and_then(|()| Self::start_in(folder, &home, subsystem, first));
        started.inspect_err(|_| {
            // Leave nothing that looks like a minter that lost its state. A folder that is not
            // empty stays.
            if missing.contains(&home) {
                private_files::remove_lock_file(&home);
            }
            missing.iter().for_each(|folder| drop(fs::remove_dir(folder)));
        })
    }

    fn start_in(
        folder: &Path,
        home: &Path,
        subsystem: &Subsystem,
        first: impl FnOnce(&PrefixLock) -> MintMark,
    ) -> Result<Self, MarkStorageError> {
        // Also checked before the claims, so that the most relevant error is reported first.
        let path = home.join("state");
        if path.exists() {
            return Err(MarkStorageError::AlreadyStarted { folder: folder.to_owned() });
        }
        let lock = lock_folder(home)?;
        let claims = PrefixLock::acquire(subsystem, folder, false)?;
        if path.exists() {
            return Err(MarkStorageError::AlreadyStarted { folder: folder.to_owned() });
        }
        let mark = first(&claims);
        Self::create(path, lock, subsystem, mark, claims)
    }

    /// Opens and locks the subsystem of a data folder. The caller decides whether to trust the
    /// mark.
    pub fn open(folder: &Path) -> Result<(MarkFileState, LockedMarkFile), MarkStorageError> {
        Self::open_with(folder, false)
    }

    /// Opens it for an operator who confirms that this folder mints from now on.
    pub fn open_to_recover(folder: &Path) -> Result<(MarkFileState, LockedMarkFile), MarkStorageError> {
        Self::open_with(folder, true)
    }

    fn open_with(
        folder: &Path,
        take_over: bool,
    ) -> Result<(MarkFileState, LockedMarkFile), MarkStorageError> {
        let home = minter_folder(folder)?;
        let lock = lock_folder(&home)?;
        if !take_over && home.join(RESTORED_FLAG_FILE).exists() {
            return Err(MarkStorageError::FromBackup { folder: folder.to_owned() });
        }
        let state = read_state(folder)?;
        let claims = PrefixLock::acquire(&state.subsystem, folder, take_over)?;
        Ok((state, LockedMarkFile { path: home.join("state"), home: lock, claims }))
    }

    fn create(
        path: PathBuf,
        home: MinterFolderLock,
        subsystem: &Subsystem,
        mark: MintMark,
        mut claims: PrefixLock,
    ) -> Result<Self, MarkStorageError> {
        let fresh = path.with_extension("new");
        let failed = |doing| MarkStorageError::io(doing, &fresh);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&fresh)
            .map_err(failed("create"))?;
        let identity = MarkFileIdentity::of(&file);
        chown_to_folder_owner(&file, path.parent().unwrap_or(&path)).map_err(failed("give away"))?;
        let blocks = [subsystem_block(subsystem), mark_block(&mark, &identity), mark_block(&mark, &identity)];
        for (number, block) in blocks.into_iter().enumerate() {
            // Two prefixes and 32 ranges fit. If they did not, creation would fail.
            let block = block.ok_or_else(|| failed("write")(std::io::ErrorKind::InvalidData.into()))?;
            file.write_all_at(&block, (number * TEXT_BLOCK_BYTES) as u64).map_err(failed("write"))?;
        }
        file.sync_all().map_err(failed("sync"))?;
        fs::rename(&fresh, &path).map_err(failed("rename"))?;
        sync_names(&home.folder, &path)?;
        claims.record_mark(&mark).map_err(MarkStorageError::io("write the claim for", &path))?;
        // The state is current now, no longer a restored one.
        match fs::remove_file(path.with_file_name(RESTORED_FLAG_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(MarkStorageError::io("remove", &path.with_file_name(RESTORED_FLAG_FILE))(error));
            }
            _ => {}
        }
        Ok(Self { path, file, identity, mark, claims, stopped: false, _home: home })
    }

    /// Flags the minter of a data folder as restored from a backup. It issues nothing until an
    /// operator recovers it, because labels may have been issued since the backup.
    pub fn mark_restored(folder: &Path) -> Result<(), MarkStorageError> {
        let path = folder.join("minter").join(RESTORED_FLAG_FILE);
        let made = File::create(&path).and_then(|file| file.sync_all());
        made.map_err(MarkStorageError::io("create", &path))?;
        path.parent().map_or(Ok(()), sync_folder)
    }

    /// The current state of a data folder, even while a minter runs.
    pub fn read_current(folder: &Path) -> Result<MarkFileState, MarkStorageError> {
        minter_folder(folder)?;
        read_state(folder)
    }

    fn write(&mut self, mark: &MintMark) -> Result<(), MarkStorageError> {
        let failed = |doing| {
            let path = self.path.clone();
            move |error| MarkStorageError::NotDurable { doing, path, error }
        };
        // The minter limits the number of ranges, so the block cannot overflow. If it did, nothing
        // would be written.
        let block = mark_block(mark, &self.identity)
            .ok_or(std::io::ErrorKind::InvalidInput.into())
            .map_err(failed("write"))?;
        let slot_offset = TEXT_BLOCK_BYTES as u64 * (1 + mark.sequence % 2);
        self.file.write_all_at(&block, slot_offset).map_err(failed("write"))?;
        self.file.sync_data().map_err(failed("sync"))
    }
}

impl MarkStorage for FileMarkStorage {
    fn mark(&self) -> &MintMark {
        &self.mark
    }

    fn advance(&mut self, mark: MintMark) -> Result<(), MarkStorageError> {
        self.mark.check_successor(&mark, self.stopped)?;
        self.stopped = true;
        self.write(&mark)?;
        self.claims.record_mark(&mark).map_err(MarkStorageError::io("write the claim for", &self.path))?;
        self.stopped = false;
        self.mark = mark;
        Ok(())
    }
}

/// A state that is open and locked, but whose mark is not yet trusted.
#[derive(Debug)]
pub struct LockedMarkFile {
    path: PathBuf,
    home: MinterFolderLock,
    claims: PrefixLock,
}

impl LockedMarkFile {
    /// What this machine has recorded about the prefixes.
    pub fn claims(&self) -> &PrefixLock {
        &self.claims
    }

    /// Accepts the mark that was found.
    pub fn accept_mark(mut self, mark: MintMark) -> Result<FileMarkStorage, MarkStorageError> {
        let file = open_regular_file(&self.path, OpenOptions::new().read(true).write(true));
        let file = file.map_err(MarkStorageError::io("open", &self.path))?;
        // The process that created the file may have crashed, or failed, before its name was
        // durable.
        sync_names(&self.home.folder, &self.path)?;
        self.claims.record_mark(&mark).map_err(MarkStorageError::io("write the claim for", &self.path))?;
        let Self { path, home, claims } = self;
        let identity = MarkFileIdentity::of(&file);
        Ok(FileMarkStorage { path, file, identity, mark, claims, stopped: false, _home: home })
    }

    /// Rewrites the state with a mark that an operator confirmed.
    pub fn replace(self, subsystem: &Subsystem, mark: MintMark) -> Result<FileMarkStorage, MarkStorageError> {
        FileMarkStorage::create(self.path, self.home, subsystem, mark, self.claims)
    }
}

/// Locks a minter's folder with a file inside it. Other users cannot access the folder, so they
/// cannot hold that lock.
fn lock_folder(home: &Path) -> Result<MinterFolderLock, MarkStorageError> {
    let folder = File::open(home).map_err(MarkStorageError::io("open", home))?;
    private_files::restrict_to_owner(home).map_err(MarkStorageError::io("close to others", home))?;
    match private_files::try_lock_folder(home).map_err(MarkStorageError::io("lock", home))? {
        Some(lock) => Ok(MinterFolderLock { folder, _lock: lock }),
        None => {
            let folder = home.parent().unwrap_or(home);
            let holder = match read_state(folder) {
                Ok(state) => crate::prefix_lock::find_holder(&state.subsystem),
                Err(_) => PrefixHolder { process: None, folder: Some(folder.to_owned()) },
            };
            Err(MarkStorageError::Held { what: format!("the minter in {}", folder.display()), holder })
        }
    }
}

/// The minter's folder in a data folder.
fn minter_folder(folder: &Path) -> Result<PathBuf, MarkStorageError> {
    let home = folder.join("minter");
    match home.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(home),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(MarkStorageError::io("look into", &home)(error))
        }
        _ => Err(MarkStorageError::NotStarted { folder: folder.to_owned() }),
    }
}

/// Durably creates a folder and its `missing` ancestors, given innermost first.
fn make_folder(home: &Path, missing: &[PathBuf]) -> Result<(), MarkStorageError> {
    private_files::create_private_folders(home).map_err(MarkStorageError::io("create", home))?;
    let home = home.canonicalize().map_err(MarkStorageError::io("find", home))?;
    if let Some(existing) = home.ancestors().nth(missing.len()) {
        for folder in home.ancestors().take(missing.len()) {
            let made = File::open(folder).and_then(|folder| chown_to_folder_owner(&folder, existing));
            made.map_err(MarkStorageError::io("give away", folder))?;
        }
    }
    // All the way up: a folder left by an interrupted start may not be durable either.
    home.ancestors().skip(1).try_for_each(sync_folder)
}

/// Makes the directory entries of the state, of its folder and of the data folder durable.
fn sync_names(home: &File, path: &Path) -> Result<(), MarkStorageError> {
    home.sync_all().map_err(MarkStorageError::io("sync the folder of", path))?;
    let path = path.canonicalize().map_err(MarkStorageError::io("find", path))?;
    path.ancestors().skip(2).take(2).try_for_each(sync_folder)
}

/// Makes the directory entries of a folder durable. A folder that we may not open was not created
/// by us, nor were its entries.
fn sync_folder(folder: &Path) -> Result<(), MarkStorageError> {
    match File::open(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened.and_then(|folder| folder.sync_all()).map_err(MarkStorageError::io("sync", folder)),
    }
}

fn read_state(folder: &Path) -> Result<MarkFileState, MarkStorageError> {
    let path = folder.join("minter").join("state");
    let file =
        open_regular_file(&path, OpenOptions::new().read(true)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => MarkStorageError::Missing { path: path.clone() },
            _ => MarkStorageError::io("open", &path)(error),
        })?;
    let mut bytes = vec![0; 3 * TEXT_BLOCK_BYTES];
    let length = read_up_to(&file, &mut bytes).map_err(MarkStorageError::io("read", &path))?;
    bytes.truncate(length);
    let block = |number: usize| bytes.get(number * TEXT_BLOCK_BYTES..(number + 1) * TEXT_BLOCK_BYTES);
    let subsystem = block(0).and_then(parse_subsystem).ok_or_else(|| {
        if bytes.starts_with(b"ibi minter state, format ") && !bytes.starts_with(STATE_TITLE.as_bytes()) {
            MarkStorageError::NewerFormat { path: path.clone() }
        } else {
            MarkStorageError::Damaged { path: path.clone() }
        }
    })?;
    let marks = [1, 2].map(|number| block(number).and_then(parse_mark));
    let identity = MarkFileIdentity::of(&file);
    let same_file = marks.iter().flatten().all(|(_, written)| *written == identity);
    let mut readable: Vec<MintMark> = marks.into_iter().flatten().map(|(mark, _)| mark).collect();
    readable.sort_by_key(|mark| mark.sequence);
    // The first mark, and that of a recovery, fills both slots. After that they are consecutive.
    let mark = match &readable[..] {
        [older, newer] if newer.sequence == older.sequence + 1 || newer == older => Ok(newer.clone()),
        _ => Err(MarkDamage { readable }),
    };
    Ok(MarkFileState { subsystem, mark, same_file })
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

/// Distinguishes a file from a copy of it: device, inode number and creation time.
#[derive(Debug, PartialEq, Eq)]
struct MarkFileIdentity(String);

impl MarkFileIdentity {
    fn of(file: &File) -> Self {
        let Ok(metadata) = file.metadata() else { return Self("unknown".to_owned()) };
        let made = metadata.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
        Self(format!("{}.{}.{}", metadata.dev(), metadata.ino(), made.unwrap_or_default().as_nanos()))
    }
}

fn mark_block(mark: &MintMark, identity: &MarkFileIdentity) -> Option<Vec<u8>> {
    let mut block = ChecksummedBlock::new(MARK_TITLE);
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
    block.finish(TEXT_BLOCK_BYTES)
}

fn parse_mark(block: &[u8]) -> Option<(MintMark, MarkFileIdentity)> {
    let lines = text_block::parse_block(block, MARK_TITLE)?;
    let value = |name| text_block::single_value(&lines, name);
    let mark = MintMark {
        sequence: value("sequence")?.parse().ok()?,
        last: value("last")?.parse().ok()?,
        used: text_block::parse_ranges(&lines)?,
        wall: value("wall")?.parse().ok()?,
        boot: BootTime {
            machine: value("machine")?.to_owned(),
            id: value("boot")?.to_owned(),
            nanos: value("since-boot")?.parse().ok()?,
        },
    };
    Some((mark, MarkFileIdentity(value("file")?.to_owned())))
}
