//! A process that is killed, or loses its network, when it is about to make a certain call
//! (`killat.c`, built beside this program).

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What happens at the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Kill,
    /// No call reaches the network for so many milliseconds; only calls to the network are counted.
    Cut(u64),
}

pub struct Trap {
    control: PathBuf,
}

impl Trap {
    pub fn new(control: PathBuf) -> Self {
        Self { control }
    }

    /// As if nothing had been counted yet. No process may use it.
    pub fn reset(&self) {
        let _ = fs::remove_file(self.log());
        let _ = fs::remove_file(&self.control);
        fs::write(&self.control, [0; 48]).expect("room");
    }

    pub fn set(&self, command: &mut Command) {
        let library = std::env::var("KILLAT").expect("KILLAT names the library that kills");
        command.env("LD_PRELOAD", library).env("KILLAT_CONTROL", &self.control);
    }

    /// Counts from here on, for trouble at the call of this number; at 0, for none.
    pub fn arm(&self, at: u64, trouble: Trouble) {
        let cut = match trouble {
            Trouble::Kill => 0,
            Trouble::Cut(milliseconds) => milliseconds,
        };
        for (place, number) in [(0, 0), (1, 0), (2, at), (3, cut), (4, 0), (5, 0), (0, 1)] {
            self.put(place, number);
        }
    }

    pub fn disarm(&self) {
        self.put(0, 0);
    }

    /// The calls so far, and those of them to the network.
    pub fn counts(&self) -> [u64; 2] {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let network = log.lines().filter(|line| line.contains(" socket:["));
        [log.lines().count(), network.count()].map(|count| count as u64)
    }

    pub fn has_fired(&self) -> bool {
        self.get(4) > 0
    }

    /// Where there was trouble.
    pub fn about(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let troubles = log.lines().filter(|line| line.starts_with("killed ") || line.starts_with("cut "));
        troubles.collect::<Vec<&str>>().join(", ")
    }

    fn log(&self) -> PathBuf {
        let mut name = self.control.clone().into_os_string();
        name.push(".log");
        name.into()
    }

    fn put(&self, place: u64, number: u64) {
        let file = fs::OpenOptions::new().write(true).open(&self.control).expect("ours");
        file.write_all_at(&number.to_ne_bytes(), place * 8).expect("room");
    }

    fn get(&self, place: u64) -> u64 {
        let mut number = [0; 8];
        let file = fs::File::open(&self.control).expect("ours");
        file.read_exact_at(&mut number, place * 8).expect("it has six numbers");
        u64::from_ne_bytes(number)
    }
}

/// The last lines that a process wrote.
pub fn last_words(log: &Path) -> String {
    let said = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}
