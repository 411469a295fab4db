//! The shared memory of SQLite is a mapped file. Access to a page that has no blocks on the disk
//! kills the process (SIGBUS) instead of failing a call.
//!
//! SQLite touches one byte of each page when it creates the file. Where blocks are smaller than
//! pages (ext4 with 1 KiB), the rest of a page is still a hole. So a database is not opened while
//! the disk is almost full, and the blocks are preallocated once the file exists.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{FallocateFlags, StatVfs};
use rustix::io::Errno;

use crate::StorageError;

/// The unit in which SQLite maps the file, in bytes.
const SHM_REGION_BYTES: u64 = 32 << 10;

/// Free space required to open a shared database: a region, the first pages of the write-ahead log,
/// and what the filesystem itself needs.
const MIN_FREE_BYTES: u64 = 256 << 10;

/// A file whose blocks are, or are to be, preallocated.
struct SharedMemoryFile {
    device_and_inode: (u64, u64),
    file: File,
    has_blocks: bool,
}

/// They stay open: closing one would release SQLite's locks on it.
static OPEN_FILES: Mutex<Vec<SharedMemoryFile>> = Mutex::new(Vec::new());

/// The error of an opening that failed: on a full disk SQLite only says that its disk fails.
pub(crate) fn explain_failure(database: &Path, error: StorageError) -> StorageError {
    match error {
        // Also root cannot use all of what it may use: ext4 keeps some blocks for itself.
        StorageError::Index(_) => check_free_blocks(database, |found| found.f_bavail).err().unwrap_or(error),
        error => error,
    }
}

/// Checks that there is enough space to open a database. Call it before opening.
pub(crate) fn check_free_space(database: &Path) -> Result<(), StorageError> {
    let has_blocks = shm_path(database).metadata().is_ok_and(|found| {
        found.len() >= SHM_REGION_BYTES && found.blocks().saturating_mul(512) >= found.len()
    });
    if has_blocks {
        return Ok(());
    }
    check_free_blocks(database, |found| match rustix::process::geteuid().is_root() {
        true => found.f_bfree,
        false => found.f_bavail,
    })
}

fn check_free_blocks(database: &Path, usable: impl FnOnce(&StatVfs) -> u64) -> Result<(), StorageError> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let filesystem =
        rustix::fs::statvfs(folder).map_err(|error| StorageError::io("inspect", folder)(error.into()))?;
    let free = usable(&filesystem).saturating_mul(filesystem.f_frsize);
    if free >= MIN_FREE_BYTES {
        return Ok(());
    }
    let (folder, bytes, reserve) = (folder.to_owned(), MIN_FREE_BYTES, 0);
    Err(StorageError::NoRoom { folder, bytes, free, reserve })
}

/// Preallocates the blocks. Call it after the first read of the database.
pub(crate) fn preallocate(database: &Path) -> Result<(), StorageError> {
    let path = shm_path(database);
    let Ok(found) = path.metadata() else { return Ok(()) };
    // A thread that panicked here left the list usable.
    let mut known = OPEN_FILES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let device_and_inode = (found.dev(), found.ino());
    let at = match known.iter().position(|known| known.device_and_inode == device_and_inode) {
        Some(at) => at,
        None => {
            let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { return Ok(()) };
            known.push(SharedMemoryFile { device_and_inode, file, has_blocks: false });
            known.len() - 1
        }
    };
    let Some(known) = known.get_mut(at).filter(|known| !known.has_blocks) else { return Ok(()) };
    let length = found.len().max(SHM_REGION_BYTES);
    // Keep the size: SQLite derives from it what it has mapped.
    let set_aside = rustix::fs::fallocate(&known.file, FallocateFlags::KEEP_SIZE, 0, length);
    // On a full disk it is tried again at the next opening.
    known.has_blocks = !matches!(set_aside, Err(Errno::NOSPC | Errno::DQUOT));
    match set_aside {
        Err(Errno::NOSPC | Errno::DQUOT) => {
            let folder = database.parent().unwrap_or(database).to_owned();
            Err(StorageError::NoRoom { folder, bytes: length, free: 0, reserve: 0 })
        }
        // A filesystem without `fallocate` manages its blocks differently.
        _ => Ok(()),
    }
}

fn shm_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-shm");
    PathBuf::from(name)
}
