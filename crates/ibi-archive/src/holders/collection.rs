//! Many copies at once: of a prefix, since a date, of a list, or all that are here.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ibi_store::journal::State;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::HolderError;
use super::bring::{Brought, Bytes, Verdict};
use super::copy::{Source, fetch, look};
use super::peer::{Peer, PeerError};
use crate::archive::Holdings;
use crate::{Archive, ArchiveError};

/// Items that are asked for and fetched at a time.
const AT_ONCE: usize = 8;

/// A lot of items has so many, or so many bytes of small files; and so many lots may wait to be put here, together.
const TOGETHER: usize = 64;
const HEAVY: usize = 4 << 20;
const LOTS: usize = 3;

/// Small items do not wait longer than this for large ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// Which items of another Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    These(Vec<String>),
    /// Those whose first labels begin so.
    Prefix(String),
    /// Those that were changed since then (RFC 3339).
    Since(String),
}

/// What came of an item.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The item.
    pub item: String,
    /// Where it was looked at.
    pub source: String,
    /// How what was here stood to what was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'static str>,
    /// Whether it is brought here now.
    pub brought: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The items of another Archive that are meant.
pub async fn list(peer: &Peer, which: Which) -> Result<Vec<String>, PeerError> {
    let mut all = Vec::new();
    let is_collection = !matches!(which, Which::These(_));
    match which {
        Which::These(items) => all = items,
        Which::Prefix(prefix) => {
            let prefix = prefix.to_ascii_lowercase();
            // Just before the first that begins so.
            let mut after = Some(prefix.clone());
            all.extend(exact(peer, &prefix).await?);
            while let Some(from) = after {
                let page = peer.list(&from).await?;
                let fits = page.items.iter().take_while(|item| item.path.starts_with(&prefix));
                let live = fits.clone().filter(|item| item.state != State::Deleted);
                all.extend(live.map(|item| item.path.clone()));
                after = page.next.filter(|_| fits.count() == page.items.len());
            }
        }
        Which::Since(since) => {
            let mut after = 0;
            loop {
                let page = peer.changes(after).await?;
                let fits = page.changes.iter().filter(|change| change.updated >= since);
                let live = fits.filter(|change| change.state != State::Deleted);
                all.extend(live.map(|change| change.item.primary().to_owned()));
                if page.changes.is_empty() || page.next <= after {
                    break;
                }
                after = page.next;
            }
        }
    }
    // The service of an Archive is that Archive's own: nobody means it who means a collection.
    if is_collection && let Some(first) = all.first() {
        let service = peer.held(first).await?.archive.to_ascii_lowercase();
        all.retain(|item| item.to_ascii_lowercase() != service);
    }
    Ok(all)
}

/// The item whose path is the prefix itself: a list begins behind it.
async fn exact(peer: &Peer, prefix: &str) -> Result<Option<String>, PeerError> {
    if ibi_id::Label::parse(prefix).is_err() {
        return Ok(None);
    }
    match peer.held(prefix).await {
        Ok(held) => Ok(Some(held.path)),
        Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has the Archive for a moment, to do something with it.
pub type Open<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&mut Archive)) -> Result<(), HolderError>;

/// How a collection is brought.
pub struct Bringing<'a> {
    /// What is here.
    pub here: Arc<Mutex<Holdings>>,
    /// The data folder.
    pub data: PathBuf,
    /// Who brings it.
    pub by: String,
    /// Has the Archive for a moment.
    pub open: Open<'a>,
    /// Told of each item when it is done.
    pub tell: &'a mut dyn FnMut(Outcome),
    /// Told how many bytes came.
    pub progress: Arc<dyn Fn(u64) + Send + Sync>,
}

/// What was fetched of an item, or why it was not.
struct Fetched {
    item: String,
    source: String,
    came: Result<(Verdict, Option<Brought>), HolderError>,
}

impl Fetched {
    /// Bytes of it that wait in memory.
    fn weight(&self) -> usize {
        let Ok((_, Some(brought))) = &self.came else { return 0 };
        let files = brought.files.iter().map(|(_, bytes)| match bytes {
            Bytes::Here(bytes) => bytes.len(),
            Bytes::At(_) => 0,
        });
        files.chain(brought.inventories.iter().map(Vec::len)).sum()
    }
}

impl Bringing<'_> {
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
            tokio::task::block_in_place(|| self.put(ready))?;
        }
        match beside.join_next().await {
            Some(Ok(true)) => Ok(()),
            _ => Err(ArchiveError::Stopped.into()),
        }
    }

    /// Puts what was fetched here, together.
    fn put(&mut self, fetched: Vec<Fetched>) -> Result<(), HolderError> {
        let mut ready = Vec::new();
        for Fetched { item, source, came } in fetched {
            match came {
                Ok((verdict, Some(brought))) => ready.push((item, source, verdict, brought)),
                Ok((verdict, None)) => {
                    let found = Some(verdict.name());
                    (self.tell)(Outcome { item, source, found, brought: false, error: None });
                }
                Err(error) => {
                    let error = Some(error.to_string());
                    (self.tell)(Outcome { item, source, found: None, brought: false, error });
                }
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        let mut results = Vec::new();
        let by = &self.by;
        (self.open)(&mut |archive| results = commit(archive, &ready, by))?;
        for ((item, source, verdict, brought), result) in ready.into_iter().zip(results) {
            if let Ok(path) = brought.item.object_path() {
                super::copy::clear(&self.data, &path);
            }
            let found = Some(verdict.name());
            (self.tell)(match result {
                Ok(brought) => Outcome { item, source, found, brought, error: None },
                Err(error) => Outcome { item, source, found, brought: false, error: Some(error.to_string()) },
            });
        }
        Ok(())
    }
}

/// Items that are fetched, some at a time.
struct Fetching {
    waiting: VecDeque<(String, Source)>,
    here: Arc<Mutex<Holdings>>,
    data: PathBuf,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Fetching {
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
                let came = one(&here, data, &source, &item, &*progress).await;
                Fetched { item, source: source.peer.url().to_owned(), came }
            });
        }
    }
}

async fn one(
    here: &Mutex<Holdings>,
    data: PathBuf,
    source: &Source,
    item: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(Verdict, Option<Brought>), HolderError> {
    let looked = look(here, source, item).await?;
    let verdict = looked.verdict;
    if !verdict.brings() {
        // A kill may have left what was fetched before.
        super::copy::clear(&data, &looked.held.path);
        return Ok((verdict, None));
    }
    let brought = fetch(here, &data, source, (item, looked), &|bytes| progress(bytes)).await?;
    Ok((verdict, Some(brought)))
}

/// Whether each was put here, or why not.
fn commit(
    archive: &mut Archive,
    ready: &[(String, String, Verdict, Brought)],
    by: &str,
) -> Vec<Result<bool, ArchiveError>> {
    let mut results = Vec::new();
    let mut changes = Vec::new();
    let mut places = Vec::new();
    for (place, (.., brought)) in ready.iter().enumerate() {
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
