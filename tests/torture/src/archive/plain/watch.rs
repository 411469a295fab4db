//! `plain-tree --watch`, killed while it follows the changes of an Archive.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::snapshot::TreeSnapshot;
use super::{finishes, fresh, out_folder, plain_job};
use crate::archive::jobs::Job;
use crate::archive::trial::Trial;
use crate::handover::trap::{Trap, Trouble, last_words};
use crate::machine::stopwatch;

/// The watch looks at the journal every half second: after this it has done all it will do.
const QUIET: Duration = Duration::from_millis(1500);
const WATCH_TIMEOUT: Duration = Duration::from_secs(20);

/// Once without trouble, to count its calls; then killed at so many of them.
pub(super) fn kill(trial: &mut Trial, number: usize) {
    let trap = Trap::new(trial.machine.home.join("watch-control"));
    let out = out_folder(trial);
    let _ = fs::remove_dir_all(&out);
    let mut item = {
        let job = Job::deposit(trial.new_source());
        trial.run(&job).pop().expect("it was deposited")
    };
    fresh(trial, &out, None);
    let calls = round(trial, &trap, &out, &mut item, 0);
    if calls == 0 {
        return trial.tally.wrong("the watch changed nothing".to_owned());
    }
    let first = trial.machine.chance.below(calls);
    let number = (number as u64).min(calls);
    for index in 0..number {
        if trial.is_over() {
            return;
        }
        round(trial, &trap, &out, &mut item, 1 + (first + index * calls / number) % calls);
    }
}

/// Changes the Archive while the watch follows, which is killed at the call of this number, or when
/// it has nothing more to do. How many calls it made.
fn round(trial: &mut Trial, trap: &Trap, out: &Path, item: &mut String, at: u64) -> u64 {
    let before = TreeSnapshot::of(out);
    let update = Job::update(item, trial.new_source());
    let deposit = Job::deposit(trial.new_source());
    trap.reset();
    let said = trial.machine.home.join("watch-said");
    let mut watch = start(trial, trap, out, &said);
    let started = stopwatch();
    while !fs::read_to_string(&said).is_ok_and(|text| text.contains("following")) {
        if started.elapsed() > WATCH_TIMEOUT || watch.try_wait().is_ok_and(|ended| ended.is_some()) {
            trial.tally.wrong(format!("the watch does not start: {}", last_words(&said)));
            end(&mut watch);
            return 0;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    trap.arm(at, Trouble::Kill);
    trial.run(&update);
    let new = trial.run(&deposit).pop();
    // Killed, or at rest for long enough.
    let (mut calls, mut since) = (trap.counts()[0], stopwatch());
    while since.elapsed() < QUIET && watch.try_wait().is_ok_and(|ended| ended.is_none()) {
        std::thread::sleep(Duration::from_millis(50));
        let now = trap.counts()[0];
        if now != calls {
            (calls, since) = (now, stopwatch());
        }
    }
    end(&mut watch);
    trial.tally.troubles += 1;
    let about = format!("plain tree, watched, at call {at} ({})", trap.about());
    let wanted = {
        let folder = trial.machine.home.join("plain-wanted");
        fresh(trial, &folder, None);
        TreeSnapshot::of(&folder)
    };
    let left = TreeSnapshot::of(out);
    left.check_items(&[&before, &wanted], &about, &mut trial.tally);
    if at == 0
        && let Some(difference) = left.difference(&wanted)
    {
        trial.tally.wrong(format!("{about}: the watch did not follow: {difference}"));
    }
    finishes(trial, &plain_job(out, None), out, &wanted, &about);
    *item = new.unwrap_or_else(|| item.clone());
    calls
}

fn start(trial: &Trial, trap: &Trap, out: &Path, said: &Path) -> Child {
    let job = plain_job(out, Some("--watch"));
    let mut command = trial.machine.at(&trial.machine.data(), &job.arguments());
    trap.set(&mut command);
    let said = File::create(said).expect("room");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().expect("it starts")
}

fn end(watch: &mut Child) {
    let _ = watch.kill();
    let _ = watch.wait();
}
