//! What is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// After an outage of some seconds, everything resolves again within this time.
pub const HEALING_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct PartitionReport {
    /// By status.
    answers: BTreeMap<u16, u64>,
    /// Answers of 503.
    pub unavailable: u64,
    slowest: Duration,
    healings: Vec<Duration>,
    pub wrong: Vec<String>,
}

impl PartitionReport {
    pub fn count(&mut self, status: u16, took: Duration) {
        *self.answers.entry(status).or_default() += 1;
        self.unavailable += u64::from(status == 503);
        self.slowest = self.slowest.max(took);
    }

    pub fn merge(&mut self, other: &Self) {
        for (status, count) in &other.answers {
            *self.answers.entry(*status).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.wrong.extend(other.wrong.iter().cloned());
    }

    pub fn note_healing(&mut self, took: Duration) {
        self.healings.push(took);
    }
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.answers.iter().map(|(status, count)| format!("{count} of {status}")).collect();
        let seconds = |time: &Duration| format!("{:.1} s", time.as_secs_f64());
        // The first one is the start, when the Archives come online.
        let healings: Vec<String> = self.healings.iter().skip(1).map(seconds).collect();
        writeln!(
            f,
            "partition: {}; {} wrong; slowest answer {} ms; everything resolved again after {}",
            counts.join(", "),
            self.wrong.len(),
            self.slowest.as_millis(),
            if healings.is_empty() { "-".to_owned() } else { healings.join(", ") },
        )?;
        for wrong in &self.wrong {
            writeln!(f, "WRONG: {wrong}")?;
        }
        Ok(())
    }
}
