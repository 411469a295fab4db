//! `ibi serve`: an Archive and a resolver in one process, for evaluation.
//!
//! They communicate over HTTP, as separate processes would.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use ibi_archive::ownership::LOCAL_OPERATOR;
use ibi_archive::service::{self, DraftQuota, ServiceRole, address::ServiceAddress};
use ibi_archive::web::ArchiveSiteOptions as ArchiveOptions;
use ibi_archive::{ArchiveError, opening};
use ibi_http::memory::DEFAULT_MEMORY_BYTES;
use ibi_http::rate::{RateLimiter, RateQuotas};
use ibi_http::server;
use ibi_http::telemetry::ServerMetrics;
use ibi_http::token_store::NewToken;
use ibi_id::{Host, Label};
use ibi_mint::clock::{MintClock as _, SystemClock};
use ibi_resolver::registry::{REGISTRY_FILE_NAME, Registry, ResolverSettings};
use ibi_resolver::schemes::SchemeProxies;
use ibi_resolver::web::{self, RESOLVER_API_PATHS, ResolverSite, ResolverSiteOptions};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::cli::serve::ServeArgs;
use crate::commands::archive::serve::{OnlineArchive, STANDARD_RESOLVER_SERVICE};
use crate::commands::minter::shell_quoted;
use crate::commands::resolver::{clock, serve::ACKNOWLEDGMENT_DRAIN_TIMEOUT};
use crate::commands::server_setup::{self, ServerReload};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// Subfolder of the data folder for the resolver.
pub(crate) const RESOLVER_FOLDER: &str = "resolver";

/// Marker file in that subfolder: this resolver belongs to `ibi serve`, and everything that it
/// contacts is on this machine.
pub(crate) const TRIAL_MARKER_FILE: &str = "for-trying";

/// The first port to try, and the number of ports.
const FIRST_TRIAL_PORT: u16 = 8080;
const TRIAL_PORT_COUNT: u16 = 20;

/// Name of the token whose secret is replaced at every start.
const TRIAL_TOKEN_NAME: &str = "ibi serve";

pub(crate) fn run(command: &ServeArgs) -> Result<CommandOutcome, CommandError> {
    command.trust.apply()?;
    server_setup::run(serve(command))
}

async fn serve(command: &ServeArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let (listener, listening) = match &command.listen {
        Some(address) => server_setup::listen(address).await?,
        None => listen_on_free_port().await?,
    };
    if listening.ip().is_unspecified() {
        let one = "`ibi serve` needs one address for its links, such as 127.0.0.1:8080. It is for evaluation on this machine; for other \
                   uses, run `ibi archive serve` and `ibi resolver serve`";
        return Err(CommandError::Usage(one.to_owned()));
    }
    if data.join(REGISTRY_FILE_NAME).exists() {
        let folder = data.display();
        return Err(CommandError::NotSure(format!(
            "{folder} is the folder of a resolver: serve it with `ibi resolver serve`, or choose another folder with --data"
        )));
    }
    // Everything is on this machine.
    ibi_http::outgoing::allow_private();
    start_archive(&data)?;
    let address = ServiceAddress { archive: listening.to_string(), secure: false };
    let base = format!("http://{listening}");
    let limits = server_setup::limits();
    let metrics = ServerMetrics::start();
    let rates = Arc::new(RateLimiter::new(RateQuotas::default()));
    let options = ArchiveOptions {
        address: address.clone(),
        proxies: server_setup::proxies(&[]),
        limits,
        resolver: Some(format!("{base}/")),
        shows_targets: false,
        rates: Arc::clone(&rates),
        memory: DEFAULT_MEMORY_BYTES,
        drafts: DraftQuota::default(),
    };
    let shutdown = server_setup::shutdown_signal()?;
    let mut archive = OnlineArchive::open(&data, options, metrics.clone())?;
    let folder = data.join(RESOLVER_FOLDER);
    if !folder.join(REGISTRY_FILE_NAME).exists() {
        let service = STANDARD_RESOLVER_SERVICE.parse().map_err(CommandError::Build)?;
        std::fs::create_dir_all(&folder)
            .map_err(|error| CommandError::WriteFile { dir: folder.clone(), error })?;
        Registry::create(&folder, &ResolverSettings { public_url: base.clone(), service })?;
    }
    let mark = folder.join(TRIAL_MARKER_FILE);
    std::fs::write(&mark, "").map_err(|error| CommandError::WriteFile { dir: mark, error })?;
    let options = ResolverSiteOptions {
        allow_private: true,
        public_url: Some(base.clone()),
        proxies: server_setup::proxies(&[]),
        scheme_proxies: SchemeProxies::default(),
        limits,
        clock: clock(),
        rates: Arc::clone(&rates),
    };
    let resolver = Arc::new(ResolverSite::open(&folder, options, metrics)?);
    // The key is between these two, and of this start.
    let service: Label = archive.service()?.parse().map_err(CommandError::Build)?;
    let registered = resolver.registry().register(service.clone(), None, Vec::new(), clock()())?;
    let background = tokio::spawn(Arc::clone(&resolver).run_background_tasks());
    let own = format!("{base}/{}", resolver.registry().settings().service.spelling());
    if let Some(key) = registered.made {
        archive.tell_resolver(own, key, &address, listening, None)?;
    }
    print_welcome(&data, &base, &deposit_token(&data)?);
    archive.reload_on_hangup(ServerReload { tls: None, rates, quotas: None })?;
    let offline = archive.go_offline();
    let stop = {
        let resolver = Arc::clone(&resolver);
        async move {
            shutdown.await;
            tracing::info!("stopping");
            resolver.stop();
            offline.await;
        }
    };
    let both = combined_router(archive.router(), web::router(Arc::clone(&resolver)), service);
    server::serve(listener, None, limits, archive.answers(both), stop).await;
    background.abort();
    resolver.close(ACKNOWLEDGMENT_DRAIN_TIMEOUT).await;
    archive.shut_down();
    say(format_args!("offline"));
    Ok(CommandOutcome::Yes)
}

