//! Awaits many answers in one task and yields each as it arrives: cheaper than a task per Archive.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future being awaited.
pub(super) type PendingFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A set of futures, each polled only after it was woken.
pub(super) struct FutureSet<T> {
    pending: Vec<Option<PendingFuture<T>>>,
    alarms: Vec<(Arc<IndexedWaker>, Waker)>,
    left: usize,
    /// The futures to poll now, last one first.
    batch: Vec<usize>,
    bell: Arc<WakeQueue>,
}

/// State shared with the wakers.
#[derive(Default)]
struct WakeQueue(Mutex<WakeState>);

#[derive(Default)]
struct WakeState {
    woken: Vec<usize>,
    /// The waker of the task that awaits the next result.
    sleeper: Option<Waker>,
}

struct IndexedWaker {
    at: usize,
    /// Whether it is already queued as woken.
    rung: AtomicBool,
    bell: Arc<WakeQueue>,
}

impl Wake for IndexedWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut rung = self.bell.0.lock().unwrap_or_else(PoisonError::into_inner);
        rung.woken.push(self.at);
        let sleeper = rung.sleeper.take();
        drop(rung);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

impl<T> FutureSet<T> {
    pub(super) fn new(awaited: impl Iterator<Item = PendingFuture<T>>) -> Self {
        let mut set = Self {
            pending: Vec::new(),
            alarms: Vec::new(),
            left: 0,
            batch: Vec::new(),
            bell: Arc::new(WakeQueue::default()),
        };
        set.extend(awaited);
        set
    }

    /// Adds futures behind those that are there.
    pub(super) fn extend(&mut self, awaited: impl Iterator<Item = PendingFuture<T>>) {
        let before = self.pending.len();
        self.pending.extend(awaited.map(Some));
        for at in before..self.pending.len() {
            let alarm =
                Arc::new(IndexedWaker { at, rung: AtomicBool::new(true), bell: Arc::clone(&self.bell) });
            self.alarms.push((Arc::clone(&alarm), Waker::from(alarm)));
        }
        self.left += self.pending.len() - before;
        self.batch.splice(0..0, (before..self.pending.len()).rev());
    }

    /// Whether all results have been yielded.
    pub(super) const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Drops all pending futures and returns their positions.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = usize> {
        self.left = 0;
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().enumerate().filter(|(_, future)| future.is_some()).map(|(at, _)| at)
    }

    /// The next result with its position; `None` once all have arrived.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, T)>> {
        // A future that wakes itself at once, as tokio's do when the cooperative budget is used up,
        // must not keep this loop running.
        let mut turns = self.pending.len() + 1;
        while self.left > 0 {
            let Some(at) = self.batch.pop() else {
                let mut rung = self.bell.0.lock().unwrap_or_else(PoisonError::into_inner);
                if rung.woken.is_empty() {
                    rung.sleeper = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                std::mem::swap(&mut self.batch, &mut rung.woken);
                self.batch.reverse();
                continue;
            };
            let (alarm, waker) = &self.alarms[at];
            alarm.rung.store(false, Ordering::Release);
            let Some(future) = &mut self.pending[at] else { continue };
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                self.pending[at] = None;
                self.left -= 1;
                return Poll::Ready(Some((at, output)));
            }
            turns = turns.saturating_sub(1);
            if turns == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_given_out_when_it_comes() {
        let wait = |time: u64| async move {
            tokio::time::sleep(Duration::from_millis(time)).await;
            time
        };
        let mut gather = FutureSet::new(
            [30, 10, 20, 10].into_iter().map(|time| Box::pin(wait(time)) as PendingFuture<u64>),
        );
        let mut came = Vec::new();
        while let Some(one) = poll_fn(|cx| gather.poll_next(cx)).await {
            came.push(one);
        }
        assert_eq!(came, [(1, 10), (3, 10), (2, 20), (0, 30)]);
        assert!(gather.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn more_may_be_added_while_others_are_awaited() {
        let wait = |time: u64| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(time)).await;
                time
            }) as PendingFuture<u64>
        };
        let mut gather = FutureSet::new([30, 10].into_iter().map(wait));
        assert_eq!(poll_fn(|cx| gather.poll_next(cx)).await, Some((1, 10)));
        gather.extend([5, 40].into_iter().map(wait));
        let mut came = Vec::new();
        while let Some(one) = poll_fn(|cx| gather.poll_next(cx)).await {
            came.push(one);
        }
        assert_eq!(came, [(2, 5), (0, 30), (3, 40)]);
        // Also after all have come.
        gather.extend(std::iter::once(wait(1)));
        assert!(!gather.is_empty());
        assert_eq!(poll_fn(|cx| gather.poll_next(cx)).await, Some((4, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_always_wakes_itself_lets_others_have_their_turn() {
        let restless = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let mut gather = FutureSet::new([Box::pin(restless) as PendingFuture<()>].into_iter());
        let turn = tokio::time::timeout(Duration::from_millis(1), poll_fn(|cx| gather.poll_next(cx)));
        // Paused time does not advance while a task is busy: a few polls are proof enough.
        tokio::select! {
            biased;
            _ = turn => {}
            () = async { for _ in 0..10 { tokio::task::yield_now().await } } => {}
        }
        assert_eq!(gather.give_up().collect::<Vec<_>>(), [0]);
    }

    #[tokio::test]
    async fn thousands_across_threads() {
        let many = (0..2000_u32).map(|n| {
            let task = tokio::spawn(async move {
                tokio::task::yield_now().await;
                n
            });
            Box::pin(async move { task.await.unwrap() }) as PendingFuture<u32>
        });
        let mut gather = FutureSet::new(many);
        let mut sum = 0;
        while let Some((_, n)) = poll_fn(|cx| gather.poll_next(cx)).await {
            sum += n;
        }
        assert_eq!(sum, 1_999_000);
    }
}
