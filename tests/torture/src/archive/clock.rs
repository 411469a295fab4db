//! Clocks that are set back and forth between commands: versions stay in order, and everything can
//! be read.

use std::fs;
use std::path::Path;

use super::jobs::Job;
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::finish;

pub fn clock(mut trial: Trial, rounds: usize) -> Tally {
    trial.machine.init_archive();
    let path = {
        let job = Job::deposit(trial.new_source());
        trial.run(&job).pop().expect("it was deposited")
    };
    for round in 0..rounds {
        let near = trial.machine.chance.below(2) == 0;
        let offset = match near {
            true => trial.machine.chance.near(),
            false => trial.machine.chance.below(172_800_000).cast_signed() - 86_400_000,
        };
        let job = match round % 3 {
            0 => Job::deposit(trial.new_source()),
            _ => Job::update(&path, trial.new_source()),
        };
        let ended = finish(&mut trial.machine.ibi(&job.arguments(), offset));
        trial.tally.troubles += 1;
        // The minter may refuse; changes of what is there go on whatever the clock says.
        let refused = ended.status == Some(4) && job.changes[0].path.is_none() && ended.printed.is_empty();
        if ended.status != Some(0) && !refused {
            trial.tally.wrong(format!("{offset} ms: {:?} {}", ended.status, ended.said));
        }
        trial.collection.note(&job, &ended, &mut trial.tally);
    }
    trial.check_holdings("stepped clocks");
    trial.is_valid("stepped clocks");
    in_order(&trial.machine.data().join("tree"), &mut trial.tally);
    trial.tally
}

/// Each version of an object is at least as late as the one before.
fn in_order(folder: &Path, tally: &mut Tally) {
    if let Ok(inventory) = fs::read_to_string(folder.join("inventory.json")) {
        let all: Vec<&str> = inventory.split("\"v").filter(|part| part.contains("\"created\"")).collect();
        let mut times: Vec<(u32, &str)> = all
            .iter()
            .filter_map(|part| {
                let number = part.split_once('"')?.0.parse().ok()?;
                Some((number, part.split_once("\"created\": \"")?.1.split_once('"')?.0))
            })
            .collect();
        times.sort_unstable_by_key(|(number, _)| *number);
        if times.is_empty() || !times.is_sorted_by_key(|(_, time)| *time) {
            tally.wrong(format!("{}: versions are not in order of time: {times:?}", folder.display()));
        }
        return;
    }
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(|path| path.is_dir()).for_each(|path| in_order(&path, tally));
}
