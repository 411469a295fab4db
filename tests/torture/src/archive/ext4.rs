//! Power cuts on a real filesystem, where many files are made durable with one sync of all.

use std::time::Duration;

use super::collection::Collection;
use super::image::Image;
use super::jobs::{self, Job};
use super::links::LinkChange;
use super::tally::Tally;
use super::trial::Trial;
use crate::machine::kill_after;

/// Rows of a table: more than are made durable together.
const ROWS: u64 = 330;

/// A file that is written straight to the disk but for its ends.
const LARGE: u64 = (6 << 20) + 7;

/// So many rounds go to one Archive: its checks take longer with each.
const ROUNDS: usize = 2;

/// Power cuts at random moments of a table, which is gone on with after, and right after single
/// changes.
pub fn power(mut trial: Trial, rounds: usize) -> Tally {
    for first in (0..rounds).step_by(ROUNDS) {
        let image = Image::new(&trial.machine, 1024);
        trial.machine.forget_claims();
        trial.collection = Collection::default();
        trial.machine.init_archive();
        play(&mut trial, &image, first..rounds.min(first + ROUNDS));
    }
    trial.tally
}

fn play(trial: &mut Trial, image: &Image, rounds: std::ops::Range<usize>) {
    for round in rounds {
        if trial.is_over() {
            break;
        }
        let cut = |trial: &mut Trial, about: &str| {
            image.cut();
            trial.machine.forget_claims();
            trial.tally.troubles += 1;
            trial.check(about);
        };
        let table = trial.new_table(ROWS);
        let chance = &mut trial.machine.chance;
        // Some are cut off before anything was printed.
        let patience = Duration::from_millis(if round % 2 == 1 { 50 + chance.below(1500) } else { 20_000 });
        let after = Duration::from_millis(chance.below(600));
        let mut command = trial.machine.at(&trial.machine.data(), &table.arguments());
        let ended = kill_after(&mut command, after, patience);
        trial.collection.note(&table, &ended, &mut trial.tally);
        cut(trial, &format!("table {round}"));
        let paths = trial.run(&table);
        let source = trial.new_source();
        let large = source.files.as_ref().expect("it has files").join("large.bin");
        jobs::write(&large, LARGE, &mut trial.machine.chance);
        let edition = Job::deposit(source);
        let [older, path, ..] = &paths[round % (ROWS as usize - 1)..] else { continue };
        let link = |kind, status| vec![LinkChange::of_new(kind, older, status)];
        trial.run(&edition.stating("--next-edition-of", older, link("edition", "accepted")));
        let update = Job::update(path, trial.new_source());
        let update = update.stating("--translation-of", older, link("translation", "accepted"));
        trial.run(&update);
        if round % 2 == 1 {
            let title = update.changes[0].to.title.clone();
            trial.run(&Job::remove(path, &title, round % 4 == 1));
        }
        cut(trial, &format!("single changes {round}"));
    }
}
