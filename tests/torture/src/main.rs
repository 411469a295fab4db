//! The built binary through kill -9, stepped clocks, power cuts, failing syncs, full disks and
//! restored states. `tests/torture/run` calls it.
//!
//! `ibi-torture SCENARIO IBI ROUNDS SEED`: prints one line of figures. The exit status is 0 when
//! nothing went wrong, 1 when something did. For the minter: no label was printed twice and, where
//! clocks were stepped by at most 3 s, nine starts of ten gave labels. For the Archive
//! (`archive-…`): no acknowledged change was lost, none was there in part, no damaged byte was
//! given out. For hand-overs between two Archives (`handover-kill`): never two Originals, never
//! bytes in fewer places, each ended by itself, and who has the item names its editions and
//! translations. For ten Archives (`federation`): every item has one Original, or was removed, and
//! persistent URLs lead where they should. Run on a control, a build without one of the safeguards,
//! it must end with 1. A server under a hostile load (`hostile-load`, called by
//! `tests/hostile-load`) is never killed and goes on to answer.

mod archive;
mod federation;
mod handover;
mod hostile;
mod ledger;
mod machine;
mod powercut;
mod scenarios;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if hostile_client(&arguments) {
        return ExitCode::SUCCESS;
    }
    let [scenario, ibi, rounds, seed] = &arguments[..] else {
        eprintln!(
            "usage: ibi-torture [archive-]kill|power|ext4|sync|full|flips|restore|clock|init|salvage|plain|plain-power|federation, or \
             handover-kill, IBI ROUNDS SEED; or hostile-load IBI SECONDS SEED"
        );
        return ExitCode::from(2);
    };
    let machine = machine::Machine::new(ibi, seed.parse().expect("a number as seed"));
    let rounds = rounds.parse().expect("a number of rounds");
    if let Some(scenario) = scenario.strip_prefix("archive-") {
        let tally = archive::play(scenario, machine, rounds);
        println!("archive {scenario:<8} seed {seed}: {tally}");
        return if tally.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if scenario == "hostile-load" {
        let report = hostile::play(&machine, rounds as u64);
        println!("{scenario}: {report}");
        return if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if scenario == "handover-kill" {
        let figures = handover::kill(&machine, rounds);
        println!("{scenario} seed {seed}: {figures}");
        return if figures.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let "federation" | "federation-planted" = scenario.as_str() {
        let count = federation::play(machine, rounds, scenario.ends_with("planted"));
        println!("{scenario} seed {seed}: {count}");
        return if count.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let ledger = match scenario.as_str() {
        "kill" => scenarios::kill(machine, rounds),
        "power" => scenarios::power(machine, rounds),
        "sync" => scenarios::sync(machine, rounds),
        "restore" => scenarios::restore(machine, rounds),
        "full" => scenarios::full(machine),
        other => panic!("no scenario is named {other}"),
    };
    println!("{scenario:<8} seed {seed}: {ledger}");
    if ledger.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether this process is a client of the hostile load, in a namespace of its own.
fn hostile_client(arguments: &[String]) -> bool {
    let number = |text: &str| -> u64 { text.parse().expect("a number") };
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hostile-client", address, seconds, which, targets] => {
            hostile::attack(address, number(seconds), number(which) as usize, targets.as_ref());
        }
        ["honest-client", mode, address, seconds, rate, targets] => {
            hostile::ask(mode, address, number(seconds), number(rate), targets.as_ref());
        }
        _ => return false,
    }
    true
}
