//! Inclusion: Archives come online and go offline (3.3). The resolver calls an Archive back when it
//! comes online, queries it only after it has confirmed (D21), and repeats the check periodically.

mod probes;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use ibi_http::pooled_client::{HttpScheme, ServerAddress};
use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{MessageError, Pairs, PairsLimits, WireRegistration, WireRequest};
use tokio::sync::{Notify, Semaphore};

use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::clock::ResolverClock;
use crate::keys::{KeyRejection, KeyVerifier};
use crate::location_index::LocationIndex;
use crate::registry::{Registry, ResolverRegistryError};
use crate::transport::{ArchiveHealth, ArchiveTransport};
use probes::InclusionProbe;

/// Timeout for a confirmation.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The `Retry-After` when too many requests are waiting.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Includes and excludes Archives.
pub struct InclusionService<A>(Arc<InclusionInner<A>>);

struct InclusionInner<A> {
    registry: Registry,
    ask: Arc<A>,
    health: ArchiveHealth,
    clock: ResolverClock,
    keys: KeyVerifier,
    probes: Mutex<HashMap<ArchiveId, InclusionProbe>>,
    changed: Notify,
    places: Arc<Semaphore>,
    index: Option<LocationIndex>,
}

/// The response to an Archive.
#[derive(Debug, Clone)]
pub struct InclusionAnswer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body, `text/plain`.
    pub pairs: Pairs,
    /// The `Retry-After` header, for requests that come too early.
    pub retry_after: Option<Duration>,
}

impl<A: ArchiveTransport> InclusionService<A> {
    /// A service over a registry that sends requests through `ask`; the same transport reports to
    /// `health` how Archives respond.
    pub fn new(
        registry: Registry,
        ask: Arc<A>,
        health: ArchiveHealth,
        clock: ResolverClock,
        index: Option<LocationIndex>,
    ) -> Result<Self, ResolverRegistryError> {
        Ok(Self(Arc::new(InclusionInner {
            registry,
            ask,
            health,
            clock,
            keys: KeyVerifier::new()?,
            probes: Mutex::default(),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(probes::MAX_CONCURRENT_PROBES)),
            index,
        })))
    }

    /// Handles an inclusion or exclusion request from this client.
    /// With the token, the Archive may be followed (4.4).
    pub async fn handle(
        &self,
        request: WireRequest,
        client: IpAddr,
        follow_token: Option<&str>,
    ) -> InclusionAnswer {
        let inner = &self.0;
        let handled = match &request {
            WireRequest::Inclusion(registration) => match inner.authenticate(registration, client).await {
                Ok(_) => inner.include(registration.clone(), follow_token).await,
                Err(answer) => return answer,
            },
            WireRequest::Exclusion(registration) => match inner.authenticate(registration, client).await {
                Ok(service) => inner.exclude(service, &registration.address).await,
                Err(answer) => return answer,
            },
            other => {
                return InclusionAnswer::malformed(&MessageError::Subject {
                    given: other.subject().to_owned(),
                });
            }
        };
        handled.unwrap_or_else(|error| match error {
            // Retired concurrently.
            ResolverRegistryError::Unknown { .. } => InclusionAnswer::refused(),
            error => InclusionAnswer::failed(&error),
        })
    }
}

