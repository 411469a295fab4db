//! Usage statistics per item and day; data and metadata, people and robots are counted separately
//! (`docs/formats/service.md`). Client addresses are never stored: to detect double clicks, a
//! digest keyed with a secret of this process is kept in memory for a short time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ibi_id::Instant;
use ibi_protocol::ContentType;
use ibi_store::service::{RecordedResponse, UsageCount};
use ibi_store::{IssuedRange, ServiceStorage, StorageError};

use crate::ArchiveError;
use ibi_http::robots::is_robot;

/// Repeated requests of one client for the same thing within this window count once (COUNTER 5.1).
const DOUBLE_CLICK_SECONDS: i64 = 30;

/// Clients remembered for that; when full, all are forgotten.
const MAX_REMEMBERED_CLIENTS: usize = 1 << 18;

/// Counts buffered in memory; when full, they are flushed at once.
pub(crate) const MAX_PENDING_COUNTS: usize = 1 << 14;

/// Maximum disk space of one count: item path, day and table overhead.
const MAX_COUNT_BYTES: u64 = 1 << 10;

/// An event that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatisticsEvent {
    /// A resolver sent a client here and acknowledged it.
    Resolution,
    /// A page of the item was viewed.
    View,
    /// A file was downloaded.
    Download,
}

impl StatisticsEvent {
    /// The name in stored counts.
    pub fn name(self) -> &'static str {
        match self {
            StatisticsEvent::Resolution => "resolution",
            StatisticsEvent::View => "view",
            StatisticsEvent::Download => "download",
        }
    }
}

/// A client, identified only in memory and for a short time.
#[derive(Debug, Clone, Copy)]
pub struct StatisticsClient<'a> {
    /// IP address.
    pub ip: IpAddr,
    /// `User-Agent`.
    pub agent: Option<&'a str>,
}

/// Counts events and writes them in batches.
pub struct Statistics {
    path: PathBuf,
    /// Opened once it can be: not on a disk that is full or read-only at the start.
    state: Mutex<Option<ServiceStorage>>,
    secret: [u8; 32],
    waiting: Mutex<PendingStatistics>,
}

/// Item, data or metadata, day, what, and whether it was a robot.
type CountKey = (String, ContentType, String, StatisticsEvent, bool);

#[derive(Default)]
struct PendingStatistics {
    counts: HashMap<CountKey, u64>,
    seen: HashMap<[u8; 16], i64>,
    /// Whether the last attempt to write the counts failed.
    is_stuck: bool,
}

impl Statistics {
    /// Opens the statistics of a data folder.
    pub fn open(data: &Path, secret: [u8; 32]) -> Result<Self, ArchiveError> {
        let path = data.join("service/state.sqlite");
        let state = match ServiceStorage::open(&path) {
            Err(error) if error.is_unwritable() => {
                tracing::error!(%error, "cannot open the service's state; retried on the next use");
                None
            }
            state => Some(state?),
        };
        Ok(Self { path, state: Mutex::new(state), secret, waiting: Mutex::default() })
    }

    fn with_state<T>(
        &self,
        work: impl FnOnce(&ServiceStorage) -> Result<T, StorageError>,
    ) -> Result<T, ArchiveError> {
        let mut state = self.state.lock().map_err(|_| ArchiveError::Stopped)?;
        let state = match &mut *state {
            Some(state) => state,
            state => state.insert(ServiceStorage::open(&self.path)?),
        };
        Ok(work(state)?)
    }

    /// Counts an event on the data or metadata of an item, unless it is a double click. `thing` is
    /// what the client requested.
    pub fn count(
        &self,
        (path, kind): (&str, ContentType),
        what: StatisticsEvent,
        thing: &str,
        client: &StatisticsClient<'_>,
        now: i64,
    ) {
        let robots = is_robot(client.agent);
        let who = self.client_digest(path, what, thing, client);
        let Ok(mut waiting) = self.waiting.lock() else { return };
        if waiting.seen.len() >= MAX_REMEMBERED_CLIENTS {
            waiting.seen.clear();
        }
        let before = waiting.seen.insert(who, now);
        if before.is_some_and(|before| now - before < DOUBLE_CLICK_SECONDS) {
            return;
        }
        drop(waiting);
        self.add_pending((path.to_owned(), kind, utc_day(now), what, robots));
    }

