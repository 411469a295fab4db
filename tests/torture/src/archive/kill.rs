//! Killed, or the power cut, at every call that changes the disk.

use std::fs;
use std::path::Path;

use super::calls::{Call, killed_at, some, trace};
use super::jobs::Job;
use super::links::LinkChange;
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
    let first = Job::deposit(trial.new_source());
    let first = trial.run(&first).pop().expect("it was deposited");
    // Its next edition, and another one: of that, somebody has to decide.
    let [path, rival] = ["accepted", "proposed"].map(|status| {
        let link = LinkChange::of_new("edition", &first, status);
        let job = Job::deposit(trial.new_source()).stating("--next-edition-of", &first, vec![link]);
        trial.run(&job).pop().expect("it was deposited")
    });
    let title = trial.collection.items[&path].title.clone();
    let update = moving(trial, &path, &first, &rival);
    let translation = LinkChange::of_new("translation", &first, "accepted");
    let edition = LinkChange::of_new("edition", &path, "accepted");
    let deposit = Job::deposit(trial.new_source()).stating("--next-edition-of", &path, vec![edition]);
    let deposit = deposit.stating("--translation-of", &first, vec![translation]);
    let jobs = [
        deposit,
        update.clone(),
        Job::remove(&path, &title, false),
        Job::remove(&path, &title, true),
        trial.new_table_of_translations(5, &first),
        trial.new_tree(5),
        Job::rebuild(),
    ];
    let decisions = decisions(trial, &first, &path, &rival);
    let start = Start::of(trial, "start");
    for job in &jobs {
        start.at_calls(trial, job, number, disk);
    }
    for job in &decisions {
        start.at_calls(trial, job, number.div_ceil(3), disk);
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
    if trial.tally.links == 0 {
        trial.tally.wrong("no link was looked at".to_owned());
    }
}

/// A new version of an item that is the next edition of another one from then on.
fn moving(trial: &mut Trial, path: &str, from: &str, to: &str) -> Job {
    let links =
        vec![LinkChange::of_new("edition", from, "withdrawn"), LinkChange::of_new("edition", to, "accepted")];
    Job::update(path, trial.new_source()).stating("--next-edition-of", to, links)
}

/// What an operator may say of the next edition of an item, and of the one that is proposed beside
/// it.
fn decisions(trial: &Trial, older: &str, accepted: &str, proposed: &str) -> [Job; 3] {
    let decide = |decision, newer: &str, links: &[(&str, &'static str)]| {
        let links = links.iter().map(|(newer, status)| LinkChange::of_edition(older, newer, status));
        Job::decide(decision, (older, newer), trial.collection.items[newer].clone(), links.collect())
    };
    [
        // There is one next edition: accepting a second one withdraws the first, both or neither.
        decide("accept", proposed, &[(proposed, "accepted"), (accepted, "withdrawn")]),
        decide("refuse", proposed, &[(proposed, "refused")]),
        decide("withdraw", accepted, &[(accepted, "withdrawn")]),
    ]
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

    /// Killed around the commit point, and once more while opening finishes or undoes what that cut
    /// off.
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
