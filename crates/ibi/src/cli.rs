//! The command line, defined once: help, completions and man pages are made from this.

pub(crate) mod archive;
pub(crate) mod continuity;
pub(crate) mod holders;
pub(crate) mod links;
pub(crate) mod links_check;
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
/// A host name or an IP address that you already have, plus the instant of minting, is a globally unique name:
/// `sid.inpe.br/mtc-m18/2009/02.16.17.46`, or opaque, `8JMKD3MGP8W/34PGRBS`.
#[derive(Parser)]
#[command(name = "ibi", version, propagate_version = true, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Read, check, compare and build identifiers
    #[command(subcommand)]
    Id(Id),
    /// Start, show and set right the minter of a data folder
    #[command(subcommand)]
    Minter(Minter),
    Mint(Mint),
    /// Keep items: deposit, update, show, remove, export, check
    #[command(subcommand)]
    Archive(archive::Archive),
    /// Resolve persistent URLs: register Archives, serve, look into alerts
    #[command(subcommand)]
    Resolver(resolver::Resolver),
    Serve(serve::ServeAll),
    Backup(archive::Backup),
    Restore(archive::Restore),
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  ibi completions bash > ~/.local/share/bash-completion/completions/ibi"
    )]
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    #[command(after_help = "Examples:\n  ibi man | man -l -\n  ibi man --dir ~/.local/share/man/man1")]
    Man {
        /// Write one page a command into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Id {
    Parse(Parse),
    Equal(Equal),
    Encode(Encode),
    Distribute(Distribute),
}

/// Tell what labels mean: form, host or address, port, instant
///
/// Reads the labels given, or one a line from standard input, and tells of each whether it is valid
/// and what it means, or which rule it breaks and where. Links are read too:
/// `http://urlib.net/rep/…`, `ibi:…`, `upn:word:…`, `ibi/…`. The exit status is 0 if all are valid
/// and 1 if any is not.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi id parse 8JMKD3MGP8W/34PGRBS
  ibi id parse sid.inpe.br/mtc-m18@80/2009/02.16.17.46 --json
  ibi id parse http://urlib.net/J8LNKAN8PW/36CMBU2: --verbose
  ibi id parse --json < labels.txt")]
