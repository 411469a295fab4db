//! `ibi archive serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ibi_archive::engine::lease;
use ibi_archive::service::DraftQuota;
use ibi_archive::service::address::{self, ServiceAddress};
use ibi_archive::service::registration::ServiceRegistrar;
use ibi_archive::web::{self, ArchiveSite, ArchiveSiteError, ArchiveSiteOptions};
use ibi_http::outgoing::HttpClient;
use ibi_http::rate::RateLimiter;
use ibi_http::server::{self, ServerHandler};
use ibi_http::telemetry::ServerMetrics;
use ibi_protocol::{RegistrationKey, WireProtocol, WireRegistration};
use tokio::task::{JoinHandle, JoinSet};

use crate::cli::serve::ArchiveServeArgs;
use crate::commands::archive::{operator_of, report_recovery};
use crate::commands::minter::warn_of_host;
use crate::commands::quotas;
use crate::commands::server_setup::{self, ServerReload};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// The service of the standard's resolver.
pub(crate) const STANDARD_RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// Interval between maintenance runs.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// Timeout for responses of the resolver.
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn run(command: &ArchiveServeArgs) -> Result<CommandOutcome, CommandError> {
    command.outgoing.apply()?;
    let resolvers = resolvers(command)?;
    server_setup::run(serve(command, resolvers))
}

/// The resolvers, each with its registration key from a file or the environment.
fn resolvers(command: &ArchiveServeArgs) -> Result<Vec<(String, RegistrationKey)>, CommandError> {
    let urls: Vec<String> = command.resolver.iter().map(|url| service_url(url)).collect();
    if let Some(twice) = urls.iter().enumerate().find_map(|(at, url)| urls[..at].contains(url).then_some(url))
    {
        return Err(CommandError::Usage(format!("--resolver {twice} is given twice")));
    }
    let texts = match &command.key_file[..] {
        _ if urls.is_empty() => Vec::new(),
        [] => vec![std::env::var("IBI_KEY").map_err(|_| {
            CommandError::Usage(
                "the resolver requires a registration key: pass --key-file FILE, or set IBI_KEY".to_owned(),
            )
        })?],
        files if files.len() == 1 || files.len() == urls.len() => {
            files.iter().map(|path| key_text(path)).collect::<Result<_, _>>()?
        }
        files => {
            let (keys, resolvers) = (files.len(), urls.len());
            let rule = "give --key-file once for all resolvers, or once for each, in their order";
            return Err(CommandError::Usage(format!("{keys} keys for {resolvers} resolvers: {rule}")));
        }
    };
    let keys = texts.iter().map(|text| text.trim().parse::<RegistrationKey>());
    let keys = keys
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| CommandError::Usage(format!("invalid registration key: {error}")))?;
    // One key is for all.
    Ok(urls.into_iter().zip(keys.into_iter().cycle()).collect())
}

fn key_text(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path)
        .map_err(|error| CommandError::Usage(format!("cannot read the key from {}: {error}", path.display())))
}

async fn serve(
    command: &ArchiveServeArgs,
    resolvers: Vec<(String, RegistrationKey)>,
) -> Result<CommandOutcome, CommandError> {
    let rates = Arc::new(RateLimiter::new(quotas::read(&command.quotas)?));
    let tls = server_setup::tls(command.tls_cert.as_ref(), command.tls_key.as_ref())?;
    let (listener, listening) = server_setup::listen(&command.listen).await?;
    let address = own_address(command, listening)?;
    let limits = server_setup::limits();
    let options = ArchiveSiteOptions {
        address: address.clone(),
        proxies: server_setup::proxies(&command.trusted_proxy),
        limits,
        resolver: command.resolver.first().map(|url| resolver_base_url(url)),
        shows_targets: command.show_targets,
        rates: Arc::clone(&rates),
        memory: u64::from(command.memory) << 20,
        drafts: DraftQuota {
            drafts: command.draft_count as usize,
            bytes: u64::from(command.draft_size) << 20,
            untouched_seconds: i64::from(command.draft_days) * 86_400,
        },
    };
    let reload = ServerReload { tls: tls.clone(), rates, quotas: Some(command.quotas.clone()) };
    let shutdown = server_setup::shutdown_signal()?;
    let mut archive = OnlineArchive::open(&command.data.folder()?, options, ServerMetrics::start())?;
    server_setup::announce(&address.url("/"));
    say(format_args!("online at {}; stop with Ctrl-C", address.url("/")));
    let data = command.data.folder()?;
    // DNS can be slow: checked in the background.
    std::thread::spawn(move || warn_of_host(&data));
    for (url, key) in resolvers {
        archive.tell_resolver(url, key, &address, listening, command.email.as_deref())?;
    }
    archive.reload_on_hangup(reload)?;
    let offline = archive.go_offline();
    let stop = async move {
        shutdown.await;
        tracing::info!("stopping");
        offline.await;
    };
    server::serve(listener, tls, limits, archive.answers(archive.router()), stop).await;
    archive.shut_down();
    say(format_args!("offline"));
    Ok(CommandOutcome::Yes)
}

