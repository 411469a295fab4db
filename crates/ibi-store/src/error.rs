//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use crate::Holder;

/// A store that could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no minter in this folder.
    #[error(
        "no minter was started in {}: `ibi minter init` starts one. If one was, the folder is not what it was: is its \
         disk mounted?", .folder.display()
    )]
    NotStarted {
        /// The data folder.
        folder: PathBuf,
    },
    /// There was one, or was to be one, and its state is gone.
    #[error(
        "the minter's state is missing: {} is not there. If it is lost, put it back from a backup and run \
         `ibi minter recover`; without a backup, or if starting it was interrupted, `ibi minter init` starts it anew \
         from this instant on, which is safe only if the clock is right and never was ahead", .path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is one already.
    #[error("a minter was started in {} already: `ibi minter show` tells of it", .folder.display())]
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
        /// Who holds it.
        holder: Holder,
    },
    /// Another folder mints under the same prefix.
    #[error(
        "the prefix {prefix} is minted from the folder {} on this machine: use that folder. In a folder that has a \
         minter of this prefix already, `ibi minter recover` takes it over", .folder.display()
    )]
    OtherFolder {
        /// The prefix.
        prefix: String,
        /// The folder that has it.
        folder: PathBuf,
    },
    /// This folder is a copy of one that is still there.
    #[error(
        "the prefix {prefix} is minted from the folder {} on this machine, and this one is a copy of it: use that \
         folder, or run `ibi minter recover` here to mint from this one in its place", .folder.display()
    )]
    Copy {
        /// The prefix.
        prefix: String,
        /// The folder that has it.
        folder: PathBuf,
    },
    /// Brought back from a backup.
    #[error(
        "the minter in {} was restored from a backup: labels may have been given out since, so it gives out none until you \
         say that the clock is right and that this folder is the one that mints from now on: `ibi minter recover`",
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
        /// What the system said.
        error: io::Error,
    },
    /// Written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
    },
    /// Not even the part that never changes can be read.
    #[error(
        "{} cannot be understood: it is damaged, or was not written by ibi. Put it back from a backup and run \
         `ibi minter recover`. Without a backup, move it away and start the prefix anew with `ibi minter init`, which \
         is safe only if the clock is right and never was ahead", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {error}. Nothing was given out: mend that and try again", .path.display())]
    Io {
        /// What was tried, as `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A mark did not become durable.
    #[error(
        "the mark could not be made durable: cannot {doing} {}: {error}. Nothing was given out, and this minter has \
         stopped: mend the disk, then start again", .path.display()
    )]
    NotDurable {
        /// What was tried: `write` or `sync`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An earlier mark did not become durable.
    #[error("this minter has stopped after an earlier error of its disk: start it again")]
    Stopped,
    /// A mark that does not follow the last one.
    #[error("mark {given} does not follow mark {last}")]
    OutOfOrder {
        /// The sequence number of the last mark.
        last: u64,
        /// The one that was given.
        given: u64,
    },
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| StoreError::Io { doing, path, error }
    }
}

