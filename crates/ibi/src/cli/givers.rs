//! Arguments of `ibi archive givers`.

use clap::{Args, Subcommand};

use crate::cli::DataArgs;

/// Manage the Archives trusted to transfer Originals to this one
///
/// An Archive that transfers an Original to this one needs a token of this Archive with the role
/// `holder`. Its claim to the Original must also be confirmed: by the Archive that the copy here
/// came from or, without a copy, by the resolver of `ibi archive serve --resolver`. Where neither
/// can confirm it, trust the giver explicitly with these commands.
#[derive(Subcommand)]
pub(crate) enum GiversCommand {
    Trust(GiversTrustArgs),
    Distrust(GiversDistrustArgs),
    List(GiversListArgs),
}

/// The giver, and the item that it is trusted for.
#[derive(Args)]
pub(crate) struct GiverArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// URL of the giver, such as `http://archive.inpe.br:8080`
    #[arg(value_name = "GIVER")]
    pub(crate) giver: String,
    /// Trust the giver only for this item, even if the source of the copy here does not answer
    /// [default: all items whose Original nobody else can confirm]
    pub(crate) ibi: Option<String>,
}

/// Accept Originals from an Archive without confirmation by another
///
/// With an item: use this when the Archive that the copy here came from is permanently unreachable.
/// Without an item: use this for items that were never here, while there is no resolver. If another
/// Archive claims the Original, or reports that the item was removed, the transfer is still
/// refused.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive givers trust http://archive.inpe.br --data archive
  ibi archive givers trust http://archive.inpe.br 8JMKD3MGP8W/34PGRBS --data archive")]
pub(crate) struct GiversTrustArgs {
    #[command(flatten)]
    pub(crate) choice: GiverArgs,
}

/// Revoke a trust given with `trust`
#[derive(Args)]
pub(crate) struct GiversDistrustArgs {
    #[command(flatten)]
    pub(crate) choice: GiverArgs,
}

/// List the trusted givers and the items they are trusted for
#[derive(Args)]
pub(crate) struct GiversListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
