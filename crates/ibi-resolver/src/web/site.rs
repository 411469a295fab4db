//! A resolver on line, and what its answers have in common.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::request::Parts;
use ibi_http::Limits;
use ibi_http::client::{Peer, Proxies};
use ibi_http::telemetry::Figures;
use ibi_store::DataLock;
use serde::{Deserialize, Serialize};

use crate::archive::Standing;
use crate::ask::Health;
use crate::ask::network::Network;
use crate::inclusion::{Clock, Inclusion};
use crate::registry::{Registry, RegistryError};
use crate::resolve::Resolver;
use crate::schemes::SchemeProxies;

/// Between two times that figures are brought up to date.
const OFTEN: Duration = Duration::from_secs(5);

/// What a token of a resolver allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Operator,
}

impl AsRef<str> for Role {
    fn as_ref(&self) -> &str {
        match self {
            Role::Operator => "operator",
        }
    }
}

/// The tokens of a resolver.
pub type Tokens = ibi_http::tokens::Tokens<Role>;

/// Those of a data folder.
pub fn tokens(data: &Path) -> Tokens {
    let replace = |path: &Path, bytes: &[u8]| {
        ibi_store::service::replace(path, bytes).map_err(|error| error.to_string())
    };
    Tokens::new(data.join("tokens.json"), replace)
}

/// A resolver on line.
pub struct Site {
    pub(super) registry: Registry,
    pub(super) resolver: Resolver<Network, Registry>,
    pub(super) inclusion: Inclusion<Network>,
    pub(super) tokens: Tokens,
    pub(super) proxies: Proxies,
    pub(super) limits: Limits,
    pub(super) figures: Option<Figures>,
    pub(super) public_url: String,
    pub(super) scheme_proxies: SchemeProxies,
    clock: Clock,
    stopping: AtomicBool,
    _lock: DataLock,
}

/// What an operator says of a site.
pub struct SiteOptions {
    /// Whether Archives may be on private and loopback addresses.
    pub allow_private: bool,
    /// The base of persistent URLs, if it is not what the registry says.
    pub public_url: Option<String>,
    /// Which proxies are believed.
    pub proxies: Proxies,
    /// Where identifiers of other schemes go (D35).
    pub scheme_proxies: SchemeProxies,
    /// Bounds.
    pub limits: Limits,
    /// Tells the time.
    pub clock: Clock,
}

impl Site {
    /// Opens the resolver of a data folder to serve it.
    pub fn open(data: &Path, options: SiteOptions, figures: Option<Figures>) -> Result<Self, RegistryError> {
        let registry = Registry::open(data)?;
        // Two would undo what each other finds out about Archives.
        let lock = DataLock::take(data).map_err(|error| RegistryError::Store(error.into()))?;
        let lock = lock.ok_or_else(|| RegistryError::Served { data: data.to_owned() })?;
        let health = Health::default();
        let network = Arc::new(Network::new(options.allow_private, health.clone()));
        let clock = options.clock;
        Ok(Self {
            resolver: Resolver::new(Arc::clone(&network), Arc::new(registry.clone()), Arc::clone(&clock)),
            inclusion: Inclusion::new(registry.clone(), network, health, Arc::clone(&clock))?,
            tokens: tokens(data),
            proxies: options.proxies,
            scheme_proxies: options.scheme_proxies,
            limits: options.limits,
            figures,
            public_url: options.public_url.unwrap_or_else(|| registry.settings().public_url.clone()),
            registry,
            clock,
            stopping: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What is to be done all the time: Archives are called back, figures brought up to date. It never ends.
    pub async fn tend(self: Arc<Self>) {
        let inclusion = self.inclusion.clone();
        let figures = async {
            loop {
                let site = Arc::clone(&self);
                let _ = tokio::task::spawn_blocking(move || site.measure()).await;
                tokio::time::sleep(OFTEN).await;
            }
        };
        tokio::join!(inclusion.tend(), figures);
    }

    fn measure(&self) {
        if let Ok(open) = self.registry.open_alerts() {
            metrics::gauge!("ibi_alerts_open").set(number(open));
        }
        let archives = self.registry.archives();
        for standing in
            [Standing::New, Standing::Unconfirmed, Standing::OnLine, Standing::OffLine, Standing::Retired]
        {
            let count = archives.iter().filter(|archive| archive.standing == standing).count();
            metrics::gauge!("ibi_archives", "standing" => standing.as_str()).set(number(count as u64));
        }
        self.figures.iter().for_each(Figures::sum_up);
    }

    /// Says that it stops soon: whoever asks whether it is ready is told so.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Sends what is left to be sent, for as long at the most.
    pub async fn close(&self, within: Duration) {
        self.resolver.close(within).await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Now, in seconds since the Unix epoch.
    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Who asks, and the proxies between (3.4).
    pub(super) fn clients(&self, request: &Parts) -> Vec<IpAddr> {
        let peer = request.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        self.proxies.way(peer, &request.headers)
    }
}

impl std::fmt::Debug for SiteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteOptions").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// Counts are far below what a float counts exactly.
fn number(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