/// A running Archive server.
pub(crate) struct OnlineArchive {
    site: Arc<ArchiveSite>,
    resolvers: Vec<(ServiceRegistrar, HttpClient)>,
    tasks: Vec<JoinHandle<()>>,
}

impl OnlineArchive {
    /// Opens the Archive of a data folder to serve it.
    pub(crate) fn open(
        data: &Path,
        options: ArchiveSiteOptions,
        metrics: Option<ServerMetrics>,
    ) -> Result<Self, CommandError> {
        if lease::is_served(data) {
            let taken = format!("another server already serves {}: stop it first", data.display());
            return Err(CommandError::NotSure(taken));
        }
        let opened = ArchiveSite::open(data, &operator_of(data), options, metrics);
        let (site, found) = opened.map_err(|error| match error {
            ArchiveSiteError::Archive(error) => CommandError::Archive(error),
            ArchiveSiteError::Random(error) => CommandError::Random(error),
        })?;
        report_recovery(&found);
        let site = Arc::new(site);
        let leases = match lease::bind_lease_server(Arc::clone(site.desk())) {
            Ok(lease_server) => tokio::spawn(lease::serve_leases(lease_server)),
            Err(error) if lease::is_unwritable(&error) => {
                tracing::error!(%error, "commands cannot borrow the Archive until its disk can be written");
                tokio::spawn(lease::serve_leases_later(Arc::clone(site.desk())))
            }
            Err(error) => return Err(CommandError::Serve(error)),
        };
        let maintenance = tokio::spawn(run_maintenance(Arc::clone(&site)));
        let transfers = tokio::spawn(Arc::clone(&site).hand_over());
        let links = tokio::spawn(Arc::clone(&site).exchange_links());
        let orphans = tokio::spawn(Arc::clone(&site).report_orphans());
        let journal = tokio::spawn(Arc::clone(&site).watch_journal());
        let tasks = vec![leases, maintenance, transfers, links, orphans, journal];
        Ok(Self { site, resolvers: Vec::new(), tasks })
    }

    /// The label that its service is registered with.
    pub(crate) fn service(&self) -> Result<String, CommandError> {
        Ok(self.site.desk().read()?.settings().announced_label().to_owned())
    }

    /// Other labels of its service, by which a resolver may know it.
    fn other_labels(&self) -> Result<Vec<String>, CommandError> {
        let first = self.service()?;
        let holdings = self.site.desk().read()?;
        let labels: Vec<String> = holdings.settings().service.iter().map(str::to_owned).collect();
        Ok(labels.into_iter().filter(|label| *label != first).collect())
    }

    /// Announces the Archive to a resolver, at the URL of its service, retrying until it succeeds.
    pub(crate) fn tell_resolver(
        &mut self,
        url: String,
        key: RegistrationKey,
        address: &ServiceAddress,
        listening: SocketAddr,
        email: Option<&str>,
    ) -> Result<(), CommandError> {
        let client =
            HttpClient::new(RESOLVER_TIMEOUT).map_err(|error| CommandError::Usage(error.to_string()))?;
        let host = address.archive.rsplit_once(':').map_or(address.archive.as_str(), |(host, _)| host);
        let ip = listening.ip();
        let registration = WireRegistration {
            address: address.archive.clone(),
            service: self.service()?,
            ip: if ip.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { ip },
            protocol: if address.secure { WireProtocol::Https } else { WireProtocol::Http },
            platform_version: format!("ibi-{}", env!("CARGO_PKG_VERSION")),
            email: email.map_or_else(|| format!("postmaster@{host}"), str::to_owned),
            key,
        };
        let follow_token = self.site.followers().issue(&url).map_err(CommandError::Random)?;
        let resolver = ServiceRegistrar::new(url, registration, follow_token, self.other_labels()?);
        self.resolvers.push((resolver.clone(), client.clone()));
        self.tasks.push(tokio::spawn(async move { resolver.keep_registered(&client).await }));
        Ok(())
    }

