//! Acknowledgments (3.5): told in the background to the Archive whose URL was chosen. Nobody waits for them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{Acknowledgment, Request};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::archive::Archive;
use crate::ask::Ask;

/// The most that wait to be sent.
const MOST: usize = 10_000;
/// The most that wait for one Archive, so that one that hangs leaves room for the others.
const MOST_OF_ONE: usize = 5_000;
/// How many are sent to one Archive at a time.
const AT_ONCE: usize = 4;
/// How long an Archive may take to receive one.
const TIME: Duration = Duration::from_secs(2);
/// How long until the second and last attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// The acknowledgments to be sent: a queue for each Archive, emptied by tasks that end with it.
pub(crate) struct Acknowledgments<A> {
    ask: Arc<A>,
    queues: Mutex<Queues>,
    /// Rings when there is nothing left to send.
    done: Notify,
}

#[derive(Default)]
struct Queues {
    of: HashMap<ArchiveId, Queue>,
    waiting: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Arc<Archive>, Acknowledgment)>,
    workers: usize,
}

impl<A: Ask> Acknowledgments<A> {
    pub(crate) fn new(ask: Arc<A>) -> Self {
        Self { ask, queues: Mutex::default(), done: Notify::new() }
    }

    /// Has an acknowledgment sent. When there is no room for it, it is dropped and counted.
    pub(crate) fn send(self: &Arc<Self>, archive: Arc<Archive>, acknowledgment: Acknowledgment) {
        let id = archive.id;
        let mut queues = self.queues();
        let of_one = queues.of.get(&id).map_or(0, |queue| queue.waiting.len());
        if queues.waiting >= MOST || of_one >= MOST_OF_ONE {
            drop(queues);
            count("dropped");
            return;
        }
        let queue = queues.of.entry(id).or_default();
        queue.waiting.push_back((archive, acknowledgment));
        let hire = queue.workers < AT_ONCE;
        queue.workers += usize::from(hire);
        queues.waiting += 1;
        drop(queues);
        if hire {
            tokio::spawn(Arc::clone(self).work(id));
        }
    }

    /// Waits until nothing is left to send, but not longer than this.
    pub(crate) async fn finish(&self, within: Duration) {
        let done = async {
            loop {
                let done = self.done.notified();
                if self.queues().of.is_empty() {
                    return;
                }
                done.await;
            }
        };
        if timeout(within, done).await.is_err() {
            let left = self.queues().waiting;
            tracing::warn!(left, "acknowledgments were left unsent");
        }
    }

    async fn work(self: Arc<Self>, id: ArchiveId) {
        while let Some((archive, acknowledgment)) = self.take(id) {
            let query = Request::Acknowledgment(acknowledgment).to_query();
            let mut sent = self.attempt(&archive, &query).await;
            if !sent {
                sleep(PAUSE).await;
                sent = self.attempt(&archive, &query).await;
            }
            count(if sent { "sent" } else { "failed" });
        }
    }

    async fn attempt(&self, archive: &Archive, query: &str) -> bool {
        matches!(timeout(TIME, self.ask.ask(archive, query)).await, Ok(Ok(_)))
    }

    /// The next one for an Archive; without one, the worker goes.
    fn take(&self, id: ArchiveId) -> Option<(Arc<Archive>, Acknowledgment)> {
        let mut queues = self.queues();
        let queue = queues.of.get_mut(&id)?;
        let next = queue.waiting.pop_front();
        if next.is_some() {
            queues.waiting -= 1;
            return next;
        }
        queue.workers -= 1;
        if queue.workers == 0 {
            queues.of.remove(&id);
            if queues.of.is_empty() {
                self.done.notify_waiters();
            }
        }
        None
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(result: &'static str) {
    metrics::counter!("ibi_acknowledgments_total", "result" => result).increment(1);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ibi_protocol::{ContentType, SentUrl};

    use super::*;
    use crate::archive::{ArchivePlatform, Standing};
    use crate::ask::AskFailed;

    /// An Archive 1 that never receives anything; all others do at once.
    #[derive(Default)]
    struct OneHangs(Mutex<Vec<ArchiveId>>);

    impl Ask for OneHangs {
        fn ask(
            &self,
            archive: &Archive,
            _query: &str,
        ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static {
            let hangs = archive.id == ArchiveId(1);
            self.0.lock().unwrap().push(archive.id);
            async move { if hangs { std::future::pending().await } else { Ok(Bytes::new()) } }
        }
    }

    fn archive(number: u64) -> Arc<Archive> {
        Arc::new(Archive {
            id: ArchiveId(number),
            service: "a.br/b/2009/02.16.17.46".parse().unwrap(),
            address: None,
            hosts: Vec::new(),
            standing: Standing::OnLine,
            registered: 0,
            changed: 0,
            email: None,
            platform: ArchivePlatform::default(),
        })
    }

    fn acknowledgment() -> Acknowledgment {
        Acknowledgment {
            client: Vec::new(),
            contenttype: ContentType::Data,
            ibi: None,
            state: None,
            url: SentUrl::new("http://a.br/"),
            persistent: SentUrl::new("http://r.br/"),
            urlkey: "1234567890".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_and_one_archive_that_hangs_does_not_fill_it() {
        let ask = Arc::new(OneHangs::default());
        let acknowledgments = Arc::new(Acknowledgments::new(Arc::clone(&ask)));
        for number in [1, 2, 3] {
            let archive = archive(number);
            (0..MOST).for_each(|_| acknowledgments.send(Arc::clone(&archive), acknowledgment()));
        }
        assert_eq!(acknowledgments.queues().waiting, MOST);
        let waiting = |number| acknowledgments.queues().of.get(&ArchiveId(number)).map(|of| of.waiting.len());
        assert_eq!([1, 2, 3].map(waiting), [Some(MOST_OF_ONE), Some(MOST_OF_ONE), None]);
        acknowledgments.finish(Duration::from_secs(1)).await;
        let received = |number| ask.0.lock().unwrap().iter().filter(|id| **id == ArchiveId(number)).count();
        assert_eq!([1, 2, 3].map(received), [AT_ONCE, MOST_OF_ONE, 0], "the other was not delayed");
        acknowledgments.send(archive(3), acknowledgment());
        acknowledgments.finish(Duration::from_secs(1)).await;
        assert_eq!(received(3), 1, "there is room again");
    }
}
