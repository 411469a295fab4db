//! Steps on a local disk that a power cut does not undo.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::KeepError;

/// From so many files and folders on, one sync of the whole filesystem is cheaper than one of each.
const MANY: usize = 24;

/// Where syncing a whole filesystem is known to make everything durable and to tell of errors. Elsewhere (FUSE hands no
/// such call on, network filesystems differ) each file is synced by itself.
const WHOLE: [i64; 4] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0xF2F5_2010, // f2fs
];

/// A filesystem that we write to.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// Open from the start, so that an error of an earlier write is told by the next sync.
    folder: File,
    whole: bool,
}

impl Disk {
    pub(crate) fn at(root: &Path) -> Result<Self, KeepError> {
        let folder = File::open(root).map_err(KeepError::io("open", root))?;
        let kind = rustix::fs::fstatfs(&folder).map_err(|e| KeepError::io("look at", root)(e.into()))?.f_type;
        let whole = WHOLE.contains(&kind);
        Ok(Self { root: root.to_owned(), folder, whole })
    }

    /// Makes the contents of files and the names in folders durable.
    pub(crate) fn sync(&self, paths: &[PathBuf]) -> Result<(), KeepError> {
        if self.whole && paths.len() >= MANY {
            let synced = rustix::fs::syncfs(&self.folder);
            return synced.map_err(|error| KeepError::not_durable(&self.root)(error.into()));
        }
        paths.iter().try_for_each(|path| sync(path))
    }

    /// Inodes that are free; nothing if the filesystem makes them as they are needed.
    pub(crate) fn free_inodes(&self) -> Result<Option<u64>, KeepError> {
        let filesystem = self.filesystem()?;
        Ok(Some(filesystem.f_ffree).filter(|_| filesystem.f_files > 0))
    }

    fn filesystem(&self) -> Result<rustix::fs::StatVfs, KeepError> {
        rustix::fs::fstatvfs(&self.folder).map_err(|error| KeepError::io("look at", &self.root)(error.into()))
    }

    /// Bytes that are free, and how many must stay so: 5 %, at most 1 GiB, so that an Archive can always be opened,
    /// set right and removed from.
    pub(crate) fn room(&self) -> Result<(u64, u64), KeepError> {
        const MOST: u64 = 1 << 30;
        let filesystem = self.filesystem()?;
        let free = filesystem.f_bavail.saturating_mul(filesystem.f_frsize);
        let reserve = (filesystem.f_blocks.saturating_mul(filesystem.f_frsize) / 20).min(MOST);
        Ok((free, reserve))
    }
}

/// Whether so many bytes more fit beside what is on the disk of a folder, without what is kept free ([`KeepError::Full`]).
pub fn fits(folder: &Path, bytes: u64) -> Result<(), KeepError> {
    let (free, reserve) = Disk::at(folder)?.room()?;
    match free.checked_sub(bytes).is_some_and(|left| left >= reserve) {
        true => Ok(()),
        false => Err(KeepError::NoRoom { folder: folder.to_owned(), bytes, free, reserve }),
    }
}

/// Makes the content of a file, or the names in a folder, durable.
pub(crate) fn sync(path: &Path) -> Result<(), KeepError> {
    let opened = File::open(path).map_err(KeepError::io("open", path))?;
    opened.sync_all().map_err(KeepError::not_durable(path))
}

/// Writes a file that is not there yet.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), KeepError> {
    let mut file = create_new(path)?;
    file.write_all(bytes).map_err(KeepError::io("write", path))
}

pub(crate) fn create_new(path: &Path) -> Result<File, KeepError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(KeepError::io("create", path))
}

/// Puts a small file in the place of another, or where none was, durably and at once. It is written in `staging` first, so
/// that nothing is left where it does not belong.
pub(crate) fn replace_in(path: &Path, staging: &Path, bytes: &[u8]) -> Result<(), KeepError> {
    let fresh = staging.join("replacement");
    match fs::remove_file(&fresh) {
        Err(error) if !absent(&error) => return Err(KeepError::io("remove", &fresh)(error)),
        _ => write_new(&fresh, bytes)?,
    }
    sync(&fresh)?;
    rename(&fresh, path)?;
    path.parent().map_or(Ok(()), sync)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), KeepError> {
    fs::rename(from, to).map_err(KeepError::io("put in its place", to))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), KeepError> {
    fs::create_dir(path).map_err(KeepError::io("create", path))
}

/// Makes the folders above and including `path` that are missing; adds each folder that got a new name to `changed`.
pub(crate) fn make_folders(path: &Path, changed: &mut Vec<PathBuf>) -> Result<(), KeepError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        make_folder(folder)?;
        changed.extend(folder.parent().map(Path::to_owned));
    }
    Ok(())
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), KeepError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(KeepError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The whole of a small file; nothing if it is not there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, KeepError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(KeepError::io("read", path)(error)),
    }
}

pub(crate) fn absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_eat_into_the_reserve_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let (free, reserve) = Disk::at(folder.path()).unwrap().room().unwrap();
        fits(folder.path(), 0).unwrap();
        for bytes in [u64::MAX, free, free - reserve + (64 << 20)] {
            let error = fits(folder.path(), bytes).unwrap_err();
            assert!(matches!(error, KeepError::NoRoom { .. }), "{error}");
        }
    }
}
