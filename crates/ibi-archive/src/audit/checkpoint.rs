//! How far an audit has come, kept in the data folder: `service/audit.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::audit::{Finding, Wrong};

/// So many bytes may be read again after an interruption.
const OFTEN: u64 = 64 << 20;
/// So many items, likewise.
const OFTEN_ITEMS: u64 = 50;

/// An audit, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
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
    pub findings: Vec<Finding>,
    /// The last object that was looked at.
    after: Option<String>,
    #[serde(skip)]
    unsaved: (u64, u64),
}

impl Audit {
    pub(super) fn new(started: String) -> Self {
        Self { started, ..Self::default() }
    }

    /// How many findings are of a kind.
    pub fn count(&self, wrong: Wrong) -> usize {
        self.findings.iter().filter(|finding| finding.wrong == wrong).count()
    }

    pub(super) fn read(data: &Path) -> Result<Option<Self>, ArchiveError> {
        match fs::read(path(data)) {
            // One that cannot be read is one that has to begin anew.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ArchiveError::io("read", &path(data))(error)),
        }
    }

    pub(super) fn interrupted(data: &Path) -> Result<Option<Self>, ArchiveError> {
        Ok(Self::read(data)?.filter(|audit| audit.finished.is_none()))
    }

    /// Whether an object was looked at before the interruption: objects come in order, folder by folder.
    pub(super) fn has_done(&self, object: &str) -> bool {
        self.after.as_deref().is_some_and(|after| object.split('/').le(after.split('/')))
    }

    pub(super) fn done(&mut self, object: &str, data: &Path) -> Result<(), ArchiveError> {
        self.after = Some(object.to_owned());
        let (items, bytes) = self.unsaved;
        if self.items >= items + OFTEN_ITEMS || self.bytes >= bytes + OFTEN {
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
        let path = path(data);
        let folder = path.parent().unwrap_or(data);
        fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let fresh = path.with_extension("new");
        // Text, numbers and lists: nothing that JSON could refuse.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        fs::write(&fresh, bytes).map_err(ArchiveError::io("write", &fresh))?;
        fs::rename(&fresh, &path).map_err(ArchiveError::io("write", &path))
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("service").join("audit.json")
}
