//! Which dates a request gets: the norm's distributor, around the dates that are used already. Pure.

use std::time::Duration;

use ibi_id::distributor::{self, Turn};
use ibi_id::{Granularity, Instant};
use ibi_store::{Edition, Mark, Run};

use crate::Refusal;
use crate::mint::clock::between;
use crate::mint::rules::LONGEST_WAIT;
use crate::mint::used;

/// The most labels that one call may ask for.
pub const MOST_LABELS: usize = 1_000_000;

/// What a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// How many labels.
    pub count: usize,
    /// How fine their dates may be.
    pub granularity: Granularity,
    /// How long the caller will wait for their time to come.
    pub max_wait: Duration,
}

impl Request {
    /// What can be said before any clock is read.
    pub(crate) fn check(&self, edition: Edition) -> Result<(), Refusal> {
        if !(1..=MOST_LABELS).contains(&self.count) {
            return Err(Refusal::Count { asked: self.count, most: MOST_LABELS });
        }
        if self.max_wait > LONGEST_WAIT {
            return Err(Refusal::WaitTooLong { asked: self.max_wait, most: LONGEST_WAIT });
        }
        if edition == Edition::Nbr2011 && self.granularity != Granularity::SECOND {
            return Err(Refusal::Granularity2011);
        }
        Ok(())
    }
}

/// Dates that a request was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) dates: Vec<Instant>,
    /// None of them may be released before this.
    pub(crate) ready: Instant,
}

/// The mark as it grows while requests are granted.
pub(crate) struct Progress {
    edition: Edition,
    now: Instant,
    pub(crate) last: Instant,
    pub(crate) used: Vec<Run>,
}

impl Progress {
    pub(crate) fn new(edition: Edition, mark: &Mark, now: Instant) -> Self {
        Self { edition, now, last: mark.last, used: mark.used.clone() }
    }

    /// Grants a request whole or not at all; a refusal changes nothing.
    pub(crate) fn grant(&mut self, request: &Request) -> Result<Grant, Refusal> {
        let (mut last, mut ready) = (self.last, self.now);
        let mut ahead = used::next_after(&self.used, last);
        let mut dates = Vec::with_capacity(request.count);
        let mut runs: Vec<Run> = Vec::new();
        for _ in 0..request.count {
            let mut turn = self.next(last, request.granularity)?;
            let mut passed = runs.is_empty();
            while let Some(run) = ahead
                && turn.mark >= run.first
            {
                // Used before its time: passed over.
                (last, passed) = (last.max(run.last), true);
                ahead = used::next_after(&self.used, last);
                turn = self.next(last, request.granularity)?;
            }
            (last, ready) = (turn.mark, turn.creation);
            dates.push(turn.date);
            match runs.last_mut() {
                Some(run) if !passed => run.last = last,
                _ => runs.push(Run { first: turn.date, last }),
            }
        }
        let need = between(self.now, ready);
        if need > request.max_wait {
            let ahead = (self.last > self.now).then_some(self.last);
            return Err(Refusal::WouldWait { need, allowed: request.max_wait, now: self.now, ahead });
        }
        runs.into_iter().for_each(|run| used::add(&mut self.used, run, self.now));
        self.last = last;
        Ok(Grant { dates, ready })
    }

    fn next(&self, last: Instant, granularity: Granularity) -> Result<Turn, Refusal> {
        let turn = match self.edition {
            Edition::Rtc2015 => distributor::next(Some(last), self.now, granularity),
            Edition::Nbr2011 => distributor::next_2011(Some(last), self.now),
        };
        turn.ok_or(Refusal::NoDateLeft)
    }
}
