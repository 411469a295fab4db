//! A shared memory budget for everything that requests can make large. A request that needs more
//! than a little takes its grant first, waits briefly if none is free, and is then told to retry.
//! One client network gets at most a quarter of the budget, so that a slow client cannot hold all
//! of it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use crate::connection_slots::client_network;
use crate::{Problem, priority};

tokio::task_local! {
    /// The network of the client whose request this task handles.
    static CLIENT_NETWORK: IpAddr;
}

/// One client network may hold at most this fraction (1/n) of the budget.
const NETWORK_SHARE_DIVISOR: u64 = 4;

/// Networks kept in the table before those that hold nothing are removed.
const MAX_IDLE_NETWORKS: usize = 1024;

/// Default budget in bytes: a server fits into 512 MB in total.
pub const DEFAULT_MEMORY_BYTES: u64 = 128 << 20;

/// Minimum budget in bytes.
pub const MIN_MEMORY_BYTES: u64 = 32 << 20;

/// How long a request waits for its grant before it is told to retry.
const MEMORY_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout for heavy work, including the wait in the queue.
const HEAVY_WORK_TIMEOUT: Duration = Duration::from_secs(60);

/// Grants are counted in units of this many bytes.
const MEMORY_UNIT_BYTES: u64 = 1 << 10;

/// Size of the pieces in which a large response is sent.
const RESPONSE_PIECE_BYTES: usize = 64 << 10;

/// A large response stays in memory until the client has read it. After the grace period, clients
/// that read more slowly than this are disconnected.
const MIN_LARGE_RESPONSE_BYTES_PER_SECOND: u64 = 32 << 10;
const LARGE_RESPONSE_GRACE: Duration = Duration::from_secs(20);

/// A budget of memory, and of concurrent heavy work.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: u64,
    free: Arc<Semaphore>,
    running: Arc<Semaphore>,
    networks: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

/// A share of the budget, released on drop.
#[derive(Debug)]
pub struct MemoryGrant {
    of_all: OwnedSemaphorePermit,
    of_network: Option<OwnedSemaphorePermit>,
}

/// Handles a request on behalf of its client: memory granted within counts towards that client's
/// network.
pub async fn with_client_network<T>(client: IpAddr, handler: impl Future<Output = T>) -> T {
    CLIENT_NETWORK.scope(client_network(client), handler).await
}

