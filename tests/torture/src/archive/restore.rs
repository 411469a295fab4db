//! A backup while deposits run, brought back: what it had is there, and no label is given out
//! twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::collection::answers;
use super::jobs::{Job, text};
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::{Ended, finish};

pub fn restore(mut trial: Trial, rounds: usize) -> Tally {
    trial.machine.init_archive();
    let home = trial.machine.home.clone();
    let (backup, restored) = (home.join("backup"), home.join("restored"));
    for round in 0..rounds {
        if trial.is_over() {
            break;
        }
        let deposit = Job::deposit(trial.new_source());
        let paths = trial.run(&deposit);
        let update = Job::update(&paths[0], trial.new_source());
        trial.run(&update);
        let acknowledged = trial.collection.clone();
        // Every other time into the backup of the time before.
        if round % 2 == 0 {
            let _ = fs::remove_dir_all(&backup);
        }
        let table = trial.new_table(60);
        let (made, ended) = backup_meanwhile(&mut trial, &table, &backup);
        trial.collection.note(&table, &ended, &mut trial.tally);
        let _ = fs::remove_dir_all(&restored);
        let back = finish(&mut trial.machine.at(&restored, &["restore", "--from", &text(&backup)]));
        trial.tally.troubles += 1;
        if made.status != Some(0) || back.status != Some(0) {
            let (made, back) = (made.said, back.said);
            trial.tally.wrong(format!("{round}: no backup, or it cannot be restored: {made} {back}"));
            continue;
        }
        // What was there when it began is in it; rows of the table may be, wholly.
        let mut expected = acknowledged;
        expected.begun = table.changes.clone();
        expected.check(&trial.machine, &restored, &format!("restored {round}"), &mut trial.tally);
        rebuild_changes_nothing(&mut trial, &restored);
        mints_only_when_recovered(&mut trial, &restored);
        let _ = fs::remove_dir_all(&restored);
        trial.check(&format!("the original {round}"));
    }
    trial.tally
}

/// A backup that begins while a table is deposited.
fn backup_meanwhile(trial: &mut Trial, table: &Job, backup: &Path) -> (Ended, Ended) {
    let machine = &mut trial.machine;
    let mut command = machine.at(&machine.data(), &table.arguments());
    let rows = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    std::thread::sleep(Duration::from_millis(machine.chance.below(400)));
    let made = finish(&mut machine.at(&machine.data(), &["backup", "--out", &text(backup)]));
    let output = rows.and_then(std::process::Child::wait_with_output).expect("it started");
    let ended = Ended {
        printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        status: output.status.code(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    if ended.status != Some(0) {
        trial.tally.wrong(format!("a table beside a backup: {:?} {}", ended.status, ended.said));
    }
    (made, ended)
}

fn rebuild_changes_nothing(trial: &mut Trial, data: &Path) {
    let before = answers(&trial.machine, data);
    finish(&mut trial.machine.at(data, &["archive", "rebuild"]));
    if before != answers(&trial.machine, data) {
        trial.tally.wrong("rebuilding changes a restored Archive".to_owned());
    }
    let original = |line: &str| line.contains(r#""state":"Original","transferable":true"#);
    if before.lines().any(original) {
        trial.tally.wrong("a restored Archive answers Original".to_owned());
    }
}

/// Labels may have been given out since the backup: it must not mint before it is told to, and
/// never one of those.
fn mints_only_when_recovered(trial: &mut Trial, restored: &Path) {
    let data = trial.machine.data();
    let given = answers(&trial.machine, &data);
    let given: BTreeSet<&str> = given.split('"').filter(|part| part.contains('/')).collect();
    // As on another machine: nothing there remembers what the Archive gave out that was lost.
    let lost = trial.machine.home.join("lost");
    fs::rename(&data, &lost).expect("ours");
    trial.machine.forget_claims();
    let mint = |trial: &Trial| finish(&mut trial.machine.at(restored, &["mint", "-n", "50"]));
    let refused = mint(trial);
    if refused.status != Some(4) || !refused.printed.is_empty() {
        trial.tally.wrong(format!("restored, it mints at once: {:?} {}", refused.status, refused.printed));
    }
    let recovered = finish(&mut trial.machine.at(restored, &["minter", "recover"]));
    let minted = mint(trial);
    if recovered.status != Some(0) || minted.status != Some(0) {
        trial.tally.wrong(format!("restored, it does not mint: {} {}", recovered.said, minted.said));
    }
    if let Some(twice) = minted.printed.split(['\t', '\n']).find(|label| given.contains(label)) {
        trial.tally.wrong(format!("restored, it mints {twice} again"));
    }
    fs::rename(&lost, &data).expect("ours");
    trial.machine.forget_claims();
}
