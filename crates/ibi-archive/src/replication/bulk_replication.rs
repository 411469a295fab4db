//! Replicates many items: by prefix, since a date, from a list, or all local copies.

mod selection;

use std::collections::VecDeque;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::ReplicationError;
use super::copy::{LocalView, ReplicaSource, fetch_replica, inspect_replica};
use crate::replica::comparison::ReplicaComparison;
use crate::replica::replica_object::{ReplicaArrival, ReplicaBytes};
use crate::{Archive, ArchiveError};

pub use selection::{ReplicaSelection, list_copies, list_selected, parse_since, refresh_sources};

/// Items inspected and fetched concurrently.
const MAX_CONCURRENT_ITEMS: usize = 8;

/// Limits of a batch, in items and in bytes of small files; and the number of batches that may wait
/// to be stored.
const MAX_BATCH_ITEMS: usize = 64;
const MAX_BATCH_BYTES: usize = 4 << 20;
const MAX_QUEUED_BATCHES: usize = 3;

/// Small items wait no longer than this for large ones.
const BATCH_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome for an item.
#[derive(Debug, Serialize)]
pub struct ReplicaOutcome {
    /// The item.
    pub item: String,
    /// The Archive that was asked; the item may have come from the one it was handed over to.
    pub source: String,
    /// How the local replica compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'static str>,
    /// Whether it was stored.
    pub brought: bool,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub error: Option<ReplicationError>,
}

/// Stores fetched items.
pub trait ReplicaSink {
    /// Stores items in one batch. Returns per item whether anything changed, or the error.
    fn put(
        &mut self,
        brought: Vec<ReplicaArrival>,
    ) -> impl Future<Output = Result<Vec<ReplicaPutResult>, ReplicationError>> + Send;
}

/// Whether storing an item changed anything, or the error.
pub type ReplicaPutResult = Result<bool, ArchiveError>;

/// A replication of many items.
pub struct ReplicationJob<H, P, T> {
    /// The local holdings.
    pub here: Arc<H>,
    /// The data folder.
    pub data: PathBuf,
    /// Stores the items.
    pub put: P,
    /// Called for each finished item.
    pub tell: T,
    /// Called with the number of bytes received.
    pub progress: Arc<dyn Fn(u64) + Send + Sync>,
}

/// The result of fetching one item.
struct FetchedReplica {
    item: String,
    source: String,
    came: Result<(ReplicaComparison, Option<ReplicaArrival>), ReplicationError>,
}

impl FetchedReplica {
    /// Bytes of it held in memory.
    fn memory_weight(&self) -> usize {
        let Ok((_, Some(ReplicaArrival::Object(brought)))) = &self.came else { return 0 };
        let files = brought.files.iter().map(|(_, bytes)| match bytes {
            ReplicaBytes::Here(bytes) => bytes.len(),
            ReplicaBytes::At(_) => 0,
        });
        files.chain(brought.inventories.iter().map(Vec::len)).sum()
    }
}