    /// Reloads configuration files on SIGHUP.
    pub(crate) fn reload_on_hangup(&mut self, reload: ServerReload) -> Result<(), CommandError> {
        let desk = Arc::clone(self.site.desk());
        self.tasks.push(server_setup::on_hangup(move || {
            let (desk, reload) = (Arc::clone(&desk), reload.clone());
            async move {
                reload.run().await;
                desk.reopen().await;
            }
        })?);
        Ok(())
    }

    pub(crate) fn router(&self) -> axum::Router {
        web::router(Arc::clone(&self.site))
    }

    /// Wraps a router that contains the Archive's, with a fast path for queries of resolvers.
    pub(crate) fn answers(&self, router: axum::Router) -> ServerHandler {
        ServerHandler::from(router).with_fast_path(web::resolver_fast_path(Arc::clone(&self.site)))
    }

    /// Completes when the resolvers know that the Archive goes offline, so that they stop sending
    /// clients before they are turned away.
    pub(crate) fn go_offline(&self) -> impl Future<Output = ()> + Send + 'static {
        let (site, resolvers) = (Arc::clone(&self.site), self.resolvers.clone());
        async move {
            site.stop();
            let mut telling = JoinSet::new();
            for (resolver, client) in resolvers {
                telling.spawn(async move { resolver.deregister(&client).await });
            }
            telling.join_all().await;
        }
    }

    pub(crate) fn shut_down(self) {
        self.tasks.into_iter().for_each(|task| task.abort());
        self.site.statistics().flush_counts();
    }
}

/// The public address of the Archive, for links and resolvers.
fn own_address(command: &ArchiveServeArgs, listening: SocketAddr) -> Result<ServiceAddress, CommandError> {
    let has_tls = command.tls_cert.is_some();
    let said = command.address.as_ref().and_then(|address| address.secure);
    if has_tls && said == Some(false) {
        let rule = "--address says http://, but the server uses TLS (--tls-cert): pass https://";
        return Err(CommandError::Usage(rule.to_owned()));
    }
    Ok(ServiceAddress { archive: own_authority(command, listening)?, secure: said.unwrap_or(has_tls) })
}

fn own_authority(command: &ArchiveServeArgs, listening: SocketAddr) -> Result<String, CommandError> {
    match &command.address {
        Some(address) => Ok(address.authority.clone()),
        None if listening.ip().is_unspecified() => Err(CommandError::Usage(
            "pass --address HOST[:PORT]: the server listens on all addresses, and links need one".to_owned(),
        )),
        None => {
            let usual = if command.tls_cert.is_some() { 443 } else { 80 };
            let text = listening.to_string();
            Ok(text.strip_suffix(&format!(":{usual}")).map(str::to_owned).unwrap_or(text))
        }
    }
}

/// The URL of a resolver's service; the standard's, unless given.
fn service_url(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let has_service = path.is_some_and(|path| matches!(address::split_label(path), Some((_, ""))));
    if has_service { base.to_owned() } else { format!("{base}/{STANDARD_RESOLVER_SERVICE}") }
}

/// The base URL of a resolver, without the label of its service.
fn resolver_base_url(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let service = path.filter(|path| matches!(address::split_label(path), Some((_, ""))));
    let base = service.and_then(|service| base.strip_suffix(service)).unwrap_or(base);
    format!("{}/", base.trim_end_matches('/'))
}

async fn run_maintenance(site: Arc<ArchiveSite>) {
    loop {
        tokio::time::sleep(MAINTENANCE_INTERVAL).await;
        let site = Arc::clone(&site);
        let written = tokio::task::spawn_blocking(move || site.run_maintenance());
        let _ = written.await;
    }
}
