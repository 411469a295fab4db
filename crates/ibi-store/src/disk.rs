//! Disk operations that survive a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::StorageError;

/// From this number of files and folders on, one sync of the whole filesystem is cheaper than one
/// of each.
const MIN_FILES_FOR_SYNCFS: usize = 24;

/// Filesystems where `syncfs` is known to make everything durable and to report errors. Elsewhere
/// each file is synced by itself: FUSE does not forward the call, and network filesystems differ.
const SYNCFS_FILESYSTEMS: [i64; 4] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0xF2F5_2010, // f2fs
];

/// A filesystem that we write to.
#[derive(Debug)]
pub(crate) struct StorageFilesystem {
    root: PathBuf,
    /// Open from the start, so that the next sync reports the error of an earlier write.
    folder: File,
    /// Whether `syncfs` is reliable here.
    can_sync_all: bool,
}

impl StorageFilesystem {
    pub(crate) fn at(root: &Path) -> Result<Self, StorageError> {
        let folder = File::open(root).map_err(StorageError::io("open", root))?;
        let kind =
            rustix::fs::fstatfs(&folder).map_err(|e| StorageError::io("inspect", root)(e.into()))?.f_type;
        let can_sync_all = SYNCFS_FILESYSTEMS.contains(&kind);
        Ok(Self { root: root.to_owned(), folder, can_sync_all })
    }

    /// Makes the contents of files and the names in folders durable.
    pub(crate) fn sync(&self, paths: &[PathBuf]) -> Result<(), StorageError> {
        if self.can_sync_all && paths.len() >= MIN_FILES_FOR_SYNCFS {
            let synced = rustix::fs::syncfs(&self.folder);
            return synced.map_err(|error| StorageError::not_durable(&self.root)(error.into()));
        }
        paths.iter().try_for_each(|path| sync(path))
    }

    /// Free inodes; `None` if the filesystem allocates them on demand.
    pub(crate) fn free_inodes(&self) -> Result<Option<u64>, StorageError> {
        let filesystem = self.filesystem()?;
        Ok(Some(filesystem.f_ffree).filter(|_| filesystem.f_files > 0))
    }

    fn filesystem(&self) -> Result<rustix::fs::StatVfs, StorageError> {
        rustix::fs::fstatvfs(&self.folder)
            .map_err(|error| StorageError::io("inspect", &self.root)(error.into()))
    }

    /// Free bytes, and how many of them must stay free: 5 % of the disk, at most 1 GiB. With that
    /// reserve an Archive can always be opened, repaired and removed from.
    pub(crate) fn free_and_reserved(&self) -> Result<(u64, u64), StorageError> {
        const MAX_RESERVED_BYTES: u64 = 1 << 30;
        let filesystem = self.filesystem()?;
        let free = filesystem.f_bavail.saturating_mul(filesystem.f_frsize);
        let reserve = (filesystem.f_blocks.saturating_mul(filesystem.f_frsize) / 20).min(MAX_RESERVED_BYTES);
        Ok((free, reserve))
    }
}

/// Checks that `bytes` more fit on the disk of a folder without cutting into the reserve. Fails
/// with [`StorageError::NoRoom`].
pub fn check_disk_space(folder: &Path, bytes: u64) -> Result<(), StorageError> {
    let (free, reserve) = StorageFilesystem::at(folder)?.free_and_reserved()?;
    match free.checked_sub(bytes).is_some_and(|left| left >= reserve) {
        true => Ok(()),
        false => Err(StorageError::NoRoom { folder: folder.to_owned(), bytes, free, reserve }),
    }
}

/// Bytes between two checks of the free space. Each concurrent writer may overshoot by this much.
const WRITER_CHECK_INTERVAL_BYTES: u64 = 256 << 10;

/// A writer that stops before it would cut into the disk's reserve.
#[derive(Debug)]
pub struct SpaceCheckedWriter<'a, W> {
    inner: W,
    folder: &'a Path,
    unchecked: u64,
    full: Option<StorageError>,
}

impl<'a, W: std::io::Write> SpaceCheckedWriter<'a, W> {
    /// Wraps a writer to the disk of a folder, which must have space.
    pub fn new(inner: W, folder: &'a Path) -> Result<Self, StorageError> {
        check_disk_space(folder, 0)?;
        Ok(Self { inner, folder, unchecked: 0, full: None })
    }

    /// The error, if the writer stopped for lack of space.
    pub fn take_space_error(&mut self) -> Option<StorageError> {
        self.full.take()
    }

    /// The wrapped writer.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: std::io::Write> std::io::Write for SpaceCheckedWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.unchecked += bytes.len() as u64;
        if self.unchecked >= WRITER_CHECK_INTERVAL_BYTES {
            self.unchecked = 0;
            if let Err(full) = check_disk_space(self.folder, bytes.len() as u64) {
                self.full = Some(full);
                return Err(std::io::ErrorKind::StorageFull.into());
            }
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Makes the content of a file, or the names in a folder, durable.
pub(crate) fn sync(path: &Path) -> Result<(), StorageError> {
    let opened = File::open(path).map_err(StorageError::io("open", path))?;
    opened.sync_all().map_err(StorageError::not_durable(path))
}

/// Writes a file that is not there yet.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let mut file = create_new(path)?;
    file.write_all(bytes).map_err(StorageError::io("write", path))
}

pub(crate) fn create_new(path: &Path) -> Result<File, StorageError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(StorageError::io("create", path))
}

/// Durably and atomically writes a small file, replacing an existing one. It is written in
/// `staging` first, so that no partial file is left at the target.
pub(crate) fn replace_in(path: &Path, staging: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let replacement = staging.join("replacement");
    match fs::remove_file(&replacement) {
        Err(error) if !is_not_found(&error) => return Err(StorageError::io("remove", &replacement)(error)),
        _ => write_new(&replacement, bytes)?,
    }
    sync(&replacement)?;
    rename(&replacement, path)?;
    path.parent().map_or(Ok(()), sync)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StorageError> {
    fs::rename(from, to).map_err(StorageError::io("move into place", to))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), StorageError> {
    fs::create_dir(path).map_err(StorageError::io("create", path))
}

/// Creates `path` and its missing ancestors. Adds each folder that got a new entry to `changed`.
pub(crate) fn make_folders(path: &Path, changed: &mut Vec<PathBuf>) -> Result<(), StorageError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            // Another thread or process created it meanwhile.
            Err(_) if folder.is_dir() => {}
            made => made.map_err(StorageError::io("create", folder))?,
        }
        changed.extend(folder.parent().map(Path::to_owned));
    }
    Ok(())
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), StorageError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StorageError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Reads a small file completely; `None` if it is missing.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(StorageError::io("read", path)(error)),
    }
}

pub(crate) fn is_not_found(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_cut_into_the_reserve_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let (free, reserve) = StorageFilesystem::at(folder.path()).unwrap().free_and_reserved().unwrap();
        check_disk_space(folder.path(), 0).unwrap();
        for bytes in [u64::MAX, free, free - reserve + (64 << 20)] {
            let error = check_disk_space(folder.path(), bytes).unwrap_err();
            assert!(matches!(error, StorageError::NoRoom { .. }), "{error}");
        }
    }
}
