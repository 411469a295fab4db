//! Requests to Archives: `http://<address>/<service>?<query>` (3), or `https://` if the Archive
//! said so when it came online. One that is asked over TLS is never asked without.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use ibi_http::CertificateProblem;
use ibi_http::pooled_client::{HttpScheme, HttpTarget, PooledClient, PooledClientError};
use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant;

use super::health::{ArchiveHealth, HealthRecord};
use super::{ArchiveTransport, ArchiveTransportError};
use crate::archive::RegisteredArchive;

/// A request abandoned after this time counts as a failure of the Archive; one abandoned sooner was
/// no longer needed.
const ABANDONED_REQUEST_THRESHOLD: Duration = Duration::from_secs(1);

/// The transport over the network.
#[derive(Debug)]
pub struct HttpTransport {
    asker: PooledClient,
    health: ArchiveHealth,
    known: RwLock<HashMap<ArchiveId, Arc<PreparedTarget>>>,
}

/// A prepared target for an Archive.
struct PreparedTarget {
    scheme: HttpScheme,
    address: String,
    spelling: String,
    target: Result<HttpTarget, ArchiveTransportError>,
    record: HealthRecord,
}

impl HttpTransport {
    /// A transport that reports to `health` how Archives respond. `allow_private` also permits
    /// private and loopback addresses.
    pub fn new(allow_private: bool, health: ArchiveHealth) -> Self {
        Self { asker: PooledClient::new(allow_private), health, known: RwLock::default() }
    }

    fn prepared_target(
        &self,
        archive: &RegisteredArchive,
    ) -> Result<Arc<PreparedTarget>, ArchiveTransportError> {
        let address = archive
            .address
            .as_deref()
            .ok_or_else(|| ArchiveTransportError("it has no address".to_owned()))?;
        let spelling = archive.service.spelling();
        let scheme = archive.scheme();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&archive.id).cloned();
        let is_same = |known: &Arc<PreparedTarget>| {
            known.scheme == scheme && known.address == address && known.spelling == spelling
        };
        if let Some(known) = known.filter(is_same) {
            return Ok(known);
        }
        let target = match scheme {
            HttpScheme::Http => self.asker.target(address).map_err(|error| error.to_string()),
            HttpScheme::Https => self.asker.secure_target(address).map_err(|error| error.to_string()),
        };
        let target = target.map_err(|error| ArchiveTransportError(format!("no address: {error}")));
        let known = Arc::new(PreparedTarget {
            scheme,
            address: address.to_owned(),
            spelling: spelling.to_owned(),
            target,
            record: self.health.record(archive.id),
        });
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(archive.id, known.clone());
        Ok(known)
    }
}

/// The purpose of a request to an Archive's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServiceRequest {
    /// A question or an acknowledgment.
    Question,
    /// A callback after the Archive came online.
    Callback,
}

impl HttpTransport {
    fn send(
        &self,
        archive: &RegisteredArchive,
        query: &str,
        purpose: ServiceRequest,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + use<> {
        let asked = self.prepared_target(archive).and_then(|known| {
            let target = known.target.as_ref().map_err(ArchiveTransportError::clone)?;
            let path = ["/", &known.spelling, "?", query].concat();
            let asked = self.asker.get(target, path);
            Ok((asked, known))
        });
        async move {
            let (asked, known) = asked?;
            let since = Instant::now();
            let watch = PendingRequestGuard { known: &known, purpose, since, is_over: false };
            match asked.await {
                Ok((status, body)) => {
                    watch.finish_request(status.is_server_error().then_some("a failure of its server"));
                    if status == StatusCode::OK {
                        Ok(body)
                    } else {
                        Err(ArchiveTransportError(format!("it answered {status}")))
                    }
                }
                Err(error) => {
                    watch.finish_with(&error);
                    Err(ArchiveTransportError(error.to_string()))
                }
            }
        }
    }
}

impl ArchiveTransport for HttpTransport {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        self.send(archive, query, ServiceRequest::Question)
    }

    fn call_back(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        self.send(archive, query, ServiceRequest::Callback)
    }

    fn health(&self) -> Option<&ArchiveHealth> {
        Some(&self.health)
    }

    fn fetch(
        &self,
        archive: &RegisteredArchive,
        path: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let asked = self.prepared_target(archive).and_then(|known| {
            let target = known.target.as_ref().map_err(ArchiveTransportError::clone)?;
            Ok(self.asker.get(target, path.to_owned()))
        });
        async move {
            match asked?.await {
                Ok((StatusCode::OK, body)) => Ok(body),
                Ok((status, _)) => Err(ArchiveTransportError(format!("it answered {status}"))),
                Err(error) => Err(ArchiveTransportError(error.to_string())),
            }
        }
    }
}

/// A pending request: it is recorded also when the caller gives up.
struct PendingRequestGuard<'a> {
    known: &'a PreparedTarget,
    purpose: ServiceRequest,
    since: Instant,
    is_over: bool,
}

impl PendingRequestGuard<'_> {
    fn finish_request(mut self, failure: Option<&str>) {
        self.is_over = true;
        match failure {
            None => self.answered(),
            Some(why) => self.failed(why, None),
        }
    }

    fn finish_with(mut self, error: &PooledClientError) {
        self.is_over = true;
        match error {
            PooledClientError::TooLong { .. } => self.answered(),
            PooledClientError::Certificate(problem) => self.failed(&problem.for_operator(), Some(problem)),
            other => self.failed(&other.to_string(), None),
        }
    }

    fn answered(&self) {
        let PreparedTarget { record, spelling, .. } = self.known;
        if self.purpose == ServiceRequest::Callback {
            record.confirmed();
        } else if record.answered() {
            tracing::info!(archive = spelling, "answers again");
        }
    }

    /// Counted in a metric, and logged for the first of consecutive failures.
    fn failed(&self, why: &str, certificate: Option<&CertificateProblem>) {
        let PreparedTarget { record, spelling: archive, address, .. } = self.known;
        metrics::counter!("ibi_archive_failures_total", "archive" => archive.clone()).increment(1);
        let recorded = match self.purpose {
            ServiceRequest::Callback => record.not_confirmed(certificate),
            ServiceRequest::Question => record.failed_because(self.since, certificate),
        };
        if recorded.has_opened {
            metrics::counter!("ibi_archive_breaker_opened_total", "archive" => archive.clone()).increment(1);
            tracing::warn!(archive, address, why, failures = recorded.count, "not asked for a while");
        } else if recorded.count == 1 && certificate.is_some() {
            tracing::warn!(archive, address, why, "not queried: invalid certificate");
        } else if recorded.count == 1 {
            tracing::warn!(archive, address, why, "did not answer");
        }
    }
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.since.elapsed() >= ABANDONED_REQUEST_THRESHOLD {
            self.failed("no answer in time", None);
        }
    }
}

impl std::fmt::Debug for PreparedTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({})", self.address)
    }
}

#[cfg(test)]
mod tests;
