//! A disk that gets full: refused clearly, nothing half, and room again after something was
//! destroyed.

use std::fs;

use super::image::Image;
use super::jobs::{self, Job, Version};
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::{Ended, finish};

pub fn full(mut trial: Trial) -> Tally {
    let _image = Image::new(&trial.machine, 64);
    trial.machine.init_archive();
    limited(&mut trial);
    let mut paths = Vec::new();
    for _ in 0..5 {
        let job = Job::deposit(large(&mut trial, 4));
        paths.extend(trial.run(&job));
    }
    // There is room to begin with, and not enough.
    let too_large = Job::deposit(large(&mut trial, 45));
    let ended = trial.attempt(&too_large);
    refused(&mut trial, &ended, "larger than what is left");
    trial.check("larger than what is left");
    // Nobody begins what would leave too little to work with.
    let mut refusal = None;
    for _ in 0..20 {
        let job = Job::deposit(large(&mut trial, 4));
        let ended = trial.attempt(&job);
        paths.extend(job.acknowledged(&ended.printed).into_iter().flatten());
        if ended.status != Some(0) {
            refusal = Some(ended);
            break;
        }
    }
    let small = Job::deposit(trial.new_source());
    let ended = refusal.unwrap_or_else(|| trial.attempt(&small));
    refused(&mut trial, &ended, "deposit after deposit");
    trial.check_holdings("deposit after deposit");
    // Not a byte is left: others filled the disk.
    let filler = trial.machine.data().join("filler");
    let mut size = 1 << 20;
    let mut bytes = Vec::new();
    while size > 0 {
        let file = fs::OpenOptions::new().append(true).create(true).open(&filler).expect("a name at least");
        bytes.resize(size, 0);
        if std::io::Write::write_all(&mut &file, &bytes).is_err() {
            size /= 2;
        }
    }
    let ended = trial.attempt(&small);
    refused(&mut trial, &ended, "not a byte left");
    trial.check_reading("not a byte left");
    fs::remove_file(&filler).expect("ours");
    trial.check_holdings("some room again");
    // Destroying makes room.
    for path in paths.iter().take(3) {
        let title = trial.collection.items[path].title.clone();
        trial.run(&Job::remove(path, &title, true));
    }
    trial.check("after something was destroyed");
    trial.tally
}

/// A limit on the size of files, which kills or is an error.
fn limited(trial: &mut Trial) {
    for what in ["ulimit -f 2000; exec \"$@\"", "ulimit -f 2000; trap '' XFSZ; exec \"$@\""] {
        let job = Job::deposit(large(trial, 3));
        let command = &mut trial.machine.under("bash", &["-c", what, "bash"], &job.arguments());
        let ended = finish(command);
        trial.collection.note(&job, &ended, &mut trial.tally);
        if ended.status.is_some() {
            refused(trial, &ended, what);
        }
        trial.tally.troubles += 1;
        trial.check(what);
    }
}

fn refused(trial: &mut Trial, ended: &Ended, about: &str) {
    trial.tally.troubles += 1;
    let clear = ["room", "space", "too large"].iter().any(|word| ended.said.contains(word));
    if !matches!(ended.status, Some(3 | 4)) || !clear || !ended.printed.is_empty() {
        let Ended { status, printed, said } = ended;
        trial.tally.wrong(format!("{about}: not refused clearly: {status:?} {printed} {said}"));
    }
}

/// A file of so many megabytes.
fn large(trial: &mut Trial, megabytes: u64) -> Version {
    let folder = trial.new_folder();
    fs::create_dir_all(&folder).expect("room");
    jobs::write(&folder.join("large.bin"), megabytes << 20, &mut trial.machine.chance);
    Version { title: format!("large {}", folder.display()), files: Some(folder) }
}
