//! Internal failures: disk, locks, state. Clients learn only the kind; paths and system errors go
//! to the log.

use std::io;

use axum::http::StatusCode;
use ibi_http::{Problem, descriptors};
use ibi_store::{IndexWriteFailure, MarkStorageError, StorageError};

use crate::ArchiveError;
use crate::engine::write_readiness::ServiceWriteBlocker;
use ibi_mint::MintError;

/// Whether the disk is full.
pub(super) fn is_full(error: &ArchiveError) -> bool {
    let is_full =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    match error {
        ArchiveError::Io { error, .. } => is_full(error),
        ArchiveError::Storage(StorageError::Full { .. } | StorageError::NoRoom { .. }) => true,
        ArchiveError::Storage(StorageError::Io { error, .. } | StorageError::NotDurable { error, .. }) => {
            is_full(error)
        }
        ArchiveError::Storage(error) => error.index_write_failure() == Some(IndexWriteFailure::Full),
        ArchiveError::Mint(MintError::Store(error)) => match &**error {
            MarkStorageError::Io { error, .. } | MarkStorageError::NotDurable { error, .. } => is_full(error),
            _ => false,
        },
        _ => false,
    }
}

/// The response when the disk is full.
pub(super) fn no_room() -> Problem {
    let detail = "the disk of this Archive is full: its operator must free some space";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "storage-full", "Disk full", detail)
}

/// Whether this process, or the machine, is out of file descriptors.
pub(super) fn is_exhausted(error: &ArchiveError) -> bool {
    match error {
        ArchiveError::Io { error, .. }
        | ArchiveError::Storage(StorageError::Io { error, .. } | StorageError::NotDurable { error, .. }) => {
            descriptors::is_exhausted(error)
        }
        ArchiveError::Mint(MintError::Store(error)) => match &**error {
            MarkStorageError::Io { error, .. } | MarkStorageError::NotDurable { error, .. } => {
                descriptors::is_exhausted(error)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether the disk, or this Archive's folder, is read-only.
pub(super) fn is_read_only(error: &ArchiveError) -> bool {
    ServiceWriteBlocker::from_archive_error(error) == ServiceWriteBlocker::ReadOnly
}

/// The response to a change while nothing can be written.
pub(super) fn read_only() -> Problem {
    let detail = "the disk of this Archive cannot be written. Writes are disabled until the operator repairs it; \
         reads continue";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "read-only", "Writes unavailable", detail)
}

/// The response to a change while the journal is damaged.
pub(super) fn damaged_journal() -> Problem {
    let detail = "the journal of this Archive is damaged. Writes are disabled until the operator repairs \
        it; reads continue";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal-damaged", "Writes unavailable", detail)
}

/// Whether another process has locked the index.
pub(super) fn is_locked(error: &ArchiveError) -> bool {
    matches!(error, ArchiveError::Storage(error) if error.index_write_failure() == Some(IndexWriteFailure::Locked))
}

/// The response when the index is locked.
pub(super) fn locked() -> Problem {
    Problem::unavailable("the index is locked by another process: retry later")
}

/// Whether minting is blocked until someone acts or a condition passes.
pub(super) fn stops_minting(refusal: &MintError) -> bool {
    match refusal {
        MintError::Full
        | MintError::NoDateLeft
        | MintError::ClockSetBackWhileWaiting
        | MintError::BeforeIbip => true,
        MintError::Store(error) => matches!(
            **error,
            MarkStorageError::Held { .. }
                | MarkStorageError::OtherFolder { .. }
                | MarkStorageError::Copy { .. }
                | MarkStorageError::FromBackup { .. }
                | MarkStorageError::Claim { .. }
        ),
        _ => false,
    }
}

/// The response when minting is blocked.
pub(super) fn no_minting() -> Problem {
    Problem::unavailable("minting is unavailable; retry or contact the operator")
}

/// Whether the failure is not the client's: its details are for the log only.
pub(super) fn is_internal(error: &ArchiveError) -> bool {
    match error {
        ArchiveError::Storage(_)
        | ArchiveError::Io { .. }
        | ArchiveError::DamagedObject { .. }
        | ArchiveError::NoArchive { .. }
        | ArchiveError::AlreadyStarted { .. }
        | ArchiveError::NoDescription { .. }
        | ArchiveError::OtherPrefix { .. }
        | ArchiveError::NotAFile { .. }
        | ArchiveError::SourceChanged { .. }
        | ArchiveError::OverlapsDataFolder { .. }
        | ArchiveError::NoFiles { .. }
        | ArchiveError::Bag { .. }
        | ArchiveError::Table { .. } => true,
        ArchiveError::Mint(refusal) => matches!(refusal, MintError::Store(_) | MintError::Abandoned),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::web::site::problem;

    /// No response reveals a path.
    #[test]
    fn failures_have_a_code_and_no_path() {
        let path = || PathBuf::from("/srv/secret");
        let io = |kind: io::ErrorKind| io::Error::from(kind);
        let store = |error: MarkStorageError| ArchiveError::Mint(MintError::Store(Arc::new(error)));
        let full = io::ErrorKind::StorageFull;
        let holder =
            |path: PathBuf| MarkStorageError::OtherFolder { prefix: "a.br".to_owned(), folder: path };
        for (error, status, kind) in [
            (ArchiveError::NoArchive { data: path() }, 500, "internal"),
            (ArchiveError::NoDescription { data: path() }, 500, "internal"),
            (ArchiveError::NoFiles { path: path() }, 500, "internal"),
            (ArchiveError::Bag { path: path(), what: String::new() }, 500, "internal"),
            (ArchiveError::Held { data: path() }, 503, "unavailable"),
            (ArchiveError::Io { doing: "write", path: path(), error: io(full) }, 503, "storage-full"),
            (StorageError::Full { root: path(), free: 0, reserve: 1 }.into(), 503, "storage-full"),
            (StorageError::NotDurable { path: path(), error: io(full) }.into(), 503, "storage-full"),
            (
                ArchiveError::Io { doing: "open", path: path(), error: io::Error::from_raw_os_error(24) },
                503,
                "too-many-open-files",
            ),
            (StorageError::NoJournal { path: path() }.into(), 500, "internal"),
            (
                StorageError::Io {
                    doing: "lock",
                    path: path(),
                    error: io(io::ErrorKind::ReadOnlyFilesystem),
                }
                .into(),
                503,
                "read-only",
            ),
            (store(holder(path())), 503, "unavailable"),
            (store(MarkStorageError::FromBackup { folder: path() }), 503, "unavailable"),
            (
                store(MarkStorageError::Io { doing: "write", path: path(), error: io(full) }),
                503,
                "storage-full",
            ),
            (store(MarkStorageError::Damaged { path: path() }), 500, "internal"),
        ] {
            let words = error.to_string();
            let told = problem(&ArchiveError::Batch(Arc::new(error)));
            let text = serde_json::to_string(&told).unwrap();
            assert_eq!(told.status().as_u16(), status, "{words}");
            assert!(text.contains(&format!("urn:ibi:problem:{kind}\"")), "{words}: {text}");
            assert!(!text.contains("secret"), "{words}: {text}");
        }
    }
}
