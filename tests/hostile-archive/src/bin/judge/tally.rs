//! What is counted, for each behaviour and outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::rules::JudgedOutcome;

/// All of a run.
#[derive(Default)]
pub struct JudgeTally {
    pub behaviours: Vec<BehaviourTally>,
    /// The highest peak of all cgroups, in bytes.
    pub peak: u64,
    /// Looks at `/livez`, and the longest.
    pub lives: u64,
    pub slowest_life: Duration,
    pub stalls: usize,
    /// What is not of one behaviour.
    pub wrong: Vec<String>,
}

/// Of one behaviour.
#[derive(Default)]
pub struct BehaviourTally {
    pub name: String,
    pub outcomes: BTreeMap<JudgedOutcome, u64>,
    pub misbehaved: u64,
    pub asked_again: u64,
    pub slowest: Duration,
    /// The resolver's resident memory at most, in bytes.
    pub resident: u64,
    /// The resolver's processor time, in milliseconds.
    pub processor: u64,
    pub wrong: Vec<String>,
}

/// Every outcome of the table: a run in which one never comes tests less than it says.
const ALL_OUTCOMES: [JudgedOutcome; 10] = [
    JudgedOutcome::AsBefore,
    JudgedOutcome::Own,
    JudgedOutcome::Named,
    JudgedOutcome::Status(300),
    JudgedOutcome::Status(403),
    JudgedOutcome::Status(404),
    JudgedOutcome::Status(409),
    JudgedOutcome::Status(410),
    JudgedOutcome::Status(503),
    JudgedOutcome::Status(508),
];

impl JudgeTally {
    pub fn is_good(&self, is_complete: bool) -> bool {
        let all_came = !is_complete || self.missing_outcomes().is_empty();
        all_came && self.lives > 0 && self.all_wrong().next().is_none()
    }

    fn all_wrong(&self) -> impl Iterator<Item = &String> {
        self.behaviours.iter().flat_map(|one| &one.wrong).chain(&self.wrong)
    }

    fn counted(&self, outcome: JudgedOutcome) -> u64 {
        self.behaviours.iter().filter_map(|one| one.outcomes.get(&outcome)).sum()
    }

    fn missing_outcomes(&self) -> Vec<String> {
        let missing = ALL_OUTCOMES.into_iter().filter(|outcome| self.counted(*outcome) == 0);
        missing.map(|outcome| outcome.to_string()).collect()
    }
}

impl fmt::Display for JudgedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JudgedOutcome::AsBefore => f.write_str("as before"),
            JudgedOutcome::Own => f.write_str("own"),
            JudgedOutcome::Named => f.write_str("named"),
            JudgedOutcome::Status(status) => write!(f, "{status}"),
            JudgedOutcome::Wrong => f.write_str("wrong"),
        }
    }
}

impl fmt::Display for BehaviourTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let (name, counts, resident) = (&self.name, counts.join(", "), self.resident >> 20);
        let (misbehaved, slowest) = (self.misbehaved, self.slowest.as_millis());
        write!(f, "{name}: {counts}; misbehaved {misbehaved} times, slowest {slowest} ms, {resident} MB")?;
        write!(f, ", {} ms of processor", self.processor)?;
        if self.asked_again > 0 {
            write!(f, ", {} asked again after a stall", self.asked_again)?;
        }
        Ok(())
    }
}

impl fmt::Display for JudgeTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for behaviour in &self.behaviours {
            writeln!(f, "{behaviour}")?;
        }
        let totals = ALL_OUTCOMES.map(|outcome| format!("{} {outcome}", self.counted(outcome)));
        let slowest = self.behaviours.iter().map(|one| one.slowest).max().unwrap_or_default().as_millis();
        let again: u64 = self.behaviours.iter().map(|one| one.asked_again).sum();
        let wrong = self.all_wrong().count();
        writeln!(
            f,
            "{} behaviours: {}; {wrong} wrong; slowest answer {slowest} ms; memory peak {} MB of {} MB; {} looks at \
             /livez, the slowest {} ms; {} stalls of honest Archives, {again} questions asked again",
            self.behaviours.len(),
            totals.join(", "),
            self.peak >> 20,
            crate::cgroup::RESOLVER_MEMORY >> 20,
            self.lives,
            self.slowest_life.as_millis(),
            self.stalls,
        )?;
        let missing = self.missing_outcomes();
        if !missing.is_empty() {
            writeln!(f, "never seen: {}", missing.join(", "))?;
        }
        for wrong in self.all_wrong() {
            writeln!(f, "WRONG: {wrong}")?;
        }
        Ok(())
    }
}
