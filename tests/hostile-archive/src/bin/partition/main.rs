//! Twenty Archives and a resolver, each in a network namespace of its own. In each round half of
//! the Archives are cut off, each in its own way; readers ask for what all of them have (4.3, 4.4).
//!
//!     partition IBI --rounds N --seed N [--planted retired]
//!
//! It runs in the resolver's namespace (`tests/partition`), and makes those of the Archives.

#[path = "../judge/ask.rs"]
mod ask;
mod expect;
mod network;
#[path = "../judge/process.rs"]
mod process;
mod report;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use ask::now;
use expect::{PartitionPhase, ask_everything};
use network::{ArchiveFault, heal};
use report::PartitionReport;
use world::PartitionWorld;

/// Until the index counts an Archive as silent: an answer of it may be 3 s old (4.4), and a response
/// that was under way when the Archive was cut off, for up to 1 s, may still have arrived.
const UNTIL_SILENT: Duration = Duration::from_millis(3000 + 1000 + 500);

struct PartitionOptions {
    ibi: String,
    rounds: usize,
    seed: u64,
    /// Has the operator retire the Archives that are cut off: what they hold is then 404, and that
    /// must be found.
    planted: bool,
}

fn main() -> ExitCode {
    let Some(options) = read_options() else {
        eprintln!("usage: partition IBI --rounds N --seed N [--planted retired]");
        return ExitCode::from(2);
    };
    match play(&options) {
        Ok(report) => {
            println!("{report}");
            if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("partition: {why}");
            ExitCode::from(2)
        }
    }
}

fn play(options: &PartitionOptions) -> Result<PartitionReport, String> {
    let mut report = PartitionReport::default();
    let mut random = RandomNumbers(options.seed);
    let mut world = PartitionWorld::prepare(&options.ibi)?;
    await_healed(&world, &mut report, "at the start")?;
    for round in 1..=options.rounds {
        let faults = choose_faults(world.archives.len(), &mut random);
        world.break_archives(&faults)?;
        if options.planted {
            world.retire(&faults)?;
        }
        // What the index has is still young.
        ask_everything(&world, &faults, PartitionPhase::Young, &mut report, &format!("round {round}, young"));
        std::thread::sleep(UNTIL_SILENT);
        ask_everything(
            &world,
            &faults,
            PartitionPhase::Settled,
            &mut report,
            &format!("round {round}, settled"),
        );
        ask_everything(
            &world,
            &faults,
            PartitionPhase::Fresh,
            &mut report,
            &format!("round {round}, no-cache"),
        );
        report.wrong.extend(world.resolver_failure());
        world.restart_resolver_cold()?;
        ask_everything(&world, &faults, PartitionPhase::Fresh, &mut report, &format!("round {round}, cold"));
        report.wrong.extend(world.resolver_failure());
        heal(&world.archives, &faults)?;
        if options.planted {
            return Ok(report);
        }
        await_healed(&world, &mut report, &format!("after round {round}"))?;
    }
    Ok(report)
}

/// Asks until everything resolves again.
fn await_healed(world: &PartitionWorld, report: &mut PartitionReport, when: &str) -> Result<(), String> {
    let since = now();
    let whole: Vec<Option<ArchiveFault>> = vec![None; world.archives.len()];
    loop {
        let mut attempt = PartitionReport::default();
        ask_everything(world, &whole, PartitionPhase::Healing, &mut attempt, when);
        // Whatever is not there yet, nothing may be wrong.
        report.merge(&attempt);
        if attempt.unavailable == 0 {
            report.note_healing(since.elapsed());
            return Ok(());
        }
        if since.elapsed() > report::HEALING_DEADLINE {
            report.wrong.push(format!("{when}: {} answers are 503 still", attempt.unavailable));
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Half of the Archives, each with a fault of some kind; every kind occurs.
fn choose_faults(count: usize, random: &mut RandomNumbers) -> Vec<Option<ArchiveFault>> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut faults = vec![None; count];
    let kinds = [ArchiveFault::BlackHole, ArchiveFault::Reset, ArchiveFault::Partition];
    for (number, at) in order.into_iter().take(count / 2).enumerate() {
        let kind = kinds.get(number).copied().unwrap_or_else(|| kinds[random.below(kinds.len())]);
        faults[at] = Some(kind);
    }
    faults
}

/// Numbers from a seed (splitmix64): the same in every run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or(0)
    }
}

fn read_options() -> Option<PartitionOptions> {
    let mut rest = std::env::args().skip(1);
    let mut options = PartitionOptions { ibi: rest.next()?, rounds: 1, seed: 1, planted: false };
    while let Some(name) = rest.next() {
        let value = rest.next()?;
        match name.as_str() {
            "--rounds" => options.rounds = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--planted" => options.planted = value == "retired",
            _ => return None,
        }
    }
    Some(options)
}
