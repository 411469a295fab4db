//! An Archive of the simulation: its real answers, feed and counts, over an index in memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ibi_archive::archive::ArchiveSettings;
use ibi_archive::item::ItemLabels;
use ibi_archive::opening::open_holdings_with;
use ibi_archive::service::acknowledgment::count_acknowledgment;
use ibi_archive::service::address::ServiceAddress;
use ibi_archive::service::answer::{ServiceAnswerContext, answer_request};
use ibi_archive::service::followers::ResolverFollowers;
use ibi_archive::service::location_feed::{location_page, wait_for_changes};
use ibi_archive::service::usage_report::ReceivedUsageReport;
use ibi_archive::service::{AckKeys, Statistics};
use ibi_archive::{ArchiveError, Holdings};
use ibi_protocol::location::LocationPage;
use ibi_protocol::{ContentType, WireRequest, answer};
use ibi_store::index::IndexStorage as _;
use ibi_store::journal::State;
use tokio::time::Instant;

use crate::shared_index::SharedIndex;
use crate::writes::HostWrite;

/// When every simulation begins: 2026-11-16T08:00:00Z.
pub(crate) const FIRST_SECOND: i64 = 1_794_816_000;

/// Journal lines per page of a feed: few, so that a feed has several pages.
const MAX_PAGE_LINES: usize = 7;

/// The folders that all seeds share: a tree without items, confirmed and restored.
#[derive(Debug, Clone)]
pub(crate) struct HostFolders {
    pub(crate) confirmed: PathBuf,
    pub(crate) restored: PathBuf,
}

/// An Archive.
pub(crate) struct ArchiveHost {
    pub(crate) number: usize,
    pub(crate) service: String,
    folders: HostFolders,
    data: PathBuf,
    started: Instant,
    holdings: Mutex<Holdings>,
    pub(crate) is_up: AtomicBool,
    /// The number of its starts: what was asked of an earlier one is not answered.
    pub(crate) starts: AtomicU64,
    parts: Mutex<HostParts>,
}

struct HostParts {
    address: String,
    index: SharedIndex,
    followers: ResolverFollowers,
    keys: AckKeys,
    statistics: Statistics,
    clock_step: i64,
    log: Vec<HostWrite>,
}

/// A request as it arrives.
#[derive(Debug, Clone)]
pub(crate) enum HostRequest {
    /// A query to its service.
    Ask(String),
    /// Its feed.
    Feed { query: String, token: String },
    /// A report of redirects.
    Usage { body: Vec<u8>, token: String },
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ArchiveHost {
    pub(crate) fn new(number: usize, folders: &HostFolders, data: &Path) -> Result<Self, ArchiveError> {
        let service = format!("a{number}.sim.test/archive/2020/01.01.00.00");
        let index = SharedIndex::default();
        let data = data.join(format!("archive-{number}"));
        let holdings = open_holdings_with(&folders.confirmed, settings(&service), Box::new(index.clone()))?;
        let parts = HostParts {
            address: format!("a{number}.sim.test"),
            index,
            followers: ResolverFollowers::default(),
            keys: AckKeys::new([number as u8; 32]),
            statistics: Statistics::open(&data, [number as u8; 32])?,
            clock_step: 0,
            log: Vec::new(),
        };
        Ok(Self {
            number,
            service,
            folders: folders.clone(),
            data,
            started: Instant::now(),
            holdings: Mutex::new(holdings),
            is_up: AtomicBool::new(true),
            starts: AtomicU64::new(0),
            parts: Mutex::new(parts),
        })
    }

    /// Its clock, in seconds since the Unix epoch.
    pub(crate) fn wall(&self) -> i64 {
        FIRST_SECOND + self.started.elapsed().as_secs() as i64 + locked(&self.parts).clock_step
    }

    pub(crate) fn step_clock(&self, seconds: i64) {
        locked(&self.parts).clock_step += seconds;
    }

    pub(crate) fn address(&self) -> String {
        locked(&self.parts).address.clone()
    }

    pub(crate) fn holdings(&self) -> MutexGuard<'_, Holdings> {
        locked(&self.holdings)
    }

    /// The token for the resolver, new at each start.
    pub(crate) fn issue_token(&self) -> String {
        locked(&self.parts).followers.issue("http://resolver.sim.test").unwrap_or_default()
    }

    /// The number of the next journal line.
    pub(crate) fn next_line(&self) -> u64 {
        locked(&self.parts).index.position().map_or(1, |position| position.next)
    }

    /// Makes changes durable.
    pub(crate) fn write(&self, writes: Vec<HostWrite>) -> Result<(), ArchiveError> {
        let mut parts = locked(&self.parts);
        for write in &writes {
            write.apply(&parts.index)?;
        }
        parts.log.extend(writes);
        Ok(())
    }

    /// The number of changes so far: what a backup notes.
    pub(crate) fn log_length(&self) -> usize {
        locked(&self.parts).log.len()
    }

    /// The items whose Originals its index records, whether it may say so or not.
    pub(crate) fn recorded_originals(&self) -> Vec<String> {
        let records = locked(&self.parts).index.list("", usize::MAX).unwrap_or_default().into_iter();
        records.filter(|record| record.state == State::Original).map(|record| record.path).collect()
    }

    /// Takes the Archive back to a backup.
    pub(crate) fn restore(&self, length: usize) -> Result<(), ArchiveError> {
        let mut parts = locked(&self.parts);
        parts.log.truncate(length);
        parts.index = SharedIndex::default();
        for write in &parts.log {
            write.apply(&parts.index)?;
        }
        *locked(&self.holdings) = open_holdings_with(
            &self.folders.restored,
            settings(&self.service),
            Box::new(parts.index.clone()),
        )?;
        Ok(())
    }

