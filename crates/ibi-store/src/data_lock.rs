//! The lock that lets only one process at a time change an Archive.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::{StorageError, private_files};

/// The right to change the Archive in a data folder, until dropped. The system releases the lock of
/// a process that ends.
#[derive(Debug)]
pub struct DataFolderLock {
    #[expect(dead_code, reason = "held, not read")]
    file: File,
    was_open: bool,
}

impl DataFolderLock {
    /// Takes the lock with a file in the folder; `None` if another process holds it. Removes other
    /// users' access to the folder first, since they could hold the lock otherwise.
    pub fn try_lock(data: &Path) -> Result<Option<Self>, StorageError> {
        let was_open =
            private_files::restrict_to_owner(data).map_err(StorageError::io("close to others", data))?;
        let file = private_files::try_lock_folder(data).map_err(StorageError::io("lock", data))?;
        Ok(file.map(|file| Self { file, was_open }))
    }

    /// Takes the lock of a folder that others may read, on the folder itself.
    pub fn try_lock_open_folder(folder: &Path) -> Result<Option<Self>, StorageError> {
        let file = File::open(folder).map_err(StorageError::io("open", folder))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file, was_open: false })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StorageError::io("lock", folder)(error)),
        }
    }

    /// Whether other users had access to the folder until now.
    pub fn was_open_to_others(&self) -> bool {
        self.was_open
    }
}
