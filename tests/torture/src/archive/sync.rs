//! Every sync fails once, as on a disk that breaks.

use super::calls::{Call, failing_at, some, trace};
use super::jobs::Job;
use super::links::LinkChange;
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::Ended;

/// So many of the syncs of each command, or all of them.
pub fn sync(mut trial: Trial, number: usize) -> Tally {
    trial.machine.init_archive();
    let first = Job::deposit(trial.new_source());
    let first = trial.run(&first).pop().expect("it was deposited");
    for kind in 0..4 {
        let job = new_job(&mut trial, kind, &first);
        let (calls, ended) = trace(&trial.machine, &job);
        trial.collection.note(&job, &ended, &mut trial.tally);
        let calls: Vec<Call> = calls.into_iter().filter(Call::is_sync).collect();
        let chance = trial.machine.chance.next();
        for call in some(&calls, number, chance) {
            if trial.is_over() {
                break;
            }
            let job = new_job(&mut trial, kind, &first);
            let ended = failing_at(&trial.machine, &job, call, "EIO");
            trial.tally.troubles += 1;
            let about =
                format!("{} with failing {} {} ({}", job.arguments[1], call.name, call.number, call.about);
            judge(&mut trial, &job, call, &ended, &about);
            trial.collection.note(&job, &ended, &mut trial.tally);
            trial.check(&about);
        }
    }
    trial.tally
}

/// Something to do that was not done yet.
fn new_job(trial: &mut Trial, kind: usize, first: &str) -> Job {
    if kind == 0 {
        let link = LinkChange::of_new("translation", first, "accepted");
        return Job::deposit(trial.new_source()).stating("--translation-of", first, vec![link]);
    }
    if kind == 1 {
        return trial.new_table(3);
    }
    let source = trial.new_source();
    let title = source.title.clone();
    let path = trial.run(&Job::deposit(source)).pop().expect("it was deposited");
    match kind {
        2 => Job::update(&path, trial.new_source()),
        _ => Job::remove(&path, &title, true),
    }
}

/// A command that could not make something durable says so, and acknowledges nothing.
fn judge(trial: &mut Trial, job: &Job, call: &Call, ended: &Ended, about: &str) {
    let acknowledged = job.acknowledged(&ended.printed).into_iter().flatten().count();
    // Behind the acknowledgement, SQLite tidies up. Its index can be made anew, and SQLite passes
    // over some errors.
    let of_index =
        call.after_printing || call.about.contains("index.sqlite") || call.about.contains("/data>");
    if of_index && ended.status == Some(0) {
        return;
    }
    // A minter that cannot keep its state refuses; a table tells of each row.
    let failed = match ended.status {
        Some(3) => true,
        Some(4) => call.about.contains("/minter") || call.about.contains("/data>"),
        Some(1) => job.changes.len() > 1 && ended.printed.contains("\trefused\t"),
        _ => false,
    };
    if acknowledged > 0 || !failed {
        let (status, said) = (ended.status, ended.said.trim());
        trial.tally.wrong(format!("{about}: {acknowledged} acknowledged, status {status:?}: {said}"));
    }
}
