//! Making the index anew: beside a bare walk that reads and parses the same inventories.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::archive::{Place, judge, median, settle, table};

const ITEMS: usize = 50_000;
const TURNS: usize = 3;

pub(super) fn compare(place: &Place) -> bool {
    place.init();
    let table = table::make(place, ITEMS);
    place.archive(&["deposit", "--table", &table.display().to_string()]);
    settle();
    let mut ratios = Vec::new();
    let mut details = String::new();
    for turn in 0..=TURNS {
        let start = Instant::now();
        let walked = walk(&place.path("data/tree"));
        let theirs = start.elapsed().as_secs_f64();
        let ours = place.archive(&["rebuild"]).as_secs_f64();
        // The first turn is for the caches.
        if turn > 0 {
            ratios.push(theirs / ours);
        }
        details = format!("{walked} objects: {ours:.2} s, the walk {theirs:.2} s");
    }
    judge("rebuild", median(ratios), 0.5, &details)
}

fn walk(folder: &Path) -> usize {
    let inventory = folder.join("inventory.json");
    if let Ok(bytes) = fs::read(&inventory) {
        std::hint::black_box(serde_json::from_slice::<serde_json::Value>(&bytes).expect("an inventory"));
        return 1;
    }
    let within = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    within
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| walk(&entry.path()))
        .sum()
}
