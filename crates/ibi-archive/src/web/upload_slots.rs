//! Limits on concurrent uploads, in total and per token, so that one depositor's stalled uploads do
//! not block others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent uploads; others wait.
const MAX_CONCURRENT_UPLOADS: usize = 32;

/// Concurrent uploads per token.
const MAX_TOKEN_UPLOADS: usize = 8;

#[derive(Debug)]
pub(super) struct UploadSlots {
    all: Arc<Semaphore>,
    /// By token, as long as an upload holds or awaits a slot.
    of_one: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A slot, released when dropped.
#[derive(Debug)]
pub(super) struct UploadSlot<'a> {
    arriving: &'a UploadSlots,
    token: String,
    own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for UploadSlots {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_CONCURRENT_UPLOADS)), of_one: Mutex::default() }
    }
}

impl UploadSlots {
    /// Waits for a slot: first for one of the token, then for one of all.
    pub(super) async fn acquire_slot(&self, token: &str) -> Option<UploadSlot<'_>> {
        let own = {
            let mut of_one = self.of_one.lock().ok()?;
            let own =
                of_one.entry(token.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MAX_TOKEN_UPLOADS)));
            Arc::clone(own)
        };
        // If the client disconnects while waiting, dropping this releases everything.
        let mut place = UploadSlot { arriving: self, token: token.to_owned(), own: None, _of_all: None };
        place.own = Some(own.acquire_owned().await.ok()?);
        place._of_all = Some(Arc::clone(&self.all).acquire_owned().await.ok()?);
        Some(place)
    }
}

impl Drop for UploadSlot<'_> {
    fn drop(&mut self) {
        drop(self.own.take());
        let Ok(mut of_one) = self.arriving.of_one.lock() else { return };
        // No other upload holds or awaits it.
        if of_one.get(&self.token).is_some_and(|own| Arc::strong_count(own) == 1) {
            of_one.remove(&self.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_who_stalls_keeps_nobody_else_waiting() {
        let arriving = UploadSlots::default();
        let mut stalled = Vec::new();
        for _ in 0..MAX_TOKEN_UPLOADS {
            stalled.push(arriving.acquire_slot("a").await.unwrap());
        }
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, arriving.acquire_slot("a")).await.is_err(), "its own wait");
        let other = tokio::time::timeout(soon, arriving.acquire_slot("b")).await.unwrap().unwrap();
        drop(stalled.pop());
        let next = tokio::time::timeout(soon, arriving.acquire_slot("a")).await.unwrap().unwrap();
        drop((stalled, other, next));
        assert!(arriving.of_one.lock().unwrap().is_empty(), "nothing is remembered");
    }
}
