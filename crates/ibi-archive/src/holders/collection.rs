//! Many copies at once: of a prefix, since a date, of a list, or all that are here.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ibi_store::journal::State;
use serde::Serialize;
use tokio::task::JoinSet;

use super::HolderError;
use super::bring::{Brought, Verdict};
use super::copy::{Source, fetch, look};
use super::peer::{Peer, PeerError};
use crate::archive::Holdings;
use crate::{Archive, ArchiveError};

/// Items that are asked for and fetched at a time, and those that are put here together.
const AT_ONCE: usize = 8;
const TOGETHER: usize = 64;

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

type Fetched = (Verdict, Option<Brought>);

impl Bringing<'_> {
    /// Brings items, each from its source. Those that are here as they are there are passed over, so that what was interrupted
    /// is gone on with.
    pub async fn all(mut self, items: impl IntoIterator<Item = (String, Source)>) -> Result<(), HolderError> {
        let mut waiting: VecDeque<(String, Source)> = items.into_iter().collect();
        let mut busy: JoinSet<(String, String, Result<Fetched, HolderError>)> = JoinSet::new();
        let mut ready = Vec::new();
        loop {
            while busy.len() < AT_ONCE
                && let Some((item, source)) = waiting.pop_front()
            {
                let (here, data, progress) =
                    (Arc::clone(&self.here), self.data.clone(), Arc::clone(&self.progress));
                busy.spawn(async move {
                    let fetched = one(&here, data, &source, &item, &*progress).await;
                    (item, source.peer.url().to_owned(), fetched)
                });
            }
            let Some(done) = busy.join_next().await else { break };
            let (item, source, fetched) = done.map_err(|_| ArchiveError::Stopped)?;
            match fetched {
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
            if ready.len() >= TOGETHER {
                self.put(std::mem::take(&mut ready))?;
            }
        }
        self.put(ready)
    }

    /// Puts what was fetched here, together.
    fn put(&mut self, ready: Vec<(String, String, Verdict, Brought)>) -> Result<(), HolderError> {
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

async fn one(
    here: &Mutex<Holdings>,
    data: PathBuf,
    source: &Source,
    item: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<Fetched, HolderError> {
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
