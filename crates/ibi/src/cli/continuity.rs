//! Arguments for migrating existing collections, and for settings.

use std::path::PathBuf;

use clap::Args;
use ibi_id::Granularity;

use crate::cli::DataArgs;
use crate::cli::outgoing::OutgoingArgs;
use crate::cli::serve::url;

/// The labels and dates that an item had at another Archive.
#[derive(Args)]
pub(crate) struct ProvenanceArgs {
    /// Existing label of the metadata; one per form [default: a new label]
    #[arg(long, value_name = "LABEL")]
    pub(crate) metadata_label: Vec<String>,
    /// Time of creation at the other Archive, such as 1998-08-02T08:56:00Z; requires --label
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) created: Option<String>,
    /// Time of the last update at the other Archive; requires --label
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) updated: Option<String>,
    /// Time of creation of the metadata at the other Archive; requires --label [default: --created]
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) metadata_created: Option<String>,
    /// Time of the last metadata update at the other Archive; requires --label [default: --updated]
    #[arg(long, value_name = "TIME", requires = "label")]
    pub(crate) metadata_updated: Option<String>,
}

/// Show or change how the Archive identifies itself to resolvers
///
/// Without options, only shows the settings. A running server applies changes immediately, but
/// announces a new registered label to the resolver at its next start.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive settings --data archive
  ibi archive settings --data archive --registered-label 8JMKD3MGP8W/34PGRBS
  ibi archive settings --data archive --platform-software dpi.inpe.br/banon/1998/08.02.08.56")]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Label under which the Archive service is registered at the resolver: either form, or an
    /// alias
    #[arg(long, value_name = "LABEL")]
    pub(crate) registered_label: Option<String>,
    /// Label of the software that the Archive runs, sent as `ibi.platformsoftware`; empty for none
    #[arg(long, value_name = "LABEL")]
    pub(crate) platform_software: Option<String>,
    /// Operator name shown in histories and tombstones for commands run on this folder; empty for
    /// `operator`
    #[arg(long, value_name = "NAME")]
    pub(crate) operator_name: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change the settings of a minter
///
/// The granularity applies to `ibi mint` and to the items of an Archive, unless a call gives its
/// own.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi minter set --data archive --granularity 1")]
pub(crate) struct MinterSetArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Minimum seconds between dates: 60, 1, 0.1 … 1e-9
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Granularity,
}

/// Import a tree of uniform repositories: `<rep>/doc/…`, the URLib layout since 1995
///
/// Each folder with a `doc` in it, four levels deep (host, word, year, date) or two (opaque and
/// legacy labels), becomes an item under that label, with the files of its `doc`. If `doc` holds an
/// `oai_dc` record that names another repository, it becomes the metadata of that one. Items are
/// imported as Copies; `--original` declares them Originals, after asking a resolver whether any
/// Archive has them. Rerun the command to resume: what was imported already is skipped. Symbolic
/// links are not followed, and programs are never run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive import /usr/local/urlib/col --data archive --dry-run
  ibi archive import /usr/local/urlib/col --data archive --json > report.jsonl
  ibi archive import /usr/local/urlib/col --data archive --original --resolver http://urlib.net")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Root folder of the tree
    #[arg(value_name = "DIR")]
    pub(crate) tree: PathBuf,
    /// Only report what would be imported
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Declare the items Originals, unless the resolver finds the Original at another Archive
    #[arg(long, requires = "resolver")]
    pub(crate) original: bool,
    /// Resolver to ask, such as `http://urlib.net`
    #[arg(long, value_name = "RESOLVER", requires = "original")]
    pub(crate) resolver: Option<String>,
    #[command(flatten)]
    pub(crate) outgoing: OutgoingArgs,
    /// Print one JSON object per repository
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the newest version of each item as plain folders: `<rep>/doc/…`
///
/// In the plain tree, relative links between items work on disk, as they do at `/col` over HTTP.
/// The tree is derived from the Archive and can be deleted; changes to it do not affect the
/// Archive. Rerun the command to update it. Each item is replaced atomically. On filesystems that
/// can share bytes between files (Btrfs, XFS) it uses no extra space. Removed items disappear;
/// items that are not public are left out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive plain-tree --data archive --out /srv/col
  ibi archive plain-tree --data archive --out /srv/col --watch")]
pub(crate) struct PlainTreeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Folder to create or update
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Keep updating until stopped
    #[arg(long)]
    pub(crate) watch: bool,
    /// Include items that are embargoed or restricted
    #[arg(long)]
    pub(crate) all: bool,
    /// Hard-link the Archive's own files, made read-only, where bytes cannot be shared; only for
    /// trees that nobody writes to
    #[arg(long)]
    pub(crate) link: bool,
    /// Resolver whose persistent URLs the metadata records contain, such as `http://urlib.net`
    #[arg(long, value_name = "RESOLVER", value_parser = url)]
    pub(crate) resolver: Option<String>,
    /// Print one JSON object per change
    #[arg(long)]
    pub(crate) json: bool,
}
