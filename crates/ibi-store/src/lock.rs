//! One process at a time changes an Archive.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::KeepError;

/// The right to change the Archive in a data folder, as long as it is held. The system takes it back from the dead.
#[derive(Debug)]
pub struct DataLock(#[expect(dead_code, reason = "held, not read")] File);

impl DataLock {
    /// Takes the lock; nothing if another process has it.
    pub fn take(data: &Path) -> Result<Option<Self>, KeepError> {
        let file = File::open(data).map_err(KeepError::io("open", data))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(KeepError::io("lock", data)(error)),
        }
    }
}
