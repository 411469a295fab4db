//! Commands and options for going on from what exists.

use std::path::PathBuf;

use clap::Args;
use ibi_id::Granularity;

use crate::cli::Data;

/// What an item has from elsewhere, beside its label.
#[derive(Args)]
pub(crate) struct BroughtAlong {
    /// A label that the metadata have already; one a form [default: a new one]
    #[arg(long, value_name = "LABEL")]
    pub(crate) metadata_label: Vec<String>,
    /// When it was created elsewhere, as in 1998-08-02T08:56:00Z; with --label
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) created: Option<String>,
    /// When it was last updated elsewhere, likewise
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) updated: Option<String>,
    /// When its metadata were last updated elsewhere, likewise [default: as --updated]
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) metadata_updated: Option<String>,
}

/// Show or change how the Archive names itself and its software to resolvers
///
/// Without options it only shows. A server of the folder takes changes over at once; to a resolver
/// the registered label is told when the server starts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive settings --data archive
  ibi archive settings --data archive --registered-label 8JMKD3MGP8W/34PGRBS
  ibi archive settings --data archive --platform-software dpi.inpe.br/banon/1998/08.02.08.56")]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The label of the Archive service that it is registered with at its resolver: either form, or
    /// an alias
    #[arg(long, value_name = "LABEL")]
    pub(crate) registered_label: Option<String>,
    /// The label of the software that the Archive runs, told as `ibi.platformsoftware`; empty: it
    /// has none
    #[arg(long, value_name = "LABEL")]
    pub(crate) platform_software: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change the settings of a minter
///
/// The granularity is what labels are minted with when a call names none: by `ibi mint`, and for
/// items of an Archive.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi minter set --data archive --granularity 1")]
pub(crate) struct MinterSet {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Seconds between dates at the least: 60, 1, 0.1 … 1e-9
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Granularity,
}

/// Bring in a tree of uniform repositories: `<rep>/doc/…`, as it was laid out since 1995
///
/// Each folder with a `doc` in it, four folders down (host, word, year, date) or two (opaque and
/// legacy labels), becomes an item under that label, with the files of its `doc`. A repository
/// whose `doc` holds an `oai_dc` record that names another one is the metadata of that. Items are
/// Copies; `--original` declares them Originals, after asking a resolver whether any Archive has
/// them. Rerun the command to resume: what is here already is passed over. Links are not followed,
/// programs never run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive import /usr/local/urlib/col --data archive --dry-run
  ibi archive import /usr/local/urlib/col --data archive --json > report.jsonl
  ibi archive import /usr/local/urlib/col --data archive --original --resolver http://urlib.net")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The folder that the tree begins in
    #[arg(value_name = "DIR")]
    pub(crate) tree: PathBuf,
    /// Only report what would be brought in
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Declare the items Originals, unless another Archive that the resolver knows has the Original
    #[arg(long, requires = "resolver")]
    pub(crate) original: bool,
    /// The resolver to ask, as in `http://urlib.net`
    #[arg(long, value_name = "RESOLVER", requires = "original")]
    pub(crate) resolver: Option<String>,
    /// Print one JSON object a repository
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lay the newest version of each item out as plain folders: `<rep>/doc/…`
///
/// In the plain tree, relative links between items work on disk, as they do at `/col` over HTTP. It
/// is made from the Archive and can be thrown away; what is changed in it changes nothing in the
/// Archive. Rerun the command to bring it up to date. Each item is replaced at once. Where the
/// filesystem can share bytes between files (Btrfs, XFS), it takes no room of its own. Removed
/// items vanish; items that are not open to all are left out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive plain-tree --data archive --out /srv/col
  ibi archive plain-tree --data archive --out /srv/col --watch")]
pub(crate) struct PlainTreeArgs {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The folder to make, or to bring up to date
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Keep it up to date until stopped
    #[arg(long)]
    pub(crate) watch: bool,
    /// Lay out items too that are closed, or open only to some
    #[arg(long)]
    pub(crate) all: bool,
    /// Hard-link the Archive's own files, made read-only, where bytes cannot be shared: only for
    /// trees that nobody writes to
    #[arg(long)]
    pub(crate) link: bool,
    /// Print one JSON object a change
    #[arg(long)]
    pub(crate) json: bool,
}
