//! Confirming again, in the background: those who have not confirmed, sooner first and then more and more rarely; those who have,
//! now and then, and soon if they do not answer questions.

use std::collections::hash_map;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant;

use super::{Inclusion, Inner, PATIENCE, blocking};
use crate::archive::Standing;
use crate::ask::Ask;
use crate::ask::health::SUSPECT;
use crate::registry::Entry;

/// Between two tries, at first and at most.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(300);

/// How often one that is on line confirms it again.
const EVERY: Duration = Duration::from_secs(300);

/// Within this time after a start, those that were on line confirm it again.
const SPREAD: Duration = Duration::from_secs(5);

/// At least so long between two confirmations of one that is on line, however often it does not answer.
const REST: Duration = Duration::from_secs(5);

/// So many times in a row one that is on line may not confirm before it is not asked any more.
const PARDONED: u32 = 1;

/// How often is looked for what others changed.
const LOOK: Duration = Duration::from_secs(1);

/// At most so many are called at once.
pub(super) const AT_ONCE: usize = 32;

/// When an Archive is asked next whether it is there.
pub(super) struct Probe {
    /// What this is about: it begins anew when operator or Archive change something.
    turn: i64,
    due: Instant,
    /// How long to wait after the next failure.
    wait: Duration,
    /// How often it has not confirmed since it did.
    failed: u32,
    last: Instant,
    is_running: bool,
}

impl Probe {
    fn new(turn: i64, due: Instant) -> Self {
        Self { turn, due, wait: FIRST, failed: 0, last: Instant::now(), is_running: false }
    }
}

impl<A: Ask> Inclusion<A> {
    /// Has Archives confirm again that they are there, for ever: to be run beside the server.
    pub async fn tend(&self) {
        loop {
            let next = self.0.round();
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.0.health.noticed() => {}
                () = self.0.changed.notified() => {}
            }
        }
    }
}

impl<A: Ask> Inner<A> {
    /// Begins what is due; says when to look again.
    fn round(self: &Arc<Self>) -> Instant {
        let now = Instant::now();
        let mut next = now + LOOK;
        let snapshot = self.registry.snapshot();
        let mut probes = self.probes();
        let is_tended =
            |entry: &Entry| matches!(entry.archive.standing, Standing::Unconfirmed | Standing::OnLine);
        let tended: std::collections::HashSet<ArchiveId> =
            snapshot.entries.iter().filter(|entry| is_tended(entry)).map(|entry| entry.archive.id).collect();
        probes.retain(|id, probe| probe.is_running || tended.contains(id));
        for entry in snapshot.entries.iter().filter(|entry| is_tended(entry)) {
            let (id, is_on_line) = (entry.archive.id, entry.archive.standing == Standing::OnLine);
            let soon = if is_on_line { spread(id) } else { FIRST };
            let probe = match probes.entry(id) {
                hash_map::Entry::Vacant(vacant) => vacant.insert(Probe::new(entry.turn, now + soon)),
                hash_map::Entry::Occupied(occupied) => occupied.into_mut(),
            };
            if probe.is_running {
                continue;
            }
            // (A newer one was begun by an inclusion that this snapshot does not know yet.)
            if probe.turn < entry.turn {
                *probe = Probe::new(entry.turn, now + FIRST);
            }
            if is_on_line && self.health.failures(id) >= SUSPECT {
                probe.due = probe.due.min(probe.last + REST);
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

    async fn probe(self: Arc<Self>, entry: Entry) {
        let Ok(_place) = self.places.clone().acquire_owned().await else { return };
        let (id, turn) = (entry.archive.id, entry.turn);
        let yes = self.confirm(&entry.archive).await;
        let is_pardoned = !yes && entry.archive.standing == Standing::OnLine && self.is_pardoned(id, turn);
        if !is_pardoned {
            let (registry, now) = (self.registry.clone(), (self.clock)());
            if let Err(error) = blocking(move || registry.confirmed(id, turn, yes, now)).await {
                tracing::error!(%error, "the registry failed");
            }
            let (is, was) =
                (if yes { Standing::OnLine } else { Standing::Unconfirmed }, entry.archive.standing);
            if is != was {
                let what = if yes { "confirmed anew" } else { "no longer confirmed: it is not asked" };
                tracing::warn!(service = %entry.archive.service, standing = is.as_str(), "{what}");
            }
        }
        self.settle(id, turn, yes);
    }

    /// Whether one that is on line and did not confirm is asked once more before that counts.
    fn is_pardoned(&self, id: ArchiveId, turn: i64) -> bool {
        let probes = self.probes();
        let failed = probes.get(&id).filter(|probe| probe.turn == turn).map_or(0, |probe| probe.failed);
        failed < PARDONED && self.health.failures(id) < SUSPECT
    }

    /// An inclusion is about to call it back: not from here.
    pub(super) fn postpone(&self, id: ArchiveId, turn: i64) {
        self.probes().insert(id, Probe::new(turn, Instant::now() + PATIENCE + FIRST));
    }

    /// Says when to ask next, after an answer.
    pub(super) fn settle(&self, id: ArchiveId, turn: i64, yes: bool) {
        let now = Instant::now();
        if let Some(probe) = self.probes().get_mut(&id).filter(|probe| probe.turn == turn) {
            if yes {
                *probe = Probe::new(turn, now + EVERY);
            } else {
                let wait = probe.wait;
                let failed = probe.failed.saturating_add(1);
                *probe = Probe { wait: (wait * 2).min(MOST), failed, ..Probe::new(turn, now + wait) };
            }
        }
        if yes {
            self.health.answered(id);
        }
        self.changed.notify_one();
    }

    fn probes(&self) -> MutexGuard<'_, std::collections::HashMap<ArchiveId, Probe>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Not all in one moment.
fn spread(id: ArchiveId) -> Duration {
    Duration::from_millis(id.0.wrapping_mul(997) % SPREAD.as_millis() as u64)
}
