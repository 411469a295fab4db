//! Consecutive failures per Archive: recorded by the transport, read by the probes.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ibi_http::CertificateProblem;
use ibi_protocol::analysis::ArchiveId;
use tokio::sync::Notify;

/// After this many consecutive failures, an Archive is probed.
pub(crate) const SUSPECT_FAILURE_COUNT: u32 = 3;

/// The failures of all Archives; shared.
#[derive(Clone, Default)]
pub struct ArchiveHealth(Arc<SharedHealth>);

#[derive(Default)]
struct SharedHealth {
    failures: RwLock<HashMap<ArchiveId, Arc<ArchiveFailures>>>,
    noticed: Notify,
}

/// The failures of one Archive since its last answer.
#[derive(Default)]
struct ArchiveFailures {
    count: AtomicU32,
    /// What was wrong with its certificate at the last failure.
    certificate: Mutex<Option<CertificateProblem>>,
}

impl ArchiveHealth {
    /// An Archive answered.
    pub fn answered(&self, id: ArchiveId) {
        self.record(id).answered();
    }

    /// An Archive did not answer.
    pub fn failed(&self, id: ArchiveId) {
        self.record(id).failed();
    }

    /// The number of failures since the last answer.
    pub fn failures(&self, id: ArchiveId) -> u32 {
        let failures = self.0.failures.read().unwrap_or_else(PoisonError::into_inner);
        failures.get(&id).map_or(0, |failures| failures.count.load(Ordering::Relaxed))
    }

    /// What was wrong with its certificate at the last failure, if that was the reason.
    pub fn certificate_problem(&self, id: ArchiveId) -> Option<CertificateProblem> {
        let failures = self.0.failures.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()?;
        failures.certificate.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The record of one Archive, for frequent use.
    pub(crate) fn record(&self, id: ArchiveId) -> HealthRecord {
        let known = self.0.failures.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        let failures = known.unwrap_or_else(|| {
            let mut failures = self.0.failures.write().unwrap_or_else(PoisonError::into_inner);
            failures.entry(id).or_default().clone()
        });
        HealthRecord { failures, shared: self.0.clone() }
    }

    /// Waits until an Archive reaches [`SUSPECT_FAILURE_COUNT`].
    pub(crate) async fn wait_for_suspect(&self) {
        self.0.noticed.notified().await;
    }
}

#[derive(Clone)]
pub(crate) struct HealthRecord {
    failures: Arc<ArchiveFailures>,
    shared: Arc<SharedHealth>,
}

impl HealthRecord {
    pub(crate) fn answered(&self) {
        if self.failures.count.load(Ordering::Relaxed) > 0 {
            self.failures.count.store(0, Ordering::Relaxed);
            self.set_certificate(None);
        }
    }

    /// Records a failure and returns the number of consecutive ones.
    pub(crate) fn failed(&self) -> u32 {
        self.failed_because(None)
    }

    /// The same with what was wrong with its certificate, if that was the reason.
    pub(crate) fn failed_because(&self, certificate: Option<&CertificateProblem>) -> u32 {
        self.set_certificate(certificate.cloned());
        let failures = self.failures.count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // Notify only once, not at every further failure.
        if failures == SUSPECT_FAILURE_COUNT {
            self.shared.noticed.notify_one();
        }
        failures
    }

    fn set_certificate(&self, problem: Option<CertificateProblem>) {
        *self.failures.certificate.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

impl fmt::Debug for ArchiveHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health(…)")
    }
}
