//! The commands of an Archive.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use ibi_archive::access::Access;
use ibi_archive::language::Language;
use ibi_archive::target_url::TargetUrl;

use crate::cli::continuity::{BroughtAlong, ImportArgs, PlainTreeArgs, SettingsArgs};
use crate::cli::holders::{Copy, Drop, Refresh, Theirs, Transfer};
use crate::cli::links::LinksCommand;
use crate::cli::serve::{Serve, Stats, Token};
use crate::cli::{Data, address, host, port};

#[derive(Subcommand)]
pub(crate) enum Archive {
    Init(Init),
    Settings(SettingsArgs),
    Deposit(Box<Deposit>),
    Import(ImportArgs),
    Update(Box<Update>),
    Show(Show),
    List(List),
    Remove(Remove),
    Purge(Purge),
    Copy(Copy),
    Refresh(Refresh),
    Transfer(Transfer),
    Drop(Drop),
    #[command(subcommand)]
    Links(LinksCommand),
    Export(Export),
    PlainTree(PlainTreeArgs),
    Audit(Audit),
    Rebuild(Rebuild),
    Confirm(Confirm),
    Serve(Serve),
    #[command(subcommand)]
    Token(Token),
    Stats(Stats),
}

/// Start an Archive: once, by name
///
/// Makes the data folder of an Archive, with a minter for its labels. Host and address must be
/// yours, as `ibi minter init` says; a folder that mints under them already is gone on with. The
/// Archive service is the first item of it. An Archive that goes on from an existing one keeps the
/// label that its service is registered with: `--service`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive init --data archive --host archive.library.org.br
  ibi archive init --data archive --host archive.library.org.br --port 8080 --ip 150.163.34.243
  ibi archive init --data archive --host mtc-m21.sid.inpe.br --service sid.inpe.br/mtc-m21/2012/06.05.15.34.39")]