    /// Counts one acknowledgment. Its key has been redeemed, so it cannot be a duplicate.
    pub fn count_resolution(&self, (path, kind): (&str, ContentType), now: i64) {
        self.add_pending((path.to_owned(), kind, utc_day(now), StatisticsEvent::Resolution, false));
    }

    /// Buffers one event. While the buffer is full and cannot be written, what is new to it is not
    /// counted.
    fn add_pending(&self, counted: CountKey) {
        let Ok(mut waiting) = self.waiting.lock() else { return };
        if waiting.counts.len() >= MAX_PENDING_COUNTS && !waiting.counts.contains_key(&counted) {
            if waiting.is_stuck {
                return;
            }
            drop(waiting);
            self.flush_counts();
            match self.waiting.lock() {
                Ok(again) if again.counts.len() < MAX_PENDING_COUNTS => waiting = again,
                _ => return,
            }
        }
        *waiting.counts.entry(counted).or_default() += 1;
    }

    fn client_digest(
        &self,
        path: &str,
        what: StatisticsEvent,
        thing: &str,
        client: &StatisticsClient<'_>,
    ) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_keyed(&self.secret);
        for part in [path, what.name(), thing, &client.ip.to_string(), client.agent.unwrap_or_default()] {
            hash.update(part.as_bytes()).update(b"\n");
        }
        let mut who = [0; 16];
        who.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        who
    }

    /// Writes buffered counts to disk.
    pub fn flush_counts(&self) {
        let counts = match self.waiting.lock() {
            Ok(mut waiting) => std::mem::take(&mut waiting.counts),
            Err(_) => return,
        };
        if counts.is_empty() {
            return;
        }
        let counted: Vec<UsageCount> = counts
            .iter()
            .map(|((path, kind, day, what, robots), times)| UsageCount {
                path: path.clone(),
                contenttype: kind.as_str().to_owned(),
                day: day.clone(),
                what: what.name().to_owned(),
                robots: *robots,
                times: *times,
            })
            .collect();
        // Counts stay in memory while the disk is full.
        let written = self.with_state(|state| {
            state
                .check_log_space(counted.len() as u64 * MAX_COUNT_BYTES)
                .and_then(|()| state.add_counts(&counted))
        });
        let Ok(mut waiting) = self.waiting.lock() else { return };
        let was_stuck = std::mem::replace(&mut waiting.is_stuck, written.is_err());
        if let Err(error) = written {
            // Once, and not every few seconds as long as the disk is full.
            if !was_stuck {
                tracing::error!(%error, "cannot write statistics; retrying");
            }
            // Nothing was written: buffer the counts again.
            counts.into_iter().for_each(|(key, times)| *waiting.counts.entry(key).or_default() += times);
        }
    }

    /// Adds the counts of a resolver's report, unless it was added before. Returns whether it was
    /// new.
    pub fn add_report(
        &self,
        resolver: &str,
        sequence: u64,
        counts: &[UsageCount],
    ) -> Result<bool, ArchiveError> {
        self.with_state(|state| {
            state.check_log_space(counts.len() as u64 * MAX_COUNT_BYTES)?;
            state.add_report(resolver, sequence, counts)
        })
    }

    /// Forgets clients last seen before the double-click window.
    pub fn forget_clients(&self, now: i64) {
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.seen.retain(|_, seen| now - *seen < DOUBLE_CLICK_SECONDS);
        }
    }

    /// The counts of an item's data or metadata, including buffered ones.
    pub fn item_counts(&self, path: &str, kind: ContentType) -> Result<Vec<UsageCount>, ArchiveError> {
        self.flush_counts();
        self.with_state(|state| state.usage_counts(path, kind.as_str()))
    }

    /// The recorded response to the request with this idempotency key.
    pub fn stored_answer(&self, owner: &str, name: &str) -> Result<Option<RecordedResponse>, ArchiveError> {
        self.with_state(|state| state.recorded_response(owner, name))
    }

    /// Fails if the disk's reserve leaves no room for this many bytes of recorded responses and
    /// minting records.
    pub fn check_room(&self, bytes: u64) -> Result<(), ArchiveError> {
        self.with_state(|state| state.check_log_space(bytes))
    }

    /// Records who minted labels, before they are returned to the client.
    pub fn record_minted(&self, owner: &str, runs: &[IssuedRange]) -> Result<(), ArchiveError> {
        self.with_state(|state| state.record_minted(owner, runs))
    }

    /// The id of the token that minted the labels of an instant, if still recorded.
    pub fn minted_by(&self, instant: Instant) -> Result<Option<String>, ArchiveError> {
        self.with_state(|state| state.minted_by(instant))
    }

    /// Records the response to a request for one day.
    pub fn store_answer(
        &self,
        owner: &str,
        name: &str,
        answered: &RecordedResponse,
        now: i64,
    ) -> Result<(), ArchiveError> {
        self.with_state(|state| state.record_response(owner, name, answered, now, now - 86_400))
    }
}

