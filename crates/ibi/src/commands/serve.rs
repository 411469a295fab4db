//! `ibi serve`: an Archive and a resolver in one process, for trying.
//!
//! They speak to each other over the wire, as they would if they stood apart.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use ibi_archive::mint::clock::{Clock as _, SystemClock};
use ibi_archive::service::{self, Role, address::Address};
use ibi_archive::web::SiteOptions as ArchiveOptions;
use ibi_archive::{ArchiveError, archive, mint};
use ibi_http::telemetry::Figures;
use ibi_http::{Limits, server};
use ibi_id::{Host, Label};
use ibi_resolver::registry::{FILE, Registry, Settings};
use ibi_resolver::schemes::SchemeProxies;
use ibi_resolver::web::{self, API, Site, SiteOptions};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::cli::serve::ServeAll;
use crate::commands::archive::serve::{NORMS_RESOLVER, OnLine};
use crate::commands::archive::who;
use crate::commands::minter::quoted;
use crate::commands::resolver::{clock, serve::LAST};
use crate::commands::serving;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// Where the resolver's data lie in the folder.
pub(crate) const RESOLVER: &str = "resolver";

/// The port that is tried first, and how many after it.
const PORT: u16 = 8080;
const PORTS: u16 = 20;

/// The name of the token that is made at every start, in the place of the last one.
const TOKEN: &str = "ibi serve";

pub(crate) fn run(command: &ServeAll) -> Result<Answer, Failure> {
    serving::run(serve(command))
}

async fn serve(command: &ServeAll) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let (listener, listening) = match &command.listen {
        Some(address) => serving::listen(address).await?,
        None => first_free().await?,
    };
    if listening.ip().is_unspecified() {
        let one = "say one address, as in 127.0.0.1:8080: links need it. This is for trying, on this machine; for more there are \
                   `ibi archive serve` and `ibi resolver serve`";
        return Err(Failure::Usage(one.to_owned()));
    }
    if data.join(FILE).exists() {
        let folder = data.display();
        return Err(Failure::NotSure(format!(
            "{folder} is the folder of a resolver alone: `ibi resolver serve` serves it; for trying, name another with --data"
        )));
    }
    start_archive(&data)?;
    let address = Address { archive: listening.to_string(), secure: false };
    let base = format!("http://{listening}");
    let limits = Limits::default();
    let figures = Figures::start();
    let options = ArchiveOptions {
        address: address.clone(),
        proxies: serving::proxies(&[]),
        limits,
        resolver: Some(format!("{base}/")),
        shows_targets: false,
    };
    let told = serving::told_to_stop()?;
    let mut archive = OnLine::open(&data, options, figures.clone())?;
    let folder = data.join(RESOLVER);
    if !folder.join(FILE).exists() {
        let service = NORMS_RESOLVER.parse().map_err(Failure::Build)?;
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::WriteFile { dir: folder.clone(), error })?;
        Registry::create(&folder, &Settings { public_url: base.clone(), service })?;
    }
    let options = SiteOptions {
        allow_private: true,
        public_url: Some(base.clone()),
        proxies: serving::proxies(&[]),
        scheme_proxies: SchemeProxies::default(),
        limits,
        clock: clock(),
    };
    let resolver = Arc::new(Site::open(&folder, options, figures)?);
    // The key is between these two, and of this start.
    let service: Label = archive.service()?.parse().map_err(Failure::Build)?;
    let registered = resolver.registry().register(service.clone(), None, Vec::new(), clock()())?;
    let tending = tokio::spawn(Arc::clone(&resolver).tend());
    let own = format!("{base}/{}", resolver.registry().settings().service.spelling());
    if let Some(key) = registered.made {
        archive.tell_resolver(&own, key, &address, listening, None)?;
    }
    greet(&data, &base, &deposit_token(&data)?)?;
    let leaving = archive.leaving();
    let stop = {
        let resolver = Arc::clone(&resolver);
        async move {
            told.await;
            tracing::info!("stopping");
            resolver.stop();
            leaving.await;
        }
    };
    let both = both(archive.router(), web::router(Arc::clone(&resolver)), service);
    server::serve(listener, None, limits, archive.answers(both), stop).await;
    tending.abort();
    resolver.close(LAST).await;
    archive.end();
    say(format_args!("off line"));
    Ok(Answer::Yes)
}

