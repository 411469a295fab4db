//! The circuit breaker of one Archive: after several consecutive failures nothing is asked for a
//! while, then one question decides whether it is asked again. A pure state machine: time and
//! randomness are passed in.

use std::time::Duration;

use tokio::time::Instant;

/// This many consecutive failures open a breaker.
pub(crate) const BREAKER_FAILURE_COUNT: u32 = 5;

/// First and maximum time that a breaker stays open.
const MIN_BREAKER_DELAY: Duration = Duration::from_millis(500);
const MAX_BREAKER_DELAY: Duration = Duration::from_secs(30);

/// Whether an Archive is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// It is asked.
    Closed,
    /// It failed and is not asked.
    Open,
    /// One question is under way that decides.
    HalfOpen,
}

impl BreakerState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// Its name for operators.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// The state of a breaker.
#[derive(Debug, Clone)]
pub(super) struct BreakerMachine {
    phase: BreakerPhase,
    /// Failures since the last answer.
    failures: u32,
    /// How long the breaker stays open the next time, before it is shortened at random.
    delay: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerPhase {
    Closed,
    Open { until: Instant },
    HalfOpen { since: Instant },
}

/// What a breaker says to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerVerdict {
    /// Ask.
    Pass,
    /// Ask: this is the one question that decides.
    Probe,
    /// Do not ask.
    Refuse,
}

impl Default for BreakerMachine {
    fn default() -> Self {
        Self { phase: BreakerPhase::Closed, failures: 0, delay: MIN_BREAKER_DELAY }
    }
}

impl BreakerMachine {
    pub(super) const fn state(&self) -> BreakerState {
        match self.phase {
            BreakerPhase::Closed => BreakerState::Closed,
            BreakerPhase::Open { .. } => BreakerState::Open,
            BreakerPhase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Whether a question may be asked now.
    pub(super) fn admit(&mut self, now: Instant) -> BreakerVerdict {
        match self.phase {
            BreakerPhase::Closed => BreakerVerdict::Pass,
            BreakerPhase::Open { until } if until <= now => {
                self.phase = BreakerPhase::HalfOpen { since: now };
                BreakerVerdict::Probe
            }
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => BreakerVerdict::Refuse,
        }
    }

    /// The Archive answered a question.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// A question that was asked at `asked` had no answer. `random` shortens the wait by up to
    /// half, so that many resolvers do not ask again at once. Returns whether the breaker opened.
    pub(super) fn failed(&mut self, asked: Instant, now: Instant, random: u16) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = match self.phase {
            BreakerPhase::Closed => self.failures >= BREAKER_FAILURE_COUNT,
            BreakerPhase::Open { .. } => false,
            // A question from before the probe proves nothing: the probe is still under way.
            BreakerPhase::HalfOpen { since } => asked >= since,
        };
        if opens {
            let half = self.delay / 2;
            let until = now + half + half * u32::from(random) / u32::from(u16::MAX);
            self.phase = BreakerPhase::Open { until };
            self.delay = (self.delay * 2).min(MAX_BREAKER_DELAY);
        }
        opens
    }

    /// The Archive showed that it is there, though not that it answers questions: the next question
    /// may try.
    pub(super) fn confirmed(&mut self, now: Instant) {
        if let BreakerPhase::Open { until } = &mut self.phase {
            *until = now.min(*until);
        }
    }

    /// The probe that began at `since` ended without a result: the next question is the probe.
    pub(super) fn abandoned(&mut self, since: Instant, now: Instant) {
        if self.phase == (BreakerPhase::HalfOpen { since }) {
            self.phase = BreakerPhase::Open { until: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(now: Instant, random: u16) -> BreakerMachine {
        let mut breaker = BreakerMachine::default();
        for failure in 1..=BREAKER_FAILURE_COUNT {
            assert_eq!(breaker.admit(now), BreakerVerdict::Pass);
            assert_eq!(breaker.failed(now, now, random), failure == BREAKER_FAILURE_COUNT);
        }
        breaker
    }

    #[test]
    fn an_answer_between_failures_keeps_it_closed() {
        let now = Instant::now();
        let mut breaker = BreakerMachine::default();
        for _ in 0..10 {
            (1..BREAKER_FAILURE_COUNT).for_each(|_| assert!(!breaker.failed(now, now, 0)));
            breaker.answered();
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn exactly_one_probe_after_the_wait_and_its_result_decides() {
        let start = Instant::now();
        let mut breaker = opened(start, u16::MAX);
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!((breaker.state(), breaker.admit(at(499))), (BreakerState::Open, BreakerVerdict::Refuse));
        assert_eq!(breaker.admit(at(500)), BreakerVerdict::Probe);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        (0..100).for_each(|_| assert_eq!(breaker.admit(at(60_000)), BreakerVerdict::Refuse));
        // A question from before it opened fails late: the probe is still the only one.
        assert!(!breaker.failed(start, at(600), 0));
        assert_eq!(breaker.admit(at(60_000)), BreakerVerdict::Refuse);
        assert!(breaker.failed(at(500), at(700), u16::MAX));
        assert_eq!(breaker.admit(at(1699)), BreakerVerdict::Refuse, "twice as long");
        assert_eq!(breaker.admit(at(1700)), BreakerVerdict::Probe);
        breaker.answered();
        assert_eq!((breaker.state(), breaker.admit(at(1700))), (BreakerState::Closed, BreakerVerdict::Pass));
        // After an answer the waits begin anew.
        let again = opened(at(2000), u16::MAX);
        assert_eq!(again.delay, MIN_BREAKER_DELAY * 2);
    }

    #[test]
    fn the_wait_grows_to_a_bound_and_chance_shortens_it_by_half_at_most() {
        let mut now = Instant::now();
        for (random, divisor) in [(u16::MAX, 1), (0, 2)] {
            let mut breaker = opened(now, random);
            let mut expected = MIN_BREAKER_DELAY;
            for _ in 0..12 {
                let wait = expected / divisor;
                assert_eq!(breaker.admit(now + wait - Duration::from_millis(1)), BreakerVerdict::Refuse);
                now += wait;
                assert_eq!(breaker.admit(now), BreakerVerdict::Probe);
                assert!(breaker.failed(now, now, random));
                expected = (expected * 2).min(MAX_BREAKER_DELAY);
            }
            assert_eq!(expected, MAX_BREAKER_DELAY);
        }
    }

    #[test]
    fn an_abandoned_probe_is_followed_by_another_and_a_callback_ends_the_wait_only() {
        let start = Instant::now();
        let mut breaker = opened(start, 0);
        breaker.confirmed(start);
        assert_eq!(breaker.admit(start), BreakerVerdict::Probe);
        breaker.abandoned(start + Duration::from_millis(1), start);
        assert_eq!(breaker.admit(start), BreakerVerdict::Refuse, "that was another probe");
        breaker.abandoned(start, start);
        assert_eq!(breaker.admit(start), BreakerVerdict::Probe);
        breaker.confirmed(start);
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "only a question closes it");
    }
}
