//! Write readiness for `/readyz`: reports the first obstacle with a machine-readable code.

use std::time::Duration;

use ibi_store::{IndexWriteFailure, StorageError};
use rustix::fs::{Access, StatVfsMountFlags};
use tokio::time::Instant;

use super::ArchiveEngine;
use crate::{Archive, ArchiveError};

/// How long a result is cached: `/readyz` is public.
const WRITE_CHECK_LIFETIME: Duration = Duration::from_secs(1);

/// How long the writer may take to respond.
const WRITER_RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceWriteBlocker {
    /// Writing would use the disk's reserve.
    DiskFull,
    /// The filesystem is read-only, or this process lacks permission.
    ReadOnly,
    /// Another process has locked the Archive or its index.
    Locked,
    /// The writer does not respond in time.
    Busy,
    /// The journal is damaged.
    DamagedJournal,
    /// No label can be minted: the clock or the minter's state is in doubt.
    MintRefused,
    /// Another error; see the log.
    Failed,
}

impl ServiceWriteBlocker {
    /// The machine-readable code.
    pub const fn code(self) -> &'static str {
        match self {
            ServiceWriteBlocker::DiskFull => "disk-full",
            ServiceWriteBlocker::ReadOnly => "read-only",
            ServiceWriteBlocker::Locked => "locked",
            ServiceWriteBlocker::Busy => "busy",
            ServiceWriteBlocker::DamagedJournal => "journal-damaged",
            ServiceWriteBlocker::MintRefused => "mint-refused",
            ServiceWriteBlocker::Failed => "failed",
        }
    }

    /// The blocker that an error stands for.
    pub(crate) fn from_archive_error(error: &ArchiveError) -> Self {
        match error {
            ArchiveError::Batch(error) => Self::from_archive_error(error),
            ArchiveError::Held { .. } => Self::Locked,
            ArchiveError::Mint(_) => Self::MintRefused,
            ArchiveError::Storage(StorageError::Full { .. } | StorageError::NoRoom { .. }) => Self::DiskFull,
            ArchiveError::Storage(
                StorageError::DamagedJournal { .. } | StorageError::JournalBehind { .. },
            ) => Self::DamagedJournal,
            ArchiveError::Storage(error @ StorageError::Index(_)) => match error.index_write_failure() {
                Some(IndexWriteFailure::Locked) => Self::Locked,
                Some(IndexWriteFailure::Full) => Self::DiskFull,
                Some(IndexWriteFailure::ReadOnly) => Self::ReadOnly,
                None => Self::Failed,
            },
            ArchiveError::Io { error, .. }
            | ArchiveError::Storage(
                StorageError::Io { error, .. } | StorageError::NotDurable { error, .. },
            ) => match error.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::DiskFull,
                std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                    Self::ReadOnly
                }
                _ => Self::Failed,
            },
            _ => Self::Failed,
        }
    }
}

/// The last result. Its lock serializes checks.
#[derive(Debug, Default)]
pub struct ServiceWriteCheck {
    last: tokio::sync::Mutex<Option<(Instant, Result<(), ServiceWriteBlocker>)>>,
}

impl ServiceWriteCheck {
    /// Whether the Archive can be changed. Concurrent callers wait for one check and share its
    /// result.
    pub async fn check(&self, desk: &ArchiveEngine) -> Result<(), ServiceWriteBlocker> {
        let mut last = self.last.lock().await;
        // Damage may have been detected since, by a change that failed.
        let is_outdated = |known: Result<(), _>| known.is_ok() && desk.journal_damage.is_set();
        let is_good = |(looked, known): &(Instant, Result<(), _>)| {
            looked.elapsed() < WRITE_CHECK_LIFETIME && !is_outdated(*known)
        };
        if let Some((_, known)) = last.filter(is_good) {
            return known;
        }
        let found = probe_writer(desk).await;
        *last = Some((Instant::now(), found));
        found
    }
}

async fn probe_writer(desk: &ArchiveEngine) -> Result<(), ServiceWriteBlocker> {
    let failed = |error: ArchiveError| {
        tracing::error!(%error, "writes disabled");
        ServiceWriteBlocker::from_archive_error(&error)
    };
    let data = desk.data();
    let filesystem = rustix::fs::statvfs(data).map_err(|_| ServiceWriteBlocker::Failed)?;
    let is_read_only = filesystem.f_flag.contains(StatVfsMountFlags::RDONLY);
    if is_read_only || rustix::fs::access(data, Access::WRITE_OK).is_err() {
        return Err(ServiceWriteBlocker::ReadOnly);
    }
    desk.read().and_then(|holdings| Ok(holdings.content.check_space()?)).map_err(failed)?;
    // A command has leased the Archive and will return it.
    if desk.is_leased() {
        return match desk.journal_damage.is_set() {
            true => Err(ServiceWriteBlocker::DamagedJournal),
            false => Ok(()),
        };
    }
    let tried = tokio::time::timeout(WRITER_RESPONSE_TIMEOUT, desk.with_archive(Archive::try_to_write)).await;
    tried.map_err(|_| ServiceWriteBlocker::Busy)?.map_err(failed)
}
