//! Acknowledgments (3.5): sent in the background to the Archive whose URL was chosen. No client
//! waits for them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{Acknowledgment, WireRequest};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::archive::RegisteredArchive;
use crate::transport::ArchiveTransport;

/// Maximum number of queued acknowledgments.
const MAX_QUEUED_ACKNOWLEDGMENTS: usize = 10_000;
/// Maximum queue length per Archive, so that one that hangs leaves room for the others.
const MAX_QUEUED_PER_ARCHIVE: usize = 5_000;
/// Maximum number of concurrent acknowledgments per Archive.
const MAX_WORKERS_PER_ARCHIVE: usize = 4;
/// Timeout for sending one acknowledgment.
const ACKNOWLEDGMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of remembered keys: only readers that share an answer have the same one.
const MAX_REMEMBERED_KEYS: usize = 1024;
/// Delay before the second and last attempt.
const ACKNOWLEDGMENT_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The pending acknowledgments: one queue per Archive, drained by worker tasks that end when it is
/// empty.
pub(crate) struct AcknowledgmentSender<A> {
    ask: Arc<A>,
    queues: Mutex<AcknowledgmentQueues>,
    /// Notified when the queues are empty.
    done: Notify,
}

#[derive(Default)]
struct AcknowledgmentQueues {
    of: HashMap<ArchiveId, AcknowledgmentQueue>,
    waiting: usize,
    /// The keys that were used last.
    used: VecDeque<(ArchiveId, String)>,
}

impl AcknowledgmentQueues {
    /// Remembers a key; returns whether it is new.
    fn use_key(&mut self, id: ArchiveId, key: &str) -> bool {
        if self.used.iter().rev().any(|(archive, used)| *archive == id && used == key) {
            return false;
        }
        if self.used.len() >= MAX_REMEMBERED_KEYS {
            self.used.pop_front();
        }
        self.used.push_back((id, key.to_owned()));
        true
    }
}

#[derive(Default)]
struct AcknowledgmentQueue {
    waiting: VecDeque<(Arc<RegisteredArchive>, Acknowledgment)>,
    workers: usize,
}

impl<A: ArchiveTransport> AcknowledgmentSender<A> {
    pub(crate) fn new(ask: Arc<A>) -> Self {
        Self { ask, queues: Mutex::default(), done: Notify::new() }
    }

    /// Whether an Archive's key is used for the first time, as far as is remembered. Readers that
    /// share an answer have the same key, and the Archive counts it once.
    pub(crate) fn use_key(&self, archive: ArchiveId, key: &str) -> bool {
        self.queues().use_key(archive, key)
    }

    /// Queues an acknowledgment. If the queue is full, it is dropped and counted.
    pub(crate) fn send(self: &Arc<Self>, archive: Arc<RegisteredArchive>, acknowledgment: Acknowledgment) {
        let id = archive.id;
        let mut queues = self.queues();
        let of_one = queues.of.get(&id).map_or(0, |queue| queue.waiting.len());
        if queues.waiting >= MAX_QUEUED_ACKNOWLEDGMENTS || of_one >= MAX_QUEUED_PER_ARCHIVE {
            drop(queues);
            count("dropped");
            return;
        }
        let queue = queues.of.entry(id).or_default();
        queue.waiting.push_back((archive, acknowledgment));
        let hire = queue.workers < MAX_WORKERS_PER_ARCHIVE;
        queue.workers += usize::from(hire);
        queues.waiting += 1;
        drop(queues);
        if hire {
            tokio::spawn(Arc::clone(self).run_worker(id));
        }
    }

    /// Waits until the queues are empty or the timeout expires.
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

    async fn run_worker(self: Arc<Self>, id: ArchiveId) {
        while let Some((archive, acknowledgment)) = self.take_next(id) {
            let query = WireRequest::Acknowledgment(acknowledgment).to_query();
            let mut sent = self.attempt(&archive, &query).await;
            if !sent {
                sleep(ACKNOWLEDGMENT_RETRY_DELAY).await;
                sent = self.attempt(&archive, &query).await;
            }
            count(if sent { "sent" } else { "failed" });
        }
    }

    async fn attempt(&self, archive: &RegisteredArchive, query: &str) -> bool {
        matches!(timeout(ACKNOWLEDGMENT_TIMEOUT, self.ask.ask(archive, query)).await, Ok(Ok(_)))
    }

    /// The next acknowledgment for an Archive. If there is none, the worker is deregistered.
    fn take_next(&self, id: ArchiveId) -> Option<(Arc<RegisteredArchive>, Acknowledgment)> {
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

    fn queues(&self) -> MutexGuard<'_, AcknowledgmentQueues> {
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
    use crate::archive::{ArchivePlatform, RegistrationStatus};
    use crate::transport::ArchiveTransportError;

    /// Archive 1 never responds; all others do at once.
    #[derive(Default)]
    struct HangingTransport(Mutex<Vec<ArchiveId>>);

    impl ArchiveTransport for HangingTransport {
        fn ask(
            &self,
            archive: &RegisteredArchive,
            _query: &str,
        ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
            let hangs = archive.id == ArchiveId(1);
            self.0.lock().unwrap().push(archive.id);
            async move { if hangs { std::future::pending().await } else { Ok(Bytes::new()) } }
        }
    }

    fn archive(number: u64) -> Arc<RegisteredArchive> {
        Arc::new(RegisteredArchive {
            id: ArchiveId(number),
            service: "a.br/b/2009/02.16.17.46".parse().unwrap(),
            address: None,
            hosts: Vec::new(),
            standing: RegistrationStatus::OnLine,
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
        let ask = Arc::new(HangingTransport::default());
        let acknowledgments = Arc::new(AcknowledgmentSender::new(Arc::clone(&ask)));
        for number in [1, 2, 3] {
            let archive = archive(number);
            (0..MAX_QUEUED_ACKNOWLEDGMENTS)
                .for_each(|_| acknowledgments.send(Arc::clone(&archive), acknowledgment()));
        }
        assert_eq!(acknowledgments.queues().waiting, MAX_QUEUED_ACKNOWLEDGMENTS);
        let waiting = |number| acknowledgments.queues().of.get(&ArchiveId(number)).map(|of| of.waiting.len());
        assert_eq!(
            [1, 2, 3].map(waiting),
            [Some(MAX_QUEUED_PER_ARCHIVE), Some(MAX_QUEUED_PER_ARCHIVE), None]
        );
        acknowledgments.finish(Duration::from_secs(1)).await;
        let received = |number| ask.0.lock().unwrap().iter().filter(|id| **id == ArchiveId(number)).count();
        assert_eq!(
            [1, 2, 3].map(received),
            [MAX_WORKERS_PER_ARCHIVE, MAX_QUEUED_PER_ARCHIVE, 0],
            "the other was not delayed"
        );
        acknowledgments.send(archive(3), acknowledgment());
        acknowledgments.finish(Duration::from_secs(1)).await;
        assert_eq!(received(3), 1, "there is room again");
    }
}
