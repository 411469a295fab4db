//! The command line, defined once: help, completions and man pages are made from this.

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

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
/// Reads the labels given, or one a line from standard input, and tells of each whether it is valid and what it
/// means, or which rule it breaks and where. The exit status is 0 if all are valid and 1 if any is not.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi id parse 8JMKD3MGP8W/34PGRBS
  ibi id parse sid.inpe.br/mtc-m18@80/2009/02.16.17.46 --json
  ibi id parse --json < labels.txt")]
pub(crate) struct Parse {
    /// Labels to read; without any, one a line from standard input
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<OsString>,
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
    #[arg(long, value_name = "ADDRESS", group = "from")]
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
/// Reads the times of requests to one minter, one a line, RFC 3339 or Unix seconds, in order. Prints of each the
/// date that its label tells (Unix seconds), and the suffix in the form `rep` and in the form `ibip`, separated by
/// tabs. Nothing is minted and nothing is waited for. The exit status is 1 if any line could not be read.
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

fn host(text: &str) -> Result<String, ibi_id::ParseError> {
    Host::parse(text).map(|host| host.to_string())
}

fn port(text: &str) -> Result<NonZeroU16, &'static str> {
    text.parse().map_err(|_| Rule::Port.message())
}
