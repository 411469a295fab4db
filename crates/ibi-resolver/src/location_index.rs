//! The location index: what each followed Archive has, so that a resolution need not ask it (4.4).
//!
//! An Archive of ours issues a token when it comes online (3.3). With it, a [`follower`] reads the
//! Archive's feed of changes into the [`LocationStore`], and knows at any moment until when the
//! index was complete. An answer from the index is used while the Archive was heard from within
//! [`MAX_INDEX_AGE`]; otherwise the Archive is asked. The index can be deleted: it fills again.

mod claims;
mod copies;
pub mod feed_transport;
pub mod follower;
mod index_status;
mod posting;
mod records;
pub mod usage;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::location::{
    LocationArchive, LocationLookup, LocationPage, LocationQuery, LocationRecord, answer,
};
use ibi_protocol::{ContentType, Pairs, RelationPart, State};
use ibi_store::{LocationStore, LocationTable, StorageError};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::archive::RegisteredArchive;
use copies::suspect_copies;
pub use copies::{CopyVerdict, SuspectCopy};
use ibi_protocol::analysis::{ArchiveId, RoundQuery};
pub use index_status::{ArchiveIndexStatus, IndexStatus};
use posting::{LabelPosting, PostingRole, postings};
use records::{
    IndexedSize, RecordWriter, archive_key, clear_items, is_plausible, item_key, label_keys, read_followed,
    write_followed,
};

/// Maximum age of an answer from the index. An Archive that was not heard from for longer is asked.
pub const MAX_INDEX_AGE: Duration = Duration::from_secs(3);

/// Maximum number of items of one Archive in the index: a feed without an end must not fill the
/// disk.
const MAX_ITEMS_PER_ARCHIVE: u64 = 100_000_000;

/// Minimum time between two looks at all feeds at once, and how long one takes at most.
const MIN_SYNC_INTERVAL: Duration = Duration::from_millis(5);
const SYNC_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of the index's folder in the data folder.
pub const LOCATION_FOLDER_NAME: &str = "locations";

/// The location index. Clones share it.
#[derive(Clone)]
pub struct LocationIndex(Arc<LocationIndexInner>);

struct LocationIndexInner {
    store: LocationStore,
    started: Instant,
    followed: RwLock<BTreeMap<ArchiveId, Arc<FollowedArchive>>>,
    /// All Archives, as they were registered last: who has the prefix of a label (4.4).
    registered: RwLock<Arc<[Arc<RegisteredArchive>]>>,
    /// When all feeds were last asked at once.
    synced: tokio::sync::Mutex<Option<Instant>>,
}

/// What is known of one Archive's feed.
#[derive(Debug, Default)]
pub struct FollowedArchive {
    /// Until when its feed is complete, in microseconds since the start; 0: not at all.
    complete_until: AtomicU64,
    /// The same, also if that does not count any more.
    heard: AtomicU64,
    /// Whether the Archive wants to be asked about everything.
    asks: AtomicBool,
    /// Whether a task follows its feed.
    is_followed: AtomicBool,
    /// Makes that task look at once.
    wake: Notify,
    /// Why its feed could not be read the last time.
    error: Mutex<Option<String>>,
}

/// What is stored of an Archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FollowedRecord {
    /// The token for its feed.
    pub(crate) token: String,
    /// The position in its feed.
    pub(crate) position: String,
    /// The labels of its service, as its feed says.
    pub(crate) service: Vec<String>,
    /// The number of its items in the index.
    pub(crate) items: u64,
    /// The number of their labels in the index.
    #[serde(default)]
    pub(crate) labels: u64,
    /// The bytes of all that in the index.
    #[serde(default)]
    pub(crate) bytes: u64,
    /// Whether its feed was read to its end once.
    pub(crate) filled: bool,
    /// Whether its feed had something that the index cannot hold: it is asked about everything.
    #[serde(default)]
    pub(crate) is_unfit: bool,
}

impl FollowedRecord {
    fn add(&mut self, size: IndexedSize) {
        self.items += 1;
        self.labels += size.labels;
        self.bytes += size.bytes;
    }

