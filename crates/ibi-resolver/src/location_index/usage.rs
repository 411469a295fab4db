//! Counts of redirects that asked nobody. The Archives get them in reports: by day, item, content
//! type, people and robots apart; no client address, no URL (4.4).
//!
//! Counts are written to the index once a second. A report is fixed when it is first sent, with a
//! number, and sent again until the Archive confirms it: the Archive counts each number once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ibi_id::Instant;
use ibi_protocol::ContentType;
use ibi_protocol::analysis::ArchiveId;
use ibi_store::{LocationTable, StorageError};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::LocationIndex;
use super::feed_transport::FeedTransport;
use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::blocking::run_blocking;
use crate::clock::ResolverClock;
use crate::directory::ArchiveDirectory;

/// How often counts are written, and reported.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of counts in memory, and in one report.
const MAX_PENDING_COUNTS: usize = 1 << 16;
const MAX_REPORT_COUNTS: usize = 2000;

/// Maximum size of the response to a report.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// The key of the index's own name, in the table of Archives.
const INDEX_NAME_KEY: &[u8] = b"name";

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct UsageSubject {
    day: String,
    ibi: String,
    contenttype: String,
    robot: bool,
}

/// A report as it is stored and sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UsageReport {
    /// The name of the index: resolvers behind one address have one each.
    index: String,
    sequence: u64,
    counts: Vec<UsageReportLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UsageReportLine {
    #[serde(flatten)]
    subject: UsageSubject,
    times: u64,
}

/// Counts redirects and reports them.
#[derive(Debug)]
pub struct UsageCounter {
    index: LocationIndex,
    pending: Mutex<HashMap<(ArchiveId, UsageSubject), u64>>,
}

impl UsageCounter {
    /// A counter that stores in an index.
    pub fn new(index: LocationIndex) -> Self {
        Self { index, pending: Mutex::default() }
    }

    /// Counts a redirect to an item of a followed Archive.
    pub fn count(&self, archive: ArchiveId, ibi: &str, contenttype: ContentType, robot: bool, now: i64) {
        let day = Instant::new(now, 0).map(|now| now.to_string()).unwrap_or_default();
        let subject = UsageSubject {
            day: day.get(..10).unwrap_or_default().to_owned(),
            ibi: ibi.to_owned(),
            contenttype: contenttype.as_str().to_owned(),
            robot,
        };
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() < MAX_PENDING_COUNTS || pending.contains_key(&(archive, subject.clone())) {
            *pending.entry((archive, subject)).or_default() += 1;
        } else {
            metrics::counter!("ibi_usage_counts_lost_total").increment(1);
        }
    }

    /// Writes what was counted to the index.
    pub fn write_pending(&self) {
        let counts = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if counts.is_empty() {
            return;
        }
        let written = self.index.0.store.write(|batch| {
            for ((archive, subject), times) in &counts {
                let Some(key) = count_key(*archive, subject) else { continue };
                let before = batch.get(LocationTable::Usage, &key)?.unwrap_or_default();
                let before = before.try_into().map_or(0, u64::from_be_bytes);
                batch.put(LocationTable::Usage, &key, &(before + times).to_be_bytes())?;
            }
            Ok(())
        });
        if let Err(error) = written {
            tracing::error!(%error, "counts of redirects could not be written; retrying");
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            counts.into_iter().for_each(|(key, times)| *pending.entry(key).or_default() += times);
        }
    }

