//! Many copies at once: of a prefix, since a date, of a list, or all that are here.

mod which;

use std::collections::VecDeque;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::HolderError;
use super::bring::{Arrival, Bytes};
use super::copy::{Here, Source, fetch, look};
use super::verdict::Verdict;
use crate::{Archive, ArchiveError};

pub use which::{Which, copies, from_sources, list, since};

/// Items that are asked for and fetched at a time.
const AT_ONCE: usize = 8;

/// A lot of items has so many, or so many bytes of small files; and so many lots may wait to be put here, together.
const TOGETHER: usize = 64;
const HEAVY: usize = 4 << 20;
const LOTS: usize = 3;

/// Small items do not wait longer than this for large ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// What came of an item.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The item.
    pub item: String,
    /// Who was asked for it; who has it now may be another, to whom that one handed it over.
    pub source: String,
    /// How what was here stood to what was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'static str>,
    /// Whether it is brought here now.
    pub brought: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub error: Option<HolderError>,
}

/// Who puts here what was fetched.
pub trait Put {
    /// Puts items here, together. Tells of each whether that changed anything, or why it could not be.
    fn put(
        &mut self,
        brought: Vec<Arrival>,
    ) -> impl Future<Output = Result<Vec<Whether>, HolderError>> + Send;
}

/// Whether putting an item here changed anything, or why it could not be.
pub type Whether = Result<bool, ArchiveError>;

/// How a collection is brought.
pub struct Bringing<H, P, T> {
    /// What is here.
    pub here: Arc<H>,
    /// The data folder.
    pub data: PathBuf,
    /// Who puts it here.
    pub put: P,
    /// Told of each item when it is done.
    pub tell: T,
    /// Told how many bytes came.
    pub progress: Arc<dyn Fn(u64) + Send + Sync>,
}

/// What was fetched of an item, or why it was not.
struct Fetched {
    item: String,
    source: String,
    came: Result<(Verdict, Option<Arrival>), HolderError>,
}

impl Fetched {
    /// Bytes of it that wait in memory.
    fn weight(&self) -> usize {
        let Ok((_, Some(Arrival::Object(brought)))) = &self.came else { return 0 };
        let files = brought.files.iter().map(|(_, bytes)| match bytes {
            Bytes::Here(bytes) => bytes.len(),
            Bytes::At(_) => 0,
        });
        files.chain(brought.inventories.iter().map(Vec::len)).sum()
    }
}

