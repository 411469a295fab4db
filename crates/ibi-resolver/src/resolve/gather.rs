//! Many answers waited for in one task, each given out as it comes: cheaper than a task for each Archive.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Something that is waited for.
pub(super) type Awaited<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Many that are waited for, each polled only when it was woken.
pub(super) struct Gather<T> {
    pending: Vec<Option<Awaited<T>>>,
    alarms: Vec<(Arc<Alarm>, Waker)>,
    left: usize,
    /// Those to be polled now, the last one first.
    batch: Vec<usize>,
    bell: Arc<Bell>,
}

/// What is shared with those who wake.
#[derive(Default)]
struct Bell(Mutex<Rung>);

#[derive(Default)]
struct Rung {
    woken: Vec<usize>,
    /// Who waits for the next.
    sleeper: Option<Waker>,
}

struct Alarm {
    at: usize,
    /// Whether it is among the woken already.
    rung: AtomicBool,
    bell: Arc<Bell>,
}

impl Wake for Alarm {
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

impl<T> Gather<T> {
    pub(super) fn new(awaited: impl Iterator<Item = Awaited<T>>) -> Self {
        let bell = Arc::new(Bell::default());
        let pending: Vec<_> = awaited.map(Some).collect();
        let alarm = |at| {
            let alarm = Arc::new(Alarm { at, rung: AtomicBool::new(true), bell: Arc::clone(&bell) });
            (Arc::clone(&alarm), Waker::from(alarm))
        };
        let alarms = (0..pending.len()).map(alarm).collect();
        let batch = (0..pending.len()).rev().collect();
        Self { left: pending.len(), pending, alarms, batch, bell }
    }

    /// Whether all have been given out.
    pub(super) const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The places of those that have not come, and never will: they are dropped.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = usize> {
        self.left = 0;
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().enumerate().filter(|(_, future)| future.is_some()).map(|(at, _)| at)
    }

    /// The next that comes, with its place; `None` once all have come.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, T)>> {
        // Somebody who wakes itself at once, as tokio's do when a task has had its share, must not keep us here.
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
        let mut gather =
            Gather::new([30, 10, 20, 10].into_iter().map(|time| Box::pin(wait(time)) as Awaited<u64>));
        let mut came = Vec::new();
        while let Some(one) = poll_fn(|cx| gather.poll_next(cx)).await {
            came.push(one);
        }
        assert_eq!(came, [(1, 10), (3, 10), (2, 20), (0, 30)]);
        assert!(gather.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_always_wakes_itself_lets_others_have_their_turn() {
        let restless = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let mut gather = Gather::new([Box::pin(restless) as Awaited<()>].into_iter());
        let turn = tokio::time::timeout(Duration::from_millis(1), poll_fn(|cx| gather.poll_next(cx)));
        // Time stands still while anybody is busy: a few turns are proof enough.
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
            Box::pin(async move { task.await.unwrap() }) as Awaited<u32>
        });
        let mut gather = Gather::new(many);
        let mut sum = 0;
        while let Some((_, n)) = poll_fn(|cx| gather.poll_next(cx)).await {
            sum += n;
        }
        assert_eq!(sum, 1_999_000);
    }
}
