//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

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
    pub(crate) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| StoreError::Io { doing, path, error }
    }
}
