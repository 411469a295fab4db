//! Errors of the Archive.

use std::path::PathBuf;
use std::sync::Arc;

use ibi_id::ParseError;
use ibi_mint::{GranularityError, MintError};
use ibi_store::StorageError;
use ibi_store::ocfl::OcflNameError;

/// Why an Archive operation failed or was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Storage failed, or found damage.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// No label could be minted.
    #[error("{0}")]
    Mint(#[from] MintError),
    /// Unknown draft.
    #[error("there is no such draft: it may have been published or deleted")]
    NoDraft,
    /// The draft is being published.
    #[error("the draft is being published: retry in a moment")]
    Publishing,
    /// Metadata cannot be removed without its item.
    #[error("{label} is the metadata of {item} and cannot be removed alone: remove the item")]
    IsMetadata {
        /// What was given.
        label: String,
        /// The item.
        item: String,
    },
    /// An upload was cut off.
    #[error("the upload was cut off: {0}. Nothing was stored: send the file again")]
    UploadInterrupted(std::io::Error),
    /// The data folder holds no Archive.
    #[error("there is no Archive in {}", .data.display())]
    NoArchive {
        /// The data folder.
        data: PathBuf,
    },
    /// The data folder already holds an Archive.
    #[error("there is already an Archive in {}", .data.display())]
    AlreadyStarted {
        /// The data folder.
        data: PathBuf,
    },
    /// The settings file `archive` is missing.
    #[error(
        "{} holds items, but its settings file `archive` is missing: restore that file from a backup",
        .data.display()
    )]
    NoDescription {
        /// The data folder.
        data: PathBuf,
    },
    /// The folder's minter has other prefixes.
    #[error(
        "the folder {} already mints under {found}: use the same host and address, or another folder",
        .data.display()
    )]
    OtherPrefix {
        /// The data folder.
        data: PathBuf,
        /// The prefixes of that minter.
        found: String,
    },
    /// Another process holds the lock.
    #[error("another process is using the Archive in {}: retry when it is done", .data.display())]
    Held {
        /// The data folder.
        data: PathBuf,
    },
    /// Invalid label.
    #[error("`{label}` is not a valid label: {error}")]
    Label {
        /// What was given.
        label: String,
        /// Which rule it breaks.
        error: ParseError,
    },
    /// No item here has this label.
    #[error("no item here has the label {label}")]
    Unknown {
        /// The label.
        label: String,
    },
    /// The journal names the item, but its object cannot be read.
    #[error("the object of {label} is missing or damaged: restore it from another holder or from a backup")]
    Lost {
        /// The label.
        label: String,
    },
    /// The item is no longer kept here.
    #[error(
        "{label} is no longer held here: {}",
        .to.as_ref().map_or_else(|| "its copy was dropped".to_owned(), |to| format!("it was transferred to {to}"))
    )]
    Dropped {
        /// The label.
        label: String,
        /// The Archive that it was handed over to.
        to: Option<String>,
    },
    /// The item is being handed over to another Archive.
    #[error(
        "{label} is being transferred to {to}, which has not answered yet: nobody can change it until then"
    )]
    Granted {
        /// The label.
        label: String,
        /// The taker.
        to: String,
    },
    /// A transfer step that is not allowed, with the next step to take.
    #[error("{0}")]
    NotHandedOver(String),
    /// The transfer protocol denies the hand-over.
    #[error("{label} cannot be transferred: {no}")]
    NoHandover {
        /// The label.
        label: String,
        /// Why.
        no: crate::transfer_protocol::TransferDenied,
    },
    /// Several items here differ only in the spelling of this label.
    #[error("several items here differ only in the spelling of {label}: name one of {}", .paths.join(", "))]
    Ambiguous {
        /// The label.
        label: String,
        /// The items.
        paths: Vec<String>,
    },
    /// The label already belongs to an item.
    #[error("the label {label} belongs to the item {item} and is never reassigned")]
    Taken {
        /// The label.
        label: String,
        /// The item.
        item: String,
    },
    /// The label's object would contain, or be contained in, the object of another item.
    #[error("{label} cannot be stored: its folder would contain, or lie within, the folder of another item")]
    Nested {
        /// The label.
        label: String,
    },
    /// The label is under one of our prefixes but was never minted.
    #[error("{label} has a prefix of this Archive, but was not minted")]
    NotMinted {
        /// The label.
        label: String,
    },
    /// A second primary label of the same form.
    #[error("{label} is a second label of its form: further labels are aliases")]
    SecondLabel {
        /// The label.
        label: String,
    },
    /// The item needs no declaration to be the Original.
    #[error("the item is the Original in any case: do not declare it")]
    OriginalAnyway,
    /// A link that would form a cycle.
    #[error("{item} cannot be {link} {to}: the links would form a cycle")]
    Cycle {
        /// The item.
        item: String,
        /// The kind of link.
        link: &'static str,
        /// Where it would lead.
        to: String,
    },
    /// No stated link matches this decision.
    #[error(
        "{newer} states no link to which this decision applies{}", .stands.map(|stands| format!(" (it is {stands})")).unwrap_or_default()
    )]
    NoSuchLink {
        /// The newer item.
        newer: String,
        /// The state of the link, if there is one.
        stands: Option<&'static str>,
    },
    /// The item states several links.
    #[error("{newer} states several links: name the older item, one of {}", .older.join(", "))]
    SeveralLinks {
        /// The newer item.
        newer: String,
        /// The older ones.
        older: Vec<String>,
    },
    /// The limit of pending link proposals from other Archives is reached.
    #[error("too many link proposals are waiting for the operator: retry later")]
    TooManyProposals,
    /// The item was removed; removal is final.
    #[error("{label} was removed, and its label is never reused: deposit the item under a new label")]
    Removed {
        /// The label.
        label: String,
    },
    /// Only the tombstone is left.
    #[error("{label} was removed {at}: {reason}")]
    Gone {
        /// The label.
        label: String,
        /// When it was removed.
        at: String,
        /// Why.
        reason: String,
    },
    /// A Copy can be updated only where its Original is.
    #[error("{label} is a Copy here: update it where its Original is")]
    IsCopy {
        /// The label.
        label: String,
    },
    /// A Copy: the item can be removed only where its Original is.
    #[error(
        "{label} is a Copy here: remove the item where its Original is; a refresh then marks the copies as removed"
    )]
    RemoveCopy {
        /// The label.
        label: String,
    },
    /// The Archive service cannot be removed.
    #[error("{label} is the Archive service itself: it stays as long as the Archive")]
    IsService {
        /// The label.
        label: String,
    },
    /// The item was changed concurrently.
    #[error("{label} was changed in the meantime: look at it, then retry")]
    Changed {
        /// The label.
        label: String,
    },
    /// The update contains no change.
    #[error("the update contains no change")]
    NothingToChange,
    /// A file name that cannot be stored.
    #[error("the file {name} cannot be stored: {error}")]
    Name {
        /// The name.
        name: String,
        /// Why.
        error: OcflNameError,
    },
    /// Neither a file nor a folder.
    #[error("{} is {what}: only files and folders can be deposited", .path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The source file changed while it was read.
    #[error("{} changed while it was read: retry when nothing writes to it", .path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
    },
    /// The source overlaps the data folder.
    #[error("{} is, contains or lies within the data folder of this Archive: deposit something else", .path.display())]
    OverlapsDataFolder {
        /// What was given.
        path: PathBuf,
    },
    /// The source folder holds no file.
    #[error("{} contains no file", .path.display())]
    NoFiles {
        /// The folder.
        path: PathBuf,
    },
    /// Both files and a target URL were given.
    #[error("an item has either files or a target URL: deposit the files as a separate item")]
    FilesAndUrl,
    /// A record without files and without metadata.
    #[error("a record without files needs metadata: give at least a title (dc title=…)")]
    EmptyRecord,
    /// The target is not among the item's files.
    #[error("the target {target} is not one of the item's files: {}", first_few(.files))]
    Target {
        /// What was given.
        target: String,
        /// The files.
        files: Vec<String>,
    },
    /// An object whose description cannot be read.
    #[error("the object {path} is damaged: {what}")]
    DamagedObject {
        /// The object.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// An invalid bag.
    #[error("the bag {} is not valid: {what}", .path.display())]
    Bag {
        /// The bag.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An invalid table.
    #[error("the table {} cannot be used: {what}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An invalid value.
    #[error("{0}")]
    Value(String),
    /// A file or folder outside of the Archive could not be read or written.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The batch that held this change failed as a whole.
    #[error("{0}")]
    Batch(Arc<ArchiveError>),
    /// A restored Archive that is not confirmed yet: its Originals may have been handed over since
    /// the backup.
    #[error(
        "this Archive was restored from a backup: its Originals are served as Copies until its operator confirms that \
         none was transferred to another Archive since then"
    )]
    Restored,
    /// Writes are disabled after an earlier disk error.
    #[error("writing stopped after a disk error: repair the disk, then restart")]
    Stopped,
}

impl From<GranularityError> for ArchiveError {
    fn from(error: GranularityError) -> Self {
        match error {
            GranularityError::Mint(error) => ArchiveError::Mint(error),
            GranularityError::Storage(error) => ArchiveError::Storage(error),
        }
    }
}

impl ArchiveError {
    /// Whether the error is temporary: the Archive's fault, not the request's, so the client may
    /// retry.
    pub fn is_temporary(&self) -> bool {
        match self {
            ArchiveError::Held { .. } | ArchiveError::Stopped => true,
            ArchiveError::Batch(error) => error.is_temporary(),
            ArchiveError::Mint(MintError::WouldWait { .. } | MintError::Stopped(_)) => true,
            _ => false,
        }
    }

    pub(crate) fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| ArchiveError::Io { doing, path, error }
    }
}

fn first_few(files: &[String]) -> String {
    const MAX_LISTED_FILES: usize = 5;
    let mut text = files.iter().take(MAX_LISTED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if files.len() > MAX_LISTED_FILES {
        text.push_str(" and others");
    }
    text
}
