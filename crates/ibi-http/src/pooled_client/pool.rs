//! Idle connections, and the limits on connections and requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection::ClientConnection;
use crate::descriptors::DescriptorBudget;

/// Maximum number of concurrent requests, per host and in total; further ones wait.
const MAX_REQUESTS_PER_HOST: usize = 64;
const MAX_OUTGOING_REQUESTS: usize = 1024;

/// Maximum number of idle connections, per host and in total.
const MAX_IDLE_PER_HOST: usize = 32;
const MAX_IDLE_CONNECTIONS: usize = 1024;

/// Idle timeout: servers usually close idle connections after ten seconds or more.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// State shared by all pools.
pub(super) struct SharedPoolState {
    permits: Arc<Semaphore>,
    /// Maximum number of idle connections that the descriptor budget allows.
    most_idle: usize,
    idle: AtomicUsize,
    pools: Mutex<Vec<Weak<ConnectionPool>>>,
    /// When expired connections were last closed.
    tidied: Mutex<Option<Instant>>,
}

/// The connections to one address.
pub(super) struct ConnectionPool {
    shared: Arc<SharedPoolState>,
    permits: Arc<Semaphore>,
    /// Longest idle first.
    idle: Mutex<VecDeque<(Instant, ClientConnection)>>,
}

/// A permit to send one request.
pub(super) struct ConnectionPermit {
    _host_permit: Option<OwnedSemaphorePermit>,
    _global_permit: Option<OwnedSemaphorePermit>,
}

impl Default for SharedPoolState {
    fn default() -> Self {
        let outgoing = DescriptorBudget::current().outgoing();
        Self {
            permits: Arc::new(Semaphore::new(outgoing.min(MAX_OUTGOING_REQUESTS))),
            most_idle: outgoing.min(MAX_IDLE_CONNECTIONS),
            idle: AtomicUsize::new(0),
            pools: Mutex::default(),
            tidied: Mutex::default(),
        }
    }
}

impl SharedPoolState {
    /// Closes expired connections, at most once a second.
    fn close_expired_pools(&self) {
        let now = Instant::now();
        let mut tidied = lock(&self.tidied);
        if tidied.is_some_and(|last| now.duration_since(last) < Duration::from_secs(1)) {
            return;
        }
        *tidied = Some(now);
        drop(tidied);
        lock(&self.pools).retain(|pool| pool.upgrade().inspect(|pool| pool.close_expired()).is_some());
    }
}

impl ConnectionPool {
    pub(super) fn new(shared: &Arc<SharedPoolState>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(MAX_REQUESTS_PER_HOST));
        let pool = Arc::new(Self { shared: shared.clone(), permits, idle: Mutex::default() });
        lock(&shared.pools).push(Arc::downgrade(&pool));
        pool
    }

    /// Waits for a permit. (The semaphores are never closed.)
    pub(super) async fn acquire_permit(&self) -> ConnectionPermit {
        let _host_permit = self.permits.clone().acquire_owned().await.ok();
        let _global_permit = self.shared.permits.clone().acquire_owned().await.ok();
        ConnectionPermit { _host_permit, _global_permit }
    }

    /// The most recently used connection that still looks open.
    pub(super) fn take_idle(&self) -> Option<ClientConnection> {
        loop {
            let (idle_since, mut connection) = lock(&self.idle).pop_back()?;
            self.shared.idle.fetch_sub(1, Ordering::Relaxed);
            if idle_since.elapsed() < IDLE_CONNECTION_TIMEOUT && connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Returns a connection to the pool.
    pub(super) fn return_connection(&self, mut connection: ClientConnection) {
        if !connection.is_usable() || self.shared.idle.load(Ordering::Relaxed) >= self.shared.most_idle {
            return;
        }
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE_PER_HOST {
            idle.push_back((Instant::now(), connection));
            self.shared.idle.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Closes expired connections in all pools.
    pub(super) fn close_expired_everywhere(&self) {
        self.shared.close_expired_pools();
    }

    fn close_expired(&self) {
        let mut idle = lock(&self.idle);
        while idle.front().is_some_and(|(idle_since, _)| idle_since.elapsed() >= IDLE_CONNECTION_TIMEOUT) {
            idle.pop_front();
            self.shared.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.shared.idle.fetch_sub(lock(&self.idle).len(), Ordering::Relaxed);
    }
}

/// A panic leaves nothing inconsistent behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