impl<A: ArchiveTransport> InclusionInner<A> {
    /// Verifies the Archive's key and returns its label.
    async fn authenticate(
        &self,
        registration: &WireRegistration,
        client: IpAddr,
    ) -> Result<Label, InclusionAnswer> {
        let bad = |name, why: String| InclusionAnswer::malformed(&MessageError::Value { name, why });
        ServerAddress::parse(&registration.address)
            .map_err(|error| bad("archiveaddress", error.to_string()))?;
        let service: Label = registration
            .service
            .parse()
            .map_err(|error: ibi_id::ParseError| bad("archiveserviceibi", error.to_string()))?;
        let (registry, label) = (self.registry.clone(), service.clone());
        let known = run_blocking(move || registry.fresh_entry(&label))
            .await
            .map_err(|error| InclusionAnswer::failed(&error))?;
        let known = known.filter(|entry| entry.archive.standing != RegistrationStatus::Retired);
        let known = known.map(|entry| (entry.archive.id, entry.key_hash));
        match self.keys.check(&service.to_string(), known, &registration.key, client).await {
            Ok(()) => Ok(service),
            Err(KeyRejection::Wrong) => {
                tracing::warn!(%service, %client, "refused: not registered, or a wrong key");
                Err(InclusionAnswer::refused())
            }
            Err(KeyRejection::Later(wait)) => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                Err(InclusionAnswer { status, retry_after: Some(wait), ..InclusionAnswer::refused() })
            }
            Err(KeyRejection::Busy) => Err(InclusionAnswer::busy()),
        }
    }

    async fn include(
        self: &Arc<Self>,
        registration: WireRegistration,
        follow_token: Option<&str>,
    ) -> Result<InclusionAnswer, ResolverRegistryError> {
        let (registry, now) = (self.registry.clone(), (self.clock)());
        let before = registration.service.parse().ok().and_then(|service| registry.find(&service));
        let included = run_blocking(move || registry.include(&registration, now)).await?;
        let (id, turn) = (included.archive.id, included.turn);
        if let Some(index) = &self.index {
            let (index, token) = (index.clone(), follow_token.unwrap_or_default().to_owned());
            let stored = run_blocking(move || Ok(index.set_token(id, &token)?));
            if let Err(error) = stored.await {
                tracing::warn!(%error, "the token of a location feed could not be stored: the Archive is asked");
            }
        }
        if before.is_some_and(|archive| archive.scheme() == HttpScheme::Https)
            && included.archive.scheme() == HttpScheme::Http
        {
            let RegisteredArchive { service, address, .. } = &*included.archive;
            tracing::warn!(%service, address, "Archive downgraded from HTTPS to HTTP; authenticated by its \
                key");
        }
        // Keep background probes from calling it back at the same time.
        self.postpone(id, turn);
        let result = self.call_back(&included.archive).await;
        let yes = result.is_ok();
        if self.record(id, turn, result.clone()).await? {
            self.schedule_next(id, turn, yes);
            if yes {
                self.health.came_online(id);
            }
        }
        let RegisteredArchive { service, address, .. } = &*included.archive;
        let mut said = vec![("status.archive", "included")];
        match &result {
            Ok(()) => {
                tracing::info!(%service, address, confirmed = yes, "included");
                said.push(("status.confirmation", "successful"));
            }
            Err(why) => {
                tracing::warn!(%service, address, confirmed = yes, why, "included, but not confirmed");
                said.push(("status.confirmation", "unsuccessful"));
            }
        }
        // Only what concerns its certificate: what else went wrong could tell about this network.
        let certificate = self.health.certificate_problem(id).filter(|_| !yes);
        said.extend(certificate.as_ref().map(|problem| ("status.certificate", problem.code())));
        Ok(InclusionAnswer::ok(&said))
    }

    /// Records whether an Archive confirmed; returns whether that still counted.
    async fn record(
        &self,
        id: ArchiveId,
        turn: i64,
        result: Result<(), String>,
    ) -> Result<bool, ResolverRegistryError> {
        let (registry, now) = (self.registry.clone(), (self.clock)());
        let record = move || {
            let result = match &result {
                Ok(()) => Ok(()),
                Err(why) => Err(why.as_str()),
            };
            registry.record_confirmation(id, turn, result, now)
        };
        run_blocking(record).await
    }

    /// Excludes an Archive from an address. If it has moved in the meantime, it stays online: the
    /// request concerns the old address.
    async fn exclude(&self, service: Label, address: &str) -> Result<InclusionAnswer, ResolverRegistryError> {
        let (registry, now) = (self.registry.clone(), (self.clock)());
        if registry
            .find(&service)
            .is_some_and(|archive| archive.address.as_deref().is_some_and(|now| now != address))
        {
            tracing::info!(%service, address, "exclusion from a former address");
            return Ok(InclusionAnswer::ok(&[("status.archive", "excluded")]));
        }
        let archive = run_blocking(move || registry.exclude(&service, now)).await?;
        tracing::info!(service = %archive.service, "excluded");
        Ok(InclusionAnswer::ok(&[("status.archive", "excluded")]))
    }

    /// Calls an Archive back; if it does not confirm, returns why, for the operator.
    async fn call_back(&self, archive: &RegisteredArchive) -> Result<(), String> {
        let asked = self.ask.call_back(archive, &WireRequest::InclusionConfirmation.to_query());
        match tokio::time::timeout(CONFIRMATION_TIMEOUT, asked).await {
            Ok(Ok(body)) => Pairs::read(&body, &PairsLimits::default())
                .ok()
                .filter(|pairs| pairs.get("confirmation") == Some("yes"))
                .map(|_| ())
                .ok_or_else(|| "it answered the callback, but did not confirm".to_owned()),
            Ok(Err(error)) => {
                let certificate = self.health.certificate_problem(archive.id);
                Err(certificate.map_or_else(|| error.to_string(), |problem| problem.for_operator()))
            }
            Err(_) => Err(format!("it did not answer within {} s", CONFIRMATION_TIMEOUT.as_secs())),
        }
    }
}

impl InclusionAnswer {
    fn ok(pairs: &[(&str, &str)]) -> Self {
        let mut list = Pairs::new();
        pairs.iter().for_each(|(name, value)| list.push(*name, value));
        Self { status: StatusCode::OK, pairs: list, retry_after: None }
    }

    /// The same response for an unregistered Archive and for a wrong key.
    fn refused() -> Self {
        Self { status: StatusCode::FORBIDDEN, ..Self::ok(&[("status.archive", "refused")]) }
    }

    fn malformed(error: &MessageError) -> Self {
        Self { status: StatusCode::BAD_REQUEST, pairs: error.to_pairs(), retry_after: None }
    }

    fn busy() -> Self {
        let pairs = [("error", "busy"), ("message", "too many requests: retry later")];
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry_after: Some(BUSY_RETRY_AFTER),
            ..Self::ok(&pairs)
        }
    }

    fn failed(error: &ResolverRegistryError) -> Self {
        tracing::error!(%error, "the registry failed");
        let pairs = [("error", "registry"), ("message", "the registry failed: retry later")];
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry_after: Some(BUSY_RETRY_AFTER),
            ..Self::ok(&pairs)
        }
    }
}

/// Runs blocking disk work on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ResolverRegistryError> + Send + 'static,
) -> Result<T, ResolverRegistryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(ResolverRegistryError::Stopped),
    }
}

impl<A> Clone for InclusionService<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A> std::fmt::Debug for InclusionService<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inclusion(…)")
    }
}

#[cfg(test)]
mod tests;
