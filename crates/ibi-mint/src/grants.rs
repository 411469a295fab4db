//! Which dates a request gets: the standard's distributor, around the dates that are used already.
//! Pure.

use std::time::Duration;

use ibi_id::distributor::{self, DateGrant};
use ibi_id::{Granularity, Instant};
use ibi_store::{DistributorEdition, IssuedRange, MintMark};

use crate::MintError;
use crate::clock::duration_between;
use crate::clock_limits::MAX_MINT_WAIT;
use crate::used_runs;

/// The most labels that one call may ask for.
pub const MAX_LABELS_PER_REQUEST: usize = 1_000_000;

/// What a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MintRequest {
    /// How many labels.
    pub count: usize,
    /// How fine their dates may be.
    pub granularity: Granularity,
    /// How long the caller will wait for their time to come.
    pub max_wait: Duration,
}

impl MintRequest {
    /// What can be said before any clock is read.
    pub(crate) fn check(&self, edition: DistributorEdition) -> Result<(), MintError> {
        if !(1..=MAX_LABELS_PER_REQUEST).contains(&self.count) {
            return Err(MintError::Count { asked: self.count, most: MAX_LABELS_PER_REQUEST });
        }
        if self.max_wait > MAX_MINT_WAIT {
            return Err(MintError::WaitTooLong { asked: self.max_wait, most: MAX_MINT_WAIT });
        }
        if edition == DistributorEdition::Nbr2011 && self.granularity != Granularity::SECOND {
            return Err(MintError::Granularity2011);
        }
        Ok(())
    }
}

/// Dates that a request was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MintGrant {
    pub(crate) dates: Vec<Instant>,
    /// None of them may be released before this.
    pub(crate) ready: Instant,
}

/// The mark as it grows while requests are granted.
pub(crate) struct MintProgress {
    edition: DistributorEdition,
    now: Instant,
    pub(crate) last: Instant,
    pub(crate) used: Vec<IssuedRange>,
}

impl MintProgress {
    pub(crate) fn new(edition: DistributorEdition, mark: &MintMark, now: Instant) -> Self {
        Self { edition, now, last: mark.last, used: mark.used.clone() }
    }

    /// Grants a request whole or not at all; a refusal changes nothing.
    pub(crate) fn grant(&mut self, request: &MintRequest) -> Result<MintGrant, MintError> {
        let (mut last, mut ready) = (self.last, self.now);
        let mut ahead = used_runs::next_run_after(&self.used, last);
        let mut dates = Vec::with_capacity(request.count);
        let mut runs: Vec<IssuedRange> = Vec::new();
        for _ in 0..request.count {
            let mut turn = self.next(last, request.granularity)?;
            let mut passed = runs.is_empty();
            while let Some(run) = ahead
                && turn.mark >= run.first
            {
                // Used before its time: passed over.
                (last, passed) = (last.max(run.last), true);
                ahead = used_runs::next_run_after(&self.used, last);
                turn = self.next(last, request.granularity)?;
            }
            (last, ready) = (turn.mark, turn.creation);
            dates.push(turn.date);
            match runs.last_mut() {
                Some(run) if !passed => run.last = last,
                _ => runs.push(IssuedRange { first: turn.date, last }),
            }
        }
        let need = duration_between(self.now, ready);
        if need > request.max_wait {
            let ahead = (self.last > self.now).then_some(self.last);
            return Err(MintError::WouldWait { need, allowed: request.max_wait, now: self.now, ahead });
        }
        runs.into_iter().for_each(|run| used_runs::add_run(&mut self.used, run, self.now));
        self.last = last;
        Ok(MintGrant { dates, ready })
    }

    fn next(&self, last: Instant, granularity: Granularity) -> Result<DateGrant, MintError> {
        let turn = match self.edition {
            DistributorEdition::Rtc2015 => distributor::next(Some(last), self.now, granularity),
            DistributorEdition::Nbr2011 => distributor::next_2011(Some(last), self.now),
        };
        turn.ok_or(MintError::NoDateLeft)
    }
}
