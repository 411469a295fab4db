//! Many small items from a table: beside a loop that writes the complete OCFL files of one item
//! after the other, and syncs each file and each new folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::archive::{Place, judge, settle};

const ITEMS: usize = 10_000;
/// The loop is slow: a part of them tells its rate.
const LOOPED: usize = 1_000;

/// Makes a table of small files.
pub(crate) fn make(place: &Place, items: usize) -> PathBuf {
    let folder = place.path("files");
    fs::create_dir_all(&folder).expect("room for a folder");
    let mut rows = "file,language,dc.title,dc.creator,dc.date\n".to_owned();
    for number in 0..items {
        fs::write(folder.join(format!("{number}.txt")), format!("The text of item {number}.\n").repeat(20))
            .expect("room");
        rows += &format!("files/{number}.txt,en,\"Title of item {number}\",\"Doe, J.\",2026\n");
    }
    let table = place.path("table.csv");
    fs::write(&table, rows).expect("room");
    table
}

pub(super) fn compare(place: &Place) -> bool {
    place.init();
    let table = make(place, ITEMS);
    settle();
    let ours = place.archive(&["deposit", "--table", &table.display().to_string()]);
    let sample = objects(&place.path("data/tree")).into_iter().next_back().expect("an object");
    settle();
    let start = Instant::now();
    for number in 0..LOOPED {
        write_synced(&sample, &place.path(&format!("loop/{}/{number}", number % 7)));
    }
    let theirs = start.elapsed();
    let rate = |items: usize, time: std::time::Duration| items as f64 / time.as_secs_f64();
    let (ours, theirs) = (rate(ITEMS, ours), rate(LOOPED, theirs));
    let details = format!("10,000 items: {ours:.0} a second, the loop {theirs:.0}");
    judge("table", ours / theirs, 1.5, &details)
}

/// Some object of a tree: the last folder that has an inventory.
fn objects(tree: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![tree.to_owned()];
    while let Some(folder) = left.pop() {
        if folder.join("inventory.json").exists() {
            found.push(folder);
            if found.len() > 5 {
                break;
            }
            continue;
        }
        left.extend(
            fs::read_dir(folder)
                .expect("a tree")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.is_dir()),
        );
    }
    found
}

/// Copies an object file by file, with a sync of each, and of each new folder.
fn write_synced(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("room for a folder");
    for entry in fs::read_dir(from).expect("an object") {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
        let to = to.join(name);
        if from.is_dir() {
            write_synced(&from, &to);
        } else {
            fs::write(&to, fs::read(&from).expect("readable")).expect("room");
            File::open(&to).and_then(|file| file.sync_all()).expect("a sync");
        }
    }
    File::open(to).and_then(|folder| folder.sync_all()).expect("a sync");
    File::open(to.parent().expect("below a folder")).and_then(|folder| folder.sync_all()).expect("a sync");
}
