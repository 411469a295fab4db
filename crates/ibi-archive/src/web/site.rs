//! State shared by all request handlers.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use ibi_http::client::{ConnectionPeer, TrustedProxies};
use ibi_http::memory::DEFAULT_MEMORY_BYTES;
use ibi_http::rate::{RateLimiter, RateQuotas};
use ibi_http::telemetry::ServerMetrics;
use ibi_http::{Problem, ServerLimits};

use crate::ArchiveError;
use crate::engine::ArchiveEngine;
use crate::engine::write_readiness::ServiceWriteCheck;
use crate::links::receipts::LinkReceipts;
use crate::opening::OpeningReport;
use crate::replication::incoming_transfers::IncomingTransfers;
use crate::replication::link_exchange::LinkExchange;
use crate::replication::{self, outgoing_transfer};
use crate::service::address::ServiceAddress;
use crate::service::followers::ResolverFollowers;
use crate::service::{AckKeys, DraftQuota, DraftStore, ServiceTokens, Statistics, open_tokens};
use crate::web::failure;
use crate::web::file::BlockPool;
use crate::web::metric_descriptions;
use crate::web::upload_slots::UploadSlots;
use ibi_mint::clock::SystemClock;
use ibi_mint::trusted_clock::TrustedClock;

/// Minimum and maximum number of concurrent blocking tasks; in between, two per core. Each has an
/// open index, and its thread keeps its memory.
const BLOCKING_TASK_LIMITS: std::ops::RangeInclusive<usize> = 4..=16;

/// An Archive that is online.
#[derive(Debug)]
pub struct ArchiveSite {
    pub(super) desk: Arc<ArchiveEngine>,
    pub(super) keys: AckKeys,
    pub(super) statistics: Statistics,
    pub(super) drafts: DraftStore,
    pub(super) tokens: ServiceTokens,
    /// The resolvers that may follow the location feed.
    pub(super) followers: ResolverFollowers,
    pub(super) address: ServiceAddress,
    pub(super) proxies: TrustedProxies,
    pub(super) limits: ServerLimits,
    pub(super) figures: Option<ServerMetrics>,
    pub(super) blocks: Arc<BlockPool>,
    /// The resolver for persistent URLs, if configured.
    pub(super) resolver: Option<String>,
    /// Whether people see a target URL before they are redirected.
    pub(super) shows_targets: bool,
    /// Serializes requests with an `Idempotency-Key`, so that a duplicate runs only once.
    pub(super) once: tokio::sync::Mutex<()>,
    /// Limits concurrent uploads.
    pub(super) arriving: UploadSlots,
    /// Limits concurrent blocking tasks.
    beside: Arc<tokio::sync::Semaphore>,
    /// Transfers to this Archive in progress.
    pub(super) taking: Arc<IncomingTransfers>,
    /// Synchronizes links to and from items of other Archives.
    pub(super) links: Arc<LinkExchange>,
    /// Checks whether the Archive can be changed.
    pub(super) writing: ServiceWriteCheck,
    /// Rate limits.
    pub(super) rates: Arc<RateLimiter>,
    clock: SystemClock,
    believed: TrustedClock,
    stopping: AtomicBool,
}

/// Configuration of a site.
#[derive(Debug)]
pub struct ArchiveSiteOptions {
    /// The address used in links.
    pub address: ServiceAddress,
    /// Trusted proxies.
    pub proxies: TrustedProxies,
    /// Server limits.
    pub limits: ServerLimits,
    /// The resolver for persistent URLs.
    pub resolver: Option<String>,
    /// Whether people see the target URL of an item before they are redirected to another host.
    pub shows_targets: bool,
    /// Rate limits.
    pub rates: Arc<RateLimiter>,
    /// Memory budget for everything whose size depends on requests, in bytes.
    pub memory: u64,
    /// Draft limits per owner, and how long drafts are kept.
    pub drafts: DraftQuota,
}

