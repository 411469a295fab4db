//! The command line, defined once. Help, completions and manual pages are generated from it.

pub(crate) mod archive;
pub(crate) mod continuity;
pub(crate) mod givers;
pub(crate) mod links;
pub(crate) mod links_check;
pub(crate) mod outgoing;
pub(crate) mod quotas;
pub(crate) mod replication;
pub(crate) mod resolver;
pub(crate) mod serve;

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use ibi_id::{Granularity, Host, Instant, Rule};

use crate::exit::EXIT_CODES;

/// Persistent identifiers without a registrar (IBI, ABNT NBR 16066).
///
/// An IBI combines a host name or IP address that you already have with the instant of minting,
/// which makes it globally unique: `sid.inpe.br/mtc-m18/2009/02.16.17.46`, or in opaque form,
/// `8JMKD3MGP8W/34PGRBS`.
#[derive(Parser)]
#[command(name = "ibi", version, propagate_version = true, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Read, check, compare and build identifiers
    #[command(subcommand)]
    Id(IdCommand),
    /// Create, inspect or repair the minter of a data folder
    #[command(subcommand)]
    Minter(MinterCommand),
    Mint(MintArgs),
    /// Manage an Archive: deposit, update, remove, copy, export and audit items
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Manage a resolver: register Archives, serve and resolve persistent URLs
    #[command(subcommand)]
    Resolver(resolver::ResolverCommand),
    Serve(serve::ServeArgs),
    Backup(archive::BackupArgs),
    Restore(archive::RestoreArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  ibi completions bash > ~/.local/share/bash-completion/completions/ibi"
    )]
    Completions {
        /// Shell to generate the script for
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command
    #[command(after_help = "Examples:\n  ibi man | man -l -\n  ibi man --dir ~/.local/share/man/man1")]
    Man {
        /// Write one page per command into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
pub(crate) enum IdCommand {
    Parse(IdParseArgs),
    Equal(IdEqualArgs),
    Encode(IdEncodeArgs),
    Distribute(IdDistributeArgs),
}

/// Explain labels: form, host or address, port, instant
///
/// Reads the labels given, or one per line from standard input. Prints what each label means, or
/// which rule it breaks and where. Also accepts links: `http://urlib.net/rep/…`, `ibi:…`,
/// `upn:word:…`, `ibi/…`. Exits with 0 if all labels are valid, and with 1 if any is not.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi id parse 8JMKD3MGP8W/34PGRBS
  ibi id parse sid.inpe.br/mtc-m18@80/2009/02.16.17.46 --json
  ibi id parse http://urlib.net/J8LNKAN8PW/36CMBU2: --verbose
  ibi id parse --json < labels.txt")]
pub(crate) struct IdParseArgs {
    /// Labels or links to explain [default: one per line from standard input]
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<OsString>,
    /// Also print the decimal numbers that an opaque label encodes
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check whether two labels are the same identifier
///
/// Compares host or address, port and instant. Ignores case, default ports and trailing zeros. The
/// two forms of one item are different labels: only the Archive that holds the item connects them.
/// Exits with 0 if the labels are equal, 1 if they differ and 2 if either is invalid.
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi id equal sid.inpe.br/mtc-m18@80/2009/02.16.17.46 sid.INPE.br/mtc-m18/2009/02.16.17.46.00")]
pub(crate) struct IdEqualArgs {
    /// First label
    pub(crate) a: OsString,
    /// Second label
    pub(crate) b: OsString,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build the label for a host or address and an instant
///
/// Deterministic: the same input gives the same label. Does not guarantee uniqueness; use `ibi
/// mint` for that.
#[derive(Args)]
#[command(group = ArgGroup::new("from").required(true), after_help = "\
Examples:
  ibi id encode --host mtc-m18.sid.inpe.br --at 2009-02-16T17:46:00Z
  ibi id encode --ip 150.163.34.243 --port 802 --at 1234806360.5")]
pub(crate) struct IdEncodeArgs {
    /// Host name: builds a label in the form `rep`
    #[arg(long, value_name = "HOST", group = "from", value_parser = host)]
    pub(crate) host: Option<String>,
    /// IP address: builds a label in the form `ibip`
    #[arg(long, value_name = "ADDRESS", group = "from", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port [default: 80 with --host, 800 with --ip; the default is omitted from the label]
    #[arg(long, value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// Instant: RFC 3339, or Unix seconds with an optional fraction
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Instant,
    /// Print a JSON object, in the format of `ibi id parse`
    #[arg(long)]
    pub(crate) json: bool,
}

/// Simulate the temporal distributor: show the dates that requests would get
///
/// Reads the times of requests to one minter in order, one per line, as RFC 3339 or Unix seconds.
/// Prints for each, separated by tabs: the date in its label (Unix seconds), the suffix in the form
/// `rep`, the suffix in the form `ibip`, the pair of creation date and previous date, and the step
/// `r` that the date is a multiple of. Mints nothing and does not wait. Exits with 1 if a line
/// could not be parsed.
#[derive(Args)]
#[command(after_help = "\
Example:
  printf '%s\\n' 1287588115.186234 1287588115.3462 1287588115.99623 |
    ibi id distribute --edition 2015 --granularity 1")]
pub(crate) struct IdDistributeArgs {
    /// Edition of the standard to follow
    #[arg(long, value_enum, default_value_t = EditionArg::Rtc2015)]
    pub(crate) edition: EditionArg,
    /// Minimum seconds between dates: 60, 1, 0.1 … 1e-9 [default: 1e-9; the 2011 edition allows
    /// only 1]
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Option<Granularity>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EditionArg {
    /// RTC-10-I, 2015: any granularity
    #[value(name = "2015")]
    Rtc2015,
    /// NBR 16066:2012, exactly as published
    #[value(name = "2011")]
    Nbr2011,
}

/// The data folder of a command.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Data folder [default: `ibi` in the user's data directory, such as ~/.local/share/ibi]
    #[arg(long, value_name = "DIR", env = "IBI_DATA")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum MinterCommand {
    Init(MinterInitArgs),
    Show(MinterShowArgs),
    Set(continuity::MinterSetArgs),
    Recover(MinterRecoverArgs),
}

/// Create a minter for a host name, an IP address, or both
///
/// The prefix of the labels is made from the host name or the IP address. It must belong to this
/// machine alone, worldwide: a shared name leads to duplicate labels. The command compares the name
/// with DNS and with the addresses of this machine, and warns if they do not match. Without
/// `--host` and `--ip` it proposes the name of this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi minter init --data archive --host archive.library.org.br
  ibi minter init --data archive --host archive.library.org.br --ip 150.163.34.243 --ip-port 802")]
pub(crate) struct MinterInitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Host name, for labels in the form `rep`
    #[arg(long, value_parser = host)]
    pub(crate) host: Option<String>,
    /// Port of the host [default: 80, omitted from labels]
    #[arg(long, requires = "host", value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// IP address, for labels in the form `ibip`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port of the address [default: 800, omitted from labels]
    #[arg(long, value_name = "PORT", requires = "ip", value_parser = port)]
    pub(crate) ip_port: Option<NonZeroU16>,
    /// Edition of the standard to follow
    #[arg(long, value_enum, default_value_t = EditionArg::Rtc2015)]
    pub(crate) edition: EditionArg,
    /// Accept a host or address that is not globally unique; its labels are not unique either
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// Show the prefixes of a minter and its last minted date
#[derive(Args)]
#[command(after_help = "Example:\n  ibi minter show --data archive --json")]
pub(crate) struct MinterShowArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resume minting after a safety stop, once the clock is correct
///
/// For a minter that stopped because the clock jumped, or because its state was restored, damaged
/// or taken over. Minting resumes from the current instant, after every label known to be used.
/// Labels minted while the clock was ahead are skipped when their time comes. Check the clock
/// before you run this: the command trusts it.
#[derive(Args)]
#[command(after_help = "Example:\n  date -u && ibi minter recover --data archive")]
pub(crate) struct MinterRecoverArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mint labels; no label is ever issued twice
///
/// Prints one label per line. A minter with two prefixes prints the form `rep`, a tab, and the form
/// `ibip` of the same instant. A label is printed only after its use is recorded durably, and not
/// before the instant that it contains.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi mint --data archive
  ibi mint --data archive -n 1000 --json
  ibi mint --data archive --granularity 1 --max-wait 2s")]
pub(crate) struct MintArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Number of labels to mint
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: u64,
    /// Minimum seconds between dates: 60, 1, 0.1 … 1e-9 [default: the value of `ibi minter set`, or
    /// 1e-9; the 2011 edition allows only 1]
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Option<Granularity>,
    /// Maximum wait until the instants of the labels have passed, per million labels, such as
    /// 500ms, 2.5s or 2m; at most 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait)]
    pub(crate) max_wait: Duration,
    /// Print one JSON object per label
    #[arg(long)]
    pub(crate) json: bool,
}

fn host(text: &str) -> Result<String, ibi_id::ParseError> {
    Host::parse(text).map(|host| host.to_string())
}

fn address(text: &str) -> Result<IpAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address, such as 150.163.34.243 or 2001:252:0:1::2008:6")
}

fn port(text: &str) -> Result<NonZeroU16, &'static str> {
    text.parse().map_err(|_| Rule::Port.message())
}

fn wait(text: &str) -> Result<Duration, &'static str> {
    const WAIT_FORMAT_HINT: &str = "expected a number and a unit, such as 500ms, 2.5s or 2m";
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    // Parsed as `Instant`, so that decimal fractions are exact.
    let number: Instant = text[..text.len() - unit.len()].parse().map_err(|_| WAIT_FORMAT_HINT)?;
    let number =
        Duration::from_secs(number.seconds().unsigned_abs()) + Duration::from_nanos(number.picos() / 1000);
    match unit {
        "ms" => Ok(number / 1000),
        "s" | "" => Ok(number),
        "m" => Ok(number * 60),
        _ => Err(WAIT_FORMAT_HINT),
    }
}
