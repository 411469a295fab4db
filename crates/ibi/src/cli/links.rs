//! Arguments of `ibi archive links`.

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::DataArgs;
use crate::cli::links_check::LinksCheckArgs;

/// Review links between editions and translations; check target URLs
///
/// A link is stated in the metadata of the newer item. Readers follow it once the Archive that
/// holds the Original of the older item has accepted it. Links between items that one depositor may
/// change are accepted automatically, and so are links from trusted Archives. All others wait for
/// your decision.
#[derive(Subcommand)]
pub(crate) enum LinksCommand {
    List(LinksListArgs),
    Accept(LinksAcceptArgs),
    Refuse(LinksRefuseArgs),
    Withdraw(LinksWithdrawArgs),
    Trust(LinksTrustArgs),
    Distrust(LinksDistrustArgs),
    Trusted(LinksTrustedArgs),
    Check(LinksCheckArgs),
}

/// The status of a link.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LinkStatusArg {
    Proposed,
    Accepted,
    Refused,
    Withdrawn,
}

/// List links: status, kind, older item, newer item, Archive of the newer item
#[derive(Args)]
pub(crate) struct LinksListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// List only links with this status
    #[arg(long)]
    pub(crate) status: Option<LinkStatusArg>,
    /// Print one JSON object per link
    #[arg(long)]
    pub(crate) json: bool,
}

/// The link to decide on.
#[derive(Args)]
pub(crate) struct LinkArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The newer item: the next edition, or the translation
    #[arg(value_name = "NEWER")]
    pub(crate) newer: String,
    /// The older item, if the newer one states several links
    #[arg(long, value_name = "OLDER")]
    pub(crate) of: Option<String>,
    /// Print the link as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Accept a link, so that readers follow it
///
/// An item has one next edition: accepting a second one withdraws the first.
#[derive(Args)]
pub(crate) struct LinksAcceptArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
}

/// Refuse a proposed link, so that readers do not follow it
#[derive(Args)]
pub(crate) struct LinksRefuseArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
}

/// Withdraw an accepted link, so that readers no longer follow it
#[derive(Args)]
pub(crate) struct LinksWithdrawArgs {
    #[command(flatten)]
    pub(crate) link: LinkArgs,
}

/// Accept links from an Archive automatically
#[derive(Args)]
pub(crate) struct LinksTrustArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Label of the Archive service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,
}

/// Stop accepting links from an Archive automatically
#[derive(Args)]
pub(crate) struct LinksDistrustArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Label of the Archive service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,
}

/// List the Archives whose links are accepted automatically
#[derive(Args)]
pub(crate) struct LinksTrustedArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per Archive
    #[arg(long)]
    pub(crate) json: bool,
}