    /// Its peers have confirmed it after a restore.
    pub(crate) fn confirm(&self) -> Result<(), ArchiveError> {
        let index = locked(&self.parts).index.clone();
        *locked(&self.holdings) =
            open_holdings_with(&self.folders.confirmed, settings(&self.service), Box::new(index))?;
        Ok(())
    }

    /// Ends it at once: what is only in memory is lost.
    pub(crate) fn kill(&self) {
        self.is_up.store(false, Ordering::Release);
        self.starts.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends it in order: counts are written.
    pub(crate) fn stop(&self) {
        locked(&self.parts).statistics.flush_counts();
        self.kill();
    }

    /// Starts it again, at an address.
    pub(crate) fn start(&self, address: Option<String>) -> Result<(), ArchiveError> {
        let mut parts = locked(&self.parts);
        let starts = self.starts.load(Ordering::Acquire);
        let mut secret = [self.number as u8; 32];
        secret[..8].copy_from_slice(&starts.to_le_bytes());
        parts.statistics = Statistics::open(&self.data, secret)?;
        parts.keys = AckKeys::new(secret);
        parts.followers = ResolverFollowers::default();
        if let Some(address) = address {
            parts.address = address;
        }
        self.is_up.store(true, Ordering::Release);
        Ok(())
    }

    /// How often redirects to the data or the metadata of an item were counted.
    pub(crate) fn counted(&self, path: &str, kind: ContentType) -> u64 {
        let parts = locked(&self.parts);
        let counts = parts.statistics.item_counts(path, kind).unwrap_or_default();
        counts.iter().filter(|count| count.what == "resolution").map(|count| count.times).sum()
    }

    /// Writes counts, as a server does every few seconds.
    pub(crate) fn flush_counts(&self) {
        locked(&self.parts).statistics.flush_counts();
    }

    /// The response to a request.
    pub(crate) async fn serve(self: &Arc<Self>, request: HostRequest) -> (StatusCode, Bytes) {
        match request {
            HostRequest::Ask(query) => self.answer(&query),
            HostRequest::Feed { query, token } => self.feed(&query, &token).await,
            HostRequest::Usage { body, token } => self.usage(&body, &token),
        }
    }

    fn answer(&self, query: &str) -> (StatusCode, Bytes) {
        let now = self.wall();
        let holdings = self.holdings();
        let parts = locked(&self.parts);
        let address = ServiceAddress { archive: parts.address.clone(), secure: false };
        let pairs = match WireRequest::parse(query) {
            Ok(WireRequest::Url(request)) => {
                let asked = ServiceAnswerContext { address: &address, keys: &parts.keys, now };
                match answer_request(&holdings, &request, &asked) {
                    Ok(pairs) => pairs,
                    Err(_) => return (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
                }
            }
            Ok(WireRequest::Acknowledgment(told)) => {
                count_acknowledgment(&holdings, &told, &parts.keys, &parts.statistics, now);
                answer::acknowledged()
            }
            _ => return (StatusCode::BAD_REQUEST, Bytes::new()),
        };
        (StatusCode::OK, Bytes::from(pairs.to_string()))
    }

    fn resolver(&self, token: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).ok()?);
        locked(&self.parts).followers.authorize(&headers).ok()
    }

    async fn feed(&self, query: &str, token: &str) -> (StatusCode, Bytes) {
        if self.resolver(token).is_none() {
            return (StatusCode::UNAUTHORIZED, Bytes::new());
        }
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let (after, begun) = (value("after"), Instant::now());
        let limit = value("limit").parse().unwrap_or(MAX_PAGE_LINES).min(MAX_PAGE_LINES);
        let wait = Duration::from_millis(value("wait").parse().unwrap_or(0));
        let starts = self.starts.load(Ordering::Acquire);
        let is_over = || self.starts.load(Ordering::Acquire) != starts;
        let waited = wait_for_changes(|| Ok(self.holdings()), &after, wait, is_over).await;
        let waited = waited.map(|()| begun.elapsed().as_millis() as u64);
        let page = waited.and_then(|waited| {
            Ok(LocationPage { waited, ..location_page(&self.holdings(), &after, limit)? })
        });
        match page.map(|page| serde_json::to_vec(&page)) {
            Ok(Ok(body)) => (StatusCode::OK, Bytes::from(body)),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
        }
    }

    fn usage(&self, body: &[u8], token: &str) -> (StatusCode, Bytes) {
        let Some(resolver) = self.resolver(token) else {
            return (StatusCode::UNAUTHORIZED, Bytes::new());
        };
        let Ok(report) = serde_json::from_slice::<ReceivedUsageReport>(body) else {
            return (StatusCode::BAD_REQUEST, Bytes::new());
        };
        let holdings = self.holdings();
        match report.count(&resolver, &holdings, &locked(&self.parts).statistics) {
            Ok(_) => (StatusCode::OK, Bytes::from_static(b"{}")),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
        }
    }
}

fn settings(service: &str) -> ArchiveSettings {
    let labels = |rep: &str| ItemLabels { rep: Some(rep.to_owned()), ..ItemLabels::default() };
    ArchiveSettings {
        service: labels(service),
        service_metadata: labels(&format!("{service}.01")),
        ..ArchiveSettings::default()
    }
}