/// Listens on the first free port.
async fn listen_on_free_port() -> Result<(TcpListener, SocketAddr), CommandError> {
    let mut last = server_setup::listen(&format!("127.0.0.1:{FIRST_TRIAL_PORT}")).await;
    for port in FIRST_TRIAL_PORT + 1..FIRST_TRIAL_PORT + TRIAL_PORT_COUNT {
        if last.is_ok() {
            break;
        }
        last = server_setup::listen(&format!("127.0.0.1:{port}")).await;
    }
    last
}

/// Creates the Archive unless it exists. Its random prefix under `.localhost` has no meaning on
/// other machines.
fn start_archive(data: &Path) -> Result<(), CommandError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(CommandError::Random)?;
    let letter = |byte: &u8| char::from(b'a' + byte % 26);
    let word: String = random.iter().take(8).map(letter).collect();
    let name = format!("{word}.localhost");
    let host = Host::parse(&name).map_err(CommandError::Build)?;
    let config = ibi_mint::MinterConfig {
        host: Some((host, None)),
        ip: None,
        edition: ibi_mint::DistributorEdition::Rtc2015,
        allow_private: true,
    };
    match opening::init(data, &config, random, LOCAL_OPERATOR) {
        Ok(_) => {}
        Err(ArchiveError::AlreadyStarted { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    say(format_args!(
        "created an Archive in {}, with the test prefix {word}.localhost: not globally unique",
        data.display()
    ));
    Ok(())
}

/// Creates the deposit token, or replaces its secret.
fn deposit_token(data: &Path) -> Result<String, CommandError> {
    let tokens = service::open_tokens(data);
    // Keeps the token, so that it stays the owner of its deposits.
    let known = tokens
        .list()?
        .into_iter()
        .find(|token| token.name == TRIAL_TOKEN_NAME && token.role == ServiceRole::Depositor);
    let secret = match known {
        Some(token) => tokens.rotate_secret(&token.id)?,
        None => {
            let now = SystemClock::new().read().wall.seconds();
            let now = ibi_id::Instant::new(now, 0).map(|now| now.to_string()).unwrap_or_default();
            tokens.create(NewToken::new(Some(TRIAL_TOKEN_NAME), ServiceRole::Depositor, now))?.1
        }
    };
    Ok(secret.reveal().to_owned())
}

fn print_welcome(data: &Path, base: &str, token: &str) {
    let program = std::env::args().next().unwrap_or_else(|| "ibi".to_owned());
    let (program, folder) = (shell_quoted(&program), shell_quoted(&data.display().to_string()));
    server_setup::announce(&format!("{base}/"));
    say(format_args!("Archive and resolver are online at {base}/; data in {folder}; stop with Ctrl-C"));
    say(format_args!("token for deposits over the API, valid until the next start: {token}"));
    say(format_args!("try, in another terminal:"));
    say(format_args!("  echo Hello > hello.txt"));
    say(format_args!("  {program} archive deposit hello.txt --data {folder} --dc title='My first item'"));
    say(format_args!("  curl -L {base}/IBI    # replace IBI by the label that it printed"));
}

/// Routes the Archive's pages, API and service to the Archive, and all else to the resolver.
fn combined_router(archive: Router, resolver: Router, service: Label) -> Router {
    let service = Arc::new(service);
    Router::new().fallback(move |request: Request| {
        let to = if is_for_archive(&request, &service) { archive.clone() } else { resolver.clone() };
        async move {
            let answered: Result<Response, std::convert::Infallible> = to.oneshot(request).await;
            match answered {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    })
}

fn is_for_archive(request: &Request, service: &Label) -> bool {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/api/v1") {
        let below = |place: &&str| {
            rest.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        return !RESOLVER_API_PATHS.iter().any(below);
    }
    // The form on the resolver's page submits to this path, too.
    if path == "/" && request.uri().query().is_some_and(|query| query.starts_with("ibi=")) {
        return false;
    }
    let own = ["/", "/style.css", "/favicon.ico", "/robots.txt", "/livez", "/readyz", "/metrics"];
    if own.contains(&path) || path.starts_with("/col/") {
        return true;
    }
    let is_message = request.uri().query().is_some_and(|query| query.contains("servicesubject="));
    is_message && Label::parse(path.trim_matches('/')).is_ok_and(|label| label.into_owned() == *service)
}