    /// The report to send to an Archive now: the last one if it was not confirmed, else a new one.
    fn report(&self, archive: ArchiveId, now: i64) -> Result<Option<Vec<u8>>, StorageError> {
        let report_key = report_key(archive);
        if let Some(report) = self.index.0.store.get(LocationTable::Usage, &report_key)? {
            return Ok(Some(report));
        }
        let prefix = count_prefix(archive);
        let counts = self.index.0.store.scan(LocationTable::Usage, &prefix, MAX_REPORT_COUNTS)?;
        if counts.is_empty() {
            return Ok(None);
        }
        let index = self.index_name()?;
        self.index.0.store.write(|batch| {
            let sequence_key = sequence_key(archive);
            let last = batch.get(LocationTable::Usage, &sequence_key)?.unwrap_or_default();
            let last = last.try_into().map_or(0, u64::from_be_bytes);
            // Grows also if the index was deleted.
            let sequence = (last + 1).max(now.max(0).cast_unsigned() * 1000);
            let mut report = UsageReport { index: index.clone(), sequence, counts: Vec::new() };
            for (key, _) in &counts {
                // Read again in this transaction: more may have been counted.
                let times = batch.get(LocationTable::Usage, key)?.unwrap_or_default();
                let times = times.try_into().map_or(0, u64::from_be_bytes);
                let subject = serde_json::from_slice(key.get(prefix.len()..).unwrap_or_default());
                report.counts.extend(subject.ok().map(|subject| UsageReportLine { subject, times }));
                batch.delete(LocationTable::Usage, key)?;
            }
            // Strings and numbers only: serialization cannot fail.
            let text = serde_json::to_vec(&report).unwrap_or_default();
            batch.put(LocationTable::Usage, &sequence_key, &sequence.to_be_bytes())?;
            batch.put(LocationTable::Usage, &report_key, &text)?;
            Ok(Some(text))
        })
    }

    /// Forgets a report that the Archive has confirmed.
    fn forget_report(&self, archive: ArchiveId) -> Result<(), StorageError> {
        self.index.0.store.write(|batch| batch.delete(LocationTable::Usage, &report_key(archive)))
    }

    /// The random name of this index.
    fn index_name(&self) -> Result<String, StorageError> {
        let known = self.index.0.store.get(LocationTable::Archives, INDEX_NAME_KEY)?;
        if let Some(name) = known.and_then(|bytes| String::from_utf8(bytes).ok()) {
            return Ok(name);
        }
        let mut random = [0; 8];
        // Without randomness all indexes have one name: reports of two behind one address could
        // then be taken for each other.
        let _ = getrandom::fill(&mut random);
        let name = ibi_store::digests::hex(&random);
        self.index
            .0
            .store
            .write(|batch| batch.put(LocationTable::Archives, INDEX_NAME_KEY, name.as_bytes()))?;
        Ok(name)
    }

    /// Writes and reports counts. Never returns.
    pub async fn run<R: ArchiveDirectory, C: FeedTransport>(
        self: Arc<Self>,
        known: Arc<R>,
        client: C,
        clock: ResolverClock,
    ) {
        let writes = async {
            loop {
                sleep(WRITE_INTERVAL).await;
                let this = Arc::clone(&self);
                let _ = run_blocking(move || this.write_pending()).await;
            }
        };
        // Beside it: an Archive that does not answer must not keep counts from being written.
        let reports = async {
            loop {
                sleep(REPORT_INTERVAL).await;
                for archive in known.archives().iter() {
                    if let Err(error) = self.report_to(archive, &client, clock()).await {
                        tracing::debug!(archive = %archive.service, error, "a report of redirects failed");
                    }
                }
            }
        };
        tokio::join!(writes, reports);
    }

