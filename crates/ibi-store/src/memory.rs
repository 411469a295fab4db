//! Marks in memory, for tests: they outlive nothing, and fail when told to.

use std::io;

use crate::{Mark, Marks, StoreError};

/// A store of marks in memory.
#[derive(Debug, Clone)]
pub struct MemoryMarks {
    mark: Mark,
    stopped: bool,
    /// After so many marks the next one fails, as a disk does whose sync reports an error.
    pub fail_after: Option<u64>,
}

impl MemoryMarks {
    /// Begins with a first mark.
    pub fn new(mark: Mark) -> Self {
        Self { mark, stopped: false, fail_after: None }
    }
}

impl Marks for MemoryMarks {
    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn advance(&mut self, mark: Mark) -> Result<(), StoreError> {
        self.mark.may_be_followed_by(&mark, self.stopped)?;
        if let Some(left) = &mut self.fail_after {
            if *left == 0 {
                self.stopped = true;
                let error = io::Error::from(io::ErrorKind::Other);
                return Err(StoreError::NotDurable { doing: "sync", path: "memory".into(), error });
            }
            *left -= 1;
        }
        self.mark = mark;
        Ok(())
    }
}
