//! Compares the list of parsers in `docs/operations/fuzzing.md` with the fuzz targets and the
//! sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Patterns that show that a file parses input.
const READERS: &[&str] = &["serde_json::from_", "quick_xml::", "csv::Reader"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the list: the parsing files, and the target if there is one.
fn rows() -> Vec<(Vec<String>, Option<String>)> {
    let page = fs::read_to_string(repository().join("docs/operations/fuzzing.md")).unwrap();
    let list = page.split_once("## What each target covers").unwrap().1.split_once("\n## ").unwrap().0;
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(str::to_owned).collect::<Vec<_>>();
    let coded = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = list.lines().filter(|line| line.starts_with('|')).skip(2).map(cells);
    rows.map(|row| (coded(&row[1]), coded(&row[2]).pop())).collect()
}

#[test]
fn every_target_is_listed_built_planted_and_run() {
    let named: BTreeSet<String> = rows().into_iter().filter_map(|(_, target)| target).collect();
    let targets: BTreeSet<String> = fs::read_dir(repository().join("fuzz/targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(named, targets);
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    let (manifest, run) = (read("fuzz/Cargo.toml"), read("fuzz/run"));
    let all = run.split_once("|| targets=(").unwrap().1.split_once(')').unwrap().0;
    let run: BTreeSet<String> = all.split_whitespace().map(str::to_owned).collect();
    assert_eq!(run, targets);
    for target in &targets {
        assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target} is not built");
        assert!(
            repository().join(format!("fuzz/planted/{target}.patch")).is_file(),
            "{target}: no planted bug"
        );
        let corpus = fs::read_dir(repository().join(format!("fuzz/corpus/{target}")));
        assert!(corpus.is_ok_and(|mut inputs| inputs.next().is_some()), "{target} has no corpus");
    }
}

#[test]
fn every_reader_of_outside_bytes_is_listed() {
    let listed: BTreeSet<String> = rows().into_iter().flat_map(|(files, _)| files).collect();
    let crates = repository().join("crates");
    for file in &listed {
        assert!(crates.join(file).is_file(), "{file} is listed and not there");
    }
    let mut folders: Vec<PathBuf> =
        ["ibi-id", "ibi-protocol", "ibi-store", "ibi-http", "ibi-mint", "ibi-archive", "ibi-resolver"]
            .iter()
            .map(|name| crates.join(name).join("src"))
            .collect();
    let mut missing = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !name.contains("tests") {
                let text = fs::read_to_string(&path).unwrap();
                // Input of tests does not count.
                let text = text.split("#[cfg(test)]").next().unwrap();
                if READERS.iter().any(|reader| text.contains(reader)) && !listed.contains(&name) {
                    missing.push(name);
                }
            }
        }
    }
    missing.sort();
    assert_eq!(missing, [""; 0], "name them in docs/operations/fuzzing.md, with a target");
}
