//! A resolver and at least five Archives in one thread, with a simulated network, simulated clocks
//! and everything that goes wrong. The resolver's index, follower, asking and counting are the real
//! ones, and so are the Archives' answers, feeds and counts; Archives keep their index in memory.
//!
//! A seed decides all that happens: the same seed gives the same trace. A model that knows nothing
//! of the resolver says which outcomes are permitted (`judge.rs`).

mod agenda;
mod host;
mod judge;
mod network;
mod node;
mod operations;
mod random;
mod readers;
mod shared_index;
mod trace;
mod truth;
mod world;
mod writes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::host::HostFolders;
use crate::trace::SeedReport;

/// Everything that has to occur in a run of many seeds.
const EXPECTED_EVENTS: &[&str] = &[
    "fault: Archive down",
    "fault: Archive ended while it answered",
    "fault: Archive killed",
    "fault: Archive moved",
    "fault: Archive restored from a backup",
    "fault: Archive stopped",
    "fault: Archive's clock back",
    "fault: Archive's clock forward",
    "fault: answer lost",
    "fault: answers are lost",
    "fault: message at a partition",
    "fault: message delayed",
    "fault: nobody at the address",
    "fault: partition",
    "fault: question lost",
    "fault: questions are lost",
    "fault: resolver killed",
    "fault: resolver restarted",
    "fault: resolver's clock back",
    "fault: resolver's clock forward",
    "fault: slow connection",
    "operation: access",
    "operation: backup",
    "operation: copy",
    "operation: deposit",
    "operation: drop",
    "operation: drop after a transfer",
    "operation: next edition",
    "operation: refresh",
    "operation: remove",
    "operation: second claim of an Original",
    "operation: transfer",
    "operation: translation",
    "operation: update",
    "outcome: 302 by a lookup",
    "outcome: 302 by asking",
    "outcome: 302 by the rules, from the index",
    "outcome: 404",
    "outcome: 409",
    "outcome: 410",
    "outcome: 503",
    "outcome: alert",
    "outcome: cut off by a restart of the resolver",
    "outcome: redirects counted",
];

/// How many seeds run twice, to compare their traces: one in so many.
const REPEATED_SEEDS: u64 = 50;

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| given.get(at).and_then(|text| text.parse::<u64>().ok());
    match (given.first().map(String::as_str), number(1), number(2)) {
        (Some("seed"), Some(seed), None) => run_one(seed),
        (Some("seeds"), Some(first), Some(count)) => run_many(first, count),
        _ => {
            eprintln!("usage: ibi-simulation seed NUMBER | seeds FIRST COUNT");
            ExitCode::from(2)
        }
    }
}

/// The folder of this process, in memory where there is such a filesystem.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn create() -> std::io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("ibi-simulation-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn host_folders(&self) -> Result<HostFolders, String> {
        let (confirmed, restored) = (self.0.join("confirmed"), self.0.join("restored"));
        for folder in [&confirmed, &restored] {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            ibi_store::OcflTree::start(folder, "").map_err(|error| error.to_string())?;
        }
        std::fs::write(restored.join("restored"), "2026-11-16T08:00:00Z\n")
            .map_err(|error| error.to_string())?;
        Ok(HostFolders { confirmed, restored })
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn simulate(seed: u64, scratch: &ScratchFolder, folders: &HostFolders, is_shown: bool) -> SeedReport {
    let data = scratch.0.join("seed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let report = match runtime {
        Ok(runtime) => runtime.block_on(world::run_seed(seed, folders, &data, is_shown)),
        Err(error) => unreachable!("no runtime: {error}"),
    };
    let _ = std::fs::remove_dir_all(&data);
    report
}

fn prepare() -> Result<(ScratchFolder, HostFolders), ExitCode> {
    let failed = |error: String| {
        eprintln!("simulation: {error}");
        ExitCode::from(2)
    };
    let scratch = ScratchFolder::create().map_err(|error| failed(error.to_string()))?;
    let folders = scratch.host_folders().map_err(failed)?;
    Ok((scratch, folders))
}

/// Replays one seed and shows everything.
fn run_one(seed: u64) -> ExitCode {
    let (scratch, folders) = match prepare() {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let report = simulate(seed, &scratch, &folders, true);
    println!("digest {:016x}", report.digest);
    for (what, times) in &report.counts {
        println!("{times:>10} {what}");
    }
    ExitCode::from(u8::from(!report.violations.is_empty()))
}

fn run_many(first: u64, count: u64) -> ExitCode {
    let (scratch, folders) = match prepare() {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let mut counts: BTreeMap<&'static str, u64> = EXPECTED_EVENTS.iter().map(|event| (*event, 0)).collect();
    for seed in first..first + count {
        let report = simulate(seed, &scratch, &folders, false);
        if !report.violations.is_empty() {
            println!("WRONG: seed {seed}, {}", report.violations[0]);
            report.tail.iter().for_each(|line| println!("  {line}"));
            println!("replay: tests/simulation/run --seed {seed}");
            return ExitCode::FAILURE;
        }
        if seed % REPEATED_SEEDS == 0 && simulate(seed, &scratch, &folders, false).digest != report.digest {
            println!("WRONG: seed {seed} has another trace when it runs again");
            return ExitCode::FAILURE;
        }
        for (what, times) in report.counts {
            *counts.entry(what).or_default() += times;
        }
    }
    for (what, times) in &counts {
        println!("{times:>10} {what}");
    }
    println!("{count} seeds from {first}, {} operations each: nothing wrong", world::OPERATIONS);
    if let Some((what, _)) = counts.iter().find(|(_, times)| **times == 0) {
        println!("WRONG: this never occurred: {what}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
