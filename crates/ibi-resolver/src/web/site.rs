//! A resolver online, and what its responses have in common.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::request::Parts;
use ibi_http::ServerLimits;
use ibi_http::client::{ConnectionPeer, TrustedProxies};
use ibi_http::outgoing::HttpClient;
use ibi_http::rate::{RateLimiter, RateQuotas};
use ibi_http::telemetry::ServerMetrics;
use ibi_http::token_store::TokenFileUpdater;
use ibi_store::DataFolderLock;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::clock::ResolverClock;
use crate::inclusion::InclusionService;
use crate::live_status::LiveStatus;
use crate::location_index::follower::feed_client;
use crate::location_index::usage::UsageCounter;
use crate::location_index::{IndexStatus, LocationIndex};
use crate::registry::{Registry, ResolverRegistryError};
use crate::resolve::{Resolver, ResolverIndex};
use crate::schemes::SchemeProxies;
use crate::transport::network::HttpTransport;
use crate::transport::{ArchiveHealth, BreakerState};
use crate::web::metric_descriptions;
use crate::web::miss_quota::FoundLabels;

/// Interval between metrics updates.
const METRICS_INTERVAL: Duration = Duration::from_secs(5);

/// Interval between two writes of the status for commands; at least this multiple of the time that
/// one takes, up to the maximum.
const LIVE_STATUS_INTERVAL: Duration = Duration::from_secs(1);
const MAX_LIVE_STATUS_INTERVAL: Duration = Duration::from_secs(5);
const LIVE_STATUS_PAUSE_FACTOR: u32 = 20;

/// The role of a resolver token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolverRole {
    /// May do everything.
    Operator,
}

impl AsRef<str> for ResolverRole {
    fn as_ref(&self) -> &str {
        match self {
            ResolverRole::Operator => "operator",
        }
    }
}

/// The tokens of a resolver.
pub type ResolverTokens = ibi_http::token_store::TokenStore<ResolverRole>;

/// The tokens of a data folder.
pub fn tokens(data: &Path) -> ResolverTokens {
    let change: TokenFileUpdater =
        |path, alter| ibi_store::small_file::change(path, alter).map_err(|error| error.to_string());
    ResolverTokens::new(data.join("tokens.json"), change)
}

/// A resolver online.
pub struct ResolverSite {
    pub(super) registry: Registry,
    pub(super) resolver: Resolver<HttpTransport, Registry>,
    pub(super) inclusion: InclusionService<HttpTransport>,
    pub(super) health: ArchiveHealth,
    pub(super) tokens: ResolverTokens,
    pub(super) proxies: TrustedProxies,
    pub(super) limits: ServerLimits,
    pub(super) figures: Option<ServerMetrics>,
    pub(super) public_url: String,
    pub(super) scheme_proxies: SchemeProxies,
    pub(super) rates: Arc<RateLimiter>,
    pub(super) found: FoundLabels,
    index: Option<ResolverIndex>,
    feed_client: HttpClient,
    clock: ResolverClock,
    stopping: AtomicBool,
    data: PathBuf,
    _lock: DataFolderLock,
}

/// The options of a site.
pub struct ResolverSiteOptions {
    /// Whether Archives may have private or loopback addresses.
    pub allow_private: bool,
    /// The base of persistent URLs, if it differs from the registry's.
    pub public_url: Option<String>,
    /// The trusted proxies.
    pub proxies: TrustedProxies,
    /// The proxies for identifiers of other schemes (D35).
    pub scheme_proxies: SchemeProxies,
    /// The server limits.
    pub limits: ServerLimits,
    /// The clock.
    pub clock: ResolverClock,
    /// The rate limits.
    pub rates: Arc<RateLimiter>,
}

impl ResolverSiteOptions {
    /// The default options.
    pub fn new(clock: ResolverClock) -> Self {
        Self {
            allow_private: false,
            public_url: None,
            proxies: TrustedProxies::new(|_| false),
            scheme_proxies: SchemeProxies::default(),
            limits: ServerLimits::default(),
            clock,
            rates: Arc::new(RateLimiter::new(RateQuotas::default())),
        }
    }
}

