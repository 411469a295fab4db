//! How many questions an Archive is holding, and whether it still answers: one that hangs must cost next to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The most questions that an Archive may be holding in any case.
const MOST: usize = 1024;
/// The most of one that has stalled.
const MOST_STALLED: usize = 64;
/// An Archive that holds questions and has not answered any for so long has stalled.
const STALLED: Duration = Duration::from_millis(250);

/// The load of one Archive.
pub(super) struct Load {
    began: Instant,
    holding: AtomicUsize,
    /// When it answered the last time, or was asked after it had nothing to answer: in milliseconds since it began.
    alive: AtomicU64,
}

impl Default for Load {
    fn default() -> Self {
        Self { began: Instant::now(), holding: AtomicUsize::new(0), alive: AtomicU64::new(0) }
    }
}

/// A question that an Archive holds, until it is dropped.
pub(super) struct Slot(Arc<Load>);

impl Load {
    /// Room for one more question, if there is any.
    pub(super) fn slot(self: &Arc<Self>, now: Instant) -> Option<Slot> {
        let slot = Slot(Arc::clone(self));
        let before = self.holding.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            self.is_alive(now);
        }
        let silence = self.millis(now).saturating_sub(self.alive.load(Ordering::Relaxed));
        let most = if Duration::from_millis(silence) > STALLED { MOST_STALLED } else { MOST };
        (before < most).then_some(slot)
    }

    fn is_alive(&self, now: Instant) {
        self.alive.store(self.millis(now), Ordering::Relaxed);
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Slot {
    /// The Archive answered, whatever it was.
    pub(super) fn answered(self) {
        self.0.is_alive(Instant::now());
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.holding.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(load: &Arc<Load>, count: usize) -> Vec<Slot> {
        (0..count).map_while(|_| load.slot(Instant::now())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn many_come_at_once_and_few_to_one_that_has_stalled() {
        let load = Arc::new(Load::default());
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut held = slots(&load, 2000);
        assert_eq!(held.len(), MOST, "it had nothing to do before");
        held.truncate(100);
        tokio::time::sleep(STALLED).await;
        assert_eq!(slots(&load, 1).len(), 1, "not yet");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(load.slot(Instant::now()).is_none());
        held.pop().unwrap().answered();
        assert!(load.slot(Instant::now()).is_some(), "it lives");
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.truncate(MOST_STALLED - 1);
        assert_eq!(slots(&load, 9).len(), 1);
        held.clear();
        assert_eq!(slots(&load, 2000).len(), MOST);
    }
}
