//! The network between one resolver and the Archives: it loses, delays and cuts.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use ibi_http::outgoing::HttpClientError;
use ibi_resolver::location_index::feed_transport::FeedTransport;
use ibi_resolver::{ArchiveTransport, ArchiveTransportError, RegisteredArchive};
use tokio::time::sleep;

use crate::host::{ArchiveHost, HostRequest};
use crate::random::SeededNumbers;
use crate::trace::SimulationTrace;

/// How long a client waits for a response that does not come.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(31);

/// The delay of one message without a fault, in microseconds.
const USUAL_DELAY: (u64, u64) = (500, 20_000);

/// The delay of one message of a slow connection.
const SLOW_DELAY: (u64, u64) = (100_000, 2_500_000);

/// What is wrong between the resolver and one Archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ConnectionFaults {
    /// Nothing passes.
    pub(crate) is_cut: bool,
    /// Percent of questions that do not arrive.
    pub(crate) lost_questions: u64,
    /// Percent of answers that do not arrive.
    pub(crate) lost_answers: u64,
    pub(crate) is_slow: bool,
}

/// The network; clones share it.
#[derive(Clone)]
pub(crate) struct SimulatedNetwork(Arc<NetworkInner>);

struct NetworkInner {
    hosts: Vec<Arc<ArchiveHost>>,
    faults: Mutex<Vec<ConnectionFaults>>,
    numbers: Mutex<SeededNumbers>,
    trace: SimulationTrace,
}

/// The network as one process of the resolver uses it: killed, it hears nothing more.
#[derive(Clone)]
pub(crate) struct ResolverLink {
    pub(crate) network: SimulatedNetwork,
    pub(crate) is_alive: Arc<AtomicBool>,
}

impl SimulatedNetwork {
    pub(crate) fn new(hosts: Vec<Arc<ArchiveHost>>, seed: u64, trace: SimulationTrace) -> Self {
        let faults = Mutex::new(vec![ConnectionFaults::default(); hosts.len()]);
        let numbers = Mutex::new(SeededNumbers::new(seed));
        Self(Arc::new(NetworkInner { hosts, faults, numbers, trace }))
    }

    pub(crate) fn faults(&self, host: usize) -> ConnectionFaults {
        locked(&self.0.faults)[host]
    }

    pub(crate) fn set_faults(&self, host: usize, faults: ConnectionFaults) {
        locked(&self.0.faults)[host] = faults;
    }

    fn delay(&self, host: Option<usize>) -> Duration {
        let is_slow = host.is_some_and(|host| self.faults(host).is_slow);
        let (first, last) = if is_slow { SLOW_DELAY } else { USUAL_DELAY };
        if is_slow {
            self.0.trace.count("fault: message delayed");
        }
        Duration::from_micros(locked(&self.0.numbers).range(first, last))
    }

    fn percent(&self, percent: u64) -> bool {
        percent > 0 && locked(&self.0.numbers).percent(percent)
    }

    /// Nothing comes back: the client notices at once, or only by its timeout.
    async fn no_answer(&self) -> Result<(StatusCode, Bytes), String> {
        if self.percent(50) {
            return Err("connection reset".to_owned());
        }
        sleep(CLIENT_TIMEOUT).await;
        Err("no answer in time".to_owned())
    }

    async fn exchange(&self, address: &str, request: HostRequest) -> Result<(StatusCode, Bytes), String> {
        let trace = &self.0.trace;
        let host = self.0.hosts.iter().find(|host| host.address() == address);
        let number = host.map(|host| host.number);
        sleep(self.delay(number)).await;
        let Some(host) = host.filter(|host| host.address() == address) else {
            trace.count("fault: nobody at the address");
            return Err("connection refused".to_owned());
        };
        let faults = self.faults(host.number);
        if faults.is_cut {
            trace.count("fault: message at a partition");
            return self.no_answer().await;
        }
        if self.percent(faults.lost_questions) {
            trace.count("fault: question lost");
            return self.no_answer().await;
        }
        if !host.is_up.load(Ordering::Acquire) {
            trace.count("fault: Archive down");
            return Err("connection refused".to_owned());
        }
        let starts = host.starts.load(Ordering::Acquire);
        let response = host.serve(request).await;
        if host.starts.load(Ordering::Acquire) != starts {
            trace.count("fault: Archive ended while it answered");
            return Err("connection reset".to_owned());
        }
        let faults = self.faults(host.number);
        if faults.is_cut || self.percent(faults.lost_answers) {
            trace.count("fault: answer lost");
            return self.no_answer().await;
        }
        sleep(self.delay(number)).await;
        Ok(response)
    }
}

impl ResolverLink {
    async fn send(self, address: String, request: HostRequest) -> Result<(StatusCode, Bytes), String> {
        if !self.is_alive.load(Ordering::Acquire) {
            pending::<()>().await;
        }
        let response = self.network.exchange(&address, request).await;
        if !self.is_alive.load(Ordering::Acquire) {
            pending::<()>().await;
        }
        response
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Address, path and query of a URL.
fn split_url(url: &str) -> (String, String, String) {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (address, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (address.to_owned(), path.to_owned(), query.to_owned())
}

impl ArchiveTransport for ResolverLink {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let (link, address) = (self.clone(), archive.address.clone().unwrap_or_default());
        let request = HostRequest::Ask(query.to_owned());
        async move {
            match link.send(address, request).await {
                Ok((StatusCode::OK, body)) => Ok(body),
                Ok((status, _)) => Err(ArchiveTransportError(format!("it answered {status}"))),
                Err(error) => Err(ArchiveTransportError(error)),
            }
        }
    }
}

impl FeedTransport for ResolverLink {
    async fn get_feed(
        &self,
        url: &str,
        token: &str,
        _most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        let (address, _, query) = split_url(url);
        let request = HostRequest::Feed { query, token: token.to_owned() };
        self.clone().send(address, request).await.map_err(HttpClientError::Silent)
    }

    async fn post_report(
        &self,
        url: &str,
        token: &str,
        body: Vec<u8>,
        _most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        let (address, ..) = split_url(url);
        let request = HostRequest::Usage { body, token: token.to_owned() };
        self.clone().send(address, request).await.map_err(HttpClientError::Silent)
    }
}
