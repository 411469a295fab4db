//! Copies that are known to be behind another Archive (clause 2.1). Stored in the service's state,
//! so it survives a restart; a new local version invalidates it.

use ibi_store::journal::State;
pub use ibi_store::service::StaleCopyNote;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};

impl Holdings {
    /// What is known of a copy that is behind.
    pub fn stale_copy_note(&self, holding: &HeldItem) -> Option<StaleCopyNote> {
        if holding.state != State::Copy || !self.state_file().exists() {
            return None;
        }
        // An unreadable note counts as unknown: no reason to withhold the copy.
        let note = self.with_state(|state| state.stale_copy(&holding.path)).ok().flatten();
        note.filter(|note| note.version == holding.version && note.latest > holding.version)
    }

    /// Records the version that another Archive has of an item that is a Copy here.
    pub(crate) fn record_peer_version(
        &self,
        path: &str,
        (version, latest): (u32, u32),
        holder: &str,
    ) -> Result<(), ArchiveError> {
        if latest <= version {
            // Most copies never were behind.
            let known =
                self.state_file().exists() && self.with_state(|state| state.stale_copy(path))?.is_some();
            return if known { self.with_state(|state| state.clear_stale_copy(path)) } else { Ok(()) };
        }
        let seen = crate::archive::current_second(&ibi_mint::clock::SystemClock::new()).to_string();
        let holder = holder.trim_end_matches('/').to_owned();
        let note = StaleCopyNote { path: path.to_owned(), version, latest, holder, seen };
        self.with_state(|state| state.record_stale_copy(&note))
    }
}
