//! `ibi archive serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ibi_archive::service::address::{self, Address};
use ibi_archive::service::borrow;
use ibi_archive::service::online::Resolver;
use ibi_archive::web::{self, Site, SiteError, SiteOptions};
use ibi_http::Limits;
use ibi_http::outgoing::Client;
use ibi_http::server::{self, Answers};
use ibi_http::telemetry::Figures;
use ibi_protocol::{Key, Protocol, Registration};
use tokio::task::JoinHandle;

use crate::cli::serve::Serve;
use crate::commands::archive::{tell, who};
use crate::commands::minter::warn_of_host;
use crate::commands::serving;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// The service of the norm's resolver.
pub(crate) const NORMS_RESOLVER: &str = "J8LNKB5R7W/3FUQHC5";

/// Between two times that it is tended.
const OFTEN: Duration = Duration::from_secs(5);

/// How long a resolver may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(command: &Serve) -> Result<Answer, Failure> {
    let key = command.resolver.as_ref().map(|_| key(command)).transpose()?;
    serving::run(serve(command, key))
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
    let tls = serving::tls(command.tls_cert.as_ref(), command.tls_key.as_ref())?;
    let (listener, listening) = serving::listen(&command.listen).await?;
    let address = Address { archive: own_address(command, listening)?, secure: tls.is_some() };
    let limits = Limits::default();
    let options = SiteOptions {
        address: address.clone(),
        proxies: serving::proxies(&command.trusted_proxy),
        limits,
        resolver: command.resolver.as_deref().map(base_of),
        shows_targets: command.show_targets,
    };
    let told = serving::told_to_stop()?;
    let mut archive = OnLine::open(&command.data.folder()?, options, Figures::start())?;
    let mut output = Output::new();
    output.text(format_args!("{}\n", address.url("/")))?;
    output.flush()?;
    say(format_args!("on line at {}; Ctrl-C stops it", address.url("/")));
    let data = command.data.folder()?;
    // DNS may take its time: nobody waits for it.
    std::thread::spawn(move || warn_of_host(&data));
    if let (Some(url), Some(key)) = (&command.resolver, key) {
        archive.tell_resolver(url, key, &address, listening, command.email.as_deref())?;
    }
    let leaving = archive.leaving();
    let stop = async move {
        told.await;
        tracing::info!("stopping");
        leaving.await;
    };
    server::serve(listener, tls, limits, archive.answers(archive.router()), stop).await;
    archive.end();
    say(format_args!("off line"));
    Ok(Answer::Yes)
}

/// An Archive on line.
pub(crate) struct OnLine {
    site: Arc<Site>,
    resolver: Option<(Resolver, Client)>,
    tasks: Vec<JoinHandle<()>>,
}

impl OnLine {
    /// Opens the Archive of a data folder to serve it.
    pub(crate) fn open(data: &Path, options: SiteOptions, figures: Option<Figures>) -> Result<Self, Failure> {
        if borrow::is_on_line(data) {
            let taken = format!("a server has {} on line already: stop it first", data.display());
            return Err(Failure::NotSure(taken));
        }
        let opened = Site::open(data, &who(), options, figures);
        let (site, found) = opened.map_err(|error| match error {
            SiteError::Archive(error) => Failure::Archive(error),
            SiteError::Random(error) => Failure::Random(error),
        })?;
        tell(&found);
        let site = Arc::new(site);
        let lender = borrow::lender(Arc::clone(site.desk())).map_err(Failure::Serve)?;
        let lending = tokio::spawn(async move { drop(borrow::lend(lender).await) });
        let tending = tokio::spawn(tend(Arc::clone(&site)));
        let handing = tokio::spawn(Arc::clone(&site).hand_over());
        let linking = tokio::spawn(Arc::clone(&site).exchange_links());
        let reporting = tokio::spawn(Arc::clone(&site).report_orphans());
        Ok(Self { site, resolver: None, tasks: vec![lending, tending, handing, linking, reporting] })
    }

    /// The label that its service is registered with.
    pub(crate) fn service(&self) -> Result<String, Failure> {
        Ok(self.site.desk().read()?.settings().announced().to_owned())
    }

    /// Other labels of its service, by which a resolver may know it.
    fn other_labels(&self) -> Result<Vec<String>, Failure> {
        let first = self.service()?;
        let holdings = self.site.desk().read()?;
        let labels: Vec<String> = holdings.settings().service.iter().map(str::to_owned).collect();
        Ok(labels.into_iter().filter(|label| *label != first).collect())
    }

    /// Tells a resolver that it is on line, until it has heard.
    pub(crate) fn tell_resolver(
        &mut self,
        url: &str,
        key: Key,
        address: &Address,
        listening: SocketAddr,
        email: Option<&str>,
    ) -> Result<(), Failure> {
        let client = Client::new(PATIENCE).map_err(|error| Failure::Usage(error.to_string()))?;
        let host = address.archive.rsplit_once(':').map_or(address.archive.as_str(), |(host, _)| host);
        let ip = listening.ip();
        let registration = Registration {
            address: address.archive.clone(),
            service: self.service()?,
            ip: if ip.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { ip },
            protocol: Protocol::Http,
            platform_version: format!("ibi-{}", env!("CARGO_PKG_VERSION")),
            email: email.map_or_else(|| format!("postmaster@{host}"), str::to_owned),
            key,
        };
        let resolver = Resolver::new(service_of(url), registration, self.other_labels()?);
        self.resolver = Some((resolver.clone(), client.clone()));
        self.tasks.push(tokio::spawn(async move { resolver.go_on_line(&client).await }));
        Ok(())
    }

    pub(crate) fn router(&self) -> axum::Router {
        web::router(Arc::clone(&self.site))
    }

    /// What a router answers of which the Archive's is a part, and what is not worth asking it.
    pub(crate) fn answers(&self, router: axum::Router) -> Answers {
        Answers::from(router).first(web::first(Arc::clone(&self.site)))
    }

    /// Done when the resolver knows that it goes off line: clients are not sent here any more before they are turned away.
    pub(crate) fn leaving(&self) -> impl Future<Output = ()> + Send + 'static {
        let (site, resolver) = (Arc::clone(&self.site), self.resolver.clone());
        async move {
            site.stop();
            if let Some((resolver, client)) = resolver {
                resolver.go_off_line(&client).await;
            }
        }
    }

    pub(crate) fn end(self) {
        self.tasks.into_iter().for_each(|task| task.abort());
        self.site.statistics().write();
    }
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

/// The URL of a resolver's service: the norm's, unless it is said.
fn service_of(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let has_service = path.is_some_and(|path| matches!(address::split(path), Some((_, ""))));
    if has_service { base.to_owned() } else { format!("{base}/{NORMS_RESOLVER}") }
}

/// Where a resolver takes persistent URLs: its address, without the label of its service.
fn base_of(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let service = path.filter(|path| matches!(address::split(path), Some((_, ""))));
    let base = service.and_then(|service| base.strip_suffix(service)).unwrap_or(base);
    format!("{}/", base.trim_end_matches('/'))
}

async fn tend(site: Arc<Site>) {
    loop {
        tokio::time::sleep(OFTEN).await;
        let site = Arc::clone(&site);
        let written = tokio::task::spawn_blocking(move || site.tend());
        let _ = written.await;
    }
}
