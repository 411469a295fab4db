//! Mints with the built binary through kill -9, stepped clocks, power cuts, failing syncs and restored states, and
//! counts labels that were ever printed twice. `tests/torture/run` calls it.
//!
//! `ibi-torture SCENARIO IBI ROUNDS SEED`: prints one line of figures. The exit status is 0 when nothing was printed
//! twice and, where clocks were stepped by at most 3 s, nine starts of ten gave labels; 1 when not. Run on the control,
//! a build without the high-water mark, it must end with 1.

mod ledger;
mod machine;
mod scenarios;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, ibi, rounds, seed] = &arguments[..] else {
        eprintln!("usage: ibi-torture kill|power|sync|restore|full IBI ROUNDS SEED");
        return ExitCode::from(2);
    };
    let machine = machine::Machine::new(ibi, seed.parse().expect("a number as seed"));
    let rounds = rounds.parse().expect("a number of rounds");
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
