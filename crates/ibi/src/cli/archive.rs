//! Arguments of `ibi archive`, `ibi backup` and `ibi restore`.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use ibi_archive::access::AccessRule;
use ibi_archive::language::Language;
use ibi_archive::target_url::TargetUrl;

use crate::cli::continuity::{ImportArgs, PlainTreeArgs, ProvenanceArgs, SettingsArgs};
use crate::cli::givers::GiversCommand;
use crate::cli::links::LinksCommand;
use crate::cli::outgoing::OutgoingArgs;
use crate::cli::replication::{CopyArgs, DropArgs, PeerArgs, RefreshArgs, TransferArgs};
use crate::cli::serve::{ArchiveServeArgs, StatsArgs, TokenCommand};
use crate::cli::{DataArgs, address, host, port};

#[derive(Subcommand)]
pub(crate) enum ArchiveCommand {
    Init(ArchiveInitArgs),
    Settings(SettingsArgs),
    Deposit(Box<DepositArgs>),
    Import(ImportArgs),
    Update(Box<UpdateArgs>),
    Show(ShowArgs),
    List(ListArgs),
    Remove(RemoveArgs),
    Purge(PurgeArgs),
    Copy(CopyArgs),
    Refresh(RefreshArgs),
    Transfer(TransferArgs),
    Drop(DropArgs),
    #[command(subcommand)]
    Givers(GiversCommand),
    #[command(subcommand)]
    Links(LinksCommand),
    Export(ExportArgs),
    PlainTree(PlainTreeArgs),
    Audit(AuditArgs),
    Rebuild(RebuildArgs),
    Salvage(SalvageArgs),
    Confirm(ConfirmArgs),
    Serve(ArchiveServeArgs),
    #[command(subcommand)]
    Token(TokenCommand),
    Stats(StatsArgs),
}

/// Create an Archive in a data folder
///
/// Creates the data folder with a minter, and the Archive service as its first item. The host name
/// and the IP address must belong to this machine alone; see `ibi minter init`. A folder that
/// already mints under the same host and address is reused. To continue an existing Archive, keep
/// the label that its service is registered with: pass `--service`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive init --data archive --host archive.library.org.br
  ibi archive init --data archive --host archive.library.org.br --port 8080 --ip 150.163.34.243
  ibi archive init --data archive --host mtc-m21.sid.inpe.br --service sid.inpe.br/mtc-m21/2012/06.05.15.34.39")]
pub(crate) struct ArchiveInitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Host name, for labels in the form `rep`; without it, the command proposes the name of this
    /// machine
    #[arg(long, value_parser = host)]
    pub(crate) host: Option<String>,
    /// Port of the host [default: 80, omitted from labels]
    #[arg(long, value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// IP address, for labels in the form `ibip`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port of the address [default: 800, omitted from labels]
    #[arg(long, value_name = "PORT", requires = "ip", value_parser = port)]
    pub(crate) ip_port: Option<NonZeroU16>,
    /// Existing label of the Archive service; one per form, the registered one first [default: a
    /// new label]
    #[arg(long, value_name = "LABEL")]
    pub(crate) service: Vec<String>,
    /// Existing label of the metadata of the service; one per form [default: a new label]
    #[arg(long, value_name = "LABEL")]
    pub(crate) service_metadata: Vec<String>,
    /// Operator name shown in histories and tombstones for commands run on this folder [default:
    /// operator]
    #[arg(long, value_name = "NAME")]
    pub(crate) operator_name: Option<String>,
    /// Accept a host or address that is not globally unique; its labels are not unique either
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print the Archive service as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The description of an item.
#[derive(Args)]
pub(crate) struct DescriptionArgs {
    /// Dublin Core statement `element=value` or `element@language=value`, or a file of such lines
    /// or of XML (`oai_dc`); repeatable
    #[arg(long, value_name = "ELEMENT=VALUE|FILE")]
    pub(crate) dc: Vec<String>,
    /// Language of the item, such as `pt` or `pt-BR`
    #[arg(long)]
    pub(crate) language: Option<OptionalValue<Language>>,
    /// Item that this one translates
    #[arg(long, value_name = "IBI")]
    pub(crate) translation_of: Option<OptionalValue<String>>,
    /// Item that this one is the next edition of
    #[arg(long, value_name = "IBI")]
    pub(crate) next_edition_of: Option<OptionalValue<String>>,
    /// File that the persistent URL opens [default: the only file, or index.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) target: Option<String>,
    /// Resolve to this URL (http or https) instead of to a file, such as a Web service or external
    /// content
    #[arg(long, value_name = "URL", group = "what")]
    pub(crate) url: Option<OptionalValue<TargetUrl>>,
    /// Who may read the files: `public`, `ip:RANGE` (others see only the metadata) or `until:DATE`
    /// (embargoed until then)
    #[arg(long, value_name = "RULE")]
    pub(crate) access: Option<AccessRule>,
    /// Additional label that resolves to the item; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) alias: Vec<String>,
    /// Never allow the Original to be transferred to another Archive
    #[arg(long)]
    pub(crate) non_transferable: bool,
}

