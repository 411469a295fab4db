//! Checks the older journal lines, which the index already covers. Daily work does not need them,
//! but a rebuild, a backup and another Archive do.
//!
//! A short journal is read whole whenever the Archive is opened for writing. A long one is read by
//! its server, soon after the start and daily. Damage is noted, so that the next opening reads the
//! whole journal, whatever its length. While there is damage nothing is appended: the content can
//! be salvaged, and reads continue.

use std::path::Path;

use ibi_store::StorageError;
use ibi_store::journal::{Journal, JournalPosition};

use crate::ArchiveError;
use crate::archive::{Archive, remove_if_exists};

/// A journal up to this size is read whole at each opening, which takes some hundredths of a
/// second.
const MAX_OPENING_CHECK_BYTES: u64 = 4 << 20;

/// Its presence says that the journal was found damaged.
const DAMAGE_NOTE: &str = "journal-is-damaged";

/// The number of a damaged line in the part that the index covers, if a full check is due.
pub(crate) fn damage_at_opening(data: &Path, followed: JournalPosition) -> Result<Option<u64>, ArchiveError> {
    let note = data.join(DAMAGE_NOTE);
    let is_noted = note.exists();
    if !is_noted && followed.place > MAX_OPENING_CHECK_BYTES {
        return Ok(None);
    }
    let damage = find_damage(data, followed)?;
    if is_noted && damage.is_none() {
        remove_if_exists(&note)?;
    }
    Ok(damage)
}

/// Reads the journal from its beginning to where the index has followed it. A line may be appended
/// meanwhile.
pub(crate) fn find_damage(data: &Path, followed: JournalPosition) -> Result<Option<u64>, ArchiveError> {
    let read = Journal::read(data, JournalPosition::START, &mut |_| Ok(()))
        .and_then(|reading| reading.check_covers_index(data, followed));
    match read {
        Ok(()) => Ok(None),
        Err(StorageError::DamagedJournal { line, .. }) => Ok(Some(line)),
        Err(error) => Err(error.into()),
    }
}

impl Archive {
    /// Whether writes are allowed: no earlier error, and no known damage of the journal.
    pub(crate) fn check_changeable(&self) -> Result<(), ArchiveError> {
        if self.stopped {
            return Err(ArchiveError::Stopped);
        }
        match self.journal_damage {
            Some(line) => {
                let path = self.holdings.data.join("journal");
                Err(StorageError::DamagedJournal { path, line }.into())
            }
            None => Ok(()),
        }
    }

    /// Rereads the whole journal after a report of damage, and disables writes if it is damaged.
    /// Returns the number of the line.
    #[cfg(feature = "web")]
    pub(crate) fn confirm_damage(&mut self) -> Result<Option<u64>, ArchiveError> {
        let data = &self.holdings.data;
        self.journal_damage = find_damage(data, self.holdings.records.position()?)?;
        if let Some(line) = self.journal_damage {
            let text = format!("The journal was found damaged: change {line}. See `ibi archive salvage`.\n");
            ibi_store::small_file::replace(&data.join(DAMAGE_NOTE), text.as_bytes())?;
        }
        Ok(self.journal_damage)
    }
}
