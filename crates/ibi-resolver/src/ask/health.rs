//! How often in a row Archives did not answer: told by who asks, read by who confirms.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ibi_protocol::analysis::ArchiveId;
use tokio::sync::Notify;

/// From so many failures in a row on, an Archive is asked whether it is still there.
pub(crate) const SUSPECT: u32 = 3;

/// The failures of all Archives, shared.
#[derive(Clone, Default)]
pub struct Health(Arc<Shared>);

#[derive(Default)]
struct Shared {
    failures: RwLock<HashMap<ArchiveId, Arc<AtomicU32>>>,
    noticed: Notify,
}

impl Health {
    /// An Archive answered.
    pub fn answered(&self, id: ArchiveId) {
        self.record(id).answered();
    }

    /// An Archive did not answer.
    pub fn failed(&self, id: ArchiveId) {
        self.record(id).failed();
    }

    /// How often it did not answer since it answered the last time.
    pub fn failures(&self, id: ArchiveId) -> u32 {
        let failures = self.0.failures.read().unwrap_or_else(PoisonError::into_inner);
        failures.get(&id).map_or(0, |failures| failures.load(Ordering::Relaxed))
    }

    /// The record of one Archive, for who asks it often.
    pub(crate) fn record(&self, id: ArchiveId) -> Record {
        let known = self.0.failures.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        let failures = known.unwrap_or_else(|| {
            let mut failures = self.0.failures.write().unwrap_or_else(PoisonError::into_inner);
            failures.entry(id).or_default().clone()
        });
        Record { failures, shared: self.0.clone() }
    }

    /// Waits until some Archive fails too often.
    pub(crate) async fn noticed(&self) {
        self.0.noticed.notified().await;
    }
}

#[derive(Clone)]
pub(crate) struct Record {
    failures: Arc<AtomicU32>,
    shared: Arc<Shared>,
}

impl Record {
    pub(crate) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Gives how many there are now in a row.
    pub(crate) fn failed(&self) -> u32 {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // Once: who asks often must not wake the other at every failure.
        if failures == SUSPECT {
            self.shared.noticed.notify_one();
        }
        failures
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health(…)")
    }
}
