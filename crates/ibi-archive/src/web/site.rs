//! What the answers have in common.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use ibi_http::client::{Peer, Proxies};
use ibi_http::telemetry::Figures;
use ibi_http::{Limits, Problem};

use crate::ArchiveError;
use crate::archive::FoundOnOpening;
use crate::holders::taking::Taking;
use crate::holders::{self, handing};
use crate::links::exchange::LinkExchange;
use crate::links::receipts::LinkReceipts;
use crate::mint::clock::{Clock as _, SystemClock};
use crate::service::address::Address;
use crate::service::{Desk, Drafts, Statistics, Tokens, UrlKeys, tokens};
use crate::web::arriving::Arriving;
use crate::web::file::Blocks;

/// An Archive on line.
#[derive(Debug)]
pub struct Site {
    pub(super) desk: Arc<Desk>,
    pub(super) keys: UrlKeys,
    pub(super) statistics: Statistics,
    pub(super) drafts: Drafts,
    pub(super) tokens: Tokens,
    pub(super) address: Address,
    pub(super) proxies: Proxies,
    pub(super) limits: Limits,
    pub(super) figures: Option<Figures>,
    pub(super) blocks: Arc<Blocks>,
    /// Where persistent URLs are resolved, if a resolver is known.
    pub(super) resolver: Option<String>,
    /// Whether a person sees a target URL before being sent there.
    pub(super) shows_targets: bool,
    /// Requests with a name come one after the other, so that two of the same name are one.
    pub(super) once: tokio::sync::Mutex<()>,
    /// Files that arrive at a time.
    pub(super) arriving: Arriving,
    /// What is being taken over from other Archives.
    pub(super) taking: Arc<Taking>,
    /// Keeps links to and from items of other Archives in step.
    pub(super) links: Arc<LinkExchange>,
    clock: SystemClock,
    stopping: AtomicBool,
}

/// What an operator says of a site.
#[derive(Debug)]
pub struct SiteOptions {
    /// What links to it say.
    pub address: Address,
    /// Which proxies are believed.
    pub proxies: Proxies,
    /// Bounds.
    pub limits: Limits,
    /// Where persistent URLs are resolved.
    pub resolver: Option<String>,
    /// Whether a person sees the target URL of an item before being sent to another host.
    pub shows_targets: bool,
}

/// Why a site cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The Archive cannot.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is no randomness to make keys of.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}

impl Site {
    /// Opens the Archive of a data folder to serve it.
    pub fn open(
        data: &Path,
        by: &str,
        options: SiteOptions,
        figures: Option<Figures>,
    ) -> Result<(Self, FoundOnOpening), SiteError> {
        let secret = || {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(SiteError::Random).map(|()| secret)
        };
        let (desk, found) = Desk::open(data, by)?;
        let desk = Arc::new(desk);
        let receipts = LinkReceipts::open(data, secret()?)?;
        let links = LinkExchange::new(Arc::clone(&desk), options.resolver.clone(), receipts);
        let site = Self {
            desk,
            links: Arc::new(links),
            keys: UrlKeys::new(secret()?),
            statistics: Statistics::open(data, secret()?)?,
            drafts: Drafts::open(data)?,
            tokens: tokens(data),
            address: options.address,
            proxies: options.proxies,
            limits: options.limits,
            figures,
            blocks: Arc::new(Blocks::new()),
            resolver: options.resolver,
            shows_targets: options.shows_targets,
            once: tokio::sync::Mutex::default(),
            arriving: Arriving::default(),
            taking: Arc::default(),
            clock: SystemClock::new(),
            stopping: AtomicBool::new(false),
        };
        Ok((site, found))
    }

    /// Where requests come in.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Goes on with hand-overs that were begun here, for as long as it is on line.
    pub async fn hand_over(self: Arc<Self>) {
        let own = self.address.url("/");
        handing::hand_over(Arc::clone(&self.desk), own.trim_end_matches('/').to_owned()).await;
    }

    /// Keeps links to and from items of other Archives in step, for as long as it is on line.
    pub async fn exchange_links(self: Arc<Self>) {
        Arc::clone(&self.links).run().await;
    }

    /// Reports copies whose Original nobody claims, for as long as it is on line.
    pub async fn report_orphans(self: Arc<Self>) {
        if let Some(resolver) = &self.resolver {
            holders::orphans::report(Arc::clone(&self.desk), resolver.clone()).await;
        }
    }

    /// What is counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What is to be done now and then: counts are written, and nothing is remembered that no longer matters.
    pub fn tend(&self) {
        self.statistics.write();
        self.statistics.forget(self.now());
        holders::sweep(self.desk.data(), self.now());
        self.figures.iter().for_each(Figures::sum_up);
    }

    /// Now, in seconds since the Unix epoch.
    pub fn now(&self) -> i64 {
        self.clock.read().wall.seconds()
    }

    /// Now, as it is written.
    pub(super) fn now_text(&self) -> String {
        crate::archive::whole_second(&self.clock).to_string()
    }

    /// Says that it stops soon: whoever asks whether it is ready is told so.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Who asks.
    pub(super) fn client(&self, request: &Request) -> IpAddr {
        let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        self.proxies.client(peer, request.headers())
    }
}

/// What a client calls itself.
pub(super) fn agent(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok())
}

/// An error of the Archive, told to a stranger. What is ours to mend goes to the log.
pub(super) fn problem(error: &ArchiveError) -> Problem {
    match error {
        _ if crate::service::is_temporary(error) => {
            tracing::warn!(%error, "not now");
            Problem::unavailable("the Archive is busy or has stopped minting: try again, or ask its operator")
        }
        ArchiveError::Together(error) => problem(error),
        ArchiveError::Dropped { to, .. } => Problem::not_found(error.to_string()).given_to(to.clone()),
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
        ArchiveError::Keep(_) | ArchiveError::Io { .. } | ArchiveError::DamagedObject { .. } => {
            tracing::error!(%error, "failed");
            Problem::internal()
        }
        ArchiveError::Arriving(_) => Problem::bad_request(error.to_string()),
        error => {
            let status = http::StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, "refused", "Against the rules of the Archive", error.to_string())
        }
    }
}
