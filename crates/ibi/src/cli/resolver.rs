//! The commands of a resolver.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ibi_archive::access::Range;
use ibi_id::Label;
use ibi_resolver::schemes::SchemeProxy;

use crate::cli::Data;

#[derive(Subcommand)]
pub(crate) enum Resolver {
    Init(Init),
    Register(Register),
    Serve(Serve),
    Retire(Retire),
    Archives(Archives),
    Alerts(Alerts),
    Resolve(Resolve),
    Export(Export),
    Import(Import),
    /// Tokens for the API
    #[command(subcommand)]
    Token(Token),
}

/// Start a resolver in a data folder
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi resolver init --data resolver --public-url http://resolver.library.org.br")]
pub(crate) struct Init {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The base of its persistent URLs, as the world writes it
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: String,
    /// The IBI of its own service, to which Archives speak [default: the norm's, J8LNKB5R7W/3FUQHC5]
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Option<Label>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Register an Archive: from then on it may come on line
///
/// Prints the registration key if it was made here: give it to the Archive's administrator. It is shown this once; only a digest is
/// kept. Registering again replaces the key, and brings back an Archive that was retired.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver register --data resolver --service library.org.br/archive/2026/11.16.08.00
  ibi resolver register --data resolver --service 8JMKD3MGP8W/34PGRBS --key 1234567890-1234567890")]
pub(crate) struct Register {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The IBI of the Archive's service
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Label,
    /// The registration key: ten digits or more, and ten more after a dash if you like [default: one is made]
    #[arg(long, value_name = "KEY", env = "IBI_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// A further host on which its URLs may be; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put a resolver on line
///
/// Prints the address on standard output when it listens, then works until it is told to stop (SIGTERM, Ctrl-C). The log is JSON on
/// standard error; IBI_LOG sets how much. While it runs, other commands on the same folder work as ever: it sees what they change.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver serve --data resolver --listen 127.0.0.1:8000 --allow-private
  ibi resolver serve --data resolver --listen 0.0.0.0:80")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,
    /// Ask Archives on private and loopback addresses too
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Proxies whose X-Forwarded-For or Forwarded is believed: an address or a range; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) trusted_proxy: Vec<Range>,
    /// Where identifiers of another scheme (doi, hdl, ark) are sent, as in `doi=https://doi.org/`; repeatable
    #[arg(long, value_name = "SCHEME=URL")]
    pub(crate) proxy: Vec<SchemeProxy>,
    /// Certificates for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Their key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Say that an Archive is gone for good: what only it had is then not found, and no longer waited for
#[derive(Args)]
pub(crate) struct Retire {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The IBI of the Archive's service
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Label,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the Archives, and how they stand
#[derive(Args)]
pub(crate) struct Archives {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// List alerts: items of which several Archives claim the original; or put an end to one
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver alerts --data resolver
  ibi resolver alerts --data resolver --resolve 3 --note 'the copy in Brasília was declared the original by mistake'")]
pub(crate) struct Alerts {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Also those that are over
    #[arg(long)]
    pub(crate) all: bool,
    /// Put an end to the alert of this number
    #[arg(long, value_name = "ID", requires = "note", conflicts_with = "all")]
    pub(crate) resolve: Option<u64>,
    /// Why it is over
    #[arg(long, value_name = "TEXT", requires = "resolve")]
    pub(crate) note: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resolve a persistent URL: print where it leads
///
/// Takes an IBI with modifiers, file path and query as in a persistent URL, with or without the resolver before it. The exit status is
/// 1 if it leads nowhere.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver resolve --data resolver 8JMKD3MGP8W/35MMLL8
  ibi resolver resolve --data resolver '8JMKD3MGP8W/35MMLL8!:(oai_dc)' --explain")]
pub(crate) struct Resolve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The persistent URL
    pub(crate) url: String,
    /// Languages, as a browser sends them: `pt-BR,en;q=0.5`
    #[arg(long, value_name = "LANGUAGES", default_value = "")]
    pub(crate) language: String,
    /// Tell which Archives were asked, what each said, how long it took, and why this one
    #[arg(long)]
    pub(crate) explain: bool,
    /// Ask Archives on private and loopback addresses too
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the registry as plain text: another resolver can go on from it
#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print one JSON object an Archive, to be read by programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take Archives from a text that `export` wrote, all or nothing
///
/// Of an Archive that is registered here already, the later change counts.
#[derive(Args)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The text; `-` for standard input
    pub(crate) file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum Token {
    Create(TokenCreate),
    List(TokenList),
    Revoke(TokenRevoke),
}

/// Make a token for an operator: its secret is printed once
#[derive(Args)]
pub(crate) struct TokenCreate {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Whom it is for: alerts tell who put an end to them
    #[arg(long, default_value = "operator", value_parser = crate::cli::serve::name)]
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