impl ResolverSite {
    /// Opens the resolver of a data folder to serve it.
    pub fn open(
        data: &Path,
        options: ResolverSiteOptions,
        figures: Option<ServerMetrics>,
    ) -> Result<Self, ResolverRegistryError> {
        metric_descriptions::describe_metrics();
        let registry = Registry::open(data)?;
        // Two servers would overwrite each other's findings about Archives.
        let lock =
            DataFolderLock::try_lock(data).map_err(|error| ResolverRegistryError::Store(error.into()))?;
        let lock = lock.ok_or_else(|| ResolverRegistryError::Served { data: data.to_owned() })?;
        let health = ArchiveHealth::default();
        let network = Arc::new(HttpTransport::new(options.allow_private, health.clone()));
        let clock = options.clock;
        let index = match LocationIndex::open(data) {
            Ok(index) => Some(index),
            Err(error) => {
                tracing::error!(%error, "without a location index: every resolution asks all Archives");
                None
            }
        };
        let feed_client = feed_client(options.allow_private)
            .map_err(|error| ResolverRegistryError::Client(error.to_string()))?;
        let parts = index
            .clone()
            .map(|index| ResolverIndex { usage: Arc::new(UsageCounter::new(index.clone())), index });
        let known = Arc::new(registry.clone());
        Ok(Self {
            resolver: Resolver::with_index(
                Arc::clone(&network),
                Arc::clone(&known),
                Arc::clone(&clock),
                parts.clone(),
            ),
            inclusion: InclusionService::new(
                registry.clone(),
                network,
                health.clone(),
                Arc::clone(&clock),
                index,
            )?,
            health,
            index: parts,
            feed_client,
            tokens: tokens(data),
            proxies: options.proxies,
            scheme_proxies: options.scheme_proxies,
            limits: options.limits,
            figures,
            public_url: options.public_url.unwrap_or_else(|| registry.settings().public_url.clone()),
            registry,
            rates: options.rates,
            found: FoundLabels::default(),
            clock,
            stopping: AtomicBool::new(false),
            data: data.to_owned(),
            _lock: lock,
        })
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Runs the periodic tasks: probing Archives and updating metrics. Never returns.
    pub async fn run_background_tasks(self: Arc<Self>) {
        let inclusion = self.inclusion.clone();
        let figures = async {
            loop {
                let site = Arc::clone(&self);
                let _ = tokio::task::spawn_blocking(move || site.update_metrics()).await;
                tokio::time::sleep(METRICS_INTERVAL).await;
            }
        };
        let live = async {
            loop {
                let (site, begun) = (Arc::clone(&self), Instant::now());
                let _ = tokio::task::spawn_blocking(move || site.write_live_status()).await;
                // With very many Archives it takes long, and is done less often.
                let pause = begun.elapsed() * LIVE_STATUS_PAUSE_FACTOR;
                tokio::time::sleep(pause.clamp(LIVE_STATUS_INTERVAL, MAX_LIVE_STATUS_INTERVAL)).await;
            }
        };
        let index = self.resolver.run_index(self.feed_client.clone());
        tokio::join!(inclusion.run_probes(), figures, live, index);
    }

    /// The state of the location index, if there is one. Reads the index.
    pub(super) fn index_status(&self) -> Option<IndexStatus> {
        let archives = self.registry.archives();
        let index = &self.index.as_ref()?.index;
        index.status(archives.iter().map(|archive| &**archive)).ok()
    }

    /// Writes what commands cannot know otherwise.
    fn write_live_status(&self) {
        if self.is_stopping() {
            return;
        }
        let archives = self.registry.archives();
        let breaker = |archive: &RegisteredArchive| {
            (archive.service.spelling().to_owned(), self.health.breaker(archive.id).as_str().to_owned())
        };
        let breakers = archives.iter().map(|archive| breaker(archive)).collect();
        let live = LiveStatus { written: self.now(), breakers, index: self.index_status() };
        if let Err(error) = live.write(&self.data) {
            tracing::debug!(%error, "the status for commands could not be written");
        }
    }

    fn update_metrics(&self) {
        if let Ok(open) = self.registry.open_alerts() {
            metrics::gauge!("ibi_alerts_open").set(metric_value(open));
        }
        let archives = self.registry.archives();
        if let Some(ResolverIndex { index, .. }) = &self.index {
            if let Ok(labels) = index.label_count() {
                metrics::gauge!("ibi_index_labels").set(metric_value(labels));
            }
            for archive in archives.iter().filter(|archive| archive.standing == RegistrationStatus::OnLine) {
                let age = index.age(&index.followed(archive.id));
                // Not a number: the index cannot answer for this Archive.
                let seconds = age.map_or(f64::NAN, |age| age.as_secs_f64());
                metrics::gauge!("ibi_index_age_seconds", "archive" => archive.service.to_string())
                    .set(seconds);
                let lag = index.lag(&index.followed(archive.id)).map_or(f64::NAN, |lag| lag.as_secs_f64());
                metrics::gauge!("ibi_index_feed_lag_seconds", "archive" => archive.service.to_string())
                    .set(lag);
            }
        }
        for archive in archives.iter().filter(|archive| archive.standing == RegistrationStatus::OnLine) {
            let now = self.health.breaker(archive.id);
            for state in BreakerState::ALL {
                let name = archive.service.to_string();
                metrics::gauge!("ibi_archive_breaker", "archive" => name, "state" => state.as_str())
                    .set(f64::from(u8::from(state == now)));
            }
        }
        for standing in [
            RegistrationStatus::New,
            RegistrationStatus::Unconfirmed,
            RegistrationStatus::OnLine,
            RegistrationStatus::OffLine,
            RegistrationStatus::Retired,
        ] {
            let count = archives.iter().filter(|archive| archive.standing == standing).count();
            metrics::gauge!("ibi_archives", "standing" => standing.as_str()).set(metric_value(count as u64));
        }
        self.figures.iter().for_each(ServerMetrics::run_upkeep);
    }

    /// Announces the shutdown: readiness checks fail from now on.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Sends pending acknowledgments, for at most this long.
    pub async fn close(&self, within: Duration) {
        LiveStatus::remove(&self.data);
        self.resolver.close(within).await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Now, in seconds since the Unix epoch.
    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// The client and the proxies in between (3.4).
    pub(super) fn clients(&self, request: &Parts) -> Vec<IpAddr> {
        let peer =
            request.extensions.get::<ConnectionPeer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        self.proxies.client_path(peer, &request.headers)
    }
}

impl std::fmt::Debug for ResolverSiteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteOptions").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ResolverSite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// Counts stay far below the limit of exact floats.
fn metric_value(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
