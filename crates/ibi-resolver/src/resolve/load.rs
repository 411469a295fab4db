//! Per-Archive concurrency limit, reduced while the Archive stalls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of pending requests per Archive.
const MAX_PENDING_REQUESTS: usize = 1024;
/// The same for a stalled Archive.
const MAX_STALLED_REQUESTS: usize = 64;
/// An Archive with pending requests that has not answered any for this long has stalled.
const STALL_THRESHOLD: Duration = Duration::from_millis(250);

/// The load of one Archive.
pub(super) struct ArchiveLoad {
    began: Instant,
    holding: AtomicUsize,
    /// When it last answered, or was queried while it had no pending requests, in milliseconds
    /// since `began`.
    alive: AtomicU64,
}

impl Default for ArchiveLoad {
    fn default() -> Self {
        Self { began: Instant::now(), holding: AtomicUsize::new(0), alive: AtomicU64::new(0) }
    }
}

/// A pending request, released on drop.
pub(super) struct LoadSlot(Arc<ArchiveLoad>);

impl ArchiveLoad {
    /// Takes a slot for one more request, if one is free.
    pub(super) fn slot(self: &Arc<Self>, now: Instant) -> Option<LoadSlot> {
        let slot = LoadSlot(Arc::clone(self));
        let before = self.holding.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            self.mark_alive(now);
        }
        let silence = self.millis(now).saturating_sub(self.alive.load(Ordering::Relaxed));
        let most = if Duration::from_millis(silence) > STALL_THRESHOLD {
            MAX_STALLED_REQUESTS
        } else {
            MAX_PENDING_REQUESTS
        };
        (before < most).then_some(slot)
    }

    fn mark_alive(&self, now: Instant) {
        self.alive.store(self.millis(now), Ordering::Relaxed);
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}

impl LoadSlot {
    /// The Archive answered, with whatever result.
    pub(super) fn answered(self) {
        self.0.mark_alive(Instant::now());
    }
}

impl Drop for LoadSlot {
    fn drop(&mut self) {
        self.0.holding.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(load: &Arc<ArchiveLoad>, count: usize) -> Vec<LoadSlot> {
        (0..count).map_while(|_| load.slot(Instant::now())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn many_come_at_once_and_few_to_one_that_has_stalled() {
        let load = Arc::new(ArchiveLoad::default());
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut held = slots(&load, 2000);
        assert_eq!(held.len(), MAX_PENDING_REQUESTS, "it had nothing to do before");
        held.truncate(100);
        tokio::time::sleep(STALL_THRESHOLD).await;
        assert_eq!(slots(&load, 1).len(), 1, "not yet");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(load.slot(Instant::now()).is_none());
        held.pop().unwrap().answered();
        assert!(load.slot(Instant::now()).is_some(), "it lives");
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.truncate(MAX_STALLED_REQUESTS - 1);
        assert_eq!(slots(&load, 9).len(), 1);
        held.clear();
        assert_eq!(slots(&load, 2000).len(), MAX_PENDING_REQUESTS);
    }
}