impl ArchiveSiteOptions {
    /// The defaults for a site at this address.
    pub fn new(address: ServiceAddress) -> Self {
        let proxies = TrustedProxies::new(|_| false);
        Self {
            address,
            proxies,
            limits: ServerLimits::default(),
            resolver: None,
            shows_targets: false,
            rates: Arc::new(RateLimiter::new(RateQuotas::default())),
            memory: DEFAULT_MEMORY_BYTES,
            drafts: DraftQuota::default(),
        }
    }
}

/// Why a site cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveSiteError {
    /// The Archive failed to open.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// No randomness is available for keys.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}

impl ArchiveSite {
    /// Opens the Archive of a data folder to serve it.
    pub fn open(
        data: &Path,
        by: &str,
        options: ArchiveSiteOptions,
        figures: Option<ServerMetrics>,
    ) -> Result<(Self, OpeningReport), ArchiveSiteError> {
        metric_descriptions::describe_metrics();
        let secret = || {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(ArchiveSiteError::Random).map(|()| secret)
        };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let beside = (2 * cores).clamp(*BLOCKING_TASK_LIMITS.start(), *BLOCKING_TASK_LIMITS.end());
        let (desk, found) = ArchiveEngine::open(data, by)?;
        let desk = Arc::new(desk.with_memory(options.memory));
        let receipts = LinkReceipts::open(data, secret()?)?;
        let links = LinkExchange::new(Arc::clone(&desk), options.resolver.clone(), receipts);
        let taking = Arc::new(IncomingTransfers::new(options.resolver.clone()));
        let site = Self {
            desk,
            links: Arc::new(links),
            keys: AckKeys::new(secret()?),
            statistics: Statistics::open(data, secret()?)?,
            drafts: DraftStore::open(data, options.drafts)?,
            tokens: open_tokens(data),
            followers: ResolverFollowers::default(),
            address: options.address,
            proxies: options.proxies,
            limits: options.limits,
            figures,
            blocks: Arc::new(BlockPool::new()),
            resolver: options.resolver,
            shows_targets: options.shows_targets,
            once: tokio::sync::Mutex::default(),
            arriving: UploadSlots::default(),
            beside: Arc::new(tokio::sync::Semaphore::new(beside)),
            taking,
            writing: ServiceWriteCheck::default(),
            rates: options.rates,
            clock: SystemClock::new(),
            believed: TrustedClock::new(data),
            stopping: AtomicBool::new(false),
        };
        Ok((site, found))
    }

    /// Runs blocking work on another thread, so that other requests are answered meanwhile.
    /// Concurrency is limited: each task has an open index, and memory for it.
    pub(super) async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = Arc::clone(&self.beside).acquire_owned().await.map_err(|_| Problem::internal())?;
        let site = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&site);
            drop(place);
            done
        });
        done.await.map_err(|_| Problem::internal())
    }

    /// The engine that handles all requests.
    pub fn desk(&self) -> &Arc<ArchiveEngine> {
        &self.desk
    }

    /// Drives transfers started here, as long as the Archive is online.
    pub async fn hand_over(self: Arc<Self>) {
        let own = self.address.url("/");
        outgoing_transfer::drive_transfers(Arc::clone(&self.desk), own.trim_end_matches('/').to_owned())
            .await;
    }

    /// Synchronizes links with other Archives, as long as the Archive is online.
    pub async fn exchange_links(self: Arc<Self>) {
        Arc::clone(&self.links).run().await;
    }

    /// Reports copies whose Original no Archive claims, as long as the Archive is online.
    pub async fn report_orphans(self: Arc<Self>) {
        if let Some(resolver) = &self.resolver {
            replication::orphans::report_orphans(Arc::clone(&self.desk), resolver.clone()).await;
        }
    }

    /// Checks the whole journal soon after startup and daily, as long as the Archive is online. A
    /// damaged journal blocks changes.
    pub async fn watch_journal(self: Arc<Self>) {
        crate::engine::watch_journal(Arc::clone(&self.desk)).await;
    }

    /// The resolvers that may follow the location feed.
    pub fn followers(&self) -> &ResolverFollowers {
        &self.followers
    }

    /// Usage statistics.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Periodic maintenance: flushes counts and removes expired data.
    pub fn run_maintenance(&self) {
        self.statistics.flush_counts();
        self.statistics.forget_clients(self.now());
        replication::remove_stale_fetches(self.desk.data(), self.now());
        self.drafts.expire(self.now());
        if let Err(error) = self.tokens.record_expired(&self.believed_text()) {
            tracing::warn!(%error, "which tokens have expired is not kept");
        }
        self.figures.iter().for_each(ServerMetrics::run_upkeep);
    }

    /// The trusted time, in seconds since the Unix epoch. Access rules depend on it.
    pub fn now(&self) -> i64 {
        self.believed.unix_seconds()
    }

    /// Whether the system clock is ahead of the trusted time.
    pub(super) fn is_clock_refused(&self) -> bool {
        self.believed.is_refused()
    }

    /// The trusted time as text. Token expiry depends on it.
    pub(super) fn believed_text(&self) -> String {
        ibi_id::Instant::new(self.now(), 0).map(|now| now.to_string()).unwrap_or_default()
    }

    /// The system time as text.
    pub(super) fn now_text(&self) -> String {
        crate::archive::current_second(&self.clock).to_string()
    }

    /// Marks the site as stopping: readiness checks fail from now on.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The client's address.
    pub(super) fn client_address(&self, request: &Request) -> IpAddr {
        let peer =
            request.extensions().get::<ConnectionPeer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        self.proxies.client(peer, request.headers())
    }
}

