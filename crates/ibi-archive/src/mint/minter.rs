//! The minter itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ibi_id::{Instant, ibip, repository};
use ibi_store::{FileMarks, Mark, Marks, Subsystem};

use crate::Refusal;
use crate::mint::clock::{Clock, Reading, SystemClock, between};
use crate::mint::grants::{Grant, Progress, Request};
use crate::mint::rules::Limits;
use crate::mint::waiting_room::{Unserved, WaitingRoom};

/// How many may wait at once.
const SEATS: usize = 4096;

/// Gives out labels under the prefixes of one subsystem. Any number of threads may ask at once.
#[derive(Debug)]
pub struct Minter<M = FileMarks, C = SystemClock> {
    subsystem: Subsystem,
    prefixes: Prefixes,
    limits: Limits,
    clock: C,
    marks: Mutex<M>,
    room: WaitingRoom<Request, Result<Grant, Refusal>>,
}

impl<M: Marks, C: Clock> Minter<M, C> {
    /// A minter on a store whose mark can be trusted ([`crate::mint::open`] finds that out).
    pub fn new(subsystem: Subsystem, marks: M, clock: C, limits: Limits) -> Self {
        let prefixes = Prefixes { rep: subsystem.rep.clone(), ibip: subsystem.ibip.clone() };
        Self { subsystem, prefixes, limits, clock, marks: Mutex::new(marks), room: WaitingRoom::new(SEATS) }
    }

    /// Mints labels: durable before this returns, and not before their time has come.
    pub fn mint(&self, request: Request) -> Result<Minted, Refusal> {
        self.mint_telling(request, |_| ())
    }

    /// The same, and tells before it waits how long it will.
    pub fn mint_telling(&self, request: Request, tell: impl FnOnce(Duration)) -> Result<Minted, Refusal> {
        request.check(self.subsystem.edition)?;
        let grant = match self.room.serve(request, |requests| self.serve(requests)) {
            Ok(grant) => grant?,
            Err(Unserved::Full) => return Err(Refusal::Full),
            Err(Unserved::Abandoned) => return Err(Refusal::Abandoned),
        };
        self.wait_until(grant.ready, request.max_wait, tell)?;
        Ok(Minted { prefixes: self.prefixes.clone(), dates: grant.dates })
    }

    /// Who mints here.
    pub fn subsystem(&self) -> &Subsystem {
        &self.subsystem
    }

    #[cfg(test)]
    pub(crate) fn into_mark(self) -> Mark {
        self.marks.into_inner().unwrap().mark().clone()
    }

    /// Grants all requests, in order, with one reading of the clock and one sync.
    fn serve(&self, requests: &[Request]) -> Vec<Result<Grant, Refusal>> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.read();
        if let Err(stop) = self.believe(marks.mark(), &now) {
            return requests.iter().map(|_| Err(stop.clone())).collect();
        }
        let mut progress = Progress::new(self.subsystem.edition, marks.mark(), now.wall);
        let mut grants: Vec<_> = requests.iter().map(|request| progress.grant(request)).collect();
        if grants.iter().all(Result::is_err) {
            return grants;
        }
        let sequence = marks.mark().sequence + 1;
        let mark =
            Mark { sequence, last: progress.last, used: progress.used, wall: now.wall, boot: now.boot };
        if let Err(error) = marks.advance(mark) {
            let refusal = Refusal::from(error);
            for grant in grants.iter_mut().filter(|grant| grant.is_ok()) {
                *grant = Err(refusal.clone());
            }
        }
        grants
    }

    fn believe(&self, mark: &Mark, now: &Reading) -> Result<(), Refusal> {
        if self.prefixes.ibip.is_some() && now.wall.seconds() < ibip::FIRST_SECOND {
            return Err(Refusal::BeforeIbip);
        }
        self.limits.check(mark, now).map_err(Refusal::Stopped)
    }

    /// Waits for an instant of the wall clock. If the clock goes back meanwhile, the wait gets longer, but not much
    /// longer than what the caller allows.
    fn wait_until(
        &self,
        ready: Instant,
        max_wait: Duration,
        tell: impl FnOnce(Duration),
    ) -> Result<(), Refusal> {
        const SLACK: Duration = Duration::from_secs(1);
        let start = self.clock.read();
        let mut left = between(start.wall, ready);
        if !left.is_zero() {
            tell(left);
        }
        while !left.is_zero() {
            // In slices: the clock may be set right meanwhile.
            self.clock.sleep(left.min(Duration::from_millis(100)));
            let now = self.clock.read();
            left = between(now.wall, ready);
            let waited = Duration::from_nanos(now.boot.nanos.saturating_sub(start.boot.nanos));
            if waited + left > max_wait + SLACK {
                return Err(Refusal::ClockSetBackWhileWaiting);
            }
        }
        Ok(())
    }
}

/// The canonical prefixes of a subsystem: at least one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefixes {
    /// For labels of the form `rep`.
    pub rep: Option<String>,
    /// For labels of the form `ibip`.
    pub ibip: Option<String>,
}

/// Labels that were minted: one instant each, in one form or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    prefixes: Prefixes,
    dates: Vec<Instant>,
}

impl Minted {
    /// The instants, in order.
    pub fn dates(&self) -> &[Instant] {
        &self.dates
    }

    /// The prefixes that the labels have.
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// The labels, in order.
    pub fn labels(&self) -> impl Iterator<Item = Labels> + '_ {
        self.dates.iter().map(|&instant| Labels {
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
pub struct Labels {
    /// The name of the uniform repository.
    pub rep: Option<String>,
    /// The opaque form.
    pub ibip: Option<String>,
    /// What both tell.
    pub instant: Instant,
}
