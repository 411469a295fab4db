//! The commands of an Archive that concern other Archives too.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::Data;

/// What another Archive knows us by.
#[derive(Args)]
pub(crate) struct Theirs {
    /// File with a token of that Archive, role `holder` [default: the environment's IBI_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Bring copies of items from another Archive
///
/// An item comes with all its versions, its metadata and its history, under the same labels and at the same path, so that relative
/// links between copied items keep working. Every file is checked against its digest. What was interrupted is gone on with by
/// running the same command again; items that are here already, as they are there, are passed over. A copy that is behind is
/// brought up to date.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive copy dpi.inpe.br/banon/1998/08.02.08.56 --from http://archive.inpe.br --data archive
  ibi archive copy --prefix dpi.inpe.br/banon --from http://archive.inpe.br --data archive
  ibi archive copy --list theses.txt --from http://archive.inpe.br --token-file inpe.token --data archive")]
pub(crate) struct Copy {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    #[arg(group = "what")]
    pub(crate) ibi: Option<String>,
    /// The Archive that has it, as in `http://archive.inpe.br:8080`
    #[arg(long, value_name = "ARCHIVE")]
    pub(crate) from: String,
    /// All items whose first label begins so, but the Archive service
    #[arg(long, group = "what")]
    pub(crate) prefix: Option<String>,
    /// All items that were changed there since this date, as in 2026-11-16
    #[arg(long, value_name = "DATE", group = "what", value_parser = ibi_archive::holders::collection::since)]
    pub(crate) since: Option<String>,
    /// All items that are named in this file, one a line
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) list: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) theirs: Theirs,
    /// Print one JSON object an item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring copies up to date from where they came
///
/// Tells of each copy whether it was equal, behind (and is up to date now), ahead, altered, or removed where it came from (and says so
/// here from now on). One that was altered is left as it is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive refresh --data archive
  ibi archive refresh dpi.inpe.br/banon/1998/08.02.08.56 --data archive --json")]
pub(crate) struct Refresh {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Only this item
    pub(crate) ibi: Option<String>,
    /// Ask this Archive, whatever Archive a copy came from
    #[arg(long, value_name = "ARCHIVE")]
    pub(crate) from: Option<String>,
    /// Put what is there in the place of a copy that was altered here, with all its versions
    #[arg(long, requires = "ibi")]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) theirs: Theirs,
    /// Print one JSON object an item
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a giver keeps.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    Copy,
    Nothing,
}

/// Hand the Original of an item over to another Archive
///
/// Both Archives must be on line. The taker fetches a copy and checks it; then this Archive durably stops being the Original; then the
/// taker becomes it. At no moment do two Archives have the Original. From the middle step on there is no way back on one side; the
/// hand-over goes on by itself, also after a restart, until the taker has answered. If the taker is gone for ever, --taker-destroyed
/// is your word for that: the Original is here again.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --to http://archive.library.org.br --token-file library.token --data archive
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --to http://archive.library.org.br --keep nothing --data archive
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --taker-destroyed --data archive")]
pub(crate) struct Transfer {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    pub(crate) ibi: String,
    /// The taker, as in `http://archive.library.org.br:8080`
    #[arg(long, value_name = "ARCHIVE", group = "what")]
    pub(crate) to: Option<String>,
    /// What stays here
    #[arg(long, value_enum, default_value = "copy")]
    pub(crate) keep: Keep,
    /// The taker is gone for ever: the Original is here again
    #[arg(long, group = "what")]
    pub(crate) taker_destroyed: bool,
    /// Give up a hand-over that the taker was not granted yet
    #[arg(long, group = "what")]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) theirs: Theirs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a copy out of this Archive
///
/// The item itself stays where its Original is. Its labels stay taken here: nothing else is ever deposited under them.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive drop 8JMKD3MGP8W/34PGRBS --data archive --yes")]
pub(crate) struct Drop {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    pub(crate) ibi: String,
    /// Yes, really
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
