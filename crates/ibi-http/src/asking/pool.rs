//! Connections that wait for the next question, and how many there may be.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection::Connection;

/// The most questions at once, to one and to all; further ones wait.
const MOST_TO_ONE: usize = 64;
const MOST_TO_ALL: usize = 1024;

/// The most connections that wait, for one and for all.
const MOST_IDLE_TO_ONE: usize = 32;
const MOST_IDLE: usize = 1024;

/// How long they wait: servers hang up after ten seconds or more, as a rule.
const IDLE: Duration = Duration::from_secs(5);

/// What all pools share.
pub(super) struct Room {
    places: Arc<Semaphore>,
    idle: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
    /// When what waits too long was closed the last time.
    tidied: Mutex<Option<Instant>>,
}

/// The connections to one address.
pub(super) struct Pool {
    room: Arc<Room>,
    places: Arc<Semaphore>,
    /// The one that waits longest is first.
    idle: Mutex<VecDeque<(Instant, Connection)>>,
}

/// The right to ask a question.
pub(super) struct Place {
    _of_one: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MOST_TO_ALL)),
            idle: AtomicUsize::new(0),
            pools: Mutex::default(),
            tidied: Mutex::default(),
        }
    }
}

impl Room {
    /// Closes what has waited too long, at most once a second.
    fn tidy(&self) {
        let now = Instant::now();
        let mut tidied = lock(&self.tidied);
        if tidied.is_some_and(|last| now.duration_since(last) < Duration::from_secs(1)) {
            return;
        }
        *tidied = Some(now);
        drop(tidied);
        lock(&self.pools).retain(|pool| pool.upgrade().inspect(|pool| pool.tidy()).is_some());
    }
}

impl Pool {
    pub(super) fn new(room: &Arc<Room>) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(MOST_TO_ONE));
        let pool = Arc::new(Self { room: room.clone(), places, idle: Mutex::default() });
        lock(&room.pools).push(Arc::downgrade(&pool));
        pool
    }

    /// Waits for the right to ask. (The semaphores are never closed.)
    pub(super) async fn place(&self) -> Place {
        let _of_one = self.places.clone().acquire_owned().await.ok();
        let _of_all = self.room.places.clone().acquire_owned().await.ok();
        Place { _of_one, _of_all }
    }

    /// A connection that still seems to be open: the one used last.
    pub(super) fn idle(&self) -> Option<Connection> {
        loop {
            let (since, mut connection) = lock(&self.idle).pop_back()?;
            self.room.idle.fetch_sub(1, Ordering::Relaxed);
            if since.elapsed() < IDLE && connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next question.
    pub(super) fn keep(&self, mut connection: Connection) {
        if !connection.is_usable() || self.room.idle.load(Ordering::Relaxed) >= MOST_IDLE {
            return;
        }
        let mut idle = lock(&self.idle);
        if idle.len() < MOST_IDLE_TO_ONE {
            idle.push_back((Instant::now(), connection));
            self.room.idle.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Closes what has waited too long, here and elsewhere.
    pub(super) fn tidy_all(&self) {
        self.room.tidy();
    }

    fn tidy(&self) {
        let mut idle = lock(&self.idle);
        while idle.front().is_some_and(|(since, _)| since.elapsed() >= IDLE) {
            idle.pop_front();
            self.room.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.room.idle.fetch_sub(lock(&self.idle).len(), Ordering::Relaxed);
    }
}

/// Nothing that is guarded here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