    fn subtract(&mut self, removed: Option<IndexedSize>) {
        let Some(IndexedSize { labels, bytes }) = removed else { return };
        self.items = self.items.saturating_sub(1);
        self.labels = self.labels.saturating_sub(labels);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The reply of the index in the place of an Archive.
#[derive(Debug)]
pub enum IndexReply {
    /// The Archive does not have the item.
    Nothing,
    /// The answer that it would give.
    Answer(Pairs),
    /// Only the Archive can say.
    Ask,
    /// It claims an Original that another Archive was known to hold, whose feed is not current: that
    /// one may have handed it over. Neither an answer nor the absence of one.
    Unsettled,
}

/// What a redirect without asking needs.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexedLocation {
    /// The Archive.
    pub archive: ArchiveId,
    /// The path of the URL at the Archive.
    pub path: String,
    /// The name of the item in the Archive.
    pub item: String,
    /// What the URL leads to.
    pub contenttype: ContentType,
    /// Its state in the Archive.
    pub state: State,
    /// Whether other Archives have something under this label too.
    pub is_alone: bool,
}

impl LocationIndex {
    /// Opens the index of a data folder.
    pub fn open(data: &Path) -> Result<Self, StorageError> {
        let store = LocationStore::open(&data.join(LOCATION_FOLDER_NAME))?;
        Ok(Self(Arc::new(LocationIndexInner {
            store,
            started: Instant::now(),
            followed: RwLock::default(),
            registered: RwLock::new(Arc::new([])),
            synced: tokio::sync::Mutex::default(),
        })))
    }

    /// The feed state of an Archive.
    pub fn followed(&self, id: ArchiveId) -> Arc<FollowedArchive> {
        let known = self.0.followed.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        known.unwrap_or_else(|| {
            let mut followed = self.0.followed.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(followed.entry(id).or_default())
        })
    }