impl<H: Here + 'static, P: Put, T: FnMut(Outcome)> Bringing<H, P, T> {
    /// Brings items, each from its source. Those that are here as they are there are passed over, so that what was interrupted
    /// is gone on with.
    pub async fn all(mut self, items: impl IntoIterator<Item = (String, Source)>) -> Result<(), HolderError> {
        let (give, mut lots) = mpsc::channel(LOTS);
        let fetching = Fetching {
            waiting: items.into_iter().collect(),
            here: Arc::clone(&self.here),
            data: self.data.clone(),
            progress: Arc::clone(&self.progress),
        };
        // Others are fetched while these are put here. Dropped, it stops.
        let mut beside = JoinSet::new();
        beside.spawn(fetching.all(give));
        while let Some(mut ready) = lots.recv().await {
            while let Ok(more) = lots.try_recv() {
                ready.extend(more);
            }
            self.put(ready).await?;
        }
        match beside.join_next().await {
            Some(Ok(true)) => Ok(()),
            _ => Err(ArchiveError::Stopped.into()),
        }
    }

    /// Puts what was fetched here, together.
    async fn put(&mut self, fetched: Vec<Fetched>) -> Result<(), HolderError> {
        let (mut ready, mut waiting) = (Vec::new(), Vec::new());
        for Fetched { item, source, came } in fetched {
            match came {
                Ok((verdict, Some(brought))) => {
                    let path = match &brought {
                        Arrival::Object(brought) => brought.item.object_path().ok(),
                        Arrival::Links { .. } => None,
                    };
                    waiting.push((item, source, verdict, path));
                    ready.push(brought);
                }
                Ok((verdict, None)) => {
                    let found = Some(verdict.name());
                    (self.tell)(Outcome { item, source, found, brought: false, error: None });
                }
                Err(error) => {
                    (self.tell)(Outcome { item, source, found: None, brought: false, error: Some(error) });
                }
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        let results = self.put.put(ready).await?;
        for ((item, source, verdict, path), result) in waiting.into_iter().zip(results) {
            if let Some(path) = path {
                super::copy::clear(&self.data, &path);
            }
            let found = Some(verdict.name());
            (self.tell)(match result {
                Ok(brought) => Outcome { item, source, found, brought, error: None },
                Err(error) => Outcome { item, source, found, brought: false, error: Some(error.into()) },
            });
        }
        Ok(())
    }
}

/// Items that are fetched, some at a time.
struct Fetching<H> {
    waiting: VecDeque<(String, Source)>,
    here: Arc<H>,
    data: PathBuf,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
}

impl<H: Here + 'static> Fetching<H> {
    /// Fetches them, and hands them on in lots; waits while many lots wait. Tells whether that was all.
    async fn all(mut self, give: mpsc::Sender<Vec<Fetched>>) -> bool {
        let mut busy = JoinSet::new();
        let (mut lot, mut weight) = (Vec::new(), 0);
        loop {
            self.go_on(&mut busy);
            let next = tokio::time::timeout(PATIENCE, busy.join_next()).await;
            let is_last = matches!(next, Ok(None));
            if let Ok(Some(done)) = next {
                let Ok(done) = done else { return false };
                weight += done.weight();
                lot.push(done);
                if lot.len() < TOGETHER && weight < HEAVY {
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

    fn go_on(&mut self, busy: &mut JoinSet<Fetched>) {
        while busy.len() < AT_ONCE
            && let Some((item, source)) = self.waiting.pop_front()
        {
            let (here, data, progress) =
                (Arc::clone(&self.here), self.data.clone(), Arc::clone(&self.progress));
            busy.spawn(async move {
                let came = one(&*here, data, &source, &item, &*progress).await;
                Fetched { item, source: source.peer.url().to_owned(), came }
            });
        }
    }
}

async fn one(
    here: &impl Here,
    data: PathBuf,
    source: &Source,
    item: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(Verdict, Option<Arrival>), HolderError> {
    let looked = look(here, source, item).await?;
    let verdict = looked.verdict;
    if !looked.brings {
        // A kill may have left what was fetched before.
        super::copy::clear(&data, &looked.held.path);
        let (path, links) = (looked.held.path, looked.link_news);
        return Ok((verdict, (!links.is_empty()).then_some(Arrival::Links { path, links })));
    }
    match fetch(here, &data, source, (item, looked), &|bytes| progress(bytes)).await {
        Ok(brought) => Ok((verdict, Some(Arrival::Object(Box::new(brought))))),
        // Somebody else may have fetched it at the same time, and cleared up.
        Err(error) => match look(here, source, item).await {
            Ok(again) if again.verdict == Verdict::Equal => Ok((Verdict::Equal, None)),
            _ => Err(error),
        },
    }
}

fn as_text<S: Serializer>(error: &Option<HolderError>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error.as_ref().map_or(&"" as &dyn Display, |error| error))
}

/// Puts items into an Archive, together.
pub fn put_into(archive: &mut Archive, arrived: &[Arrival], by: &str) -> Vec<Whether> {
    let mut results = Vec::new();
    let mut changes = Vec::new();
    let mut places = Vec::new();
    for (place, arrival) in arrived.iter().enumerate() {
        let brought = match arrival {
            Arrival::Object(brought) => brought,
            Arrival::Links { path, links } => {
                results.push(archive.note_links(path, links));
                continue;
            }
        };
        results.push(match archive.prepare_brought(brought, by) {
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