impl std::fmt::Debug for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Statistics(…)")
    }
}

/// The UTC date of a time.
fn utc_day(now: i64) -> String {
    let text = Instant::new(now, 0).map(|instant| instant.to_string()).unwrap_or_default();
    text.get(..10).unwrap_or("1970-01-01").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_per_item_and_day_robots_apart_and_double_clicks_once() {
        let folder = tempfile::tempdir().unwrap();
        let statistics = Statistics::open(folder.path(), [1; 32]).unwrap();
        let now = 1_800_000_000;
        let person =
            StatisticsClient { ip: IpAddr::from([192, 0, 2, 1]), agent: Some("Mozilla/5.0 Firefox/145.0") };
        let robot = StatisticsClient { agent: Some("somebot/1"), ..person };
        let data = ("a/b", ContentType::Data);
        let count = |client: &StatisticsClient<'_>, now| {
            statistics.count(data, StatisticsEvent::Download, "x.pdf", client, now);
        };
        count(&person, now);
        count(&person, now + 10);
        count(&person, now + 90);
        count(&robot, now);
        statistics.count_resolution(data, now);
        statistics.count_resolution(("a/b", ContentType::Metadata), now);
        statistics.flush_counts();
        let metadata = statistics.item_counts("a/b", ContentType::Metadata).unwrap();
        assert_eq!(metadata.len(), 1, "clause 3.5: data and metadata are counted apart");
        let found = statistics.item_counts("a/b", ContentType::Data).unwrap();
        let found: Vec<_> =
            found.iter().map(|c| (c.what.as_str(), c.robots, c.times, c.day.as_str())).collect();
        let day = "2027-01-15";
        assert_eq!(
            found,
            [("download", false, 2, day), ("download", true, 1, day), ("resolution", false, 1, day)]
        );
        // What is buffered is bounded, also where acknowledgments name ever other items.
        *statistics.state.lock().unwrap() = None;
        std::fs::rename(folder.path().join("service"), folder.path().join("away")).unwrap();
        std::fs::write(folder.path().join("service"), b"no folder").unwrap();
        for number in 0..MAX_PENDING_COUNTS + 100 {
            statistics.count_resolution((&number.to_string(), ContentType::Data), now);
        }
        assert_eq!(statistics.waiting.lock().unwrap().counts.len(), MAX_PENDING_COUNTS);
        std::fs::remove_file(folder.path().join("service")).unwrap();
        std::fs::rename(folder.path().join("away"), folder.path().join("service")).unwrap();
        assert_eq!(statistics.item_counts("7", ContentType::Data).unwrap()[0].times, 1, "written later");
        let kept = std::fs::read(folder.path().join("service/state.sqlite")).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("192.0.2.1"), "no address is kept");
    }
}