    async fn report_to(
        self: &Arc<Self>,
        archive: &RegisteredArchive,
        client: &impl FeedTransport,
        now: i64,
    ) -> Result<(), String> {
        let Some(url) = archive.url("/api/v1/usage") else { return Ok(()) };
        if archive.standing != RegistrationStatus::OnLine {
            return Ok(());
        }
        let (this, id) = (Arc::clone(self), archive.id);
        let prepared = run_blocking(move || {
            Ok::<_, StorageError>((this.report(id, now)?, this.index.followed_record(id)?.token))
        });
        let prepared = prepared.await.map_err(|error| error.to_string())?;
        let (Some(report), token) = prepared.map_err(|error| error.to_string())? else { return Ok(()) };
        if token.is_empty() {
            return Ok(());
        }
        let (status, _) = client
            .post_report(&url, &token, report, MAX_REPLY_BYTES)
            .await
            .map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        let this = Arc::clone(self);
        let forgotten = run_blocking(move || this.forget_report(id)).await;
        forgotten.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

fn usage_key(kind: u8, archive: ArchiveId) -> Vec<u8> {
    [&[kind][..], &archive.0.to_be_bytes()].concat()
}

fn count_prefix(archive: ArchiveId) -> Vec<u8> {
    usage_key(b'c', archive)
}

fn report_key(archive: ArchiveId) -> Vec<u8> {
    usage_key(b'r', archive)
}

fn sequence_key(archive: ArchiveId) -> Vec<u8> {
    usage_key(b's', archive)
}

/// The key of a count; `None` for a label that is too long for a key.
fn count_key(archive: ArchiveId, subject: &UsageSubject) -> Option<Vec<u8>> {
    const MAX_KEY_BYTES: usize = 500;
    let mut key = count_prefix(archive);
    key.extend(serde_json::to_vec(subject).ok()?);
    (key.len() <= MAX_KEY_BYTES).then_some(key)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;
    use ibi_http::outgoing::HttpClientError;

    use super::*;
    use crate::alerts::RaisedAlert;
    use crate::archive::ArchivePlatform;

    /// An Archive that never answers.
    #[derive(Clone)]
    struct SilentArchive;

    impl FeedTransport for SilentArchive {
        async fn get_feed(
            &self,
            _url: &str,
            _token: &str,
            _most: usize,
        ) -> Result<(StatusCode, Bytes), HttpClientError> {
            std::future::pending().await
        }

        async fn post_report(
            &self,
            _url: &str,
            _token: &str,
            _body: Vec<u8>,
            _most: usize,
        ) -> Result<(StatusCode, Bytes), HttpClientError> {
            std::future::pending().await
        }
    }

    struct OneArchive(Arc<[Arc<RegisteredArchive>]>);

    impl ArchiveDirectory for OneArchive {
        fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
            Arc::clone(&self.0)
        }

        fn record_alert(&self, _suspected: &RaisedAlert, _now: i64) {}
    }

    #[tokio::test(start_paused = true)]
    async fn counts_are_written_each_second_also_while_an_archive_is_silent() {
        let folder = tempfile::tempdir().unwrap();
        let index = LocationIndex::open(folder.path()).unwrap();
        let (archive, now) = (ArchiveId(7), 1_800_000_000);
        index.set_token(archive, "token").unwrap();
        let registered = RegisteredArchive {
            id: archive,
            service: "a.br/b/2009/02.16.17.46".parse().unwrap(),
            address: Some("a.br".to_owned()),
            hosts: Vec::new(),
            standing: RegistrationStatus::OnLine,
            registered: 0,
            changed: 0,
            email: None,
            platform: ArchivePlatform::default(),
        };
        let counter = Arc::new(UsageCounter::new(index));
        let count = || counter.count(archive, "a.br/b/2009/02.16.17.46", ContentType::Data, false, now);
        count();
        let known = Arc::new(OneArchive([Arc::new(registered)].into()));
        let running = tokio::spawn(Arc::clone(&counter).run(known, SilentArchive, Arc::new(move || now)));
        sleep(REPORT_INTERVAL * 2).await;
        count();
        sleep(WRITE_INTERVAL * 2).await;
        assert!(counter.pending.lock().unwrap().is_empty(), "a kill would lose it");
        running.abort();
    }

    #[test]
    fn a_report_is_the_same_until_it_is_confirmed_and_nothing_is_counted_twice() {
        let folder = tempfile::tempdir().unwrap();
        let counter = UsageCounter::new(LocationIndex::open(folder.path()).unwrap());
        let (archive, now) = (ArchiveId(7), 1_800_000_000);
        let count = || counter.count(archive, "a.br/b/2009/02.16.17.46", ContentType::Data, false, now);
        let read = || -> Option<UsageReport> {
            counter.report(archive, now).unwrap().map(|text| serde_json::from_slice(&text).unwrap())
        };
        assert_eq!(read(), None);
        count();
        count();
        counter.write_pending();
        let first = read().unwrap();
        assert_eq!((first.counts.len(), first.counts[0].times), (1, 2));
        count();
        counter.write_pending();
        assert_eq!(read().as_ref(), Some(&first), "until it is confirmed");
        counter.forget_report(archive).unwrap();
        let second = read().unwrap();
        assert_eq!(second.counts[0].times, 1);
        assert!(second.sequence > first.sequence);
        assert_eq!(second.index, first.index);
        counter.forget_report(archive).unwrap();
        assert_eq!(read(), None);
    }
}
