//! Killed while it is started: an Archive is there, or can be started after.

use std::fs;

use super::calls::{killed_at, some, trace};
use super::jobs::Job;
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::finish;

/// At so many calls, or at all of them.
pub fn init(mut trial: Trial, number: usize) -> Tally {
    let job = Job { arguments: trial.machine.archive_arguments(), changes: Vec::new() };
    let (calls, ended) = trace(&trial.machine, &job);
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    let chance = trial.machine.chance.next();
    for call in some(&calls, number, chance) {
        trial.machine.forget_claims();
        fs::remove_dir_all(trial.machine.data()).expect("ours");
        trial.collection = super::collection::Collection::default();
        let killed = killed_at(&trial.machine, &job, call);
        trial.tally.troubles += usize::from(killed.status.is_none_or(|status| status > 128));
        let about = format!("init at {} {} ({}", call.name, call.number, call.about);
        let again = finish(&mut trial.machine.at(&trial.machine.data(), &job.arguments()));
        // It was started, or it is now.
        if again.status != Some(0) && !(again.status == Some(4) && again.said.contains("already")) {
            trial.tally.wrong(format!("{about}: it cannot be started: {:?} {}", again.status, again.said));
            continue;
        }
        trial.check(&about);
    }
    trial.tally
}
