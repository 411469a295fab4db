//! What happened in a seed: a digest of all lines, the last lines, and how often each fault,
//! operation and outcome occurred.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// The number of lines that a failure shows.
const TAIL_LINES: usize = 60;

/// The trace of one seed; clones share it.
#[derive(Clone)]
pub(crate) struct SimulationTrace(Arc<Mutex<TraceState>>);

struct TraceState {
    started: Instant,
    operation: usize,
    digest: u64,
    tail: VecDeque<String>,
    is_shown: bool,
    counts: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
}

/// What remains of a seed.
pub(crate) struct SeedReport {
    pub(crate) digest: u64,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) tail: Vec<String>,
}

impl SimulationTrace {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self(Arc::new(Mutex::new(TraceState {
            started: Instant::now(),
            operation: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            tail: VecDeque::new(),
            is_shown,
            counts: BTreeMap::new(),
            violations: Vec::new(),
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut TraceState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Microseconds since the seed began.
    pub(crate) fn now(&self) -> u64 {
        self.with(|state| state.started.elapsed().as_micros() as u64)
    }

    /// The number of the operation that begins.
    pub(crate) fn begin_operation(&self, number: usize) {
        self.with(|state| state.operation = number);
    }

    pub(crate) fn line(&self, line: &str) {
        self.with(|state| state.line(line));
    }

    /// Counts an event.
    pub(crate) fn count(&self, what: &'static str) {
        self.with(|state| *state.counts.entry(what).or_default() += 1);
    }

    /// Records that an invariant was broken.
    pub(crate) fn violation(&self, what: &str) {
        self.with(|state| {
            state.line(&format!("WRONG: {what}"));
            let operation = state.operation;
            state.violations.push(format!("operation {operation}: {what}"));
        });
    }

    pub(crate) fn is_violated(&self) -> bool {
        self.with(|state| !state.violations.is_empty())
    }

    pub(crate) fn report(&self) -> SeedReport {
        self.with(|state| SeedReport {
            digest: state.digest,
            counts: state.counts.clone(),
            violations: state.violations.clone(),
            tail: state.tail.iter().cloned().collect(),
        })
    }
}

impl TraceState {
    fn line(&mut self, line: &str) {
        let micros = self.started.elapsed().as_micros();
        let line = format!("{:4} {:>4}.{:06} {line}", self.operation, micros / 1_000_000, micros % 1_000_000);
        for byte in line.bytes().chain([b'\n']) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.is_shown {
            println!("{line}");
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}