/// Listens on the first port that is free.
async fn first_free() -> Result<(TcpListener, SocketAddr), Failure> {
    let mut last = serving::listen(&format!("127.0.0.1:{PORT}")).await;
    for port in PORT + 1..PORT + PORTS {
        if last.is_ok() {
            break;
        }
        last = serving::listen(&format!("127.0.0.1:{port}")).await;
    }
    last
}

/// Makes the Archive, unless there is one: its prefix is a name that nobody else is likely to have, and that means nothing
/// outside of this machine.
fn start_archive(data: &Path) -> Result<(), Failure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Failure::Random)?;
    let letter = |byte: &u8| char::from(b'a' + byte % 26);
    let word: String = random.iter().take(8).map(letter).collect();
    let name = format!("{word}.localhost");
    let host = Host::parse(&name).map_err(Failure::Build)?;
    let from = mint::From {
        host: Some((host, None)),
        ip: None,
        edition: mint::Edition::Rtc2015,
        allow_private: true,
    };
    match archive::init(data, &from, random, &who()) {
        Ok(_) => {}
        Err(ArchiveError::AlreadyStarted { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    say(format_args!(
        "a new Archive in {}, with the prefix {word}.localhost: for trying only, for it is not yours in the world",
        data.display()
    ));
    Ok(())
}

/// A token for depositing, in the place of the one of the last start.
fn deposit_token(data: &Path) -> Result<String, Failure> {
    let tokens = service::tokens(data);
    for old in tokens.list()?.into_iter().filter(|token| token.name == TOKEN) {
        tokens.revoke(&old.id)?;
    }
    let now = SystemClock::new().read().wall.seconds();
    let now = ibi_id::Instant::new(now, 0).map(|now| now.to_string()).unwrap_or_default();
    let (_, secret) = tokens.create(TOKEN, Role::Depositor, now)?;
    Ok(secret.reveal().to_owned())
}

fn greet(data: &Path, base: &str, token: &str) -> Result<(), Failure> {
    let program = std::env::args().next().unwrap_or_else(|| "ibi".to_owned());
    let (program, folder) = (quoted(&program), quoted(&data.display().to_string()));
    let mut output = Output::new();
    output.text(format_args!("{base}/\n"))?;
    output.flush()?;
    say(format_args!("an Archive and a resolver at {base}/; data in {folder}; Ctrl-C stops them"));
    say(format_args!("a token for depositing over the API, until the next start: {token}"));
    say(format_args!("try, in another terminal:"));
    say(format_args!("  echo Hello > hello.txt"));
    say(format_args!("  {program} archive deposit hello.txt --data {folder} --dc title='My first item'"));
    say(format_args!("  curl -L {base}/IBI    # what that printed, in the place of IBI"));
    Ok(())
}

/// The Archive has its pages, its API and its service; all else is the resolver's.
fn both(archive: Router, resolver: Router, service: Label) -> Router {
    let service = Arc::new(service);
    Router::new().fallback(move |request: Request| {
        let to = if is_archives(&request, &service) { archive.clone() } else { resolver.clone() };
        async move {
            let answered: Result<Response, std::convert::Infallible> = to.oneshot(request).await;
            match answered {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    })
}

fn is_archives(request: &Request, service: &Label) -> bool {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/api/v1") {
        let below = |place: &&str| {
            rest.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        return !API.iter().any(below);
    }
    // The form of the resolver's page leads here too.
    if path == "/" && request.uri().query().is_some_and(|query| query.starts_with("ibi=")) {
        return false;
    }
    let own = ["/", "/style.css", "/livez", "/readyz", "/metrics"];
    if own.contains(&path) || path.starts_with("/col/") {
        return true;
    }
    let is_message = request.uri().query().is_some_and(|query| query.contains("servicesubject="));
    is_message && Label::parse(path.trim_matches('/')).is_ok_and(|label| label.into_owned() == *service)
}
