//! The minter itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ibi_id::{Instant, ibip, repository};
use ibi_store::{FileMarkStorage, MarkStorage, MintMark, Subsystem};

use crate::MintError;
use crate::clock::{ClockReading, MintClock, SystemClock, duration_between};
use crate::clock_limits::ClockLimits;
use crate::grants::{MintGrant, MintProgress, MintRequest};
use crate::waiting_room::{WaitingRoom, WaitingRoomError};

/// Maximum number of waiting callers.
const MAX_WAITING_REQUESTS: usize = 4096;

/// Issues labels under the prefixes of one subsystem, for any number of threads.
#[derive(Debug)]
pub struct Minter<M = FileMarkStorage, C = SystemClock> {
    subsystem: Subsystem,
    prefixes: MintPrefixes,
    limits: ClockLimits,
    clock: C,
    marks: Mutex<M>,
    room: WaitingRoom<MintRequest, Result<MintGrant, MintError>>,
}

impl<M: MarkStorage, C: MintClock> Minter<M, C> {
    /// A minter on a store whose mark can be trusted ([`crate::open`] finds that out).
    pub fn new(subsystem: Subsystem, marks: M, clock: C, limits: ClockLimits) -> Self {
        let prefixes = MintPrefixes { rep: subsystem.rep.clone(), ibip: subsystem.ibip.clone() };
        Self {
            subsystem,
            prefixes,
            limits,
            clock,
            marks: Mutex::new(marks),
            room: WaitingRoom::new(MAX_WAITING_REQUESTS),
        }
    }

    /// Mints labels. They are durable before this returns, and it does not return before their time
    /// has come.
    pub fn mint(&self, request: MintRequest) -> Result<MintBatch, MintError> {
        self.mint_with_notice(request, |_| ())
    }

    /// Like [`Minter::mint`], and reports the length of the wait before waiting.
    pub fn mint_with_notice(
        &self,
        request: MintRequest,
        tell: impl FnOnce(Duration),
    ) -> Result<MintBatch, MintError> {
        request.check(self.subsystem.edition)?;
        let grant = match self.room.serve(request, |requests| self.serve(requests)) {
            Ok(grant) => grant?,
            Err(WaitingRoomError::Full) => return Err(MintError::Full),
            Err(WaitingRoomError::Abandoned) => return Err(MintError::Abandoned),
        };
        self.wait_until(grant.ready, request.max_wait, tell)?;
        Ok(MintBatch { prefixes: self.prefixes.clone(), dates: grant.dates })
    }

    /// Whether such a request would be granted now. Issues nothing.
    pub fn check(&self, request: &MintRequest) -> Result<(), MintError> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.read();
        self.check_clock(marks.mark(), &now)?;
        MintProgress::new(self.subsystem.edition, marks.mark(), now.wall).grant(request).map(drop)
    }

    /// The subsystem of this minter.
    pub fn subsystem(&self) -> &Subsystem {
        &self.subsystem
    }

    #[cfg(test)]
    pub(crate) fn into_mark(self) -> MintMark {
        self.marks.into_inner().unwrap().mark().clone()
    }

    /// Grants all requests, in order, with one reading of the clock and one sync.
    fn serve(&self, requests: &[MintRequest]) -> Vec<Result<MintGrant, MintError>> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.read();
        if let Err(stop) = self.check_clock(marks.mark(), &now) {
            return requests.iter().map(|_| Err(stop.clone())).collect();
        }
        let mut progress = MintProgress::new(self.subsystem.edition, marks.mark(), now.wall);
        let mut grants: Vec<_> = requests.iter().map(|request| progress.grant(request)).collect();
        if grants.iter().all(Result::is_err) {
            return grants;
        }
        let sequence = marks.mark().sequence + 1;
        let mark =
            MintMark { sequence, last: progress.last, used: progress.used, wall: now.wall, boot: now.boot };
        if let Err(error) = marks.advance(mark) {
            let refusal = MintError::from(error);
            for grant in grants.iter_mut().filter(|grant| grant.is_ok()) {
                *grant = Err(refusal.clone());
            }
        }
        grants
    }

    fn check_clock(&self, mark: &MintMark, now: &ClockReading) -> Result<(), MintError> {
        if self.prefixes.ibip.is_some() && now.wall.seconds() < ibip::IBIP_EPOCH_SECONDS {
            return Err(MintError::BeforeIbip);
        }
        self.limits.check(mark, now).map_err(MintError::Stopped)
    }

    /// Waits for an instant of the wall clock. If the clock goes back meanwhile, the wait grows,
    /// but not much beyond what the caller allows.
    fn wait_until(
        &self,
        ready: Instant,
        max_wait: Duration,
        tell: impl FnOnce(Duration),
    ) -> Result<(), MintError> {
        const CLOCK_SETBACK_SLACK: Duration = Duration::from_secs(1);
        let start = self.clock.read();
        let mut left = duration_between(start.wall, ready);
        if !left.is_zero() {
            tell(left);
        }
        while !left.is_zero() {
            // In slices: the clock may be corrected meanwhile.
            self.clock.sleep(left.min(Duration::from_millis(100)));
            let now = self.clock.read();
            left = duration_between(now.wall, ready);
            let waited = Duration::from_nanos(now.boot.nanos.saturating_sub(start.boot.nanos));
            if waited + left > max_wait + CLOCK_SETBACK_SLACK {
                return Err(MintError::ClockSetBackWhileWaiting);
            }
        }
        Ok(())
    }
}

/// The canonical prefixes of a subsystem: at least one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintPrefixes {
    /// For labels of the form `rep`.
    pub rep: Option<String>,
    /// For labels of the form `ibip`.
    pub ibip: Option<String>,
}

/// Labels that were minted: one instant each, in one form or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintBatch {
    prefixes: MintPrefixes,
    dates: Vec<Instant>,
}

impl MintBatch {
    /// The instants, in order.
    pub fn dates(&self) -> &[Instant] {
        &self.dates
    }

    /// The prefixes that the labels have.
    pub fn prefixes(&self) -> &MintPrefixes {
        &self.prefixes
    }

    /// The labels, in order.
    pub fn labels(&self) -> impl Iterator<Item = MintedLabels> + '_ {
        self.dates.iter().map(|&instant| MintedLabels {
            rep: self.prefixes.rep.as_ref().map(|prefix| format!("{prefix}/{}", repository::suffix(instant))),
            // Minting refuses a clock before 1995, so that every date has a suffix.
            ibip: self
                .prefixes
                .ibip
                .as_ref()
                .and_then(|prefix| Some(format!("{prefix}/{}", ibip::suffix(instant).ok()?))),
            instant,
        })
    }
}

/// One instant as a label of each form that the subsystem has a prefix for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintedLabels {
    /// The name of the uniform repository.
    pub rep: Option<String>,
    /// The opaque form.
    pub ibip: Option<String>,
    /// The instant of both labels.
    pub instant: Instant,
}