pub(super) fn user_agent_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok())
}

/// Maps an Archive error to a response for clients. Internal details go to the log.
pub(super) fn problem(error: &ArchiveError) -> Problem {
    match error {
        _ if error.is_temporary() => {
            tracing::warn!(%error, "not now");
            Problem::unavailable("the Archive is busy or has stopped minting: try again, or ask its operator")
        }
        ArchiveError::Batch(error) => problem(error),
        ArchiveError::Dropped { to, .. } => Problem::not_found(error.to_string()).with_new_holder(to.clone()),
        ArchiveError::Unknown { .. } | ArchiveError::Lost { .. } | ArchiveError::NoDraft => {
            Problem::not_found(error.to_string())
        }
        ArchiveError::Changed { .. }
        | ArchiveError::Removed { .. }
        | ArchiveError::Taken { .. }
        | ArchiveError::IsService { .. }
        | ArchiveError::IsMetadata { .. }
        | ArchiveError::Publishing
        | ArchiveError::RemoveCopy { .. }
        | ArchiveError::Granted { .. }
        | ArchiveError::NoHandover { .. }
        | ArchiveError::NoSuchLink { .. }
        | ArchiveError::SeveralLinks { .. }
        | ArchiveError::NotHandedOver(_) => Problem::conflict(error.to_string()),
        // Clause 1.3: a spelling that is canonical for several items is answered with their names.
        ArchiveError::Ambiguous { .. } => {
            let status = http::StatusCode::MULTIPLE_CHOICES;
            Problem::new(status, "several-items", "Several items have this identifier", error.to_string())
        }
        error if failure::is_full(error) => {
            tracing::error!(%error, "no room");
            failure::no_room()
        }
        error if failure::is_exhausted(error) => {
            tracing::warn!(%error, "no descriptors left");
            Problem::too_many_open_files()
        }
        error if crate::salvage::is_damaged_journal(error) => {
            tracing::error!(%error, "nothing is changed");
            failure::damaged_journal()
        }
        error if failure::is_read_only(error) => {
            tracing::error!(%error, "read-only");
            failure::read_only()
        }
        error if failure::is_locked(error) => {
            tracing::error!(%error, "locked");
            failure::locked()
        }
        ArchiveError::Mint(refusal) if failure::stops_minting(refusal) => {
            tracing::error!(%error, "cannot mint");
            failure::no_minting()
        }
        error if failure::is_internal(error) => {
            tracing::error!(%error, "failed");
            Problem::internal()
        }
        ArchiveError::UploadInterrupted(_) => Problem::bad_request(error.to_string()),
        error => {
            let status = http::StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, "refused", "Rejected by Archive rules", error.to_string())
        }
    }
}
