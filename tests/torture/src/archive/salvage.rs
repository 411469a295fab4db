//! A salvage of the journal (`docs/formats/journal.md`) that is killed at every call which changes
//! the disk: the next one finishes it, and all that was acknowledged is there.

use std::fs;
use std::path::{Path, PathBuf};

use super::calls::{Call, killed_at, some, trace};
use super::jobs::{Job, text};
use super::tally::Tally;
use super::trial::{Trial, copy_folder};
use crate::machine::finish;

/// A damaged Archive, and how it is salvaged.
struct SalvageCase {
    name: &'static str,
    damaged: PathBuf,
    job: Job,
    /// Whether lines are lost that only the tree tells of: the operator may have to confirm then.
    is_lossy: bool,
}

/// kill -9 at so many calls of each salvage, or at all of them.
pub fn kill(mut trial: Trial, number: usize) -> Tally {
    for case in cases(&mut trial) {
        at_calls(&mut trial, &case, number);
    }
    trial.tally
}

/// A line that the index has; one that a backup has; one that only the tree tells of.
fn cases(trial: &mut Trial) -> Vec<SalvageCase> {
    trial.machine.init_archive();
    let [updated, removed] = [(); 2].map(|()| {
        let job = Job::deposit(trial.new_source());
        trial.run(&job).pop().expect("it was deposited")
    });
    let update = Job::update(&updated, trial.new_source());
    trial.run(&update);
    let title = trial.collection.items[&removed].title.clone();
    trial.run(&Job::remove(&removed, &title, false));
    let last = Job::deposit(trial.new_source());
    trial.run(&last);
    let (data, home) = (trial.machine.data(), trial.machine.home.clone());
    let backup = home.join("backup");
    let made = finish(&mut trial.machine.at(&data, &["backup", "--out", &text(&backup)]));
    if made.status != Some(0) {
        trial.tally.wrong(format!("no backup: {}", made.said));
    }
    let case = |name: &'static str, has_index: bool, from: Option<&Path>| {
        let damaged = home.join(format!("damaged-{}", name.replace(' ', "-")));
        copy_folder(&data, &damaged);
        // The deposit of the second item, of which there is a later line.
        destroy_line(&damaged.join("journal"), 2);
        if !has_index {
            for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
                let _ = fs::remove_file(damaged.join(file));
            }
        }
        let mut arguments = ["archive", "salvage"].map(str::to_owned).to_vec();
        arguments.extend(from.iter().flat_map(|from| ["--from".to_owned(), text(from)]));
        let job = Job { arguments, changes: Vec::new() };
        SalvageCase { name, damaged, job, is_lossy: !has_index && from.is_none() }
    };
    vec![
        case("from the index", true, None),
        case("from a backup", false, Some(&backup)),
        case("from the tree", false, None),
    ]
}

/// Overwrites the text of a line, counted from 0 without the title.
fn destroy_line(journal: &Path, number: usize) {
    let mut bytes = fs::read(journal).expect("there is a journal");
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    bytes[ends[number] + 1..ends[number + 1]].fill(b'x');
    fs::write(journal, bytes).expect("room for a journal");
}

fn at_calls(trial: &mut Trial, case: &SalvageCase, number: usize) {
    let data = trial.machine.data();
    copy_folder(&case.damaged, &data);
    let (calls, ended) = trace(&trial.machine, &case.job);
    is_finished(trial, case, ended.status, &format!("salvage {}, undisturbed: {}", case.name, ended.said));
    if calls.is_empty() {
        trial.tally.wrong(format!("salvage {}: no call changes the disk", case.name));
    }
    let chance = trial.machine.chance.next();
    for call in some(&calls, number, chance) {
        if trial.is_over() {
            return;
        }
        copy_folder(&case.damaged, &data);
        let killed = killed_at(&trial.machine, &case.job, call);
        trial.tally.troubles += usize::from(killed.status.is_none_or(|status| status > 128));
        let Call { name, number, about, .. } = call;
        let about = format!("salvage {}, at {name} {number} ({about}", case.name);
        let again = finish(&mut trial.machine.at(&data, &case.job.arguments()));
        is_finished(trial, case, again.status, &format!("{about}: {}", again.said));
    }
}

/// It says that all is well, or what was lost; what was acknowledged is there, and nothing is left
/// over.
fn is_finished(trial: &mut Trial, case: &SalvageCase, status: Option<i32>, about: &str) {
    let data = trial.machine.data();
    let is_well = status == Some(0) || (case.is_lossy && status == Some(1));
    if !is_well {
        trial.tally.wrong(format!("{about}: {status:?}"));
    }
    if case.is_lossy {
        let confirmed = finish(&mut trial.machine.at(&data, &["archive", "confirm"]));
        if confirmed.status != Some(0) {
            trial.tally.wrong(format!("{about}: cannot be confirmed: {}", confirmed.said));
        }
    }
    trial.check_holdings(about);
    for name in ["index.before-salvage", "journal.new"] {
        if data.join(name).exists() {
            trial.tally.wrong(format!("{about}: {name} is left"));
        }
    }
}
