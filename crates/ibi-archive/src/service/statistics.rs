//! How often items are asked for: per item and day, data and metadata apart, robots apart
//! (`docs/formats/service.md`). No address of a client is kept:
//! while it matters, a digest under a secret of this process is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;

use ibi_protocol::ContentType;
use ibi_store::ServiceState;
use ibi_store::service::{Answered, Counted};

use crate::ArchiveError;
use crate::service::robots::is_robot;

/// Two askings of one client for one thing within so many seconds are one (COUNTER 5.1).
const DOUBLE: i64 = 30;

/// Clients that are remembered for that; beyond, all are forgotten and begun anew.
const MOST_CLIENTS: usize = 1 << 18;

/// Counts that may wait to be written; beyond, they are written at once.
pub(crate) const MOST_WAITING: usize = 1 << 14;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// A resolver sent a client here, and acknowledged it.
    Resolution,
    /// A page of the item was looked at.
    View,
    /// A file was fetched.
    Download,
}

impl What {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            What::Resolution => "resolution",
            What::View => "view",
            What::Download => "download",
        }
    }
}

/// Who asks, as far as it is kept for a moment.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// Its address.
    pub ip: IpAddr,
    /// What it calls itself.
    pub agent: Option<&'a str>,
}

/// Counts, and writes them in batches.
pub struct Statistics {
    state: Mutex<ServiceState>,
    secret: [u8; 32],
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    counts: HashMap<(String, ContentType, String, What, bool), u64>,
    seen: HashMap<[u8; 16], i64>,
}

impl Statistics {
    /// Those of a data folder.
    pub fn open(data: &Path, secret: [u8; 32]) -> Result<Self, ArchiveError> {
        let state = ServiceState::open(&data.join("service/state.sqlite"))?;
        Ok(Self { state: Mutex::new(state), secret, waiting: Mutex::default() })
    }

    /// Counts what a client did with the data or the metadata of an item, unless it did the same
    /// just before. `thing` is what it asked for.
    pub fn count(
        &self,
        (path, kind): (&str, ContentType),
        what: What,
        thing: &str,
        client: &Client<'_>,
        now: i64,
    ) {
        let robots = is_robot(client.agent);
        let who = self.who(path, what, thing, client);
        let Ok(mut waiting) = self.waiting.lock() else { return };
        if waiting.seen.len() >= MOST_CLIENTS {
            waiting.seen.clear();
        }
        let before = waiting.seen.insert(who, now);
        if before.is_some_and(|before| now - before < DOUBLE) {
            return;
        }
        *waiting.counts.entry((path.to_owned(), kind, day(now), what, robots)).or_default() += 1;
        let full = waiting.counts.len() >= MOST_WAITING;
        drop(waiting);
        if full {
            self.write();
        }
    }

    /// Counts one acknowledgment; its key has been taken, so that it is one.
    pub fn count_resolution(&self, (path, kind): (&str, ContentType), now: i64) {
        let Ok(mut waiting) = self.waiting.lock() else { return };
        let counted = (path.to_owned(), kind, day(now), What::Resolution, false);
        *waiting.counts.entry(counted).or_default() += 1;
    }

    fn who(&self, path: &str, what: What, thing: &str, client: &Client<'_>) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_keyed(&self.secret);
        for part in [path, what.name(), thing, &client.ip.to_string(), client.agent.unwrap_or_default()] {
            hash.update(part.as_bytes()).update(b"\n");
        }
        let mut who = [0; 16];
        who.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        who
    }

    /// Writes what was counted, and forgets clients that no longer matter.
    pub fn write(&self) {
        let counts = match self.waiting.lock() {
            Ok(mut waiting) => std::mem::take(&mut waiting.counts),
            Err(_) => return,
        };
        if counts.is_empty() {
            return;
        }
        let counted: Vec<Counted> = counts
            .iter()
            .map(|((path, kind, day, what, robots), times)| Counted {
                path: path.clone(),
                contenttype: kind.as_str().to_owned(),
                day: day.clone(),
                what: what.name().to_owned(),
                robots: *robots,
                times: *times,
            })
            .collect();
        let written = self.state.lock().map(|state| state.count(&counted));
        if let Ok(Err(error)) = written {
            tracing::error!(%error, "statistics could not be written; tried again");
            // Nothing was written: it waits on.
            if let Ok(mut waiting) = self.waiting.lock() {
                counts.into_iter().for_each(|(key, times)| *waiting.counts.entry(key).or_default() += times);
            }
        }
    }

    /// Forgets whom it has seen before a time.
    pub fn forget(&self, now: i64) {
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.seen.retain(|_, seen| now - *seen < DOUBLE);
        }
    }

    /// What was counted of the data or the metadata of an item, also what waits.
    pub fn of(&self, path: &str, kind: ContentType) -> Result<Vec<Counted>, ArchiveError> {
        self.write();
        let state = self.state.lock().map_err(|_| ArchiveError::Stopped)?;
        Ok(state.counted(path, kind.as_str())?)
    }

    /// The answer to a request of this name.
    pub fn answered(&self, owner: &str, name: &str) -> Result<Option<Answered>, ArchiveError> {
        let state = self.state.lock().map_err(|_| ArchiveError::Stopped)?;
        Ok(state.answered(owner, name)?)
    }

    /// Remembers the answer to a request for a day.
    pub fn answer(&self, owner: &str, name: &str, answered: &Answered, now: i64) -> Result<(), ArchiveError> {
        let state = self.state.lock().map_err(|_| ArchiveError::Stopped)?;
        Ok(state.answer(owner, name, answered, now, now - 86_400)?)
    }
}

impl std::fmt::Debug for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Statistics(…)")
    }
}

/// The day of a time, in UTC.
fn day(now: i64) -> String {
    let text = ibi_id::Instant::new(now, 0).map(|instant| instant.to_string()).unwrap_or_default();
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
        let person = Client { ip: IpAddr::from([192, 0, 2, 1]), agent: Some("Mozilla/5.0 Firefox/145.0") };
        let robot = Client { agent: Some("somebot/1"), ..person };
        let data = ("a/b", ContentType::Data);
        let count = |client: &Client<'_>, now| statistics.count(data, What::Download, "x.pdf", client, now);
        count(&person, now);
        count(&person, now + 10);
        count(&person, now + 90);
        count(&robot, now);
        statistics.count_resolution(data, now);
        statistics.count_resolution(("a/b", ContentType::Metadata), now);
        statistics.write();
        let metadata = statistics.of("a/b", ContentType::Metadata).unwrap();
        assert_eq!(metadata.len(), 1, "clause 3.5: data and metadata are counted apart");
        let found = statistics.of("a/b", ContentType::Data).unwrap();
        let found: Vec<_> =
            found.iter().map(|c| (c.what.as_str(), c.robots, c.times, c.day.as_str())).collect();
        let day = "2027-01-15";
        assert_eq!(
            found,
            [("download", false, 2, day), ("download", true, 1, day), ("resolution", false, 1, day)]
        );
        let kept = std::fs::read(folder.path().join("service/state.sqlite")).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("192.0.2.1"), "no address is kept");
    }
}
