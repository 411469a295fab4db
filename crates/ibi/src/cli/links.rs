//! The commands for links between items.

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::Data;
use crate::cli::links_check::LinksCheck;

/// Links of items: decide editions and translations, check target URLs
///
/// A link is stated with the newer item. Readers are led along it once it is accepted where the Original
/// of the older item is. Links between items that one depositor may change are accepted at once, and so are
/// those from Archives that you trust; all others wait here for your word.
#[derive(Subcommand)]
pub(crate) enum LinksCommand {
    List(LinksList),
    Accept(LinksAccept),
    Refuse(LinksRefuse),
    Withdraw(LinksWithdraw),
    Trust(LinksTrust),
    Distrust(LinksDistrust),
    Trusted(LinksTrusted),
    Check(LinksCheck),
}

/// How a link stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LinkStanding {
    Proposed,
    Accepted,
    Refused,
    Withdrawn,
}

/// List links: status, kind, older item, newer item, Archive of the newer item
#[derive(Args)]
pub(crate) struct LinksList {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Only links that stand so
    #[arg(long)]
    pub(crate) status: Option<LinkStanding>,
    /// Print a JSON object per link
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which link is decided.
#[derive(Args)]
pub(crate) struct LinkChoice {
    #[command(flatten)]
    pub(crate) data: Data,
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

/// Accept a link: readers are led along it from now on
///
/// An item has one next edition: accepting a second one withdraws the first.
#[derive(Args)]
pub(crate) struct LinksAccept {
    #[command(flatten)]
    pub(crate) link: LinkChoice,
}

/// Refuse a proposed link: readers are not led along it
#[derive(Args)]
pub(crate) struct LinksRefuse {
    #[command(flatten)]
    pub(crate) link: LinkChoice,
}

/// Withdraw an accepted link: readers are no longer led along it
#[derive(Args)]
pub(crate) struct LinksWithdraw {
    #[command(flatten)]
    pub(crate) link: LinkChoice,
}

/// Accept links from an Archive at once, from now on
#[derive(Args)]
pub(crate) struct LinksTrust {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The label of its Archive service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,
}

/// Accept links from an Archive no longer at once
#[derive(Args)]
pub(crate) struct LinksDistrust {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The label of its Archive service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,
}

/// List the Archives whose links are accepted at once
#[derive(Args)]
pub(crate) struct LinksTrusted {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print a JSON object per Archive
    #[arg(long)]
    pub(crate) json: bool,
}
