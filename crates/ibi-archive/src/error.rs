//! Why something was refused.

mod minting;

use std::path::PathBuf;
use std::sync::Arc;

use ibi_id::ParseError;
use ibi_store::KeepError;
use ibi_store::ocfl::BadName;

pub use minting::{Refusal, Stop};

/// What an Archive could not, or would not, do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store failed, or found damage.
    #[error("{0}")]
    Keep(#[from] KeepError),
    /// No label could be had.
    #[error("{0}")]
    Mint(#[from] Refusal),
    /// There is no such draft.
    #[error("there is no such draft, or it was published or deleted")]
    NoDraft,
    /// A draft that is just being published.
    #[error("this draft is being published: ask for it again in a moment")]
    Publishing,
    /// Metadata go with their item.
    #[error("{label} is the metadata of {item}, and goes only with it: to remove both, name the item")]
    IsMetadata {
        /// What was given.
        label: String,
        /// The item.
        item: String,
    },
    /// What arrived over the network was cut off.
    #[error("the file did not arrive whole: {0}. Nothing of it was kept: send it again")]
    Arriving(std::io::Error),
    /// There is no Archive.
    #[error("there is no Archive in {}: `ibi archive init` starts one. If there was, is its disk mounted?", .data.display())]
    NoArchive {
        /// The data folder.
        data: PathBuf,
    },
    /// There is one already.
    #[error("there is an Archive in {} already: `ibi archive list` tells of it", .data.display())]
    AlreadyStarted {
        /// The data folder.
        data: PathBuf,
    },
    /// Its description is gone.
    #[error(
        "there are items in {} already, and the file `archive`, which says what Archive it is, is missing: put it back from a \
         backup", .data.display()
    )]
    NoDescription {
        /// The data folder.
        data: PathBuf,
    },
    /// The minter of the folder has other prefixes.
    #[error("the folder {} mints under {found} already: start the Archive with the same host and address, or in another folder", .data.display())]
    OtherPrefix {
        /// The data folder.
        data: PathBuf,
        /// The prefixes that it has.
        found: String,
    },
    /// Another process works on it.
    #[error("another process works on the Archive in {}: try again when it is done", .data.display())]
    Held {
        /// The data folder.
        data: PathBuf,
    },
    /// Not a label.
    #[error("`{label}` is not a valid label: {error}")]
    Label {
        /// What was given.
        label: String,
        /// Which rule it breaks.
        error: ParseError,
    },
    /// Nothing has this label here.
    #[error("no item here has the label {label}: `ibi archive list` tells which there are")]
    Unknown {
        /// The label.
        label: String,
    },
    /// The journal tells of it, and its object cannot be read.
    #[error(
        "the object of {label} is missing or damaged: `ibi archive copy {label} --from` another holder brings it back as it was; or put \
         it back from a backup, then run `ibi archive rebuild`"
    )]
    Lost {
        /// The label.
        label: String,
    },
    /// It was here once.
    #[error(
        "{label} is no longer kept here: {}. `ibi archive copy` brings a copy back",
        .to.as_ref().map_or_else(|| "its copy was taken out".to_owned(), |to| format!("it was handed over to {to}"))
    )]
    Dropped {
        /// The label.
        label: String,
        /// The Archive that it was handed over to.
        to: Option<String>,
    },
    /// It is on its way to another Archive.
    #[error(
        "{label} is being handed over to {to}, which has not answered yet: it is nobody's to change until then. If that Archive is at \
         another address now, say `ibi archive transfer {label} --to` that; if it is gone for ever, `--taker-destroyed`"
    )]
    Granted {
        /// The label.
        label: String,
        /// The taker.
        to: String,
    },
    /// What hand-overs do not allow, with the next step.
    #[error("{0}")]
    NotHandedOver(String),
    /// A hand-over that may not be.
    #[error("{label} cannot be handed over: {no}")]
    NoHandover {
        /// The label.
        label: String,
        /// Why.
        no: crate::holders::handover::No,
    },
    /// Items that were spelled apart long ago.
    #[error("{label} is spelled differently by several items here: say which of {} is meant", .paths.join(", "))]
    Ambiguous {
        /// The label.
        label: String,
        /// The items.
        paths: Vec<String>,
    },
    /// The label has an item.
    #[error("the label {label} is that of the item {item} already, and is never given to another")]
    Taken {
        /// The label.
        label: String,
        /// The item.
        item: String,
    },
    /// The label lies in or above the object of another item.
    #[error(
        "{label} cannot be kept beside what lies at the same place in the tree: one would contain the other"
    )]
    Nested {
        /// The label.
        label: String,
    },
    /// A label under a prefix of ours that was not given out.
    #[error("{label} was not minted here yet: `ibi mint` gives out labels, or leave --label out")]
    NotMinted {
        /// The label.
        label: String,
    },
    /// Two primary labels of one form.
    #[error("{label} is a second label of its form: the others are aliases, say --alias")]
    SecondLabel {
        /// The label.
        label: String,
    },
    /// `--original` says nothing new.
    #[error("the item is the Original anyway: leave --original out")]
    OriginalAnyway,
    /// A link that leads back to the item.
    #[error("{item} cannot be {link} {to}: that leads back to it")]
    Cycle {
        /// The item.
        item: String,
        /// The kind of link.
        link: &'static str,
        /// Where it would lead.
        to: String,
    },
    /// There is no link that this can be said of.
    #[error(
        "{newer} states no link to an item whose Original is here that this can be said of{}: `ibi archive links list` shows \
         the links", .stands.map(|stands| format!(" (it is {stands})")).unwrap_or_default()
    )]
    NoSuchLink {
        /// The newer item.
        newer: String,
        /// How the link stands, if there is one.
        stands: Option<&'static str>,
    },
    /// It states several links.
    #[error("{newer} states several links: say to which item with `--of`, one of {}", .older.join(", "))]
    SeveralLinks {
        /// The newer item.
        newer: String,
        /// The older ones.
        older: Vec<String>,
    },
    /// Other Archives propose more than an operator can look at.
    #[error("too many proposals of links wait for the operator: they are not taken for now")]
    TooManyProposals,
    /// Removed items stay so.
    #[error("{label} was removed: its label is never used again. Deposit the item anew, under a new label")]
    Removed {
        /// The label.
        label: String,
    },
    /// Only a tombstone is there.
    #[error("{label} was removed {at}: {reason}. `ibi archive show` tells what is left of it")]
    Gone {
        /// The label.
        label: String,
        /// When it was removed.
        at: String,
        /// Why.
        reason: String,
    },
    /// Copies are changed where the original is.
    #[error(
        "{label} is a Copy here: update it where the Original is. If this is to be the Original, and no other Archive has \
         it, say --original"
    )]
    IsCopy {
        /// The label.
        label: String,
    },
    /// The item is not here to be removed, only a copy of it.
    #[error(
        "{label} is a Copy here: remove the item where its Original is, and copies say so when they are refreshed. To take \
         this copy out, say `ibi archive drop {label}`"
    )]
    RemoveCopy {
        /// The label.
        label: String,
    },
    /// The Archive service cannot go.
    #[error("{label} is the Archive service itself: it goes with the Archive only")]
    IsService {
        /// The label.
        label: String,
    },
    /// Somebody else changed it meanwhile.
    #[error("{label} was changed meanwhile: look at it, then try again")]
    Changed {
        /// The label.
        label: String,
    },
    /// Nothing would change.
    #[error("nothing to change was given: a path, --dc, or one of the other options")]
    NothingToChange,
    /// A file name that cannot be kept.
    #[error("the file {name} cannot be kept: {error}")]
    Name {
        /// The name.
        name: String,
        /// Why.
        error: BadName,
    },
    /// Not a file nor a folder.
    #[error("{} is {what}: only files and folders can be deposited. Give what it stands for, or take it out", .path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A file was written to meanwhile.
    #[error("{} changed while it was read: try again when it is at rest", .path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
    },
    /// The Archive itself.
    #[error("{} is the data folder of this Archive, or within it, or around it: deposit something else", .path.display())]
    Itself {
        /// What was given.
        path: PathBuf,
    },
    /// Nothing to deposit.
    #[error(
        "{} has no file in it. A record of something that is not here has none, and is deposited with --record",
        .path.display()
    )]
    NoFiles {
        /// The folder.
        path: PathBuf,
    },
    /// Files, and a URL instead of files.
    #[error("an item has files or a target URL, not both: deposit the files as an item of its own")]
    FilesAndUrl,
    /// A record of which nothing is said.
    #[error("a record without files is its metadata: say at least a title (dc title=…)")]
    EmptyRecord,
    /// The target is not there.
    #[error("the target {target} is not among the files of the item: {}", some_of(.files))]
    Target {
        /// What was given.
        target: String,
        /// The files.
        files: Vec<String>,
    },
    /// A description of the item cannot be read.
    #[error("the object {path} is damaged: {what}")]
    DamagedObject {
        /// The object.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A bag is not whole.
    #[error("the bag {} is not valid: {what}", .path.display())]
    Bag {
        /// The bag.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A table that is not one.
    #[error("the table {} cannot be used: {what}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Values that are not what they should be.
    #[error("{0}")]
    Value(String),
    /// A file or folder outside of the Archive could not be read or written.
    #[error("cannot {doing} {}: {error}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Several changes that were made together failed together.
    #[error("{0}")]
    Together(Arc<ArchiveError>),
    /// An Archive that was brought back, and may have been overtaken.
    #[error(
        "this Archive was restored from a backup: its originals answer Copy until you say that none was handed over to \
         another Archive since that backup. If so, run `ibi archive confirm`"
    )]
    Restored,
    /// An earlier error of the disk.
    #[error("nothing more is written after an earlier error of the disk: mend it, then start again")]
    Stopped,
}

impl ArchiveError {
    pub(crate) fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| ArchiveError::Io { doing, path, error }
    }
}

fn some_of(files: &[String]) -> String {
    const FEW: usize = 5;
    let mut text = files.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    if files.len() > FEW {
        text.push_str(" and others");
    }
    text
}
