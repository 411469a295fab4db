//! Errors of the stores.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on the minter's state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkStorageError {
    /// The data folder has no minter.
    #[error(
        "there is no minter in {}: `ibi minter init` creates one. If there was one, is the disk mounted?", .folder.display()
    )]
    NotStarted {
        /// The data folder.
        folder: PathBuf,
    },
    /// A minter exists, or its creation was interrupted, and its state file is missing.
    #[error(
        "the minter's state is missing: {} is not there. If it is lost, restore it from a backup and run \
         `ibi minter recover`; without a backup, or if starting it was interrupted, `ibi minter init` starts it anew \
         from this instant on, which is safe only if the clock is right and never was ahead", .path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The data folder already has a minter.
    #[error("there is a minter in {} already: `ibi minter show` describes it", .folder.display())]
    AlreadyStarted {
        /// The data folder.
        folder: PathBuf,
    },
    /// Another process mints under the same prefix.
    #[error(
        "{what} is held by {holder}: one process mints at a time; wait until it ends, or mint through it"
    )]
    Held {
        /// The prefix or the folder that is held.
        what: String,
        /// The current holder.
        holder: PrefixHolder,
    },
    /// Another folder on this machine mints under the same prefix.
    #[error(
        "the prefix {prefix} is minted from the folder {} on this machine: use that folder. In a folder that has a \
         minter of this prefix already, `ibi minter recover` takes it over", .folder.display()
    )]
    OtherFolder {
        /// The prefix.
        prefix: String,
        /// The folder that mints under it.
        folder: PathBuf,
    },
    /// This folder is a copy of another folder that still exists.
    #[error(
        "the prefix {prefix} is minted from the folder {} on this machine, and this one is a copy of it: use that \
         folder, or run `ibi minter recover` here to mint from this one in its place", .folder.display()
    )]
    Copy {
        /// The prefix.
        prefix: String,
        /// The folder that mints under it.
        folder: PathBuf,
    },
    /// The minter was restored from a backup and not yet recovered.
    #[error(
        "the minter in {} was restored from a backup: labels may have been issued since the backup. Minting \
         is off until `ibi minter recover` confirms that the clock is right and that only this folder mints from now on",
        .folder.display()
    )]
    FromBackup {
        /// The data folder.
        folder: PathBuf,
    },
    /// The machine-wide lock cannot be taken.
    #[error(
        "cannot lock the prefix {prefix} on this machine: {}: {error}. If it was left by another user who no longer \
         mints under this prefix, that user or root can remove it", .path.display()
    )]
    Claim {
        /// The prefix.
        prefix: String,
        /// The lock file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The file was written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
    },
    /// Not even the block that never changes is readable.
    #[error(
        "{} is unreadable: it is damaged, or was not written by ibi. Restore it from a backup and run \
         `ibi minter recover`. Without a backup, move it away and start the prefix anew with `ibi minter init`, which \
         is safe only if the clock is right and never was ahead", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {error}. No label was issued: fix the cause and try again", .path.display())]
    Io {
        /// The failed operation, such as `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// Writing or syncing a mark failed.
    #[error(
        "the mark could not be made durable: cannot {doing} {}: {error}. No label was issued, and this minter \
         has stopped: repair the disk, then start again", .path.display()
    )]
    NotDurable {
        /// The failed operation: `write` or `sync`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// Writing or syncing an earlier mark failed.
    #[error("this minter stopped after an earlier disk error: start it again")]
    Stopped,
    /// The mark's sequence number does not follow that of the last mark.
    #[error("mark {given} does not follow mark {last}")]
    OutOfOrder {
        /// The sequence number of the last mark.
        last: u64,
        /// The sequence number of the rejected mark.
        given: u64,
    },
}

/// The process that holds a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixHolder {
    /// Its process id, if known.
    pub process: Option<u32>,
    /// Its data folder, if known.
    pub folder: Option<PathBuf>,
}

impl fmt::Display for PrefixHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("another process")?,
        }
        match &self.folder {
            Some(folder) => write!(f, " (data folder {})", folder.display()),
            None => Ok(()),
        }
    }
}

impl MarkStorageError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| MarkStorageError::Io { doing, path, error }
    }
}

