//! Arguments of `ibi serve`, `ibi archive serve`, `ibi archive token` and `ibi archive stats`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use ibi_archive::access::AddressRange;
use ibi_archive::label_prefix::canonical_prefix;
use ibi_archive::service::ServiceRole;

use crate::cli::DataArgs;
use crate::cli::outgoing::{OutgoingArgs, TrustArgs};
use crate::cli::quotas::QuotaArgs;

/// Serve an Archive: files, pages, API, and the service that resolvers query
///
/// Prints its URL on standard output when it is ready, and runs until SIGTERM or Ctrl-C. Then it
/// accepts no new connections, finishes open requests, notifies the resolver and exits. On SIGHUP
/// it reloads TLS certificate and key, quotas and the Archive's settings; if one is invalid, it
/// logs an error and keeps the previous value. Logs are JSON on standard error; set the level with
/// IBI_LOG (`warn`, `debug`). Other commands can use the same folder while it runs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive serve --data archive --listen 127.0.0.1:8080
  ibi archive serve --data archive --listen 0.0.0.0:80 --address archive.library.org.br \\
      --resolver http://urlib.net --key-file key")]
pub(crate) struct ArchiveServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Public host of this Archive, for links and `archiveaddress`, with the port unless it is the
    /// default, and with `https://` before it if a proxy in front does TLS [default: the address of
    /// --listen]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = public_address)]
    pub(crate) address: Option<PublicAddress>,
    /// Resolver to notify when the Archive goes online or offline; append the IBI of its service
    /// unless it is the standard's; repeatable: the first one is asked for what is not here
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) resolver: Vec<String>,
    /// File with the registration key for all resolvers; or repeated, one for each in their order
    /// [default: the key in IBI_KEY]
    #[arg(long, value_name = "FILE", requires = "resolver")]
    pub(crate) key_file: Vec<PathBuf>,
    /// Contact address for the operator of the resolver [default: postmaster at the public host]
    #[arg(long, value_name = "ADDRESS", requires = "resolver", value_parser = email)]
    pub(crate) email: Option<String>,
    /// Proxies whose X-Forwarded-For is trusted: an address or range; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) trusted_proxy: Vec<AddressRange>,
    #[command(flatten)]
    pub(crate) outgoing: OutgoingArgs,
    /// Show the target URL of an item before redirecting people to another host
    #[arg(long)]
    pub(crate) show_targets: bool,
    /// Memory limit for large request data: inventories, metadata, drafts, queued responses
    #[arg(long, value_name = "MIB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(32..=65_536))]
    pub(crate) memory: u32,
    /// Maximum number of drafts per token
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) draft_count: u32,
    /// Maximum total size of the drafts of one token
    #[arg(long, value_name = "MIB", default_value_t = 102_400, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) draft_size: u32,
    /// Delete drafts that have not changed for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) draft_days: u32,
    #[command(flatten)]
    pub(crate) quotas: QuotaArgs,
    /// TLS certificate chain (PEM); reloaded on SIGHUP together with its key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Manage API tokens
#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    Create(TokenCreateArgs),
    List(TokenListArgs),
    Set(TokenSetArgs),
    Renew(TokenRenewArgs),
    Revoke(TokenRevokeArgs),
}

/// Create a token and print its secret, which is shown only once
///
/// Roles: a `minter` mints labels; a `depositor` also deposits and updates; an `operator` also
/// removes. A `holder` is another Archive: it may fetch restricted items and transfer Originals to
/// this one. Only a digest of the secret is stored.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive token create --data archive --role depositor --name Ana")]
pub(crate) struct TokenCreateArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Role of the token: minter, depositor, operator or holder
    #[arg(long)]
    pub(crate) role: ServiceRole,
    /// Name of the token, shown in the history of items
    ///
    /// Names are unique. Without one, the token is named after its id.
    #[arg(long, value_parser = name)]
    pub(crate) name: Option<String>,
    /// Expiry: a date (UTC) such as 2027-01-31, or a duration such as 90d or 12h
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<TokenExpiry>,
    /// Prefix of labels from other Archives that a depositor may use, such as dpi.inpe.br/banon;
    /// repeatable
    #[arg(long = "prefix", value_name = "PREFIX", value_parser = canonical_prefix)]
    pub(crate) prefixes: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List tokens, without their secrets
#[derive(Args)]
pub(crate) struct TokenListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change the prefixes or the expiry of a token
#[derive(Args)]
#[command(
    after_help = "Example:\n  ibi archive token set 5eed0123456789ab --data archive --prefix dpi.inpe.br/banon"
)]
pub(crate) struct TokenSetArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Token id, as shown by `list`
    pub(crate) id: String,
    /// New expiry, in the format of `create`, or `never`
    #[arg(long, value_name = "WHEN", value_parser = expiry_or_never)]
    pub(crate) expires: Option<TokenExpiry>,
    /// New list of prefixes, replacing the old one; repeatable
    #[arg(long = "prefix", value_name = "PREFIX", value_parser = canonical_prefix)]
    pub(crate) prefixes: Vec<String>,
    /// Remove all prefixes
    #[arg(long, conflicts_with = "prefixes")]
    pub(crate) no_prefixes: bool,
}

