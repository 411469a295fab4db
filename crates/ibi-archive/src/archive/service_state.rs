//! The service's state, which notes what is known of copies.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use ibi_store::{ServiceStorage, StorageError};

use super::Holdings;
use crate::ArchiveError;

/// The service's state, opened on first use.
#[derive(Debug, Default)]
pub(crate) struct LazyServiceState(OnceLock<Mutex<ServiceStorage>>);

impl Holdings {
    pub(crate) fn state_file(&self) -> PathBuf {
        self.data.join("service/state.sqlite")
    }

    pub(crate) fn with_state<T>(
        &self,
        work: impl FnOnce(&ServiceStorage) -> Result<T, StorageError>,
    ) -> Result<T, ArchiveError> {
        let state = match self.behind_notes.0.get() {
            Some(state) => state,
            None => {
                let opened = Mutex::new(ServiceStorage::open(&self.state_file())?);
                self.behind_notes.0.get_or_init(|| opened)
            }
        };
        Ok(work(&state.lock().unwrap_or_else(PoisonError::into_inner))?)
    }
}