pub(crate) struct Init {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Host name, for labels of the form `rep`; without one, that of this machine is proposed
    #[arg(long, value_parser = host)]
    pub(crate) host: Option<String>,
    /// Port of the host [default: 80, left out of labels]
    #[arg(long, value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// IP address, for labels of the form `ibip`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port of the address [default: 800, left out of labels]
    #[arg(long, value_name = "PORT", requires = "ip", value_parser = port)]
    pub(crate) ip_port: Option<NonZeroU16>,
    /// A label that the Archive service has already; one a form, first the one that it is
    /// registered with [default: a new one]
    #[arg(long, value_name = "LABEL")]
    pub(crate) service: Vec<String>,
    /// A label that the metadata of the service have already; one a form [default: a new one]
    #[arg(long, value_name = "LABEL")]
    pub(crate) service_metadata: Vec<String>,
    /// Take a host or an address that is not unique in the world: its labels will not be either
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print the Archive service as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is said of an item.
#[derive(Args)]
pub(crate) struct Description {
    /// Dublin Core: `element=value`, `element@language=value`, or a file of such lines or of XML (`oai_dc`); repeatable
    #[arg(long, value_name = "ELEMENT=VALUE|FILE")]
    pub(crate) dc: Vec<String>,
    /// Language of the item, as `pt` or `pt-BR`
    #[arg(long)]
    pub(crate) language: Option<Optional<Language>>,
    /// The item that this one is a translation of
    #[arg(long, value_name = "IBI")]
    pub(crate) translation_of: Option<Optional<String>>,
    /// The item that this one is the next edition of
    #[arg(long, value_name = "IBI")]
    pub(crate) next_edition_of: Option<Optional<String>>,
    /// The file that the persistent URL opens [default: the only file, or index.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) target: Option<String>,
    /// Lead to this URL (http or https) instead of to a file: a Web service, or something kept
    /// elsewhere
    #[arg(long, value_name = "URL", group = "what")]
    pub(crate) url: Option<Optional<TargetUrl>>,
    /// Who may read the files: `public`, `ip:RANGE` (others get the metadata) or `until:DATE` (closed until then)
    #[arg(long, value_name = "RULE")]
    pub(crate) access: Option<Access>,
    /// Another label that leads to the item; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) alias: Vec<String>,
    /// The Original may never be handed over to another Archive
    #[arg(long)]
    pub(crate) non_transferable: bool,
}

/// A value, or nothing: an empty argument.
#[derive(Clone)]
pub(crate) struct Optional<T>(pub(crate) Option<T>);

impl<T: std::str::FromStr> std::str::FromStr for Optional<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// Deposit a file, a folder, a bag, a URL, a record, or the rows of a table
///
/// A deposit gets new labels, for the item and for its metadata, and is there wholly or not at all. A folder with a
/// `bagit.txt` is a bag: it is checked, and its payload deposited. With `--url` the item has no
/// files, and its persistent URL leads there; with `--record` it is a record of something that is
/// not here, and its persistent URL opens the metadata. A table is a CSV file with a heading: the
/// columns are `file` (relative to the table), `url`, `record`, `language`, `translation-of`,
/// `next-edition-of`, `target`, `access`, `label`, `original`, `alias`, `metadata-label`,
/// `created`, `updated`, `metadata-updated`, `non-transferable` and `dc.title`, `dc.title@pt` and so
/// on; several values of a field are separated by `||`. An interrupted table is gone on with by
/// running the same command again: no row is deposited twice.
#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true), after_help = "\
Examples:
  ibi archive deposit report.pdf --data archive --dc title='Annual report' --dc title@pt='Relatório anual' --language en
  ibi archive deposit site/ --data archive --target index.html --access until:2030-01-01
  ibi archive deposit old.pdf --data archive --label dpi.inpe.br/banon/1998/08.02.08.56
  ibi archive deposit --url https://maps.library.org.br/wms --data archive --dc title='Map service'
  ibi archive deposit --record --data archive --dc title='Globe of 1622' --dc type=PhysicalObject
  ibi archive deposit --table theses.csv --data archive --dry-run")]
pub(crate) struct Deposit {
    #[command(flatten)]
    pub(crate) data: Data,
    /// A file, a folder or a bag
    #[arg(group = "what")]
    pub(crate) path: Option<PathBuf>,
    /// A record of something that is not here: metadata without files
    #[arg(long, group = "what")]
    pub(crate) record: bool,
    /// A table (CSV) with one row an item
    #[arg(long, value_name = "FILE", group = "what", conflicts_with_all = [
        "dc", "language", "translation_of", "next_edition_of", "target", "access", "alias", "non_transferable", "label",
        "original", "metadata_label", "created", "updated",
    ])]
    pub(crate) table: Option<PathBuf>,
    /// Only look whether it could be deposited
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) description: Description,
    /// A label that the item has already: minted here and not used yet, or from elsewhere; one a form
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// With a label from elsewhere: this is the Original, no other Archive has it [without: it is a Copy]
    #[arg(long, requires = "label")]
    pub(crate) original: bool,
    #[command(flatten)]
    pub(crate) brought: BroughtAlong,
    /// Print one JSON object an item, or a row
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a new version of an item
///
/// With a path, its files are those of the path from now on; without one, they stay. Elements given with `--dc` take the
/// place of the same elements; a file given with `--dc` takes the place of all. What is not said stays. An empty value takes
/// a language, a link or a URL away. A URL takes the place of the files, and files take the place
/// of a URL. Earlier versions stay as they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive update inpe.br/archive/2026/11.15.21.26 report-corrected.pdf --data archive
  ibi archive update 8JMKD3MGP8W/34PGRBS --data archive --dc title='A better title' --translation-of ''
  ibi archive update 8JMKD3MGP8W/34PGRBS --data archive --url https://maps.library.org.br/v2/wms")]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    pub(crate) ibi: String,
    /// A file, a folder or a bag
    #[arg(conflicts_with = "url")]
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) description: Description,
    /// The Copy is the Original from now on: no other Archive has it
    #[arg(long)]
    pub(crate) original: bool,
    /// Also if the Archive that it came from, or went to, says that it has the Original
    #[arg(long, requires = "original")]
    pub(crate) yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell all that is known of an item
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive show 8JMKD3MGP8W/34PGRBS --data archive --json")]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item, by any of its labels
    pub(crate) ibi: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the items of the Archive
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive list --data archive --json | jq -r .rep")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print one JSON object an item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove an item: a tombstone stays, and its label is never used again
///
/// The tombstone tells the reason, who removed it and the last metadata. The bytes stay among the item's versions, where
/// nobody is given them; `--purge` destroys them at once. Neither can be undone.
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi archive remove 8JMKD3MGP8W/34PGRBS --data archive --reason 'withdrawn by its author' --yes")]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    pub(crate) ibi: String,
    /// Why it is removed, for everybody to read
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Destroy the bytes of all versions at once
    #[arg(long)]
    pub(crate) purge: bool,
    /// Yes, really
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Destroy the bytes of items that were removed longer ago than a time of grace
///
/// `remove` leaves the bytes among an item's versions, so that a mistake can be looked into. This lists the items whose grace is over;
/// with `--yes` it destroys their bytes, as `remove --purge` does at once. Tombstones stay. To be run now and then, by cron for example.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive purge --data archive --older-than 90d --yes")]
pub(crate) struct Purge {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The time of grace, in days: 90d
    #[arg(long, value_name = "DAYS", value_parser = days)]
    pub(crate) older_than: u32,
    /// Yes, really
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object an item
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write an item as a bag (BagIt), every byte checked
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive export 8JMKD3MGP8W/34PGRBS --data archive --out bag")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The item
    pub(crate) ibi: String,
    /// The folder to make
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check every byte against its digest
///
/// Tells what is missing, changed, unreadable or unexpected, and exits with 1 if anything is. An
/// interrupted audit is gone on with by running it again. `--with` and `--resolver` compare an item
/// with what other Archives have of it; `--repair` puts a damaged file right from one whose file
/// has the digest that the item's own inventory tells, and from no other. `--resolver` without an
/// item reads no bytes: it lists the Copies here whose Original no Archive claims.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive audit --data archive
  ibi archive audit --data archive --rate 20M --json
  ibi archive audit 8JMKD3MGP8W/34PGRBS --data archive --with http://archive.inpe.br --repair
  ibi archive audit 8JMKD3MGP8W/34PGRBS --data archive --resolver http://urlib.net
  ibi archive audit --data archive --resolver http://urlib.net")]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Only this item
    pub(crate) ibi: Option<String>,
    /// Bytes to read a second at the most, as in 500K, 20M or 1G
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Begin anew, though an earlier audit was interrupted
    #[arg(long)]
    pub(crate) restart: bool,
    /// Compare the item with what this Archive has of it; repeatable
    #[arg(long, value_name = "ARCHIVE", requires = "ibi")]
    pub(crate) with: Vec<String>,
    /// Compare the item with what all Archives have of it that this resolver knows, as in
    /// `http://urlib.net`; without an item, list the Copies whose Original nobody claims
    #[arg(long, value_name = "RESOLVER")]
    pub(crate) resolver: Option<String>,
    /// Put damaged files right from the Archives that it is compared with, or from where the copy came
    #[arg(long, requires = "ibi")]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) theirs: Theirs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make the index anew from the tree and the journal
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive rebuild --data archive")]
pub(crate) struct Rebuild {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say that a restored Archive has the originals still
///
/// An Archive that was restored from a backup answers Copy for its items, because originals may have been handed over to
/// another Archive since. This is your word that none was.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive confirm --data archive")]
pub(crate) struct Confirm {
    #[command(flatten)]
    pub(crate) data: Data,
}

/// Copy the Archive into a folder, while it is in use
///
/// A folder that is an earlier backup of the same Archive gets what is new since. Every byte is checked on its way.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi backup --data archive --out /mnt/backup/archive")]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The folder to copy to
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring an Archive back from a backup, into a new folder
///
/// It comes up unable to mint until `ibi minter recover`, because labels may have been given out since the backup, and answers
/// Copy for its items until `ibi archive confirm`, because originals may have been handed over since.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi restore --from /mnt/backup/archive --data archive")]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The backup
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn reason(text: &str) -> Result<String, &'static str> {
    const LONGEST: usize = 10_000;
    match text.trim() {
        "" => Err("say why: the tombstone tells it"),
        text if text.len() > LONGEST => Err("at most 10,000 bytes"),
        text => Ok(text.to_owned()),
    }
}

fn rate(text: &str) -> Result<u64, &'static str> {
    const SHAPE: &str = "a rate is a number of bytes, as in 500K, 20M or 1G";
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| SHAPE)?;
    let factor = match unit.to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(SHAPE),
    };
    number.checked_mul(factor).filter(|rate| *rate > 0).ok_or(SHAPE)
}

fn days(text: &str) -> Result<u32, &'static str> {
    let number = text.strip_suffix('d').and_then(|number| number.parse().ok());
    number.ok_or("a number of days, as in 90d")
}
