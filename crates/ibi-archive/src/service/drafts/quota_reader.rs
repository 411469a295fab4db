//! Counts an upload against its owner's quota while it arrives.

use std::io::{self, Read};

use super::DraftStore;
use crate::ArchiveError;

/// Maximum bytes of quota that an upload reserves at a time.
const RESERVED_STEP_BYTES: u64 = 16 << 20;

/// An upload that fails when its owner's quota is exhausted.
pub(super) struct DraftQuotaReader<'a> {
    pub(super) drafts: &'a DraftStore,
    pub(super) id: &'a str,
    pub(super) bytes: &'a mut dyn Read,
    pub(super) taken: u64,
    /// Quota bytes reserved so far.
    pub(super) reserved: u64,
    pub(super) refused: Option<ArchiveError>,
}

impl DraftQuotaReader<'_> {
    fn reserve(&mut self) -> Result<(), ArchiveError> {
        let quota = &self.drafts.quota;
        let step = (quota.bytes / 8).clamp(1, RESERVED_STEP_BYTES);
        let mut known = self.drafts.lock()?;
        let owner = known.drafts.get(self.id).ok_or(ArchiveError::NoDraft)?.owner.clone();
        known.check_quota(&owner, quota, (0, 0, step))?;
        if let Some(draft) = known.drafts.get_mut(self.id) {
            draft.file_bytes += step;
            draft.touched = self.drafts.now();
        }
        self.reserved += step;
        Ok(())
    }
}

impl Read for DraftQuotaReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.taken += read as u64;
        while self.taken > self.reserved {
            if let Err(error) = self.reserve() {
                self.refused = Some(error);
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        Ok(read)
    }
}
