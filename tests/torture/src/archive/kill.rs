//! Killed, or the power cut, at every call that changes the disk.

use std::fs;
use std::path::Path;

use super::calls::{Call, killed_at, some, trace};
use super::jobs::Job;
use super::tally::Tally;
use super::trial::{Trial, copy_folder};
use crate::machine::Machine;
use crate::powercut::PowerCut;

/// kill -9 at so many calls of each command, or at all of them.
pub fn kill(mut trial: Trial, calls: usize) -> Tally {
    at_calls(&mut trial, calls, &Disk::Plain);
    trial.tally
}

/// The same with a power cut: what was not synced is gone.
pub fn power(mut trial: Trial, calls: usize) -> Tally {
    let disk = PowerCut::new(&trial.machine, "data");
    disk.mount();
    at_calls(&mut trial, calls, &Disk::PowerCut(disk));
    trial.tally
}

/// What the data folder lies on.
enum Disk {
    Plain,
    PowerCut(PowerCut),
}

fn at_calls(trial: &mut Trial, number: usize, disk: &Disk) {
    if number > 100 && !trial.hasty {
        trial.strangers = 1;
    }
    trial.machine.init_archive();
    let (first, second) = (trial.new_source(), trial.new_source());
    trial.run(&Job::deposit(first));
    let path = trial.run(&Job::deposit(second)).pop().expect("it was deposited");
    let title = trial.collection.items[&path].title.clone();
    let update = Job::update(&path, trial.new_source());
    let jobs = [
        Job::deposit(trial.new_source()),
        update.clone(),
        Job::remove(&path, &title, false),
        Job::remove(&path, &title, true),
        trial.new_table(5),
        trial.new_tree(5),
        Job::rebuild(),
    ];
    let start = Start::of(trial, "start");
    for job in &jobs {
        start.at_calls(trial, job, number, disk);
    }
    // An item with more than one version, of which all bytes are destroyed.
    disk.lay_out(&trial.machine, &start.folder);
    trial.collection = start.collection.clone();
    trial.run(&update);
    let updated = Start::of(trial, "updated");
    let title = update.changes[0].to.title.clone();
    let purge = Job::remove(&path, &title, true);
    updated.at_calls(trial, &purge, number, disk);
    for (start, job) in [(&start, &jobs[0]), (&start, &update), (&updated, &purge)] {
        start.twice(trial, job, number.div_ceil(6), disk);
    }
    if let Disk::PowerCut(disk) = disk {
        disk.unmount();
    }
}

/// A folder to begin with, again and again.
struct Start {
    folder: std::path::PathBuf,
    collection: super::collection::Collection,
}

impl Start {
    fn of(trial: &Trial, name: &str) -> Self {
        let folder = trial.machine.home.join(name);
        copy_folder(&trial.machine.data(), &folder);
        Self { folder, collection: trial.collection.clone() }
    }

    fn at_calls(&self, trial: &mut Trial, job: &Job, number: usize, disk: &Disk) {
        disk.lay_out(&trial.machine, &self.folder);
        let (calls, ended) = trace(&trial.machine, job);
        if ended.status != Some(0) {
            trial.tally.wrong(format!("{:?} fails: {}", job.arguments, ended.said));
        }
        let chance = trial.machine.chance.next();
        let mut calls: Vec<&Call> = some(&calls, number, chance).collect();
        if trial.hasty {
            // The commit point comes first.
            calls.sort_by_key(|call| !call.name.starts_with("rename"));
        }
        for call in calls {
            if trial.is_over() {
                return;
            }
            self.at_call(trial, job, call, disk);
            let Call { name, number, about, .. } = call;
            let about = format!("{} at {name} {number} ({about}", job.arguments[1..].join(" "));
            trial.check(&about);
            if job.can_resume() {
                trial.run(job);
                trial.check_reading(&format!("{about}, resumed"));
            }
        }
    }

    /// Killed around the commit point, and once more while opening finishes or undoes what that cut off.
    fn twice(&self, trial: &mut Trial, job: &Job, number: usize, disk: &Disk) {
        disk.lay_out(&trial.machine, &self.folder);
        let calls = trace(&trial.machine, job).0;
        let around = calls.windows(2).filter(|pair| pair.iter().any(|call| call.name.starts_with("rename")));
        let around: Vec<Call> = around.map(|pair| pair[1].clone()).collect();
        let opening = Job::opening();
        let chance = trial.machine.chance.next();
        for call in some(&around, number, chance) {
            if trial.is_over() {
                return;
            }
            self.at_call(trial, job, call, disk);
            Start::of(trial, "crashed").at_calls(trial, &opening, number, disk);
        }
    }

    fn at_call(&self, trial: &mut Trial, job: &Job, call: &Call, disk: &Disk) {
        disk.lay_out(&trial.machine, &self.folder);
        trial.collection = self.collection.clone();
        let ended = killed_at(&trial.machine, job, call);
        trial.collection.note(job, &ended, &mut trial.tally);
        // strace ends as the command does.
        trial.tally.troubles += usize::from(ended.status.is_none_or(|status| status > 128));
        if let Disk::PowerCut(disk) = disk {
            disk.cut();
            trial.machine.forget_claims();
            disk.mount();
        }
    }
}

impl Disk {
    /// Puts a folder in the place of the data folder, but for the minter: its state only goes on.
    fn lay_out(&self, machine: &Machine, start: &Path) {
        match self {
            Disk::Plain => lay_out(&machine.data(), start),
            Disk::PowerCut(disk) => {
                // The last deposit of a check is not acknowledged by its claims any more.
                disk.cut();
                machine.forget_claims();
                lay_out(&disk.volatile, start);
                disk.mount();
            }
        }
    }
}

fn lay_out(data: &Path, start: &Path) {
    for entry in fs::read_dir(data).expect("ours").flatten() {
        match entry.file_name().to_str() {
            Some("minter") => {}
            _ if entry.path().is_dir() => fs::remove_dir_all(entry.path()).expect("ours"),
            _ => fs::remove_file(entry.path()).expect("ours"),
        }
    }
    for entry in fs::read_dir(start).expect("ours").flatten() {
        if entry.file_name() != "minter" {
            copy_folder(&entry.path(), &data.join(entry.file_name()));
        }
    }
}
