//! `ibi archive serve`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ibi_archive::Holdings;
use ibi_archive::service::address::{self, Address};
use ibi_archive::service::borrow;
use ibi_archive::service::online::Resolver;
use ibi_archive::web::{self, Site, SiteError, SiteOptions};
use ibi_http::client::Proxies;
use ibi_http::outgoing::Client;
use ibi_http::telemetry::{self, Figures};
use ibi_http::{Limits, Tls, server};
use ibi_protocol::{Key, Protocol, Registration};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::serve::Serve;
use crate::commands::archive::{tell, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// The service of the norm's resolver.
const NORMS_RESOLVER: &str = "J8LNKB5R7W/3FUQHC5";

/// Between two times that it is tended.
const OFTEN: Duration = Duration::from_secs(5);

/// How long a resolver may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(command: &Serve) -> Result<Answer, Failure> {
    let key = command.resolver.as_ref().map(|_| key(command)).transpose()?;
    telemetry::log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::Serve)?.block_on(serve(command, key))
}

/// The registration key, from its file or the environment.
fn key(command: &Serve) -> Result<Key, Failure> {
    let text = match &command.key_file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!("cannot read the key from {}: {error}", path.display()))
        })?,
        None => std::env::var("IBI_KEY").map_err(|_| {
            Failure::Usage("the resolver wants a registration key: --key-file FILE, or IBI_KEY".to_owned())
        })?,
    };
    text.trim().parse().map_err(|error| Failure::Usage(format!("the registration key: {error}")))
}

async fn serve(command: &Serve, key: Option<Key>) -> Result<Answer, Failure> {
    let tls = match (&command.tls_cert, &command.tls_key) {
        (Some(certificates), Some(key)) => {
            Some(Tls::read(certificates, key).map_err(|error| Failure::Usage(error.to_string()))?)
        }
        _ => None,
    };
    let listener = TcpListener::bind(&command.listen)
        .await
        .map_err(|error| Failure::Usage(format!("cannot listen on {}: {error}", command.listen)))?;
    let listening = listener.local_addr().map_err(Failure::Serve)?;
    let address = Address { archive: own_address(command, listening)?, secure: tls.is_some() };
    let trusted = command.trusted_proxy.clone();
    let limits = Limits::default();
    let options = SiteOptions {
        address: address.clone(),
        proxies: Proxies::new(move |ip| trusted.iter().any(|range| range.contains(ip))),
        limits,
        resolver: command.resolver.as_ref().map(|url| format!("{}/", url.trim_end_matches('/'))),
    };
    let data = command.data.folder()?;
    if borrow::is_on_line(&data) {
        return Err(Failure::NotSure(format!(
            "a server has {} on line already: stop it first",
            data.display()
        )));
    }
    let opened = Site::open(&data, &who(), options, Figures::start());
    let (site, found) = opened.map_err(|error| match error {
        SiteError::Archive(error) => Failure::Archive(error),
        SiteError::Random(error) => Failure::Random(error),
    })?;
    tell(&found);
    let site = Arc::new(site);
    let lending = tokio::spawn(borrow::lend(Arc::clone(site.desk())));
    let client = Client::new(PATIENCE).map_err(|error| Failure::Usage(error.to_string()))?;
    let resolver = match (&command.resolver, key) {
        (Some(url), Some(key)) => {
            let holdings = site.desk().read()?;
            Some(registered(command, url, key, &address, listening, &holdings))
        }
        _ => None,
    };
    let told = told_to_stop()?;
    let mut output = Output::new();
    output.text(format_args!("{}\n", address.url("/")))?;
    output.flush()?;
    say(format_args!("on line at {}; Ctrl-C stops it", address.url("/")));
    let mut tasks = vec![tokio::spawn(tend(Arc::clone(&site)))];
    if let Some(resolver) = resolver.clone() {
        let client = client.clone();
        tasks.push(tokio::spawn(async move { resolver.go_on_line(&client).await }));
    }
    let stop = {
        let site = Arc::clone(&site);
        async move {
            told.await;
            tracing::info!("stopping");
            site.stop();
            // Clients are not sent here any more before they are turned away.
            if let Some(resolver) = resolver {
                resolver.go_off_line(&client).await;
            }
        }
    };
    server::serve(listener, tls, limits, web::router(Arc::clone(&site)), stop).await;
    tasks.into_iter().for_each(|task| task.abort());
    lending.abort();
    site.statistics().write();
    say(format_args!("off line"));
    Ok(Answer::Yes)
}

/// What links say.
fn own_address(command: &Serve, listening: SocketAddr) -> Result<String, Failure> {
    match &command.address {
        Some(address) => Ok(address.clone()),
        None if listening.ip().is_unspecified() => Err(Failure::Usage(
            "say --address HOST[:PORT]: it listens on all addresses, and links need one".to_owned(),
        )),
        None => {
            let usual = if command.tls_cert.is_some() { 443 } else { 80 };
            let text = listening.to_string();
            Ok(text.strip_suffix(&format!(":{usual}")).map(str::to_owned).unwrap_or(text))
        }
    }
}

fn registered(
    command: &Serve,
    url: &str,
    key: Key,
    address: &Address,
    listening: SocketAddr,
    holdings: &Holdings,
) -> Resolver {
    let base = url.trim_end_matches('/');
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let has_service = path.is_some_and(|path| matches!(address::split(path), Some((_, ""))));
    let url = if has_service { base.to_owned() } else { format!("{base}/{NORMS_RESOLVER}") };
    let host = address.archive.rsplit_once(':').map_or(address.archive.as_str(), |(host, _)| host);
    let ip = listening.ip();
    Resolver {
        url,
        registration: Registration {
            address: address.archive.clone(),
            service: holdings.settings().service.primary().to_owned(),
            ip: if ip.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { ip },
            protocol: Protocol::Http,
            platform_version: format!("ibi-{}", env!("CARGO_PKG_VERSION")),
            email: command.email.clone().unwrap_or_else(|| format!("postmaster@{host}")),
            key,
        },
    }
}

async fn tend(site: Arc<Site>) {
    loop {
        tokio::time::sleep(OFTEN).await;
        let site = Arc::clone(&site);
        let written = tokio::task::spawn_blocking(move || site.tend());
        let _ = written.await;
    }
}

/// Done when somebody says stop; listened for from the moment that this is called.
fn told_to_stop() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated = signal(SignalKind::terminate()).map_err(Failure::Serve)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Failure::Serve)?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