/// Items that could not be kept or found as they should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// What was tried, as `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What was to be kept could not be read.
    #[error("cannot read {name}, which was to be deposited: {error}")]
    Source {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// Something did not become durable.
    #[error(
        "{} could not be made durable: {error}. Nothing was acknowledged, and nothing more is written: mend the disk, then \
         start again", .path.display()
    )]
    NotDurable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An earlier error of the disk.
    #[error("nothing is written any more after an earlier error: mend it, then start again")]
    Stopped,
    /// Too little room.
    #[error(
        "the disk of {} has {free} bytes left, and {reserve} are kept free, so that what is there can be kept safe: make \
         room", .root.display()
    )]
    Full {
        /// The tree.
        root: PathBuf,
        /// What is free.
        free: u64,
        /// What must stay free.
        reserve: u64,
    },
    /// Too little room for what is to come.
    #[error(
        "{bytes} bytes more are to come to the disk of {}, which has {free} left, and {reserve} are kept free, so that what is there \
         can be kept safe: make room", .folder.display()
    )]
    NoRoom {
        /// Where they were to lie.
        folder: PathBuf,
        /// What is to come.
        bytes: u64,
        /// What is free.
        free: u64,
        /// What must stay free.
        reserve: u64,
    },
    /// There is no tree.
    #[error("{} is not the root of an OCFL tree: is the disk mounted? `ibi archive init` starts an Archive", .root.display())]
    NoTree {
        /// Where it should be.
        root: PathBuf,
    },
    /// There is no journal.
    #[error(
        "the journal is missing: {} is not there. Put it back from a backup; without it, nobody knows which items are \
         originals", .path.display()
    )]
    NoJournal {
        /// Where it should be.
        path: PathBuf,
    },
    /// The journal is shorter than what is known of it.
    #[error(
        "{} ends before what the index knows of it: an older one was put back. If that was meant, `ibi archive rebuild` \
         makes the index anew from it", .path.display()
    )]
    JournalBehind {
        /// The journal.
        path: PathBuf,
    },
    /// A line of the journal cannot be read, and it is not the end of a write that was cut off.
    #[error(
        "line {} of {} is damaged. Put the journal back from a backup, then run `ibi archive rebuild`", .line + 1, .path.display()
    )]
    DamagedJournal {
        /// The journal.
        path: PathBuf,
        /// The number that the line should have; 0 is the title, the first line of the file.
        line: u64,
    },
    /// Written by a newer program.
    #[error("{} has a format that this program does not know: use the newer program that wrote it", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
    },
    /// The description of the Archive cannot be read.
    #[error("{} is damaged: put it back from a backup", .path.display())]
    DamagedSettings {
        /// The file.
        path: PathBuf,
    },
    /// An inventory is not what its sidecar says.
    #[error("{} is damaged: it is not what its sidecar says", .path.display())]
    DamagedInventory {
        /// The inventory.
        path: PathBuf,
    },
    /// A block is not what was deposited.
    #[error(
        "{file} is damaged in block {block} (of 1 MiB, from 0): it is not given out. `ibi archive audit` finds all that is \
         damaged; put the file back from a backup or another holder"
    )]
    DamagedBlock {
        /// The file.
        file: String,
        /// The block.
        block: u64,
    },
    /// A file of an object is not there.
    #[error("{} is missing: put it back from a backup or another holder", .path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// Something is where an object or a version was to be put.
    #[error("there is something at {object} already")]
    Occupied {
        /// The path of the object.
        object: String,
    },
    /// The index database failed.
    #[error("the index failed: {0}. {what}", what = what_to_do(.0))]
    Index(#[from] rusqlite::Error),
    /// A label that another item has.
    #[error("{label} is a label of the item {path} already")]
    LabelTaken {
        /// The label, folded.
        label: String,
        /// The path of the item that has it.
        path: String,
    },
    /// There is no index.
    #[error("the index is missing: {} is not there. `ibi archive rebuild` makes it anew", .path.display())]
    NoIndex {
        /// Where it should be.
        path: PathBuf,
    },
    /// The index was made by another version of the program.
    #[error("the index has another form than this program's: `ibi archive rebuild` makes it anew")]
    OtherIndex,
    /// The service's state was written by a newer program.
    #[error("{} has a form that this program does not know: use the newer program that wrote it", .path.display())]
    NewerService {
        /// The file.
        path: PathBuf,
    },
}

impl KeepError {
    /// An error of a file or folder.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| KeepError::Io { doing, path, error }
    }

    pub(crate) fn not_durable(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| KeepError::NotDurable { path, error }
    }
}

fn what_to_do(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => {
            "Make room on the disk; what was being copied lies below `service/copies` and can go"
        }
        _ => "It can be made anew: `ibi archive rebuild`",
    }
}
