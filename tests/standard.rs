//! `docs/decisions-on-the-standard.md` is complete, and the checklist `docs/standard.md` is
//! current.

mod checklist;
mod claims;

use std::fs;
use std::path::{Path, PathBuf};

/// The number of decisions.
const DECISIONS: usize = 45;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The cells of all table rows of a page, without headings.
fn cells(page: &str) -> Vec<Vec<String>> {
    let row = |line: &str| {
        let line = line.trim().strip_prefix('|')?.strip_suffix('|')?.to_owned();
        Some(line.split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
    };
    let rows = page.lines().filter_map(row);
    rows.filter(|cells| cells[0] != "#" && !cells[0].starts_with("---")).collect()
}

/// The names of the decisions: `D1` and so on.
pub(crate) fn decisions() -> Vec<String> {
    cells(&page("decisions-on-the-standard.md")).into_iter().map(|mut cells| cells.swap_remove(0)).collect()
}

#[test]
fn every_decision_is_there_once_and_says_what_and_why() {
    let decisions = decisions();
    let expected: Vec<String> = (1..=DECISIONS).map(|number| format!("D{number}")).collect();
    assert_eq!(decisions, expected);
    for row in cells(&page("decisions-on-the-standard.md")) {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}
