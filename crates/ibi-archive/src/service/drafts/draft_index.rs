//! The in-memory index of drafts: enough to find a draft's files and to enforce quotas.
//! Descriptions and file lists stay on disk.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use super::DraftRecord;
use crate::ArchiveError;

/// Draft limits per owner, and how long a draft is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftQuota {
    /// Maximum number of drafts per owner.
    pub drafts: usize,
    /// Maximum bytes of files and descriptions per owner.
    pub bytes: u64,
    /// Seconds without a change after which a draft is deleted.
    pub untouched_seconds: i64,
}

impl Default for DraftQuota {
    fn default() -> Self {
        Self { drafts: 200, bytes: 100 << 30, untouched_seconds: 30 * 86_400 }
    }
}

/// Across all owners.
const MAX_DRAFTS: usize = 10_000;

/// Maximum number of files per draft, per owner, and in total.
pub(super) const MAX_FILES_PER_DRAFT: usize = 100_000;
const MAX_FILES_PER_OWNER: usize = 500_000;
const MAX_DRAFT_FILES: usize = 2_000_000;

/// What is kept in memory of a draft.
#[derive(Debug, Clone)]
pub(super) struct DraftSummary {
    pub(super) owner: String,
    pub(super) is_update: bool,
    /// Time of the last change, in seconds since the Unix epoch.
    pub(super) touched: i64,
    /// Size of `draft.json`.
    pub(super) description_bytes: u64,
    /// Bytes of completed and running uploads.
    pub(super) file_bytes: u64,
    /// Numbers of uploaded files, by the hash of their names.
    pub(super) arrived: HashMap<u64, Vec<u64>>,
    /// Hashes of the names of files kept from the current version.
    pub(super) kept: HashSet<u64>,
    pub(super) next: u64,
    pub(super) publishing: bool,
}

impl DraftSummary {
    pub(super) fn file_count(&self) -> usize {
        self.arrived.len() + self.kept.len()
    }

    /// The numbers of the uploaded files.
    pub(super) fn numbers(&self) -> HashSet<u64> {
        self.arrived.values().flatten().copied().collect()
    }

    /// Memory needed to read the draft in full and serialize it.
    pub(super) fn memory_bytes(&self) -> u64 {
        /// One file with its digests, both parsed and serialized.
        const DRAFT_FILE_MEMORY_BYTES: u64 = 1500;
        4 * self.description_bytes + self.file_count() as u64 * DRAFT_FILE_MEMORY_BYTES
    }
}

/// All known drafts.
#[derive(Debug, Default)]
pub(super) struct DraftIndex {
    pub(super) drafts: HashMap<String, DraftSummary>,
    hasher: RandomState,
}

impl DraftIndex {
    pub(super) fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Adds a draft as read from disk; file sizes come from its uploads.
    pub(super) fn insert_draft(&mut self, draft: &DraftRecord, description_bytes: u64, touched: i64) {
        let mut known = DraftSummary {
            owner: draft.owner.clone(),
            is_update: draft.updates.is_some(),
            touched,
            description_bytes,
            file_bytes: draft.arrived.values().map(|file| file.size).sum(),
            arrived: HashMap::with_capacity(draft.arrived.len()),
            kept: draft.kept.keys().map(|name| self.hash(name)).collect(),
            next: draft.next,
            publishing: false,
        };
        for file in draft.arrived.values() {
            let numbers = known.arrived.entry(self.hash(&file.name)).or_default();
            numbers.extend(file.stored);
        }
        self.drafts.insert(draft.id.clone(), known);
    }

    /// Fails if the addition exceeds the owner's quota or a global limit.
    pub(super) fn check_quota(
        &self,
        owner: &str,
        quota: &DraftQuota,
        (drafts, files, bytes): (usize, usize, u64),
    ) -> Result<(), ArchiveError> {
        let own = || self.drafts.values().filter(|draft| draft.owner == owner);
        let many = self.drafts.len() + drafts > MAX_DRAFTS || own().count() + drafts > quota.drafts;
        if drafts > 0 && many {
            let most = quota.drafts;
            return Err(quota_error(&format!("there are too many drafts (of one owner at most {most})")));
        }
        let file_count = |drafts: &mut dyn Iterator<Item = &DraftSummary>| -> usize {
            drafts.map(DraftSummary::file_count).sum()
        };
        if files > 0
            && (file_count(&mut own()) + files > MAX_FILES_PER_OWNER
                || file_count(&mut self.drafts.values()) + files > MAX_DRAFT_FILES)
        {
            let what =
                format!("there are too many files in drafts (of one owner at most {MAX_FILES_PER_OWNER})");
            return Err(quota_error(&what));
        }
        let used: u64 = own().map(|draft| draft.file_bytes + draft.description_bytes).sum();
        if bytes > 0 && used.saturating_add(bytes) > quota.bytes {
            let what =
                format!("the drafts of one owner have at most {} bytes, and yours have {used}", quota.bytes);
            return Err(quota_error(&what));
        }
        Ok(())
    }
}

fn quota_error(what: &str) -> ArchiveError {
    ArchiveError::Value(format!("{what}: publish or delete some"))
}