/// An optional value: an empty argument means none.
#[derive(Clone)]
pub(crate) struct OptionalValue<T>(pub(crate) Option<T>);

impl<T: std::str::FromStr> std::str::FromStr for OptionalValue<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// Deposit a file, a folder, a bag, a URL, a record, or the rows of a table
///
/// Mints labels for the item and for its metadata. Deposits are atomic. A folder with a `bagit.txt`
/// is a bag: it is validated, and its payload is deposited. With `--url` the item has no files and
/// its persistent URL redirects to that URL. With `--record` the item only describes something that
/// is not in the Archive, and its persistent URL opens the metadata.
///
/// A table is a CSV file with a header row. Its columns are `file` (relative to the table), `url`,
/// `record`, `language`, `translation-of`, `next-edition-of`, `target`, `access`, `label`,
/// `original`, `alias`, `metadata-label`, `created`, `updated`, `metadata-created`,
/// `metadata-updated`, `non-transferable`, and `dc.title`, `dc.title@pt` and so on. Separate
/// multiple values in a field with `||`. Rerun the command to resume an interrupted table; no row is
/// deposited twice.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive deposit report.pdf --data archive --dc title='Annual report' --dc title@pt='Relatório anual' --language en
  ibi archive deposit site/ --data archive --target index.html --access until:2030-01-01
  ibi archive deposit old.pdf --data archive --label dpi.inpe.br/banon/1998/08.02.08.56
  ibi archive deposit --url https://maps.library.org.br/wms --data archive --dc title='Map service'
  ibi archive deposit --record --data archive --dc title='Globe of 1622' --dc type=PhysicalObject
  ibi archive deposit --table theses.csv --data archive --dry-run")]
pub(crate) struct DepositArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// File, folder or bag
    #[arg(group = "what")]
    pub(crate) path: Option<PathBuf>,
    /// Deposit metadata only: a record of something that is not in the Archive
    #[arg(long, group = "what")]
    pub(crate) record: bool,
    /// Table (CSV) with one item per row
    #[arg(long, value_name = "FILE", group = "what", conflicts_with_all = [
        "dc", "language", "translation_of", "next_edition_of", "target", "access", "alias", "non_transferable", "label",
        "original", "metadata_label", "created", "updated",
    ])]
    pub(crate) table: Option<PathBuf>,
    /// Check the deposit without making it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    /// Existing label of the item: minted here and unused, or from another Archive; one per form
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// With a label from another Archive: declare this the Original, held by no other Archive
    /// [default: it is a Copy]
    #[arg(long, requires = "label")]
    pub(crate) original: bool,
    /// The resolver to ask whether another Archive has the Original, or removed it
    #[arg(long, value_name = "RESOLVER", requires = "original")]
    pub(crate) resolver: Option<String>,
    #[command(flatten)]
    pub(crate) outgoing: OutgoingArgs,
    #[command(flatten)]
    pub(crate) provenance: ProvenanceArgs,
    /// Print one JSON object per item, or per row
    #[arg(long)]
    pub(crate) json: bool,
}