    /// Microseconds from the start to an instant.
    fn micros(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.0.started).as_micros()).unwrap_or(u64::MAX)
    }

    /// The age of what the index knows of an Archive; `None` if it cannot be used.
    pub fn age(&self, followed: &FollowedArchive) -> Option<Duration> {
        let until = followed.complete_until.load(Ordering::Acquire);
        if until == 0 || followed.asks.load(Ordering::Acquire) {
            return None;
        }
        let age = Duration::from_micros(self.micros(Instant::now()).saturating_sub(until));
        (age <= MAX_INDEX_AGE).then_some(age)
    }

    /// Stores the token of an Archive that came online.
    pub fn set_token(&self, id: ArchiveId, token: &str) -> Result<(), StorageError> {
        self.0.store.write(|batch| {
            let mut record = read_followed(batch, id)?;
            if record.token != token {
                token.clone_into(&mut record.token);
                write_followed(batch, id, &record)?;
            }
            Ok(())
        })
    }

    /// What is stored of an Archive.
    pub(crate) fn followed_record(&self, id: ArchiveId) -> Result<FollowedRecord, StorageError> {
        let stored = self.0.store.get(LocationTable::Archives, &archive_key(id))?;
        Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// The number of labels in the index.
    pub fn label_count(&self) -> Result<u64, StorageError> {
        self.0.store.count(LocationTable::Labels)
    }

    /// Writes a page of an Archive's feed.
    pub(crate) fn apply(
        &self,
        id: ArchiveId,
        page: &LocationPage,
        now: i64,
    ) -> Result<AppliedPage, StorageError> {
        let archives = Arc::clone(&self.0.registered.read().unwrap_or_else(PoisonError::into_inner));
        let mut writer = RecordWriter { id, now, archives: &archives, disputed: Vec::new(), is_unfit: false };
        let mut copies = Vec::new();
        let is_unfit = self.0.store.write(|batch| {
            let mut followed = read_followed(batch, id)?;
            if page.restart {
                clear_items(batch, id)?;
                followed = FollowedRecord { token: followed.token, ..FollowedRecord::default() };
            }
            for path in &page.gone {
                followed.subtract(writer.remove(batch, path)?);
            }
            for record in &page.records {
                if followed.items >= MAX_ITEMS_PER_ARCHIVE || !is_plausible(record) {
                    followed.is_unfit = true;
                    continue;
                }
                let (removed, size) = writer.put(batch, record)?;
                followed.subtract(removed);
                followed.add(size);
                copies.extend(suspect_copies(batch, record)?);
            }
            followed.is_unfit |= writer.is_unfit;
            followed.position.clone_from(&page.next);
            followed.service.clone_from(&page.service);
            followed.filled |= !page.more;
            write_followed(batch, id, &followed)?;
            Ok(followed.is_unfit)
        })?;
        Ok(AppliedPage { disputed: writer.disputed, copies, is_unfit })
    }

    /// Records which Archives there are.
    pub(crate) fn set_registered(&self, archives: Arc<[Arc<RegisteredArchive>]>) {
        *self.0.registered.write().unwrap_or_else(PoisonError::into_inner) = archives;
    }

    /// Records until when an Archive's feed is complete.
    pub(crate) fn confirm(&self, id: ArchiveId, heard: Instant, asks: bool) {
        let followed = self.followed(id);
        followed.asks.store(asks, Ordering::Release);
        let heard = self.micros(heard).max(1);
        followed.complete_until.store(heard, Ordering::Release);
        followed.heard.store(heard, Ordering::Release);
        followed.is_followed.store(true, Ordering::Release);
    }

    /// Forgets that an Archive's feed is complete: it is asked from now on.
    pub(crate) fn doubt(&self, id: ArchiveId) {
        let followed = self.followed(id);
        followed.complete_until.store(0, Ordering::Release);
        followed.is_followed.store(false, Ordering::Release);
    }

    /// Brings the index up to date with all feeds: what an Archive has changed before this call is
    /// in the index after it, unless the Archive does not answer in time. Many callers cost no more
    /// than one.
    pub async fn sync(&self) {
        let called = Instant::now();
        let mut synced = self.0.synced.lock().await;
        if synced.is_some_and(|synced| synced >= called) {
            return;
        }
        if let Some(last) = *synced {
            tokio::time::sleep_until(last + MIN_SYNC_INTERVAL).await;
        }
        let begun = Instant::now();
        let followed: Vec<Arc<FollowedArchive>> = {
            let followed = self.0.followed.read().unwrap_or_else(PoisonError::into_inner);
            // One that is silent already is asked anyway: nobody waits for its feed.
            let is_followed = |archive: &&Arc<FollowedArchive>| {
                archive.is_followed.load(Ordering::Acquire) && self.age(archive).is_some()
            };
            followed.values().filter(is_followed).cloned().collect()
        };
        followed.iter().for_each(|archive| archive.wake.notify_one());
        let since = self.micros(begun);
        let is_behind =
            |archive: &Arc<FollowedArchive>| archive.complete_until.load(Ordering::Acquire) < since;
        while followed.iter().any(is_behind) && begun.elapsed() < SYNC_TIMEOUT {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        *synced = Some(begun);
    }

    /// Looks a plain label up for a redirect. `None` if the rules of 4.2 have to decide.
    pub fn locate(&self, label: &Label<impl AsRef<str>>) -> Result<Option<IndexedLocation>, StorageError> {
        let (key, folded) = label_keys(label);
        let found = self.0.store.read(LocationTable::Labels, &key, |value| {
            let mut live: Option<LabelPosting<'_>> = None;
            let (mut count, mut originals) = (0, 0);
            for posting in postings(value) {
                // Another spelling of the label: only the Archive can tell which item is meant.
                if posting.role != PostingRole::Item || posting.spelling != folded.as_bytes() {
                    return None;
                }
                // The known holder keeps the readers, also while it is not in the index (4.4).
                if posting.state == State::Original && posting.is_late {
                    return None;
                }
                count += 1;
                if posting.state == State::Original {
                    originals += 1;
                    live = Some(posting);
                } else if originals == 0 && posting.state == State::Copy {
                    live = Some(posting);
                }
            }
            let posting = live.filter(|posting| posting.is_open && originals <= 1)?;
            Some(IndexedLocation {
                archive: ArchiveId(posting.archive),
                path: str::from_utf8(posting.target).ok()?.to_owned(),
                item: str::from_utf8(posting.path).ok()?.to_owned(),
                contenttype: posting.contenttype,
                state: posting.state,
                is_alone: count == 1,
            })
        })?;
        Ok(found.flatten())
    }

    /// Whether any Archive has anything under this label, in any spelling.
    pub(crate) fn has_label(&self, label: &Label<impl AsRef<str>>) -> Result<bool, StorageError> {
        let (key, _) = label_keys(label);
        Ok(self.0.store.read(LocationTable::Labels, &key, |_| ())?.is_some())
    }

    /// What the index has under the label of a query.
    pub(crate) fn find(&self, query: &RoundQuery) -> Result<IndexedAnswers, StorageError> {
        let (key, folded) = label_keys(&query.label);
        let mut found = IndexedAnswers { folded, ..IndexedAnswers::default() };
        if let Some(value) = self.0.store.get(LocationTable::Labels, &key)? {
            found.entries.extend(postings(&value).map(|posting| IndexedEntry {
                archive: ArchiveId(posting.archive),
                role: posting.role,
                state: posting.state,
                is_late: posting.is_late,
                is_spelled: posting.spelling == found.folded.as_bytes(),
                path: String::from_utf8_lossy(posting.path).into_owned(),
            }));
        }
        Ok(found)
    }

    /// The reply of the index in the place of an Archive.
    pub(crate) fn reply(
        &self,
        found: &IndexedAnswers,
        archive: &RegisteredArchive,
        query: &RoundQuery,
    ) -> Result<IndexReply, StorageError> {
        let mut own = found.entries.iter().filter(|entry| entry.archive == archive.id);
        let Some(entry) = own.next() else { return Ok(IndexReply::Nothing) };
        // Several items under one canonical spelling, or another spelling (1.3): the Archive
        // decides.
        if own.next().is_some() || !entry.is_spelled {
            return Ok(IndexReply::Ask);
        }
        if found.is_late_claim(entry) {
            let is_current = |holder: ArchiveId| self.age(&self.followed(holder)).is_some();
            let is_settled = found.known_holder().is_some_and(is_current);
            return Ok(if is_settled { IndexReply::Nothing } else { IndexReply::Unsettled });
        }
        let lookup = ArchiveLookup { index: self, archive: archive.id };
        if entry.state == State::Copy && self.is_forged_copy(found, entry)? {
            return Ok(IndexReply::Nothing);
        }
        let Some(record) = lookup.item(&entry.path)? else { return Ok(IndexReply::Ask) };
        let Some(base) = archive.url("") else { return Ok(IndexReply::Ask) };
        // The registered label identifies the Archive (4.2 step 2).
        let service = [archive.service.spelling().to_owned()];
        let asked = LocationQuery {
            label: query.label.spelling(),
            is_metadata: entry.role == PostingRole::Metadata,
            verbs: &query.verbs,
            file: query.file.as_ref(),
        };
        let answered = answer(&lookup, &record, &asked, &LocationArchive { service: &service, base: &base })?;
        Ok(answered.map_or(IndexReply::Ask, IndexReply::Answer))
    }
}

impl LocationIndex {
    /// What an Archive that cannot be asked last reported of an item's links, without URLs: a newer
    /// edition or a translation does not vanish because its Archive is offline (2.4).
    pub(crate) fn last_known_links(
        &self,
        found: &IndexedAnswers,
        archive: &RegisteredArchive,
        query: &RoundQuery,
    ) -> Result<Option<Pairs>, StorageError> {
        let is_link = |part: &RelationPart| !matches!(part, RelationPart::Metadata(_));
        if !query.verbs.relation.parts().iter().any(is_link) {
            return Ok(None);
        }
        let IndexReply::Answer(mut pairs) = self.reply(found, archive, query)? else { return Ok(None) };
        if pairs.get("state") == Some(State::Deleted.as_str()) {
            return Ok(None);
        }
        pairs.retain(|name, _| name.starts_with("ibi"));
        Ok(Some(pairs))
    }
}

impl std::fmt::Debug for LocationIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LocationIndex").field(&self.0.store).finish()
    }
}

