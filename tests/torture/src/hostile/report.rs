//! What came of it, and whether that will do.

use std::collections::BTreeMap;
use std::fmt;

/// `/livez` is answered within this, 99 times of 100, in microseconds.
const MAX_LIVEZ_P99: u64 = 250_000;
/// So many times of what honest clients wait for alone.
const MAX_HONEST_RATIO: u64 = 5;
/// At most one honest request of so many may fail.
const MAX_FAILED_SHARE: u64 = 100;
/// What a busy machine adds to any wait, in microseconds: less than that alone counts as this.
const TIMING_FLOOR: u64 = 1_000;

/// What honest clients saw; times are in microseconds.
#[derive(Default)]
pub struct HonestFigures {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) a_second: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
    pub(super) livez_p99: u64,
    pub(super) livez_max: u64,
}

impl HonestFigures {
    pub(super) fn read(text: &str) -> Self {
        let figures: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, number)| Some((name, number.parse().ok()?)))
            .collect();
        let get = |name: &str| figures.get(name).copied().unwrap_or(0);
        Self {
            requests: get("requests"),
            failed: get("failed"),
            a_second: get("a_second"),
            p50: get("honest_p50"),
            p99: get("honest_p99"),
            max: get("honest_max"),
            livez_p99: get("livez_p99"),
            livez_max: get("livez_max"),
        }
    }
}

#[derive(Default)]
pub struct HostileReport {
    pub(super) capacity: u64,
    pub(super) rate: u64,
    pub(super) alone: HonestFigures,
    pub(super) attacked: HonestFigures,
    /// By kind of attack and answer.
    attacks: BTreeMap<String, u64>,
    pub(super) peak_resident: u64,
    pub(super) peak_cgroup: u64,
    pub(super) killed_for_memory: u64,
    /// The status that the server ended with, which should have gone on.
    pub(super) ended_early: Option<String>,
    pub(super) said: String,
}

impl HostileReport {
    pub(super) fn add_attack(&mut self, printed: &str) {
        for line in printed.lines() {
            let Some((what, count)) = line.rsplit_once(' ') else { continue };
            *self.attacks.entry(what.to_owned()).or_insert(0) += count.parse().unwrap_or(0);
        }
    }

    fn wrongs(&self) -> Vec<String> {
        let mut wrongs = Vec::new();
        if self.killed_for_memory > 0 {
            wrongs.push("killed: it used more memory than it has".to_owned());
        } else if let Some(status) = &self.ended_early {
            wrongs.push(format!("the server ended: {status}: {}", self.said));
        }
        if self.alone.requests == 0 || self.attacked.requests == 0 || self.attacks.is_empty() {
            wrongs.push("nothing was measured".to_owned());
        }
        if self.attacked.failed * MAX_FAILED_SHARE > self.attacked.requests {
            wrongs.push(format!(
                "{} honest requests of {} failed",
                self.attacked.failed, self.attacked.requests
            ));
        }
        // Times are told of a quiet machine, and of a binary that was built to be fast.
        if std::env::var_os("HOSTILE_UNTIMED").is_some() {
            return wrongs;
        }
        if self.attacked.livez_p99 >= MAX_LIVEZ_P99 {
            wrongs.push(format!("/livez took {} ms", self.attacked.livez_p99 / 1000));
        }
        let most = self.alone.p99.max(TIMING_FLOOR) * MAX_HONEST_RATIO;
        if self.attacked.p99 > most {
            wrongs.push(format!("honest clients waited {} us, at most {most}", self.attacked.p99));
        }
        wrongs
    }

    pub fn holds(&self) -> bool {
        self.wrongs().is_empty()
    }
}

impl fmt::Display for HostileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrongs = self.wrongs();
        let Self { alone, attacked, .. } = self;
        write!(f, "capacity {} a second, honest load {} a second; ", self.capacity, self.rate)?;
        write!(f, "p99 alone {} us, attacked {} us; ", alone.p99, attacked.p99)?;
        write!(
            f,
            "/livez p99 {} ms; peak {} MiB resident",
            attacked.livez_p99 / 1000,
            self.peak_resident >> 20
        )?;
        write!(f, "; {} of {} honest requests failed", attacked.failed, attacked.requests)?;
        if !wrongs.is_empty() {
            write!(f, "; {} WRONG", wrongs.len())?;
        }
        writeln!(f)?;
        let line = |name: &str, it: &HonestFigures| {
            let HonestFigures { requests, p50, p99, max, livez_p99, livez_max, .. } = it;
            format!(
                "  {name}: {requests} requests, p50 {p50}, p99 {p99}, longest {max} us; /livez p99 {livez_p99}, longest {livez_max} us"
            )
        };
        writeln!(f, "{}\n{}", line("alone", alone), line("attacked", attacked))?;
        write!(f, "  cgroup peak {} MiB, with cached files\n  attacks:", self.peak_cgroup >> 20)?;
        self.attacks.iter().try_for_each(|(what, count)| write!(f, " {what} {count};"))?;
        wrongs.iter().try_for_each(|wrong| write!(f, "\n  WRONG: {wrong}"))
    }
}
