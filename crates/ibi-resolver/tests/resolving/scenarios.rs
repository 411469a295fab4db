//! Plays every scenario of `tests/scenarios/`.

use std::fs;
use std::path::Path;

use crate::play::play;
use crate::script::{Scenario, read};

/// The fewest that there are: a file that is lost is noticed.
const FEWEST: usize = 120;

fn all() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        read(&name, &fs::read_to_string(path).unwrap()).unwrap_or_else(|why| panic!("{why}"))
    };
    files.iter().flat_map(read).collect()
}

/// Plays one, with a time of its own.
fn played(scenario: &Scenario, explain: bool) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(play(scenario, explain))
}

#[test]
fn every_scenario_goes_as_it_is_written() {
    let scenarios = all();
    let mut failed = Vec::new();
    for scenario in &scenarios {
        for explain in [false, true] {
            let result = played(scenario, explain);
            failed.extend(result.err().map(|why| format!("{}\n{why}", scenario.title)));
        }
    }
    failed.dedup();
    assert!(failed.is_empty(), "{} failed:\n\n{}", failed.len(), failed.join("\n\n"));
    assert!(scenarios.len() >= FEWEST, "there are {}", scenarios.len());
    let mut titles: Vec<&str> = scenarios.iter().map(|scenario| scenario.title.as_str()).collect();
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), scenarios.len(), "each has a title of its own");
}

const BEGINNING: &str = "== a title\nitem report: a.br/b/2009/02.16.17.46\narchive inpe is online\n";

#[test]
fn what_is_not_understood_is_an_error_with_its_place() {
    for (line, why) in [
        ("inpe answers <report> -> Original on /x", "x.txt:4: not understood: `Original on /x`"),
        ("inpe answers <other> -> nothing", "x.txt:4: no such item: `<other> -> nothing`"),
        ("inpe answers a -> next edition b", "x.txt:4: b: "),
        ("inpe sings", "x.txt:4: not understood: `inpe sings`"),
        ("archive usp is asleep", "x.txt:4: not understood"),
        ("the client asks nicely", "x.txt:4: not understood"),
        ("the client asks /<report> from home", "x.txt:4: not understood"),
        ("3 weeks pass", "x.txt:4: not understood"),
        ("item report: x", "x.txt:4: x: "),
        ("the client asks /<report>", "x.txt:1: the scenario says nothing that must be so"),
    ] {
        let error = read("x.txt", &format!("{BEGINNING}{line}\n")).err().unwrap_or_default();
        assert!(error.starts_with(why), "{line}: {error}");
    }
    assert_eq!(
        read("x.txt", "inpe always hangs").err().unwrap(),
        "x.txt:1: no scenario has begun: `== title`"
    );
}

#[test]
fn what_is_not_so_is_an_error_with_its_place() {
    for (lines, why) in [
        ("the client asks /<report>\nthe client gets 302 to http://x/", "it is: 404: nobody has it"),
        ("the client asks /<report>\nthe client waited 11 ms", "it is: 10 ms"),
        ("the client asks /<report>\ninpe was asked nothing", "it is: a.br/b/2009/02.16.17.46"),
        ("inpe answers <report>! -> hangs\nno alert was raised", "x.txt:4: nobody asked inpe for"),
        (
            "inpe answers <report> -> Copy at /x\nthe client asks /<report>\nnobody got an acknowledgment",
            "/x",
        ),
        ("the client asks /<report>\nan alert names inpe and usp", "expected: inpe and usp"),
        ("the client asks /<report>\nthe explanation says oh", "expected: oh"),
    ] {
        let scenarios = read("x.txt", &format!("{BEGINNING}{lines}\n")).unwrap();
        let error = played(&scenarios[0], true).err().unwrap_or_default();
        assert!(error.starts_with("x.txt:") && error.contains(why), "{lines}: {error}");
    }
}