/// The effect of a page of a feed.
#[derive(Debug)]
pub(crate) struct AppliedPage {
    /// Labels of items that two Archives now claim as Originals.
    pub(crate) disputed: Vec<String>,
    /// Copies that seem to be no version of the Original.
    pub(crate) copies: Vec<SuspectCopy>,
    /// Whether the Archive has to be asked about everything.
    pub(crate) is_unfit: bool,
}

/// What the index has under one label.
#[derive(Debug, Default)]
pub(crate) struct IndexedAnswers {
    folded: String,
    entries: Vec<IndexedEntry>,
    /// Whether the known holder of the Original was retired: the others are believed.
    is_holder_retired: bool,
}

#[derive(Debug)]
struct IndexedEntry {
    archive: ArchiveId,
    role: PostingRole,
    state: State,
    /// Whether another Archive was the known holder of the Original before (4.4).
    is_late: bool,
    is_spelled: bool,
    path: String,
}

impl IndexedAnswers {
    /// Leaves out what Archives have that no longer count: they were retired.
    pub(crate) fn retain_archives(&mut self, counts: impl Fn(ArchiveId) -> bool) {
        let is_holder = |entry: &IndexedEntry| entry.state == State::Original && !entry.is_late;
        self.is_holder_retired = self.entries.iter().any(|entry| is_holder(entry) && !counts(entry.archive));
        self.entries.retain(|entry| counts(entry.archive));
    }

