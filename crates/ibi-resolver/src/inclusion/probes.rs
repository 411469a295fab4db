//! Periodic probes in the background. Unconfirmed Archives are probed with exponential backoff;
//! confirmed ones at a fixed interval, and sooner if they do not answer queries.

use std::collections::hash_map;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant;

use super::{CONFIRMATION_TIMEOUT, InclusionInner, InclusionService};
use crate::archive::RegistrationStatus;
use crate::registry::RegistryEntry;
use crate::transport::ArchiveTransport;
use crate::transport::health::SUSPECT_FAILURE_COUNT;

/// Initial and maximum backoff between probes.
const MIN_PROBE_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_PROBE_RETRY_DELAY: Duration = Duration::from_secs(300);

/// Probe interval of an online Archive.
const ONLINE_PROBE_INTERVAL: Duration = Duration::from_secs(300);

/// After a start, the probes of online Archives are spread over this time.
const STARTUP_PROBE_SPREAD: Duration = Duration::from_secs(5);

/// Minimum interval between probes of an online Archive, however often it does not answer.
const MIN_ONLINE_PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Number of consecutive failed probes that an online Archive is allowed before it receives no more
/// requests.
const TOLERATED_PROBE_FAILURES: u32 = 1;

/// How often to check for changes by other processes.
const PROBE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of concurrent probes.
pub(super) const MAX_CONCURRENT_PROBES: usize = 32;

/// The probe schedule of an Archive.
pub(super) struct InclusionProbe {
    /// The turn that this schedule belongs to: a change by the operator or the Archive restarts it.
    turn: i64,
    due: Instant,
    /// The delay after the next failure.
    wait: Duration,
    /// Consecutive failures.
    failed: u32,
    last: Instant,
    is_running: bool,
}

impl InclusionProbe {
    fn new(turn: i64, due: Instant) -> Self {
        Self { turn, due, wait: MIN_PROBE_RETRY_DELAY, failed: 0, last: Instant::now(), is_running: false }
    }
}

impl<A: ArchiveTransport> InclusionService<A> {
    /// Probes Archives forever: run it next to the server.
    pub async fn run_probes(&self) {
        loop {
            let next = self.0.start_due_probes();
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.0.health.wait_for_suspect() => {}
                () = self.0.changed.notified() => {}
            }
        }
    }
}

impl<A: ArchiveTransport> InclusionInner<A> {
    /// Starts the due probes and returns when to check again.
    fn start_due_probes(self: &Arc<Self>) -> Instant {
        let now = Instant::now();
        let mut next = now + PROBE_CHECK_INTERVAL;
        let snapshot = self.registry.snapshot();
        let mut probes = self.probes();
        let is_tended = |entry: &RegistryEntry| {
            matches!(entry.archive.standing, RegistrationStatus::Unconfirmed | RegistrationStatus::OnLine)
        };
        let tended: std::collections::HashSet<ArchiveId> =
            snapshot.entries.iter().filter(|entry| is_tended(entry)).map(|entry| entry.archive.id).collect();
        probes.retain(|id, probe| probe.is_running || tended.contains(id));
        for entry in snapshot.entries.iter().filter(|entry| is_tended(entry)) {
            let (id, is_on_line) = (entry.archive.id, entry.archive.standing == RegistrationStatus::OnLine);
            let soon = if is_on_line { startup_delay(id) } else { MIN_PROBE_RETRY_DELAY };
            let probe = match probes.entry(id) {
                hash_map::Entry::Vacant(vacant) => vacant.insert(InclusionProbe::new(entry.turn, now + soon)),
                hash_map::Entry::Occupied(occupied) => occupied.into_mut(),
            };
            if probe.is_running {
                continue;
            }
            // (A newer one was started by an inclusion that this snapshot does not contain yet.)
            if probe.turn < entry.turn {
                *probe = InclusionProbe::new(entry.turn, now + MIN_PROBE_RETRY_DELAY);
            }
            if is_on_line && self.health.failures(id) >= SUSPECT_FAILURE_COUNT {
                probe.due = probe.due.min(probe.last + MIN_ONLINE_PROBE_INTERVAL);
            }
            if probe.due <= now {
                probe.is_running = true;
                tokio::spawn(self.clone().probe(entry.clone()));
            } else {
                next = next.min(probe.due);
            }
        }
        next
    }

    async fn probe(self: Arc<Self>, entry: RegistryEntry) {
        let Ok(_place) = self.places.clone().acquire_owned().await else { return };
        let (id, turn) = (entry.archive.id, entry.turn);
        let result = self.call_back(&entry.archive).await;
        let yes = result.is_ok();
        let is_pardoned =
            !yes && entry.archive.standing == RegistrationStatus::OnLine && self.is_tolerated(id, turn);
        if !is_pardoned {
            if let Err(error) = self.record(id, turn, result.clone()).await {
                tracing::error!(%error, "the registry failed");
            }
            let (is, was) = (
                if yes { RegistrationStatus::OnLine } else { RegistrationStatus::Unconfirmed },
                entry.archive.standing,
            );
            if is != was {
                let what = if yes { "reconfirmed" } else { "no longer confirmed: not queried" };
                let why = result.err();
                tracing::warn!(service = %entry.archive.service, standing = is.as_str(), why, "{what}");
            }
        }
        self.schedule_next(id, turn, yes);
    }

    /// Whether an online Archive that failed to confirm gets another probe before that counts.
    fn is_tolerated(&self, id: ArchiveId, turn: i64) -> bool {
        let probes = self.probes();
        let failed = probes.get(&id).filter(|probe| probe.turn == turn).map_or(0, |probe| probe.failed);
        failed < TOLERATED_PROBE_FAILURES && self.health.failures(id) < SUSPECT_FAILURE_COUNT
    }

    /// Postpones the probe, because an inclusion is about to call the Archive back.
    pub(super) fn postpone(&self, id: ArchiveId, turn: i64) {
        self.probes().insert(
            id,
            InclusionProbe::new(turn, Instant::now() + CONFIRMATION_TIMEOUT + MIN_PROBE_RETRY_DELAY),
        );
    }

    /// Schedules the next probe after a reply.
    pub(super) fn schedule_next(&self, id: ArchiveId, turn: i64, yes: bool) {
        let now = Instant::now();
        if let Some(probe) = self.probes().get_mut(&id).filter(|probe| probe.turn == turn) {
            if yes {
                *probe = InclusionProbe::new(turn, now + ONLINE_PROBE_INTERVAL);
            } else {
                let wait = probe.wait;
                let failed = probe.failed.saturating_add(1);
                *probe = InclusionProbe {
                    wait: (wait * 2).min(MAX_PROBE_RETRY_DELAY),
                    failed,
                    ..InclusionProbe::new(turn, now + wait)
                };
            }
        }
        if yes {
            self.health.confirmed(id);
        }
        self.changed.notify_one();
    }

    fn probes(&self) -> MutexGuard<'_, std::collections::HashMap<ArchiveId, InclusionProbe>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spreads the probes after a start.
fn startup_delay(id: ArchiveId) -> Duration {
    Duration::from_millis(id.0.wrapping_mul(997) % STARTUP_PROBE_SPREAD.as_millis() as u64)
}
