//! Arguments of the commands that involve other Archives.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::DataArgs;
use crate::cli::outgoing::OutgoingArgs;

/// Credentials and network options for another Archive.
#[derive(Args)]
pub(crate) struct PeerArgs {
    /// File with a token of the other Archive, role `holder` [default: IBI_TOKEN, if set]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outgoing: OutgoingArgs,
}

/// Copy items from another Archive
///
/// Copies each item with all versions, metadata and history, under the same labels and at the same
/// path, so that relative links between copied items keep working. Every file is verified against
/// its digest. Items that are already up to date are skipped, and outdated copies are updated.
/// Rerun the command to resume after an interruption.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive copy dpi.inpe.br/banon/1998/08.02.08.56 --from http://archive.inpe.br --data archive
  ibi archive copy --prefix dpi.inpe.br/banon --from http://archive.inpe.br --data archive
  ibi archive copy --list theses.txt --from http://archive.inpe.br --token-file inpe.token --data archive")]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    #[arg(group = "what")]
    pub(crate) ibi: Option<String>,
    /// URL of the source Archive, such as `http://archive.inpe.br:8080`
    #[arg(long, value_name = "ARCHIVE")]
    pub(crate) from: String,
    /// Copy all items whose first label begins with this prefix, except the Archive service
    #[arg(long, group = "what")]
    pub(crate) prefix: Option<String>,
    /// Copy all items changed there since this date, such as 2026-11-16
    #[arg(long, value_name = "DATE", group = "what", value_parser = ibi_archive::replication::bulk_replication::parse_since)]
    pub(crate) since: Option<String>,
    /// Copy the items listed in this file, one label per line
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) list: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) peer_args: PeerArgs,
    /// Print one JSON object per item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Update copies from the Archives that they came from
///
/// Reports for each copy whether it is equal, behind (and now updated), ahead, altered, or removed
/// at its source (and now marked as removed here). An altered copy is not changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive refresh --data archive
  ibi archive refresh dpi.inpe.br/banon/1998/08.02.08.56 --data archive --json")]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Update only this item
    pub(crate) ibi: Option<String>,
    /// Use this Archive instead of the recorded source
    #[arg(long, value_name = "ARCHIVE")]
    pub(crate) from: Option<String>,
    /// Replace a copy that was altered here, with all its versions
    #[arg(long, requires = "ibi")]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) peer_args: PeerArgs,
    /// Print one JSON object per item
    #[arg(long)]
    pub(crate) json: bool,
}

/// What stays at the giver after a transfer.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepArg {
    Copy,
    Nothing,
}

/// Transfer the Original of an item to another Archive
///
/// Both Archives must be online. The recipient fetches and verifies a copy; then this Archive
/// durably gives up the Original; then the recipient takes it over. No two Archives hold the
/// Original at any moment. From the second step on, the transfer cannot be cancelled by one side:
/// it continues in the background, also after a restart, until the recipient has answered. If the
/// recipient is permanently lost, `--taker-destroyed` makes this copy the Original again.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --to http://archive.library.org.br --token-file library.token --data archive
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --to http://archive.library.org.br --keep nothing --data archive
  ibi archive transfer 8JMKD3MGP8W/34PGRBS --taker-destroyed --data archive")]
pub(crate) struct TransferArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    pub(crate) ibi: String,
    /// URL of the recipient, such as `http://archive.library.org.br:8080`
    #[arg(long, value_name = "ARCHIVE", group = "what")]
    pub(crate) to: Option<String>,
    /// What this Archive keeps
    #[arg(long, value_enum, default_value = "copy")]
    pub(crate) keep: KeepArg,
    /// Assert that the recipient is permanently lost, and make this copy the Original again
    #[arg(long, group = "what")]
    pub(crate) taker_destroyed: bool,
    /// Cancel a transfer that was not granted yet
    #[arg(long, group = "what")]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) peer_args: PeerArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove a copy from this Archive
///
/// The Original at the other Archive is not affected. The labels stay reserved here: nothing else
/// can be deposited under them.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive drop 8JMKD3MGP8W/34PGRBS --data archive --yes")]
pub(crate) struct DropArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    pub(crate) ibi: String,
    /// Confirm the removal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
