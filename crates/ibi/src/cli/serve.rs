//! The commands of an Archive on line.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ibi_archive::access::Range;
use ibi_archive::service::Role;

use crate::cli::Data;

/// Put an Archive on line: files, pages, API, and the service that resolvers ask
///
/// Prints the address on standard output when it listens, then works until it is told to stop (SIGTERM, Ctrl-C): it takes no
/// new connections, lets requests end, tells the resolver, and leaves. The log is JSON on standard error; IBI_LOG sets how
/// much (`warn`, `debug`). While it runs, other commands on the same folder work as ever.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive serve --data archive --listen 127.0.0.1:8080
  ibi archive serve --data archive --listen 0.0.0.0:80 --address archive.library.org.br \\
      --resolver http://urlib.net --key-file key")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// What links and `archiveaddress` say: a host, with a port if it is not the usual one [default: --listen]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = authority)]
    pub(crate) address: Option<String>,
    /// The resolver that is told when the Archive goes on and off line, with its service's IBI if it is not the norm's
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) resolver: Option<String>,
    /// A file with the registration key [default: the key in IBI_KEY]
    #[arg(long, value_name = "FILE", requires = "resolver")]
    pub(crate) key_file: Option<PathBuf>,
    /// Whom the resolver's operator writes to [default: postmaster at the address]
    #[arg(long, value_name = "ADDRESS", requires = "resolver", value_parser = email)]
    pub(crate) email: Option<String>,
    /// Proxies whose X-Forwarded-For is believed: an address or a range; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) trusted_proxy: Vec<Range>,
    /// Show people the target URL of an item before they are sent to another host
    #[arg(long)]
    pub(crate) show_targets: bool,
    /// Certificates for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Their key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Tokens for the API
#[derive(Subcommand)]
pub(crate) enum Token {
    Create(TokenCreate),
    List(TokenList),
    Revoke(TokenRevoke),
}

/// Make a token: its secret is printed once
///
/// A `minter` mints labels, a `depositor` also deposits and updates, an `operator` also removes. A `holder` is another Archive: it may
/// fetch what is closed, and hand Originals over to this one. Only a digest of the secret is
/// kept.
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive token create --data archive --role depositor --name Ana")]
pub(crate) struct TokenCreate {
    #[command(flatten)]
    pub(crate) data: Data,
    /// What it allows: minter, depositor, operator or holder
    #[arg(long)]
    pub(crate) role: Role,
    /// Whom it is for: the history of items tells it
    #[arg(long, default_value = "api", value_parser = name)]
    pub(crate) name: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the tokens, without their secrets
#[derive(Args)]
pub(crate) struct TokenList {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a token back: it is no good from now on
#[derive(Args)]
pub(crate) struct TokenRevoke {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The id that `list` shows
    pub(crate) id: String,
}

/// Say how often an item was asked for: by day, robots apart
#[derive(Args)]
#[command(after_help = "Example:\n  ibi archive stats 8JMKD3MGP8W/34PGRBS --data archive --json")]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Any label of the item, or of its metadata: those are counted apart
    pub(crate) ibi: String,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start an Archive and a resolver in one process, on this machine: for trying
///
/// Makes what is missing, listens on one address, and prints it on standard output when it does; on standard error a token for depositing
/// and a first command to try. The prefix of a new Archive is a word under `.localhost`: its identifiers mean nothing elsewhere. Ctrl-C
/// stops it; started again, it goes on with the same data.
#[derive(Args)]
#[command(after_help = "Examples:\n  ibi serve\n  ibi serve --data try --listen 127.0.0.1:9000")]
pub(crate) struct ServeAll {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Address and port to listen on [default: 127.0.0.1:8080, or the next port that is free]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

pub(crate) fn name(text: &str) -> Result<String, &'static str> {
    let fits = (1..=200).contains(&text.trim().len()) && !text.chars().any(char::is_control);
    if fits { Ok(text.trim().to_owned()) } else { Err("a name has 1 to 200 bytes, on one line") }
}

/// A host with a port, as it stands in a URL.
fn authority(text: &str) -> Result<String, &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let port =
        text.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map(|(_, port)| port.parse::<u16>());
    let is_port = port.is_none_or(|port| port.is_ok_and(|port| port > 0));
    if text.is_empty() || text.starts_with(':') || !text.chars().all(allowed) || !is_port {
        return Err("a host, with a port or without, as in archive.library.org.br:8080");
    }
    Ok(text.to_owned())
}

fn email(text: &str) -> Result<String, &'static str> {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"&=?%+#".contains(c));
    let is_one =
        text.split_once('@').is_some_and(|(name, host)| plain(name) && plain(host) && !host.contains('@'));
    if is_one { Ok(text.to_owned()) } else { Err("an address, as in librarian@library.org.br") }
}

fn url(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let plain = rest.is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic() && !"?#".contains(c))
    });
    if plain { Ok(text.to_owned()) } else { Err("an address that begins with http:// or https://") }
}
