//! Progress of an audit, saved in the data folder: `service/audit.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::audit::{AuditFinding, FixityFault};

/// Bytes between checkpoints: at most this many are read again after an interruption.
const CHECKPOINT_INTERVAL_BYTES: u64 = 64 << 20;
/// Items between checkpoints.
const CHECKPOINT_INTERVAL_ITEMS: u64 = 50;

/// An audit, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// When it began.
    pub started: String,
    /// When it ended; nothing if it was interrupted.
    pub finished: Option<String>,
    /// Items that were looked at.
    pub items: u64,
    /// Their files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What was found.
    pub findings: Vec<AuditFinding>,
    /// The last object that was looked at.
    after: Option<String>,
    #[serde(skip)]
    unsaved: (u64, u64),
}

impl AuditReport {
    pub(super) fn new(started: String) -> Self {
        Self { started, ..Self::default() }
    }

    /// How many findings are of a kind.
    pub fn count(&self, wrong: FixityFault) -> usize {
        self.findings.iter().filter(|finding| finding.wrong == wrong).count()
    }

    pub(super) fn read(data: &Path) -> Result<Option<Self>, ArchiveError> {
        match fs::read(path(data)) {
            // An unreadable report means that the audit starts over.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ArchiveError::io("read", &path(data))(error)),
        }
    }

    pub(super) fn interrupted(data: &Path) -> Result<Option<Self>, ArchiveError> {
        Ok(Self::read(data)?.filter(|audit| audit.finished.is_none()))
    }

    /// Whether an object was looked at before the interruption: objects come in order, folder by
    /// folder.
    pub(super) fn has_done(&self, object: &str) -> bool {
        self.after.as_deref().is_some_and(|after| object.split('/').le(after.split('/')))
    }

    pub(super) fn mark_done(&mut self, object: &str, data: &Path) -> Result<(), ArchiveError> {
        self.after = Some(object.to_owned());
        let (items, bytes) = self.unsaved;
        if self.items >= items + CHECKPOINT_INTERVAL_ITEMS || self.bytes >= bytes + CHECKPOINT_INTERVAL_BYTES
        {
            self.save(data)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, now: String, data: &Path) -> Result<(), ArchiveError> {
        self.finished = Some(now);
        self.save(data)
    }

    fn save(&mut self, data: &Path) -> Result<(), ArchiveError> {
        self.unsaved = (self.items, self.bytes);
        // Text, numbers and lists: nothing that JSON could refuse.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Ok(ibi_store::small_file::replace(&path(data), &bytes)?)
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("service").join("audit.json")
}