    /// The Archives that have it, as far as is known.
    pub(crate) fn holders(&self) -> impl Iterator<Item = ArchiveId> {
        self.entries.iter().filter(|entry| entry.state != State::Deleted).map(|entry| entry.archive)
    }

    /// Whether another Archive was known as the holder of the Original when this one began to claim
    /// it: the known holder keeps the readers (4.4).
    fn is_late_claim(&self, entry: &IndexedEntry) -> bool {
        entry.is_late && entry.state == State::Original && !self.is_holder_retired
    }

    /// The Archive that holds the Original against late claims.
    fn known_holder(&self) -> Option<ArchiveId> {
        let is_holder = |entry: &&IndexedEntry| entry.state == State::Original && !entry.is_late;
        self.entries.iter().find(is_holder).map(|entry| entry.archive)
    }

    /// The same, of the label as it is spelled. `None` if other items have another spelling of it
    /// (1.3).
    pub(crate) fn holder_as_spelled(&self) -> Option<ArchiveId> {
        self.known_holder().filter(|_| self.entries.iter().all(|entry| entry.is_spelled))
    }
}

/// The items of one Archive, by label.
struct ArchiveLookup<'a> {
    index: &'a LocationIndex,
    archive: ArchiveId,
}

impl ArchiveLookup<'_> {
    fn item(&self, path: &str) -> Result<Option<Arc<LocationRecord>>, StorageError> {
        let stored = self.index.0.store.get(LocationTable::Items, &item_key(self.archive, path))?;
        Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).map(Arc::new))
    }
}

impl LocationLookup for ArchiveLookup<'_> {
    type Error = StorageError;

    fn by_label(&self, label: &str) -> Result<Option<Arc<LocationRecord>>, StorageError> {
        let Ok(label) = Label::parse(label) else { return Ok(None) };
        let (key, _) = label_keys(&label);
        let value = self.index.0.store.get(LocationTable::Labels, &key)?.unwrap_or_default();
        let own = postings(&value).find(|posting| posting.archive == self.archive.0);
        match own {
            Some(posting) => self.item(&String::from_utf8_lossy(posting.path)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
