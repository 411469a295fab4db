//! Every `console` block of the README, of `docs/` and of `tests/transcripts/` is run and must
//! print what it shows.
//!
//! A line that begins with `$ ` is run by a shell, in the repository, with the built `ibi` on its
//! path. The lines after it are its output, including standard error; `? 1` at the end is an exit
//! status other than 0.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::IBI;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn documents_show_what_happens() {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "docs/formats", "tests/transcripts"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    remove_tour_data();
    let mut commands = 0;
    for page in pages {
        for step in console_steps(&fs::read_to_string(&page).unwrap()) {
            assert_eq!(run(&step.command), step.shown, "{}: $ {}", page.display(), step.command);
            commands += 1;
        }
    }
    remove_tour_data();
    assert!(commands > 10, "only {commands} commands were found");
}

/// Removes the data folders of the README's tour and the locks of their prefixes.
fn remove_tour_data() {
    let _ = fs::remove_file("/tmp/ibi-hello.txt");
    for (data, machine) in [("/tmp/ibi-tour", "tour"), ("/tmp/ibi-store", "store")] {
        let _ = fs::remove_dir_all(data);
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-readme.test+{machine}"));
        }
    }
}

struct Step {
    command: String,
    shown: String,
}

fn console_steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            steps.push(Step { command: command.to_owned(), shown: String::new() });
        } else if inside {
            let step = steps.last_mut().unwrap();
            // A backslash continues a command.
            if step.shown.is_empty() && step.command.ends_with('\\') {
                step.command = format!("{}\n{line}", step.command);
            } else {
                step.shown += &format!("{line}\n");
            }
        }
    }
    steps
}

fn run(command: &str) -> String {
    let folder = Path::new(IBI).parent().unwrap().display();
    let script = format!("exec 2>&1; export COLUMNS=100; PATH='{folder}':$PATH\n{command}");
    let output = Command::new("sh").arg("-c").arg(script).current_dir(root()).output().unwrap();
    let mut shown = String::from_utf8(output.stdout).unwrap();
    if !output.status.success() {
        shown += &format!("? {}\n", output.status.code().unwrap());
    }
    shown
}
