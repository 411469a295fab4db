//! Archives that come on line and go off line (3.3). One that comes is called back; it is not asked until it has confirmed that
//! it is there (D21), and confirms it again now and then.

mod tend;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use ibi_http::asking::Address;
use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{Limits, MessageError, Pairs, Registration, Request};
use tokio::sync::{Notify, Semaphore};

use crate::archive::{Archive, Standing};
use crate::ask::{Ask, Health};
use crate::keys::{Keys, Refused};
use crate::registry::{Registry, RegistryError};
use tend::Probe;

/// How long an Archive may take to confirm.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is said to who comes when too many wait.
const BUSY: Duration = Duration::from_secs(5);

/// Gives the seconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Includes and excludes Archives.
pub struct Inclusion<A>(Arc<Inner<A>>);

struct Inner<A> {
    registry: Registry,
    ask: Arc<A>,
    health: Health,
    clock: Clock,
    keys: Keys,
    probes: Mutex<HashMap<ArchiveId, Probe>>,
    changed: Notify,
    places: Arc<Semaphore>,
}

/// What an Archive is told.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status of HTTP.
    pub status: StatusCode,
    /// The body, `text/plain`.
    pub pairs: Pairs,
    /// When to come again, if it is too early: `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl<A: Ask> Inclusion<A> {
    /// Over a registry, asking through `ask`; `health` is told by the same how Archives answer.
    pub fn new(registry: Registry, ask: Arc<A>, health: Health, clock: Clock) -> Result<Self, RegistryError> {
        Ok(Self(Arc::new(Inner {
            registry,
            ask,
            health,
            clock,
            keys: Keys::new()?,
            probes: Mutex::default(),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(tend::AT_ONCE)),
        })))
    }

    /// Answers an inclusion or exclusion that came from this client.
    pub async fn handle(&self, request: Request, client: IpAddr) -> Answer {
        let inner = &self.0;
        let handled = match &request {
            Request::Inclusion(registration) => match inner.authentic(registration, client).await {
                Ok(_) => inner.include(registration.clone()).await,
                Err(answer) => return answer,
            },
            Request::Exclusion(registration) => match inner.authentic(registration, client).await {
                Ok(service) => inner.exclude(service, &registration.address).await,
                Err(answer) => return answer,
            },
            other => {
                return Answer::malformed(&MessageError::Subject { given: other.subject().to_owned() });
            }
        };
        handled.unwrap_or_else(|error| match error {
            // Retired at this very moment.
            RegistryError::Unknown { .. } => Answer::refused(),
            error => Answer::failed(&error),
        })
    }
}

impl<A: Ask> Inner<A> {
    /// Whether the key is that of the Archive; gives its label.
    async fn authentic(&self, registration: &Registration, client: IpAddr) -> Result<Label, Answer> {
        let bad = |name, why: String| Answer::malformed(&MessageError::Value { name, why });
        Address::parse(&registration.address).map_err(|error| bad("archiveaddress", error.to_string()))?;
        let service: Label = registration
            .service
            .parse()
            .map_err(|error: ibi_id::ParseError| bad("archiveserviceibi", error.to_string()))?;
        let (registry, label) = (self.registry.clone(), service.clone());
        let known = blocking(move || registry.known(&label)).await.map_err(|error| Answer::failed(&error))?;
        let known = known.filter(|entry| entry.archive.standing != Standing::Retired);
        let known = known.map(|entry| (entry.archive.id, entry.key_hash));
        match self.keys.check(&service.to_string(), known, &registration.key, client).await {
            Ok(()) => Ok(service),
            Err(Refused::Wrong) => {
                tracing::warn!(%service, %client, "refused: not registered, or a wrong key");
                Err(Answer::refused())
            }
            Err(Refused::Later(wait)) => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                Err(Answer { status, retry_after: Some(wait), ..Answer::refused() })
            }
            Err(Refused::Busy) => Err(Answer::busy()),
        }
    }

    async fn include(self: &Arc<Self>, registration: Registration) -> Result<Answer, RegistryError> {
        let (registry, now) = (self.registry.clone(), (self.clock)());
        let included = blocking(move || registry.include(&registration, now)).await?;
        let (id, turn) = (included.archive.id, included.turn);
        // Nobody else calls it back meanwhile.
        self.postpone(id, turn);
        let yes = self.confirm(&included.archive).await;
        let (registry, now) = (self.registry.clone(), (self.clock)());
        let counted = blocking(move || registry.confirmed(id, turn, yes, now)).await?;
        if counted {
            self.settle(id, turn, yes);
        }
        tracing::info!(service = %included.archive.service, address = included.archive.address, confirmed = yes, "included");
        let confirmation = if yes { "successful" } else { "unsuccessful" };
        Ok(Answer::ok(&[("status.archive", "included"), ("status.confirmation", confirmation)]))
    }

    /// An Archive that has moved meanwhile stays on line: it is the one it left behind that goes.
    async fn exclude(&self, service: Label, address: &str) -> Result<Answer, RegistryError> {
        let (registry, now) = (self.registry.clone(), (self.clock)());
        if registry
            .find(&service)
            .is_some_and(|archive| archive.address.as_deref().is_some_and(|now| now != address))
        {
            tracing::info!(%service, address, "an exclusion from where it is no longer");
            return Ok(Answer::ok(&[("status.archive", "excluded")]));
        }
        let archive = blocking(move || registry.exclude(&service, now)).await?;
        tracing::info!(service = %archive.service, "excluded");
        Ok(Answer::ok(&[("status.archive", "excluded")]))
    }

    /// Calls an Archive back: is it there?
    async fn confirm(&self, archive: &Archive) -> bool {
        let asked = self.ask.ask(archive, &Request::InclusionConfirmation.to_query());
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(body)) => Pairs::read(&body, &Limits::default())
                .is_ok_and(|pairs| pairs.get("confirmation") == Some("yes")),
            Ok(Err(error)) => {
                tracing::debug!(service = %archive.service, %error, "not confirmed");
                false
            }
            Err(_) => false,
        }
    }
}

impl Answer {
    fn ok(pairs: &[(&str, &str)]) -> Self {
        let mut list = Pairs::new();
        pairs.iter().for_each(|(name, value)| list.push(*name, value));
        Self { status: StatusCode::OK, pairs: list, retry_after: None }
    }

    /// The same for an Archive that is not registered and for a wrong key.
    fn refused() -> Self {
        Self { status: StatusCode::FORBIDDEN, ..Self::ok(&[("status.archive", "refused")]) }
    }

    fn malformed(error: &MessageError) -> Self {
        Self { status: StatusCode::BAD_REQUEST, pairs: error.to_pairs(), retry_after: None }
    }

    fn busy() -> Self {
        let pairs = [("error", "busy"), ("message", "too many ask at once: come again")];
        Self { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: Some(BUSY), ..Self::ok(&pairs) }
    }

    fn failed(error: &RegistryError) -> Self {
        tracing::error!(%error, "the registry failed");
        let pairs = [("error", "registry"), ("message", "the registry failed: come again")];
        Self { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: Some(BUSY), ..Self::ok(&pairs) }
    }
}

/// Does what waits for the disk where it may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(RegistryError::Stopped),
    }
}

impl<A> Clone for Inclusion<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A> std::fmt::Debug for Inclusion<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inclusion(…)")
    }
}

#[cfg(test)]
mod tests;