impl MemoryBudget {
    /// A budget of this many bytes, but at least [`MIN_MEMORY_BYTES`].
    pub fn new(bytes: u64) -> Self {
        let bytes = bytes.max(MIN_MEMORY_BYTES);
        let units =
            usize::try_from(bytes / MEMORY_UNIT_BYTES).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        // One per core, so that light work never waits behind more than one of them.
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            bytes,
            free: Arc::new(Semaphore::new(units)),
            running: Arc::new(Semaphore::new(cores.clamp(2, 8))),
            networks: Mutex::default(),
        }
    }

    /// The whole budget.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes that are currently not granted.
    pub fn free_bytes(&self) -> u64 {
        self.free.available_permits() as u64 * MEMORY_UNIT_BYTES
    }

    /// Waits briefly for a grant of this many bytes. A request for more than the budget gets all of
    /// it, so that no one else holds any.
    pub async fn grant(&self, bytes: u64) -> Result<MemoryGrant, Problem> {
        match timeout(MEMORY_WAIT_TIMEOUT, self.wait_for(bytes)).await {
            Ok(Some(grant)) => Ok(grant),
            _ => Err(memory_exhausted_problem()),
        }
    }

    async fn wait_for(&self, bytes: u64) -> Option<MemoryGrant> {
        let of_network = match self.network_share(bytes) {
            Some((network, units)) => Some(network.acquire_many_owned(units).await.ok()?),
            None => None,
        };
        let of_all = Arc::clone(&self.free).acquire_many_owned(self.units(bytes)).await.ok()?;
        Some(MemoryGrant { of_all, of_network })
    }

    /// Like [`MemoryBudget::grant`], but returns immediately.
    pub fn try_grant(&self, bytes: u64) -> Option<MemoryGrant> {
        let of_network = match self.network_share(bytes) {
            Some((network, units)) => Some(network.try_acquire_many_owned(units).ok()?),
            None => None,
        };
        let of_all = Arc::clone(&self.free).try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(MemoryGrant { of_all, of_network })
    }

    /// The semaphore of the client's network, and the number of units for this many bytes. A
    /// request for more than the network's share is granted while the network holds nothing else.
    fn network_share(&self, bytes: u64) -> Option<(Arc<Semaphore>, u32)> {
        let network = CLIENT_NETWORK.try_with(|network| *network).ok()?;
        let part = self.units(self.bytes / NETWORK_SHARE_DIVISOR);
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        if networks.len() >= MAX_IDLE_NETWORKS {
            networks.retain(|_, held| held.strong_count() > 0);
        }
        let known = networks.get(&network).and_then(Weak::upgrade);
        let held = known.unwrap_or_else(|| {
            let held = Arc::new(Semaphore::new(part as usize));
            networks.insert(network, Arc::downgrade(&held));
            held
        });
        Some((held, self.units(bytes).min(part)))
    }

    /// Runs heavy work within a grant on a low-priority thread; only a few run at a time. Returns
    /// the grant with the result.
    pub async fn run<T: Send + 'static>(
        &self,
        grant: MemoryGrant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, MemoryGrant), Problem> {
        // The client may disconnect in the meantime: the grant is held until the work is done.
        let heavy = self.run_queued(move || (work(), grant));
        timeout(HEAVY_WORK_TIMEOUT, heavy).await.map_err(|_| memory_exhausted_problem())?
    }

    /// Queues work that needs little memory in the same way.
    pub async fn run_queued<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let running = Arc::clone(&self.running).acquire_owned().await.map_err(|_| Problem::internal())?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("heavy".to_owned());
        let spawned = thread.spawn(move || {
            priority::lower_priority();
            // The client may have disconnected.
            let _ = sender.send(work());
            drop(running);
        });
        spawned.map_err(|_| Problem::internal())?;
        receiver.await.map_err(|_| Problem::internal())
    }

    fn units(&self, bytes: u64) -> u32 {
        let units = bytes.min(self.bytes).div_ceil(MEMORY_UNIT_BYTES).max(1);
        u32::try_from(units)
            .unwrap_or(u32::MAX)
            .min(u32::try_from(self.bytes / MEMORY_UNIT_BYTES).unwrap_or(u32::MAX))
    }
}

impl MemoryGrant {
    /// Keeps this many bytes and releases the rest.
    #[must_use]
    pub fn shrink_to(mut self, bytes: u64) -> Self {
        let kept = usize::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(usize::MAX);
        for permit in [Some(&mut self.of_all), self.of_network.as_mut()].into_iter().flatten() {
            if let Some(more) = permit.num_permits().checked_sub(kept) {
                drop(permit.split(more));
            }
        }
        self
    }

    /// Stops counting the grant towards the client's network: the result is shared with other
    /// clients.
    #[must_use]
    pub fn count_as_shared(mut self) -> Self {
        self.of_network = None;
        self
    }

    /// Bytes held under this grant, which is released when the last reference to them is dropped.
    pub fn hold_bytes(self, bytes: Vec<u8>) -> Bytes {
        let held = self.shrink_to(bytes.capacity() as u64);
        Bytes::from_owner(GrantedBytes { bytes, _grant: held })
    }
}

struct GrantedBytes {
    bytes: Vec<u8>,
    _grant: MemoryGrant,
}

impl AsRef<[u8]> for GrantedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn memory_exhausted_problem() -> Problem {
    metrics::counter!("ibi_memory_refused_total").increment(1);
    Problem::unavailable("all memory for large responses is in use: retry in a moment")
}

/// A response whose body is held in memory, under a grant, until the client has read it. It is sent
/// in pieces, and the client is disconnected if it is too slow.
pub async fn hold_response(response: Response, grant: MemoryGrant) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await else { return Problem::internal().into_response() };
    let bytes = body.to_bytes();
    let grant = grant.shrink_to(bytes.len() as u64);
    parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(bytes.len()));
    Response::from_parts(parts, Body::new(LargeBody::new([bytes], Some(grant))))
}

