//! How Archives respond: consecutive failures, recorded by the transport and read by the probes of
//! inclusion; and whether an Archive is asked at all (`breaker.rs`).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ibi_http::CertificateProblem;
use ibi_protocol::analysis::ArchiveId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::breaker::{BreakerMachine, BreakerState, BreakerVerdict};

/// After this many consecutive failures, an Archive is probed.
pub(crate) const SUSPECT_FAILURE_COUNT: u32 = 3;

/// The health of all Archives; shared.
#[derive(Clone)]
pub struct ArchiveHealth(Arc<SharedHealth>);

struct SharedHealth {
    records: RwLock<HashMap<ArchiveId, Arc<Mutex<ArchiveFailures>>>>,
    noticed: Notify,
    /// Any number, to spread what many resolvers would do at once.
    random: Box<dyn Fn() -> u16 + Send + Sync>,
}

/// The failures of one Archive.
#[derive(Default)]
struct ArchiveFailures {
    /// Failures since the last answer or confirmation.
    count: u32,
    /// What was wrong with its certificate at the last failure.
    certificate: Option<CertificateProblem>,
    breaker: BreakerMachine,
}

impl Default for ArchiveHealth {
    fn default() -> Self {
        Self::with_random(|| {
            let mut bytes = [0; 2];
            // Without randomness, every wait has its full length.
            getrandom::fill(&mut bytes).map_or(u16::MAX, |()| u16::from_le_bytes(bytes))
        })
    }
}

impl ArchiveHealth {
    /// With another source of randomness than the system's.
    pub fn with_random(random: impl Fn() -> u16 + Send + Sync + 'static) -> Self {
        Self(Arc::new(SharedHealth {
            records: RwLock::default(),
            noticed: Notify::new(),
            random: Box::new(random),
        }))
    }

    /// An Archive came online with its key, and confirmed: what it did before does not count.
    pub fn came_online(&self, id: ArchiveId) {
        self.record(id).answered();
    }

    /// An Archive confirmed that it is online: it may be tried.
    pub fn confirmed(&self, id: ArchiveId) {
        self.record(id).confirmed();
    }

    /// An Archive did not answer.
    pub fn failed(&self, id: ArchiveId) {
        self.record(id).failed_because(Instant::now(), None);
    }

    /// The number of failures since the last answer.
    pub fn failures(&self, id: ArchiveId) -> u32 {
        self.known(id).map_or(0, |record| lock(&record).count)
    }

    /// What was wrong with its certificate at the last failure, if that was the reason.
    pub fn certificate_problem(&self, id: ArchiveId) -> Option<CertificateProblem> {
        let record = self.known(id)?;
        lock(&record).certificate.clone()
    }

    /// Whether an Archive is asked.
    pub fn breaker(&self, id: ArchiveId) -> BreakerState {
        self.known(id).map_or(BreakerState::Closed, |record| lock(&record).breaker.state())
    }

    fn known(&self, id: ArchiveId) -> Option<Arc<Mutex<ArchiveFailures>>> {
        self.0.records.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// The record of one Archive, for frequent use.
    pub(crate) fn record(&self, id: ArchiveId) -> HealthRecord {
        let failures = self.known(id).unwrap_or_else(|| {
            let mut records = self.0.records.write().unwrap_or_else(PoisonError::into_inner);
            records.entry(id).or_default().clone()
        });
        HealthRecord { failures, shared: self.0.clone() }
    }

    /// Waits until an Archive reaches [`SUSPECT_FAILURE_COUNT`].
    pub(crate) async fn wait_for_suspect(&self) {
        self.0.noticed.notified().await;
    }
}

/// The health of one Archive.
#[derive(Clone)]
pub(crate) struct HealthRecord {
    failures: Arc<Mutex<ArchiveFailures>>,
    shared: Arc<SharedHealth>,
}

/// The right to ask one question. If it was the one that decides about a breaker, and ends without
/// a result, the next one decides.
pub(crate) struct BreakerPermit {
    probe: Option<(HealthRecord, Instant)>,
}

/// What a failure led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedFailure {
    /// The number of consecutive failures.
    pub(crate) count: u32,
    /// Whether the Archive is not asked from now on.
    pub(crate) has_opened: bool,
}

impl HealthRecord {
    /// The right to ask a question now; `None` if the Archive is not asked.
    pub(crate) fn admit(&self, now: Instant) -> Option<BreakerPermit> {
        match self.lock().breaker.admit(now) {
            BreakerVerdict::Pass => Some(BreakerPermit { probe: None }),
            BreakerVerdict::Probe => Some(BreakerPermit { probe: Some((self.clone(), now)) }),
            BreakerVerdict::Refuse => None,
        }
    }

    /// The Archive answered a question. Returns whether it was not asked before.
    pub(crate) fn answered(&self) -> bool {
        let mut failures = self.lock();
        let has_closed = failures.breaker.state() != BreakerState::Closed;
        failures.breaker.answered();
        (failures.count, failures.certificate) = (0, None);
        has_closed
    }

    /// Records that a question that was asked at `asked` had no answer, with what was wrong with
    /// the Archive's certificate, if that was the reason.
    pub(crate) fn failed_because(
        &self,
        asked: Instant,
        certificate: Option<&CertificateProblem>,
    ) -> RecordedFailure {
        let random = (self.shared.random)();
        let mut failures = self.lock();
        failures.certificate = certificate.cloned();
        failures.count = failures.count.saturating_add(1);
        let has_opened = failures.breaker.failed(asked, Instant::now(), random);
        let count = failures.count;
        drop(failures);
        // Notify only once, not at every further failure.
        if count == SUSPECT_FAILURE_COUNT {
            self.shared.noticed.notify_one();
        }
        RecordedFailure { count, has_opened }
    }

    /// The Archive answered a callback: it may be tried, and only a question shows whether it
    /// answers those.
    pub(crate) fn confirmed(&self) {
        let mut failures = self.lock();
        failures.breaker.confirmed(Instant::now());
        (failures.count, failures.certificate) = (0, None);
    }

    /// The Archive did not answer a callback. Whether it is asked is decided by questions alone.
    pub(crate) fn not_confirmed(&self, certificate: Option<&CertificateProblem>) -> RecordedFailure {
        let mut failures = self.lock();
        failures.certificate = certificate.cloned();
        failures.count = failures.count.saturating_add(1);
        RecordedFailure { count: failures.count, has_opened: false }
    }

    fn lock(&self) -> MutexGuard<'_, ArchiveFailures> {
        lock(&self.failures)
    }
}

fn lock(failures: &Mutex<ArchiveFailures>) -> MutexGuard<'_, ArchiveFailures> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        if let Some((record, since)) = self.probe.take() {
            record.lock().breaker.abandoned(since, Instant::now());
        }
    }
}

impl fmt::Debug for ArchiveHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health(…)")
    }
}
