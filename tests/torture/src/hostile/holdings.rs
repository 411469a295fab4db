//! What the Archive holds that is attacked: ordinary items, one of very many files, and some with
//! very long metadata.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::archive::jobs::text;
use crate::machine::{Machine, finish};

const SMALL_ITEMS: usize = 20;
/// Files of the large item, and items with long metadata; fewer in the short form.
const LARGE_ITEM_FILES: usize = 60_000;
const LONG_METADATA_ITEMS: usize = 60;
const LONG_METADATA_BYTES: usize = (4 << 20) - (64 << 10);
const LARGE_FILE_BYTES: usize = 32 << 20;

/// What clients ask for.
#[derive(Default)]
pub(super) struct Holdings {
    pub(super) small: Vec<String>,
    /// The item of many files, in two versions.
    pub(super) large: String,
    pub(super) described: Vec<String>,
    /// The item with one file that takes long to read.
    pub(super) long: String,
    pub(super) depositor: String,
    pub(super) minter: String,
}

impl Holdings {
    pub(super) fn prepare(machine: &Machine) -> Self {
        machine.init_archive();
        let files = number("HOSTILE_FILES", LARGE_ITEM_FILES);
        let described = number("HOSTILE_ITEMS", LONG_METADATA_ITEMS);
        let source = machine.home.join("source");
        let mut holdings = Self::default();
        for item in 0..SMALL_ITEMS {
            let folder = source.join(format!("small-{item}"));
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("text.txt"), format!("item {item}\n").repeat(300)).expect("room");
            holdings.small.push(deposit(machine, &folder, "title=small"));
        }
        let folder = source.join("large");
        for file in 0..files {
            let below = folder.join(format!("part {:03}", file / 500));
            if file % 500 == 0 {
                fs::create_dir_all(&below).expect("room");
            }
            fs::write(below.join(format!("page number {file:06}.txt")), format!("page {file}\n"))
                .expect("room");
        }
        holdings.large = deposit(machine, &folder, "title=large");
        fs::write(folder.join("page number 000000.txt"), "changed\n").expect("room");
        run(machine, &["archive", "update", &holdings.large, &text(&folder)]);
        let lines: String = (0..LONG_METADATA_BYTES / 1024).fold(String::new(), |mut lines, line| {
            let _ = writeln!(lines, "description={line:08} {}", "long ".repeat(200));
            lines
        });
        fs::create_dir_all(source.join("described")).expect("room");
        let metadata = source.join("metadata.txt");
        fs::write(&metadata, format!("title=described\n{lines}")).expect("room");
        for _ in 0..described {
            holdings.described.push(deposit(machine, &source.join("small-0"), &text(&metadata)));
        }
        let folder = source.join("long");
        fs::create_dir_all(&folder).expect("room");
        fs::write(folder.join("long.bin"), vec![7; LARGE_FILE_BYTES]).expect("room");
        holdings.long = deposit(machine, &folder, "title=long");
        let token =
            |role: &str| run(machine, &["archive", "token", "create", "--role", role, "--name", role]);
        holdings.depositor = token("depositor");
        holdings.minter = token("minter");
        let _ = fs::remove_dir_all(source);
        holdings
    }

    /// For the programs of the clients.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        let one = [
            ("large", &self.large),
            ("long", &self.long),
            ("depositor", &self.depositor),
            ("minter", &self.minter),
        ];
        let small = self.small.iter().map(|label| ("small", label));
        let described = self.described.iter().map(|label| ("described", label));
        for (name, value) in one.into_iter().chain(small).chain(described) {
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }

    pub(super) fn read(path: &Path) -> Self {
        let mut holdings = Self::default();
        for line in fs::read_to_string(path).expect("it was written").lines() {
            let (name, value) = line.split_once(' ').expect("a name and a value");
            match name {
                "large" => value.clone_into(&mut holdings.large),
                "long" => value.clone_into(&mut holdings.long),
                "depositor" => value.clone_into(&mut holdings.depositor),
                "minter" => value.clone_into(&mut holdings.minter),
                "small" => holdings.small.push(value.to_owned()),
                _ => holdings.described.push(value.to_owned()),
            }
        }
        holdings
    }
}

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn deposit(machine: &Machine, folder: &Path, dc: &str) -> String {
    run(machine, &["archive", "deposit", &text(folder), "--dc", dc])
}

/// The first word that it prints: a label or a token.
fn run(machine: &Machine, arguments: &[&str]) -> String {
    let ended = finish(&mut machine.at(&machine.data(), arguments));
    assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.said);
    ended.printed.split_whitespace().next().unwrap_or_default().to_owned()
}