/// Replace the secret of a token and print it once; the old one stops working
///
/// The token keeps its id, and stays the owner of what it deposited and minted.
#[derive(Args)]
pub(crate) struct TokenRenewArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Token id, as shown by `list`
    pub(crate) id: String,
}

/// Revoke a token; it stops working immediately
///
/// Only operators can change what it deposited.
#[derive(Args)]
pub(crate) struct TokenRevokeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Token id, as shown by `list`
    pub(crate) id: String,
}

/// Show the daily usage of an item; robots are counted separately
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive stats 8JMKD3MGP8W/34PGRBS --data archive --json")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Any label of the item or of its metadata; their usage is counted separately
    pub(crate) ibi: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run an Archive and a resolver in one process, for evaluation on this machine
///
/// Creates what is missing, listens on one address and prints it on standard output. Prints on
/// standard error a deposit token and a first command to try. A new Archive gets a test prefix
/// under `.localhost`, which is not globally unique. Stop it with Ctrl-C; the next start uses the
/// same data.
#[derive(Args)]
#[command(after_help = "Examples:\n  ibi serve\n  ibi serve --data try --listen 127.0.0.1:9000")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Address and port to listen on [default: 127.0.0.1:8080, or the next free port]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// When a token expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenExpiry {
    /// At a time (RFC 3339, UTC).
    At(String),
    /// After this many seconds.
    In(i64),
    /// Never.
    Never,
}

impl TokenExpiry {
    /// The expiry as RFC 3339 text; `now` is in Unix seconds.
    pub(crate) fn time(&self, now: i64) -> Option<String> {
        match self {
            TokenExpiry::At(time) => Some(time.clone()),
            TokenExpiry::In(seconds) => {
                ibi_id::Instant::new(now.saturating_add(*seconds), 0).map(|time| time.to_string())
            }
            TokenExpiry::Never => None,
        }
    }
}

impl FromStr for TokenExpiry {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        /// Longer than any useful token, and far from integer overflow.
        const MAX_TOKEN_DAYS: i64 = 36_500;
        let expected = "expected a date such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or a duration such as 90d or 12h";
        let count = |number: &str| number.parse::<i64>().ok().filter(|number| *number > 0);
        for (unit, seconds) in [('d', 86_400), ('h', 3600)] {
            if let Some(number) = text.strip_suffix(unit) {
                let amount =
                    count(number).filter(|amount| amount.saturating_mul(seconds) <= MAX_TOKEN_DAYS * 86_400);
                return amount.map(|amount| Self::In(amount * seconds)).ok_or(expected);
            }
        }
        let time = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
        let instant = time.parse::<ibi_id::Instant>().map_err(|_| expected)?;
        // In whole seconds and UTC, so that the texts sort by time.
        let whole = ibi_id::Instant::new(instant.seconds(), 0).ok_or(expected)?;
        Ok(Self::At(whole.to_string()))
    }
}

fn expiry_or_never(text: &str) -> Result<TokenExpiry, &'static str> {
    if text == "never" { Ok(TokenExpiry::Never) } else { text.parse() }
}

pub(crate) fn name(text: &str) -> Result<String, &'static str> {
    let fits = (1..=200).contains(&text.trim().len()) && !text.chars().any(char::is_control);
    if fits { Ok(text.trim().to_owned()) } else { Err("expected 1 to 200 bytes on one line") }
}

/// Where clients reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicAddress {
    /// Host and port.
    pub(crate) authority: String,
    /// Whether clients use TLS, if the option says so.
    pub(crate) secure: Option<bool>,
}

fn public_address(text: &str) -> Result<PublicAddress, &'static str> {
    let (rest, secure) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, Some(true)),
        (None, Some(rest)) => (rest, Some(false)),
        (None, None) => (text, None),
    };
    let authority = authority(rest.strip_suffix('/').filter(|_| secure.is_some()).unwrap_or(rest))?;
    Ok(PublicAddress { authority, secure })
}

/// Parses a host with an optional port, as in the authority of a URL.
fn authority(text: &str) -> Result<String, &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let port =
        text.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map(|(_, port)| port.parse::<u16>());
    let is_port = port.is_none_or(|port| port.is_ok_and(|port| port > 0));
    if text.is_empty() || text.starts_with(':') || !text.chars().all(allowed) || !is_port {
        return Err("expected a host with an optional port, such as archive.library.org.br:8080");
    }
    Ok(text.to_owned())
}

fn email(text: &str) -> Result<String, &'static str> {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"&=?%+#".contains(c));
    let is_one =
        text.split_once('@').is_some_and(|(name, host)| plain(name) && plain(host) && !host.contains('@'));
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("expected an e-mail address, such as librarian@library.org.br")
    }
}

pub(super) fn url(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let plain = rest.is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic() && !"?#".contains(c))
    });
    if plain { Ok(text.to_owned()) } else { Err("expected a URL that begins with http:// or https://") }
}
