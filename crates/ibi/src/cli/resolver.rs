//! Arguments of `ibi resolver`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ibi_archive::access::AddressRange;
use ibi_id::Label;
use ibi_resolver::schemes::SchemeProxy;

use crate::cli::DataArgs;
use crate::cli::outgoing::TrustArgs;
use crate::cli::quotas::QuotaArgs;
use crate::cli::serve::TokenExpiry;

#[derive(Subcommand)]
pub(crate) enum ResolverCommand {
    Init(ResolverInitArgs),
    Register(ResolverRegisterArgs),
    Serve(ResolverServeArgs),
    Retire(ResolverRetireArgs),
    Archives(ResolverArchivesArgs),
    Index(ResolverIndexArgs),
    Alerts(ResolverAlertsArgs),
    Resolve(ResolverResolveArgs),
    Export(ResolverExportArgs),
    Import(ResolverImportArgs),
    /// Manage API tokens
    #[command(subcommand)]
    Token(ResolverTokenCommand),
}

/// Create a resolver in a data folder
#[derive(Args)]
#[command(after_help = "\
Example:
  ibi resolver init --data resolver --public-url http://resolver.library.org.br")]
pub(crate) struct ResolverInitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Public base URL of its persistent URLs
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: String,
    /// IBI of its own service, which Archives send messages to [default: the standard's,
    /// J8LNKB5R7W/3FUQHC5]
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Option<Label>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Register an Archive, so that it can come online
///
/// Generates a registration key unless you give one, and prints it once: pass it to the Archive's
/// administrator. Only a digest is stored. Registering again replaces the key, and reinstates a
/// retired Archive.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver register --data resolver --service library.org.br/archive/2026/11.16.08.00
  ibi resolver register --data resolver --service 8JMKD3MGP8W/34PGRBS --key 1234567890-1234567890")]
pub(crate) struct ResolverRegisterArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// IBI of the Archive's service
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Label,
    /// Registration key: at least ten digits, optionally ten more after a dash [default: a
    /// generated key]
    #[arg(long, value_name = "KEY", env = "IBI_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// Additional host that its URLs may use; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Serve a resolver
///
/// Prints its URL on standard output when it is ready, and runs until SIGTERM or Ctrl-C. On SIGHUP
/// it reloads TLS certificate and key, and quotas; if one is invalid, it logs an error and keeps
/// the previous value. Logs are JSON on standard error; set the level with IBI_LOG. Other commands
/// can use the same folder while it runs; it sees their changes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver serve --data resolver --listen 127.0.0.1:8000 --allow-private
  ibi resolver serve --data resolver --listen 0.0.0.0:80")]
pub(crate) struct ResolverServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,
    /// Also contact Archives on private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Proxies whose X-Forwarded-For or Forwarded is trusted: an address or range; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) trusted_proxy: Vec<AddressRange>,
    /// Where to redirect identifiers of another scheme (doi, hdl, ark), such as
    /// `doi=https://doi.org/`; repeatable
    #[arg(long, value_name = "SCHEME=URL")]
    pub(crate) proxy: Vec<SchemeProxy>,
    #[command(flatten)]
    pub(crate) quotas: QuotaArgs,
    /// TLS certificate chain (PEM); reloaded on SIGHUP together with its key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Retire an Archive that is gone for good; items that only it held are then not found
#[derive(Args)]
pub(crate) struct ResolverRetireArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// IBI of the Archive's service
    #[arg(long, value_name = "IBI")]
    pub(crate) service: Label,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what the location index knows of each Archive, and how it follows it
///
/// Prints for each Archive, separated by tabs: its service; `current` (the index answers for it),
/// `followed` (its feed is read) or `asked`; the position in its feed; how many seconds ago the
/// feed was complete; its labels, items and bytes in the index; and why its feed could not be read.
/// Then the totals. Seconds and errors are known only while a server runs.
#[derive(Args)]
pub(crate) struct ResolverIndexArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the registered Archives and their status
#[derive(Args)]
pub(crate) struct ResolverArchivesArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// List alerts: disputed Originals, and copies that differ; or resolve one
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver alerts --data resolver
  ibi resolver alerts --data resolver --resolve 3 --note 'the copy in Brasília was declared the original by mistake'")]
pub(crate) struct ResolverAlertsArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Include resolved alerts
    #[arg(long)]
    pub(crate) all: bool,
    /// Resolve the alert with this number
    #[arg(long, value_name = "ID", requires = "note", conflicts_with = "all")]
    pub(crate) resolve: Option<u64>,
    /// Reason, recorded with the alert
    #[arg(long, value_name = "TEXT", requires = "resolve")]
    pub(crate) note: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resolve a persistent URL and print where it leads
///
/// Accepts an IBI with modifiers, file path and query as in a persistent URL, with or without the
/// address of a resolver. Exits with 1 if it does not resolve.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi resolver resolve --data resolver 8JMKD3MGP8W/35MMLL8
  ibi resolver resolve --data resolver '8JMKD3MGP8W/35MMLL8!:(oai_dc)' --explain")]
pub(crate) struct ResolverResolveArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The persistent URL
    pub(crate) url: String,
    /// Preferred languages, as in an Accept-Language header: `pt-BR,en;q=0.5`
    #[arg(long, value_name = "LANGUAGES", default_value = "")]
    pub(crate) language: String,
    /// Show which Archives were asked, what each answered, how long it took, and why the result was
    /// chosen
    #[arg(long)]
    pub(crate) explain: bool,
    /// Also contact Archives on private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the registry as plain text, for another resolver to import
#[derive(Args)]
pub(crate) struct ResolverExportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per Archive
    #[arg(long)]
    pub(crate) json: bool,
}

/// Import Archives from the output of `export`; all or nothing
///
/// If an Archive is already registered, the later change wins.
#[derive(Args)]
pub(crate) struct ResolverImportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// File to import; `-` for standard input
    pub(crate) file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum ResolverTokenCommand {
    Create(ResolverTokenArgs),
    List(ResolverTokensArgs),
    Revoke(ResolverRevokeArgs),
}

/// Create a token for an operator and print its secret, which is shown only once
#[derive(Args)]
pub(crate) struct ResolverTokenArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Name of the token, recorded with the alerts that it resolves
    #[arg(long, value_parser = crate::cli::serve::name)]
    pub(crate) name: Option<String>,
    /// Expiry: a date (UTC) such as 2027-01-31, or a duration such as 90d or 12h
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<TokenExpiry>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List tokens, without their secrets
#[derive(Args)]
pub(crate) struct ResolverTokensArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke a token; it stops working immediately
#[derive(Args)]
pub(crate) struct ResolverRevokeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Token id, as shown by `list`
    pub(crate) id: String,
}
