//! Copies that are known to be behind what another Archive has (clause 2.1). It is remembered with
//! the service's own state, so that it outlives a restart; a new version here makes it void.

use std::sync::{Mutex, OnceLock, PoisonError};

use ibi_store::ServiceState;
use ibi_store::journal::State;
pub use ibi_store::service::BehindNote;

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};

/// The service's state, opened when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct BehindNotes(OnceLock<Mutex<ServiceState>>);

impl Holdings {
    /// What is known of a copy that is behind.
    pub fn behind(&self, holding: &Holding) -> Option<BehindNote> {
        if holding.state != State::Copy || !self.state_file().exists() {
            return None;
        }
        // What cannot be read is not known: no reason to keep the copy from anybody.
        let note = self.with_state(|state| state.behind(&holding.path)).ok().flatten();
        note.filter(|note| note.version == holding.version && note.latest > holding.version)
    }

    /// Remembers what another Archive was seen to have of an item that is a Copy here.
    pub(crate) fn note_seen(
        &self,
        path: &str,
        (version, latest): (u32, u32),
        holder: &str,
    ) -> Result<(), ArchiveError> {
        if latest <= version {
            // Most are not behind, and never were.
            let known = self.state_file().exists() && self.with_state(|state| state.behind(path))?.is_some();
            return if known { self.with_state(|state| state.clear_behind(path)) } else { Ok(()) };
        }
        let seen = crate::archive::whole_second(&crate::mint::clock::SystemClock::new()).to_string();
        let holder = holder.trim_end_matches('/').to_owned();
        let note = BehindNote { path: path.to_owned(), version, latest, holder, seen };
        self.with_state(|state| state.note_behind(&note))
    }

    fn state_file(&self) -> std::path::PathBuf {
        self.data.join("service/state.sqlite")
    }

    fn with_state<T>(
        &self,
        work: impl FnOnce(&ServiceState) -> Result<T, ibi_store::KeepError>,
    ) -> Result<T, ArchiveError> {
        let state = match self.behind_notes.0.get() {
            Some(state) => state,
            None => {
                let opened = Mutex::new(ServiceState::open(&self.state_file())?);
                self.behind_notes.0.get_or_init(|| opened)
            }
        };
        Ok(work(&state.lock().unwrap_or_else(PoisonError::into_inner))?)
    }
}
