//! The Archive under trouble: what was acknowledged is there, whole, and nothing else is.

mod calls;
mod clock;
pub mod collection;
mod ext4;
mod flips;
mod full;
mod image;
mod init;
pub mod jobs;
mod kill;
pub mod links;
mod plain;
mod restore;
mod salvage;
mod sync;
mod tally;
pub mod trial;

pub use tally::Tally;
use trial::Trial;

use crate::machine::Machine;

/// Plays a scenario.
pub fn play(scenario: &str, machine: Machine, rounds: usize) -> Tally {
    let trial = Trial::new(machine);
    match scenario {
        "init" => init::init(trial, rounds),
        "kill" => kill::kill(trial, rounds),
        "power" => kill::power(trial, rounds),
        "ext4" => ext4::power(trial, rounds),
        "sync" => sync::sync(trial, rounds),
        "full" => full::full(trial),
        "flips" => flips::flips(trial, rounds),
        "restore" => restore::restore(trial, rounds),
        "salvage" => salvage::kill(trial, rounds),
        "plain" => plain::kill(trial, rounds),
        "plain-power" => plain::power(trial, rounds),
        "clock" => clock::clock(trial, rounds),
        other => panic!("no scenario is named archive-{other}"),
    }
}
