//! An Archive in trouble, and the checks after each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::collection::{Collection, answers};
use super::jobs::{self, Job, Row, Version};
use super::tally::Tally;
use crate::machine::{Ended, Machine, finish};

pub struct Trial {
    pub machine: Machine,
    pub collection: Collection,
    pub tally: Tally,
    /// Strangers look at one tree in so many: they are slow.
    pub strangers: u64,
    sources: u64,
    /// Whether one thing that goes wrong is enough.
    pub hasty: bool,
}

impl Trial {
    pub fn new(machine: Machine) -> Self {
        let (collection, tally) = (Collection::default(), Tally::default());
        let hasty = std::env::var_os("TORTURE_HASTY").is_some();
        Self { machine, collection, tally, strangers: 8, sources: 0, hasty }
    }

    /// Whether nothing more need be tried.
    pub fn is_over(&self) -> bool {
        self.hasty && !self.tally.wrongs.is_empty()
    }

    /// A folder that is used for nothing else.
    pub fn new_folder(&mut self) -> PathBuf {
        self.sources += 1;
        self.machine.home.join("sources").join(self.sources.to_string())
    }

    /// Something new to deposit.
    pub fn new_source(&mut self) -> Version {
        let folder = self.new_folder();
        jobs::source(&folder, &format!("item {}", self.sources), &mut self.machine.chance)
    }

    pub fn new_table(&mut self, rows: u64) -> Job {
        let folder = self.new_folder();
        Job::table(&folder, &format!("table {}", self.sources), rows, &mut self.machine.chance)
    }

    pub fn new_tree(&mut self, repositories: u64) -> Job {
        let folder = self.new_folder();
        Job::import(&folder, repositories, &mut self.machine.chance)
    }

    /// A table of so many translations of one item.
    pub fn new_table_of_translations(&mut self, rows: u64, of: &str) -> Job {
        let folder = self.new_folder();
        let title = |row| format!("table {} {row}", self.sources);
        let row = |row| Row { language: "pt", translation_of: of.to_owned(), ..Row::new(title(row)) };
        let rows: Vec<Row> = (0..rows).map(row).collect();
        Job::table_of(&folder, &rows, &mut self.machine.chance)
    }

    /// Runs a command that nothing happens to: it must be acknowledged. The paths of its items.
    pub fn run(&mut self, job: &Job) -> Vec<String> {
        let ended = self.attempt(job);
        let paths: Vec<String> = job.acknowledged(&ended.printed).into_iter().flatten().collect();
        if ended.status != Some(0) || paths.len() != job.changes.len() {
            self.tally.wrong(format!("{:?}: {:?} {}", job.arguments, ended.status, ended.said));
        }
        paths
    }

    /// Runs a command that may be refused.
    pub fn attempt(&mut self, job: &Job) -> Ended {
        let ended = finish(&mut self.machine.at(&self.machine.data(), &job.arguments()));
        self.collection.note(job, &ended, &mut self.tally);
        ended
    }

    /// All checks after trouble; and it goes on.
    pub fn check(&mut self, about: &str) {
        self.check_holdings(about);
        let next = Job::deposit(self.new_source());
        self.run(&next);
    }

    /// What must be there can be read.
    pub fn check_reading(&mut self, about: &str) {
        self.collection.check(&self.machine, &self.machine.data(), about, &mut self.tally);
    }

    /// What must be there is; opening came to the same as rebuilding; strangers find nothing wrong.
    pub fn check_holdings(&mut self, about: &str) {
        let (data, copy) = (self.machine.data(), self.machine.home.join("rebuilt"));
        copy_folder(&data, &copy);
        self.collection.check(&self.machine, &data, about, &mut self.tally);
        self.is_tidy(about);
        let opened = answers(&self.machine, &data);
        // Once without having been opened, once after.
        for folder in [&copy, &data] {
            let rebuilt = self.rebuilt(folder, about);
            if rebuilt != opened {
                let differs = rebuilt.lines().zip(opened.lines()).find(|(one, other)| one != other);
                self.tally.wrong(format!("{about}: opening differs from rebuilding: {differs:?}"));
            }
        }
        if self.machine.chance.below(self.strangers) == 0 {
            self.is_valid(about);
        }
    }

    /// The answers after rebuilding, with the index deleted before in half of the cases.
    fn rebuilt(&mut self, data: &Path, about: &str) -> String {
        if self.machine.chance.below(2) == 0 {
            for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
                let _ = fs::remove_file(data.join(file));
            }
        }
        let ended = finish(&mut self.machine.at(data, &["archive", "rebuild", "--json"]));
        if ended.status != Some(0) || !ended.printed.contains(r#""adopted":[],"missing":[],"damaged":[]"#) {
            self.tally.wrong(format!("{about}: rebuilding found {} {}", ended.printed, ended.said));
        }
        answers(&self.machine, data)
    }

    /// Nothing is left where work was staged.
    pub fn is_tidy(&mut self, about: &str) {
        let left = fs::read_dir(self.machine.data().join("staging")).map_or(0, Iterator::count);
        if left > 0 {
            self.tally.wrong(format!("{about}: {left} things are left in staging after it was opened"));
        }
    }

    /// Others who read the Oxford Common File Layout (ocfl-py) find nothing wrong.
    pub fn is_valid(&mut self, about: &str) {
        let Ok(validator) = std::env::var("OCFL_ROOT") else { return };
        let tree = self.machine.data().join("tree");
        let mut command = Command::new(validator);
        command.args(["validate", "--validate-objects", "--check-digests", "--root"]).arg(tree);
        let ended = finish(&mut command);
        let said = ended.printed + &ended.said;
        if ended.status == Some(0)
            && said.contains("is VALID")
            && !said.contains("WARN")
            && !said.contains("[W")
        {
            self.tally.valid += 1;
        } else {
            self.tally.wrong(format!("{about}: not valid for ocfl-py: {said}"));
        }
    }
}

/// Copies a folder, in the place of what was there.
pub fn copy_folder(from: &Path, to: &Path) {
    assert!(is_copied(from, to), "{} cannot be copied", from.display());
}

/// The same, of a folder that may change meanwhile: whether it was copied whole.
pub fn is_copied(from: &Path, to: &Path) -> bool {
    let _ = fs::remove_dir_all(to);
    Command::new("cp").arg("-a").args([from, to]).output().is_ok_and(|output| output.status.success())
}
