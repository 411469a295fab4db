//! A file of the tree that holds no descriptor while nobody reads it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::content::ReadAt;
use crate::private_files::open_regular_file;

/// A stored file. It is open until released, and is reopened by the next read. So a slow client of
/// a large file holds its connection, but no second descriptor.
pub(super) struct StoredFile {
    path: PathBuf,
    open: Mutex<Option<File>>,
}

impl StoredFile {
    /// Opens it. Does not follow a link, and does not block on a pipe.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = open_stored(&path)?;
        Ok(Self { path, open: Mutex::new(Some(file)) })
    }
}

impl ReadAt for StoredFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match open.take() {
            Some(file) => file,
            None => open_stored(&self.path)?,
        };
        open.insert(file).read_at(buffer, offset)
    }

    fn release(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn open_stored(path: &Path) -> io::Result<File> {
    open_regular_file(path, OpenOptions::new().read(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_file_holds_no_descriptor_and_reopens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        let file = StoredFile::open(path.clone()).unwrap();
        let mut buffer = [0; 4];
        assert_eq!((file.read_at(&mut buffer, 2).unwrap(), &buffer), (4, b"2345"));
        file.release();
        assert!(file.open.lock().unwrap().is_none());
        assert_eq!((file.read_at(&mut buffer, 6).unwrap(), &buffer), (4, b"6789"));
        file.release();
        std::fs::remove_file(&path).unwrap();
        assert!(file.read_at(&mut buffer, 0).is_err(), "a file purged meanwhile is not readable");
    }
}