impl<H: LocalView + 'static, P: ReplicaSink, T: FnMut(ReplicaOutcome)> ReplicationJob<H, P, T> {
    /// Replicates items, each from its source. Equal ones are skipped, so a rerun resumes an
    /// interrupted job.
    pub async fn replicate_all(
        mut self,
        items: impl IntoIterator<Item = (String, ReplicaSource)>,
    ) -> Result<(), ReplicationError> {
        let (give, mut lots) = mpsc::channel(MAX_QUEUED_BATCHES);
        let fetching = ReplicaFetchQueue {
            waiting: items.into_iter().collect(),
            here: Arc::clone(&self.here),
            data: self.data.clone(),
            progress: Arc::clone(&self.progress),
        };
        // Fetching continues while these are stored. It stops when the set is dropped.
        let mut beside = JoinSet::new();
        beside.spawn(fetching.fetch_all(give));
        while let Some(mut ready) = lots.recv().await {
            while let Ok(more) = lots.try_recv() {
                ready.extend(more);
            }
            self.put_batch(ready).await?;
        }
        match beside.join_next().await {
            Some(Ok(true)) => Ok(()),
            _ => Err(ArchiveError::Stopped.into()),
        }
    }

    /// Stores a batch.
    async fn put_batch(&mut self, fetched: Vec<FetchedReplica>) -> Result<(), ReplicationError> {
        let (mut ready, mut waiting) = (Vec::new(), Vec::new());
        for FetchedReplica { item, source, came } in fetched {
            match came {
                Ok((verdict, Some(brought))) => {
                    let path = match &brought {
                        ReplicaArrival::Object(brought) => brought.item.object_path().ok(),
                        ReplicaArrival::Equal(_) => None,
                    };
                    waiting.push((item, source, verdict, path));
                    ready.push(brought);
                }
                Ok((verdict, None)) => {
                    let found = Some(verdict.name());
                    (self.tell)(ReplicaOutcome { item, source, found, brought: false, error: None });
                }
                Err(error) => {
                    (self.tell)(ReplicaOutcome {
                        item,
                        source,
                        found: None,
                        brought: false,
                        error: Some(error),
                    });
                }
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        let results = self.put.put(ready).await?;
        for ((item, source, verdict, path), result) in waiting.into_iter().zip(results) {
            if let Some(path) = path {
                super::copy::remove_partial_fetch(&self.data, &path);
            }
            let found = Some(verdict.name());
            (self.tell)(match result {
                Ok(brought) => ReplicaOutcome { item, source, found, brought, error: None },
                Err(error) => {
                    ReplicaOutcome { item, source, found, brought: false, error: Some(error.into()) }
                }
            });
        }
        Ok(())
    }
}

/// Items to fetch, with limited concurrency.
struct ReplicaFetchQueue<H> {
    waiting: VecDeque<(String, ReplicaSource)>,
    here: Arc<H>,
    data: PathBuf,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
}

impl<H: LocalView + 'static> ReplicaFetchQueue<H> {
    /// Fetches all items and sends them in batches, with backpressure. Returns whether all were
    /// sent.
    async fn fetch_all(mut self, give: mpsc::Sender<Vec<FetchedReplica>>) -> bool {
        let mut busy = JoinSet::new();
        let (mut lot, mut weight) = (Vec::new(), 0);
        loop {
            self.start_fetches(&mut busy);
            let next = tokio::time::timeout(BATCH_FLUSH_TIMEOUT, busy.join_next()).await;
            let is_last = matches!(next, Ok(None));
            if let Ok(Some(done)) = next {
                let Ok(done) = done else { return false };
                weight += done.memory_weight();
                lot.push(done);
                if lot.len() < MAX_BATCH_ITEMS && weight < MAX_BATCH_BYTES {
                    continue;
                }
            }
            if !lot.is_empty() && give.send(std::mem::take(&mut lot)).await.is_err() {
                return false;
            }
            weight = 0;
            if is_last {
                return true;
            }
        }
    }

    fn start_fetches(&mut self, busy: &mut JoinSet<FetchedReplica>) {
        while busy.len() < MAX_CONCURRENT_ITEMS
            && let Some((item, source)) = self.waiting.pop_front()
        {
            let (here, data, progress) =
                (Arc::clone(&self.here), self.data.clone(), Arc::clone(&self.progress));
            busy.spawn(async move {
                let came = fetch_item(&*here, data, &source, &item, &*progress).await;
                FetchedReplica { item, source: source.peer.url().to_owned(), came }
            });
        }
    }
}

async fn fetch_item(
    here: &impl LocalView,
    data: PathBuf,
    source: &ReplicaSource,
    item: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(ReplicaComparison, Option<ReplicaArrival>), ReplicationError> {
    let looked = inspect_replica(here, source, item).await?;
    let verdict = looked.verdict;
    if !looked.brings {
        // A crash may have left an earlier partial fetch.
        super::copy::remove_partial_fetch(&data, &looked.held.path);
        let news = looked.news;
        return Ok((verdict, (!news.is_empty()).then_some(ReplicaArrival::Equal(news))));
    }
    match fetch_replica(here, &data, source, (item, looked), &|bytes| progress(bytes)).await {
        Ok(brought) => Ok((verdict, Some(ReplicaArrival::Object(Box::new(brought))))),
        // A concurrent fetch may have stored it and removed the files.
        Err(error) => match inspect_replica(here, source, item).await {
            Ok(again) if again.verdict == ReplicaComparison::Equal => Ok((ReplicaComparison::Equal, None)),
            _ => Err(error),
        },
    }
}

fn as_text<S: Serializer>(error: &Option<ReplicationError>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error.as_ref().map_or(&"" as &dyn Display, |error| error))
}

/// Stores items in an Archive in one batch.
pub fn store_replicas(archive: &mut Archive, arrived: &[ReplicaArrival], by: &str) -> Vec<ReplicaPutResult> {
    let mut results = Vec::new();
    let mut changes = Vec::new();
    let mut places = Vec::new();
    for (place, arrival) in arrived.iter().enumerate() {
        let brought = match arrival {
            ReplicaArrival::Object(brought) => brought,
            ReplicaArrival::Equal(news) => {
                results.push(archive.record_status_update(news, by));
                continue;
            }
        };
        results.push(match archive.prepare_replica(brought, by) {
            Ok(Some(change)) => {
                changes.push(change);
                places.push(place);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        });
    }
    for (place, result) in places.into_iter().zip(archive.commit(changes)) {
        results[place] = result.map(|_| true);
    }
    results
}
