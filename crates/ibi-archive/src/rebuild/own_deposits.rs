//! Detects items that were deposited here from the tree and the minter, in place of a lost line.

use std::path::Path;

use ibi_id::Label;

use crate::ArchiveError;
use crate::archive::ArchiveSettings;
use crate::deposit::has_own_prefix;
use crate::object::StoredObject;
use ibi_mint::Subsystem;

/// Distinguishes deposits of this Archive from other objects.
#[derive(Debug)]
pub(crate) struct OwnDeposits {
    address: String,
    subsystem: Subsystem,
}

impl OwnDeposits {
    pub(crate) fn of(data: &Path) -> Result<Self, ArchiveError> {
        let settings =
            ArchiveSettings::read(data)?.ok_or_else(|| ArchiveError::NoArchive { data: data.to_owned() })?;
        let address = format!("ibi:{}", settings.service.primary());
        Ok(Self { address, subsystem: ibi_mint::read_state(data)?.subsystem })
    }

    /// Whether every version was made here, and its label was minted here: then it is the Original,
    /// unless a later line tells otherwise (clause 2.1).
    pub(super) fn is_own_deposit(&self, object: &StoredObject) -> bool {
        let label = Label::parse(object.item.labels.primary());
        label.is_ok_and(|label| has_own_prefix(&self.subsystem, &label))
            && object.inventory.versions.values().all(|version| version.user.address == self.address)
    }
}