/// Create a new version of an item
///
/// With a path, the new version has the files of that path; without one, it keeps the files. `--dc`
/// statements replace the statements of the same element; a `--dc` file replaces all metadata.
/// Options that are not given keep their values. An empty value clears a language, a link or a URL.
/// A URL replaces the files, and files replace a URL. Earlier versions do not change.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive update inpe.br/archive/2026/11.15.21.26 report-corrected.pdf --data archive
  ibi archive update 8JMKD3MGP8W/34PGRBS --data archive --dc title='A better title' --translation-of ''
  ibi archive update 8JMKD3MGP8W/34PGRBS --data archive --url https://maps.library.org.br/v2/wms")]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    pub(crate) ibi: String,
    /// File, folder or bag
    #[arg(conflicts_with = "url")]
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    /// Make this Copy the Original; no other Archive may hold the Original
    #[arg(long)]
    pub(crate) original: bool,
    /// Proceed even if the Archive that it came from, or was transferred to, claims the Original or
    /// does not answer
    #[arg(long, requires = "original")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) outgoing: OutgoingArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show an item: labels, state, metadata, files, history
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive show 8JMKD3MGP8W/34PGRBS --data archive --json")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item, by any of its labels
    pub(crate) ibi: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the items of the Archive
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive list --data archive --json | jq -r .rep")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove an item, leaving a tombstone; its labels are never reused
///
/// The tombstone shows the reason, who removed the item, and the last metadata. The bytes stay in
/// the item's versions on disk but are no longer served; `--purge` destroys them immediately. Both
/// are permanent.
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi archive remove 8JMKD3MGP8W/34PGRBS --data archive --reason 'withdrawn by its author' --yes")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    pub(crate) ibi: String,
    /// Reason for the removal; public
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Destroy the bytes of all versions immediately
    #[arg(long)]
    pub(crate) purge: bool,
    /// Confirm the change, which is permanent
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Destroy the bytes of items whose grace period after removal has passed
///
/// `remove` keeps the bytes of an item's versions, so that mistakes can be investigated. This
/// command lists the removed items that are older than the grace period; with `--yes` it destroys
/// their bytes, as `remove --purge` does immediately. Tombstones stay. Run it regularly, for
/// example from cron.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive purge --data archive --older-than 90d --yes")]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Grace period in days, such as 90d
    #[arg(long, value_name = "DAYS", value_parser = days)]
    pub(crate) older_than: u32,
    /// Confirm the change, which is permanent
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object per item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Export an item as a bag (BagIt), verifying every byte
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive export 8JMKD3MGP8W/34PGRBS --data archive --out bag")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The item
    pub(crate) ibi: String,
    /// Folder to create
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verify the fixity of all files
///
/// Reports what is missing, changed, unreadable or unexpected, and exits with 1 if it finds
/// anything. Rerun the command to resume an interrupted audit. `--with` and `--resolver` compare an
/// item with the holdings of other Archives. `--repair` replaces a damaged file with one from such
/// an Archive, only if its digest matches the item's own inventory. `--resolver` without an item
/// reads no files: it lists the Copies here whose Original no Archive claims.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive audit --data archive
  ibi archive audit --data archive --rate 20M --json
  ibi archive audit 8JMKD3MGP8W/34PGRBS --data archive --with http://archive.inpe.br --repair
  ibi archive audit 8JMKD3MGP8W/34PGRBS --data archive --resolver http://urlib.net
  ibi archive audit --data archive --resolver http://urlib.net")]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Check only this item
    pub(crate) ibi: Option<String>,
    /// Maximum bytes to read per second, such as 500K, 20M or 1G
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Start over instead of resuming an interrupted audit
    #[arg(long)]
    pub(crate) restart: bool,
    /// Compare the item with this Archive; repeatable
    #[arg(long, value_name = "ARCHIVE", requires = "ibi")]
    pub(crate) with: Vec<String>,
    /// Compare the item with all Archives that this resolver knows, such as `http://urlib.net`;
    /// without an item, list the Copies whose Original nobody claims
    #[arg(long, value_name = "RESOLVER")]
    pub(crate) resolver: Option<String>,
    /// Replace damaged files from the Archives compared with, or from the source of the copy
    #[arg(long, requires = "ibi")]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) peer_args: PeerArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Rebuild the index from the tree and the journal
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive rebuild --data archive")]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Recover damaged lines of the journal
///
/// Recovers each line from its own bytes (correcting one flipped bit), from a backup, from the
/// index or from the tree, and reports the source. The damaged file is kept beside the journal. If
/// a line is lost and the tree does not explain it, transferable Originals are served as Copies
/// until `ibi archive confirm`. Rerun the command to resume after an interruption.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive salvage --data archive --from /mnt/backup/archive")]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Recover lines from this backup of the Archive
    #[arg(long, value_name = "BACKUP")]
    pub(crate) from: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Confirm that a restored Archive still holds its Originals
///
/// After a restore the Archive serves its Originals as Copies, because some may have been
/// transferred since the backup, and accepts no tokens, because some may have been revoked since.
/// Run this command when you know that no Original was transferred. It lists the tokens that become
/// valid again.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive confirm --data archive")]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Back up the Archive into a folder, while it is in use
///
/// Into an existing backup of the same Archive, only what is new is copied. Every byte is verified.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi backup --data archive --out /mnt/backup/archive")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Folder of the backup
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Restore an Archive from a backup into a new folder
///
/// The restored Archive does not mint until `ibi minter recover`, because labels may have been
/// issued since the backup. It serves its Originals as Copies until `ibi archive confirm`, because
/// some may have been transferred since.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi restore --from /mnt/backup/archive --data archive")]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Folder of the backup
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn reason(text: &str) -> Result<String, &'static str> {
    const MAX_REASON_BYTES: usize = 10_000;
    match text.trim() {
        "" => Err("give a reason: the tombstone shows it"),
        text if text.len() > MAX_REASON_BYTES => Err("at most 10,000 bytes"),
        text => Ok(text.to_owned()),
    }
}

fn rate(text: &str) -> Result<u64, &'static str> {
    const RATE_FORMAT_HINT: &str = "expected a number of bytes, such as 500K, 20M or 1G";
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| RATE_FORMAT_HINT)?;
    let factor = match unit.to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(RATE_FORMAT_HINT),
    };
    number.checked_mul(factor).filter(|rate| *rate > 0).ok_or(RATE_FORMAT_HINT)
}

fn days(text: &str) -> Result<u32, &'static str> {
    let number = text.strip_suffix('d').and_then(|number| number.parse().ok());
    number.ok_or("expected a number of days, such as 90d")
}