pub(crate) struct Parse {
    /// Labels or links to read; without any, one a line from standard input
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<OsString>,
    /// Print the decimal numbers that an opaque label encodes, too
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell whether two labels are the same identifier
///
/// Labels are compared by meaning: host or address, port and instant, without regard to case, default ports and
/// trailing zeros. The two forms of one item are different labels: only the Archive that keeps it ties them. The
/// exit status is 0 if they are equal, 1 if they differ and 2 if one is not valid.
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi id equal sid.inpe.br/mtc-m18@80/2009/02.16.17.46 sid.INPE.br/mtc-m18/2009/02.16.17.46.00")]
pub(crate) struct Equal {
    /// A label
    pub(crate) a: OsString,
    /// Another label
    pub(crate) b: OsString,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build the label of a host or an address for an instant
///
/// This is arithmetic: it makes the same label each time and promises nothing about uniqueness.
#[derive(Args)]
#[command(group = ArgGroup::new("from").required(true), after_help = "\
Examples:
  ibi id encode --host mtc-m18.sid.inpe.br --at 2009-02-16T17:46:00Z
  ibi id encode --ip 150.163.34.243 --port 802 --at 1234806360.5")]
pub(crate) struct Encode {
    /// Host name: gives the form `rep`
    #[arg(long, value_name = "HOST", group = "from", value_parser = host)]
    pub(crate) host: Option<String>,
    /// IP address: gives the form `ibip`
    #[arg(long, value_name = "ADDRESS", group = "from", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port; left out of the label when it is 80 with a host, 800 with an address [default: those]
    #[arg(long, value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// The instant: RFC 3339, or Unix seconds with a fraction
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Instant,
    /// Print a JSON object, as `parse` does
    #[arg(long)]
    pub(crate) json: bool,
}

/// Play the temporal distributor: which dates labels asked for at these times would get
///
/// Reads the times of requests to one minter, one a line, RFC 3339 or Unix seconds, in order.
/// Prints of each the date that its label tells (Unix seconds), the suffix in the form `rep` and in
/// the form `ibip`, the pair of creation date and previous date, and the step `r` that the date is
/// a multiple of, separated by tabs. Nothing is minted and nothing is waited for. The exit status
/// is 1 if any line could not be read.
#[derive(Args)]
#[command(after_help = "\
Example:
  printf '%s\\n' 1287588115.186234 1287588115.3462 1287588115.99623 |
    ibi id distribute --edition 2015 --granularity 1")]
pub(crate) struct Distribute {
    /// The edition of the norm to follow
    #[arg(long, value_enum, default_value_t = Edition::Rtc2015)]
    pub(crate) edition: Edition,
    /// Seconds between dates at the least: 60, 1, 0.1 … 1e-9 [default: 1e-9; the 2011 edition has 1 only]
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Option<Granularity>,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Edition {
    /// RTC-10-I, 2015: any granularity
    #[value(name = "2015")]
    Rtc2015,
    /// NBR 16066:2012, to the letter
    #[value(name = "2011")]
    Nbr2011,
}

/// Where the data lie.
#[derive(Args)]
pub(crate) struct Data {
    /// Data folder [default: the folder `ibi` among the user's data]
    #[arg(long, value_name = "DIR", env = "IBI_DATA")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Minter {
    Init(MinterInit),
    Show(MinterShow),
    Set(continuity::MinterSet),
    Recover(MinterRecover),
}

/// Start a prefix: once, by name
///
/// Makes the minter of a data folder. Its labels get the prefix of the host, of the address, or one
/// of each. A prefix must be yours: a name or an address that only this machine has, in the whole
/// world. The name is compared with DNS and with the machine's addresses, and you are warned if it
/// does not look like this machine's; without any, its own name is proposed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi minter init --data archive --host archive.library.org.br
  ibi minter init --data archive --host archive.library.org.br --ip 150.163.34.243 --ip-port 802")]
pub(crate) struct MinterInit {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Host name, for labels of the form `rep`
    #[arg(long, value_parser = host)]
    pub(crate) host: Option<String>,
    /// Port of the host [default: 80, left out of labels]
    #[arg(long, requires = "host", value_parser = port)]
    pub(crate) port: Option<NonZeroU16>,
    /// IP address, for labels of the form `ibip`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ip: Option<IpAddr>,
    /// Port of the address [default: 800, left out of labels]
    #[arg(long, value_name = "PORT", requires = "ip", value_parser = port)]
    pub(crate) ip_port: Option<NonZeroU16>,
    /// The edition of the norm to follow
    #[arg(long, value_enum, default_value_t = Edition::Rtc2015)]
    pub(crate) edition: Edition,
    /// Take a host or an address that is not unique in the world: its labels will not be either
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// Tell the prefixes of the minter and how far it has come
#[derive(Args)]
#[command(after_help = "Example:\n  ibi minter show --data archive --json")]
pub(crate) struct MinterShow {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Go on minting after the minter stopped for safety: the operator says that the clock is right
///
/// For a minter that refuses because its clock jumped, or because its state was restored, damaged or taken over. It
/// goes on from this instant, after every label that is known to be used; labels that were minted with a clock that was
/// ahead are passed over when their time comes. Look at the clock first: that is what you vouch for.
#[derive(Args)]
#[command(after_help = "Example:\n  date -u && ibi minter recover --data archive")]
pub(crate) struct MinterRecover {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mint labels: never the same twice
///
/// Prints one label a line; a minter with two prefixes prints the form `rep`, a tab, and the form `ibip` of the same
/// instant. A label is printed when it is safe on disk that it is taken, and not before its time has come.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi mint --data archive
  ibi mint --data archive -n 1000 --json
  ibi mint --data archive --granularity 1 --max-wait 2s")]
pub(crate) struct Mint {
    #[command(flatten)]
    pub(crate) data: Data,
    /// How many
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: u64,
    /// Seconds between dates at the least: 60, 1, 0.1 … 1e-9 [default: what `ibi minter set` says,
    /// or 1e-9; the 2011 edition has 1 only]
    #[arg(long, value_name = "R")]
    pub(crate) granularity: Option<Granularity>,
    /// How long to wait for the time of the labels to come, of each million, as in 500ms, 2.5s or 2m; at most 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait)]
    pub(crate) max_wait: Duration,
    /// Print one JSON object a label
    #[arg(long)]
    pub(crate) json: bool,
}

fn host(text: &str) -> Result<String, ibi_id::ParseError> {
    Host::parse(text).map(|host| host.to_string())
}

fn address(text: &str) -> Result<IpAddr, &'static str> {
    text.parse().map_err(|_| "an address is written as in 150.163.34.243 or 2001:252:0:1::2008:6")
}

fn port(text: &str) -> Result<NonZeroU16, &'static str> {
    text.parse().map_err(|_| Rule::Port.message())
}

fn wait(text: &str) -> Result<Duration, &'static str> {
    const SHAPE: &str = "a wait is a number and a unit, as in 500ms, 2.5s or 2m";
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    // Decimal seconds are read exactly, as Unix seconds are.
    let number: Instant = text[..text.len() - unit.len()].parse().map_err(|_| SHAPE)?;
    let number =
        Duration::from_secs(number.seconds().unsigned_abs()) + Duration::from_nanos(number.picos() / 1000);
    match unit {
        "ms" => Ok(number / 1000),
        "s" | "" => Ok(number),
        "m" => Ok(number * 60),
        _ => Err(SHAPE),
    }
}
