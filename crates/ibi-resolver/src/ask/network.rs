//! Asking Archives over HTTP: `http://<address>/<service>?<query>` (3).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use ibi_http::asking::{AskError, Asker, Target};
use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant;

use super::health::{Health, Record};
use super::{Ask, AskFailed};
use crate::archive::Archive;

/// Who gives up after so long had an Archive that does not answer; who gives up sooner had a better answer.
const SLOW: Duration = Duration::from_secs(1);

/// Asks over the network.
#[derive(Debug)]
pub struct Network {
    asker: Asker,
    health: Health,
    known: RwLock<HashMap<ArchiveId, Arc<Known>>>,
}

/// What was prepared for asking an Archive.
struct Known {
    address: String,
    spelling: String,
    target: Result<Target, AskFailed>,
    record: Record,
}

impl Network {
    /// Asks others, and tells `health` how they answer. `allow_private`: also on private and loopback addresses.
    pub fn new(allow_private: bool, health: Health) -> Self {
        Self { asker: Asker::new(allow_private), health, known: RwLock::default() }
    }

    fn known(&self, archive: &Archive) -> Result<Arc<Known>, AskFailed> {
        let address = archive.address.as_deref().ok_or_else(|| AskFailed("it has no address".to_owned()))?;
        let spelling = archive.service.spelling();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&archive.id).cloned();
        if let Some(known) = known.filter(|known| known.address == address && known.spelling == spelling) {
            return Ok(known);
        }
        let target = self.asker.target(address).map_err(|error| AskFailed(format!("no address: {error}")));
        let known = Arc::new(Known {
            address: address.to_owned(),
            spelling: spelling.to_owned(),
            target,
            record: self.health.record(archive.id),
        });
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(archive.id, known.clone());
        Ok(known)
    }
}

impl Ask for Network {
    fn ask(
        &self,
        archive: &Archive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static {
        let asked = self.known(archive).and_then(|known| {
            let target = known.target.as_ref().map_err(AskFailed::clone)?;
            let path = ["/", &known.spelling, "?", query].concat();
            let asked = self.asker.get(target, path);
            Ok((asked, known))
        });
        async move {
            let (asked, known) = asked?;
            let watch = Watch { known: &known, since: Instant::now(), is_over: false };
            match asked.await {
                Ok((status, body)) => {
                    watch.over(!status.is_server_error());
                    if status == StatusCode::OK {
                        Ok(body)
                    } else {
                        Err(AskFailed(format!("it answered {status}")))
                    }
                }
                Err(error) => {
                    watch.over(matches!(error, AskError::TooLong { .. }));
                    Err(AskFailed(error.to_string()))
                }
            }
        }
    }

    fn fetch(
        &self,
        archive: &Archive,
        path: &str,
    ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static {
        let asked = self.known(archive).and_then(|known| {
            let target = known.target.as_ref().map_err(AskFailed::clone)?;
            Ok(self.asker.get(target, path.to_owned()))
        });
        async move {
            match asked?.await {
                Ok((StatusCode::OK, body)) => Ok(body),
                Ok((status, _)) => Err(AskFailed(format!("it answered {status}"))),
                Err(error) => Err(AskFailed(error.to_string())),
            }
        }
    }
}

/// A question on its way: it counts also when the one who asked gives up.
struct Watch<'a> {
    known: &'a Known,
    since: Instant,
    is_over: bool,
}

impl Watch<'_> {
    fn over(mut self, answered: bool) {
        self.is_over = true;
        if answered { self.known.record.answered() } else { self.known.failed() }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.since.elapsed() >= SLOW {
            self.known.failed();
        }
    }
}

impl Known {
    /// Told to the operator as a figure, and the first time in a row as a line.
    fn failed(&self) {
        metrics::counter!("ibi_archive_failures_total", "archive" => self.spelling.clone()).increment(1);
        if self.record.failed() == 1 {
            tracing::warn!(archive = self.spelling, address = self.address, "did not answer");
        }
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({})", self.address)
    }
}

#[cfg(test)]
mod tests;
