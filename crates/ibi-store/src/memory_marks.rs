//! Marks in memory, for tests: not durable, and with failures on request.

use std::io;

use crate::{MarkStorage, MarkStorageError, MintMark};

/// A store of marks in memory.
#[derive(Debug, Clone)]
pub struct MemoryMarkStorage {
    mark: MintMark,
    stopped: bool,
    /// After this many marks the next one fails, like a disk whose sync reports an error.
    pub fail_after: Option<u64>,
}

impl MemoryMarkStorage {
    /// Starts with a first mark.
    pub fn new(mark: MintMark) -> Self {
        Self { mark, stopped: false, fail_after: None }
    }
}

impl MarkStorage for MemoryMarkStorage {
    fn mark(&self) -> &MintMark {
        &self.mark
    }

    fn advance(&mut self, mark: MintMark) -> Result<(), MarkStorageError> {
        self.mark.check_successor(&mark, self.stopped)?;
        if let Some(left) = &mut self.fail_after {
            if *left == 0 {
                self.stopped = true;
                let error = io::Error::from(io::ErrorKind::Other);
                return Err(MarkStorageError::NotDurable { doing: "sync", path: "memory".into(), error });
            }
            *left -= 1;
        }
        self.mark = mark;
        Ok(())
    }
}