/// A body of several in-memory parts, sent in pieces.
#[derive(Debug)]
pub struct LargeBody {
    parts: std::collections::VecDeque<Bytes>,
    left: u64,
    sent: u64,
    begun: Instant,
    _grant: Option<MemoryGrant>,
}

impl LargeBody {
    /// A body of these parts.
    pub fn new(parts: impl IntoIterator<Item = Bytes>, grant: Option<MemoryGrant>) -> Self {
        let parts: std::collections::VecDeque<Bytes> = parts.into_iter().collect();
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, left, sent: 0, begun: Instant::now(), _grant: grant }
    }

    fn is_too_slow(&self) -> bool {
        let took = self.begun.elapsed();
        took > LARGE_RESPONSE_GRACE && self.sent < took.as_secs() * MIN_LARGE_RESPONSE_BYTES_PER_SECOND
    }
}

impl HttpBody for LargeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, io::Error>>> {
        while self.parts.front().is_some_and(Bytes::is_empty) {
            self.parts.pop_front();
        }
        if self.is_too_slow() {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        let Some(part) = self.parts.front_mut() else { return Poll::Ready(None) };
        let piece = part.split_to(part.len().min(RESPONSE_PIECE_BYTES));
        self.left -= piece.len() as u64;
        self.sent += piece.len() as u64;
        Poll::Ready(Some(Ok(hyper::body::Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_memory_a_request_waits_and_is_told_to_retry() {
        let budget = MemoryBudget::new(0);
        assert_eq!(budget.bytes(), MIN_MEMORY_BYTES);
        let all = budget.grant(u64::MAX).await.unwrap();
        assert_eq!(budget.free_bytes(), 0);
        let refused = budget.grant(1).await.unwrap_err();
        assert_eq!(refused.status(), 503);
        let some = all.shrink_to(MIN_MEMORY_BYTES / 2);
        assert_eq!(budget.free_bytes(), MIN_MEMORY_BYTES / 2);
        let waiting = budget.grant(MIN_MEMORY_BYTES);
        let (granted, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(MEMORY_WAIT_TIMEOUT / 2).await;
            drop(some);
        });
        assert_eq!(granted.unwrap().hold_bytes(vec![0; 4096]).len(), 4096);
        assert_eq!(budget.free_bytes(), MIN_MEMORY_BYTES, "released with the bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_gets_only_its_share() {
        let budget = MemoryBudget::new(0);
        let [slow, other] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from);
        let part = MIN_MEMORY_BYTES / NETWORK_SHARE_DIVISOR;
        let held = with_client_network(slow, budget.grant(MIN_MEMORY_BYTES / 2)).await;
        let held = held.unwrap().shrink_to(part);
        assert_eq!(with_client_network(slow, budget.grant(1)).await.unwrap_err().status(), 503);
        assert!(with_client_network(slow, async { budget.try_grant(1) }).await.is_none());
        let others = with_client_network(other, budget.grant(part)).await.unwrap();
        drop(held);
        assert!(with_client_network(slow, budget.grant(part)).await.is_ok());
        drop(others);
        assert_eq!(budget.free_bytes(), MIN_MEMORY_BYTES);
    }

    #[tokio::test]
    async fn a_grant_is_held_until_the_response_is_read() {
        let budget = Arc::new(MemoryBudget::new(0));
        let grant = budget.grant(1 << 20).await.unwrap();
        let (made, grant) = budget.run(grant, || vec![7_u8; 100_000]).await.unwrap();
        let mut response = Response::new(Body::from(made));
        *response.status_mut() = http::StatusCode::CREATED;
        let response = hold_response(response, grant).await;
        assert_eq!(response.headers()[header::CONTENT_LENGTH], "100000");
        assert!(budget.free_bytes() < MIN_MEMORY_BYTES);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == 7));
        assert_eq!(budget.free_bytes(), MIN_MEMORY_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_readers_of_large_responses_are_disconnected() {
        let mut body = LargeBody::new([Bytes::from(vec![0; 4 << 20])], None);
        assert!(body.frame().await.unwrap().is_ok());
        tokio::time::advance(LARGE_RESPONSE_GRACE * 2).await;
        assert!(body.frame().await.unwrap().is_err());
    }
}