/// A failed operation on content, journal, index or service state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// The failed operation, such as `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The source of a deposit could not be read.
    #[error("cannot read {name} for the deposit: {error}")]
    Source {
        /// The name of the source.
        name: String,
        /// The I/O error.
        error: io::Error,
    },
    /// The location index of a resolver failed.
    #[error("the location index in {} failed: {error}. It may be deleted: it is filled again from the Archives", .folder.display())]
    LocationIndex {
        /// The folder of the index.
        folder: PathBuf,
        /// What failed.
        error: String,
    },
    /// A write could not be made durable.
    #[error(
        "{} could not be made durable: {error}. Nothing was acknowledged, and writing has stopped: repair the disk, then start \
         again", .path.display()
    )]
    NotDurable {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// Writing stopped after an earlier disk error.
    #[error("writing stopped after an earlier error: fix the cause, then start again")]
    Stopped,
    /// The disk has less free space than the reserve.
    #[error(
        "the disk of {} has {free} bytes left, and {reserve} are kept free for recovery: free some space", .root.display()
    )]
    Full {
        /// The root of the OCFL tree.
        root: PathBuf,
        /// Free bytes.
        free: u64,
        /// Bytes that must stay free.
        reserve: u64,
    },
    /// The requested bytes would cut into the reserve.
    #[error(
        "cannot write {bytes} more bytes to the disk of {}: it has {free} left, and {reserve} are kept free for recovery: free \
         some space", .folder.display()
    )]
    NoRoom {
        /// The target folder.
        folder: PathBuf,
        /// Requested bytes.
        bytes: u64,
        /// Free bytes.
        free: u64,
        /// Bytes that must stay free.
        reserve: u64,
    },
    /// The folder is not the root of an OCFL tree.
    #[error("{} is not the root of an OCFL tree: is the disk mounted? `ibi archive init` creates an Archive", .root.display())]
    NoTree {
        /// The expected root.
        root: PathBuf,
    },
    /// The journal is missing.
    #[error(
        "the journal is missing: {} is not there. Restore it from a backup; without it, it is unknown which items \
         are Originals", .path.display()
    )]
    NoJournal {
        /// The expected path.
        path: PathBuf,
    },
    /// The journal ends before the position that the index has recorded.
    #[error(
        "{} ends before the position that the index has recorded: lines were cut off, or an older journal was restored. \
         `ibi archive salvage` recovers the lines that the index has", .path.display()
    )]
    JournalBehind {
        /// The journal.
        path: PathBuf,
    },
    /// A journal line is unreadable, and it is not a torn write at the end.
    #[error(
        "line {} of {} is damaged or missing, and it may have been acknowledged, so nothing is truncated. `ibi archive salvage` \
         recovers it from the index, the tree and, with --from, a backup", .line + 1, .path.display()
    )]
    DamagedJournal {
        /// The journal.
        path: PathBuf,
        /// The number that the line should have; 0 is the title, the first line of the file.
        line: u64,
    },
    /// The backup is not of this journal.
    #[error(
        "line {} of {} differs from this Archive: the backup is of another Archive, or of a diverged history of this one. \
         Give another backup", .line + 1, .path.display()
    )]
    DivergedBackup {
        /// The journal of the backup.
        path: PathBuf,
        /// The number of the line.
        line: u64,
    },
    /// The file was written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
    },
    /// The Archive's settings are unreadable.
    #[error("{} is damaged: restore it from a backup", .path.display())]
    DamagedSettings {
        /// The file.
        path: PathBuf,
    },
    /// An inventory does not match its sidecar.
    #[error("{} is damaged: it does not match its sidecar", .path.display())]
    DamagedInventory {
        /// The inventory.
        path: PathBuf,
    },
    /// A block does not match its checksum.
    #[error(
        "{file} is damaged in block {block} (of 1 MiB, from 0): it is not served. `ibi archive audit` lists all damage; \
         restore the file from a backup or another holder"
    )]
    DamagedBlock {
        /// The file.
        file: String,
        /// The number of the block, from 0.
        block: u64,
    },
    /// A file of an object is missing.
    #[error("{} is missing: restore it from a backup or another holder", .path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// The target path of an object or a version is occupied.
    #[error("{object} exists already")]
    Occupied {
        /// The path of the object.
        object: String,
    },
    /// The index database failed.
    #[error("the index failed: {0}. {what}", what = what_to_do(.0))]
    Index(#[from] rusqlite::Error),
    /// Another item already has the label.
    #[error("{label} is a label of the item {path} already")]
    LabelTaken {
        /// The label, folded.
        label: String,
        /// The object path of the item that has it.
        path: String,
    },
    /// The index is missing.
    #[error("the index is missing: {} is not there. `ibi archive rebuild` recreates it", .path.display())]
    NoIndex {
        /// The expected path.
        path: PathBuf,
    },
    /// The index has the schema of another program version.
    #[error("the index has another format than this program's: `ibi archive rebuild` recreates it")]
    OtherIndex,
    /// The service state was written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    NewerService {
        /// The file.
        path: PathBuf,
    },
}

/// Why the index cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexWriteFailure {
    /// Another process has it locked.
    Locked,
    /// The disk is full.
    Full,
    /// The file or its file system is read-only.
    ReadOnly,
}

impl StorageError {
    /// Why the index cannot be written, if this is such an error.
    pub fn index_write_failure(&self) -> Option<IndexWriteFailure> {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly};
        let StorageError::Index(error) = self else { return None };
        match error.sqlite_error_code()? {
            DatabaseBusy | DatabaseLocked => Some(IndexWriteFailure::Locked),
            DiskFull => Some(IndexWriteFailure::Full),
            ReadOnly | PermissionDenied => Some(IndexWriteFailure::ReadOnly),
            _ => None,
        }
    }

    /// Whether nothing can be written just now: the disk is full, or it is read-only for us.
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match self {
            StorageError::Full { .. } | StorageError::NoRoom { .. } => true,
            StorageError::Io { error, .. } | StorageError::NotDurable { error, .. } => {
                matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
            }
            // Without the files beside it, which it cannot create then, SQLite cannot open it.
            StorageError::Index(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen)
                    || self.index_write_failure().is_some_and(|why| why != IndexWriteFailure::Locked)
            }
            _ => false,
        }
    }

    /// Wraps an I/O error on a file or folder.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| StorageError::Io { doing, path, error }
    }

    pub(crate) fn not_durable(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| StorageError::NotDurable { path, error }
    }
}

fn what_to_do(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => {
            "Free some disk space; interrupted copies are below `service/copies` and can be deleted"
        }
        _ => "It can be recreated: `ibi archive rebuild`",
    }
}
