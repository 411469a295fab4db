//! System calls that change the disk, listed by a tracing pass, and trouble at each of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::jobs::{Job, text};
use crate::machine::{Ended, Machine, finish};

/// As strace names them; those that a machine does not have are passed over.
const CHANGES: &str = "?openat,?creat,?write,?writev,?pwrite64,?pwritev,?rename,?renameat,?renameat2,?unlink,?unlinkat,\
                       ?mkdir,?mkdirat,?rmdir,?fsync,?fdatasync,?syncfs,?ftruncate,?fallocate,?link,?linkat,?symlink,\
                       ?symlinkat,?copy_file_range,?sendfile,?chmod,?fchmod,?fchmodat";

/// A call, by its name and how many of that name came before it in its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub number: usize,
    /// What it was told, as strace tells it.
    pub about: String,
    /// Whether something had been printed by then.
    pub after_printing: bool,
}

impl Call {
    pub fn is_sync(&self) -> bool {
        ["fsync", "fdatasync", "syncfs"].contains(&self.name.as_str())
    }
}

/// Runs a command, and lists its calls that change something below the data folder.
pub fn trace(machine: &Machine, job: &Job) -> (Vec<Call>, Ended) {
    trace_below(machine, job, &machine.data())
}

/// The same of any folder.
pub fn trace_below(machine: &Machine, job: &Job, root: &Path) -> (Vec<Call>, Ended) {
    let log = machine.home.join("calls");
    let changes = format!("trace={CHANGES}");
    let strace = ["-f", "-y", "-s", "0", "-qq", "-o", &text(&log), "-e", &changes];
    let ended = finish(&mut machine.under("strace", &strace, &job.arguments()));
    let data = format!("{}/", text(root));
    let folder = format!("{}>", text(root));
    let mut counts = BTreeMap::new();
    let mut calls = Vec::new();
    let mut after_printing = false;
    for line in fs::read_to_string(&log).expect("strace wrote it").lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, about)) = call.trim_start().split_once('(') else { continue };
        let number = counts.entry((thread.to_owned(), name.to_owned())).or_insert(0);
        *number += 1;
        after_printing |= name == "write" && about.starts_with("1<");
        let reads = name == "openat" && !about.contains("O_CREAT") && !about.contains("O_TRUNC");
        if !reads && (about.contains(&data) || about.contains(&folder)) {
            let (name, about) = (name.to_owned(), about.to_owned());
            calls.push(Call { name, number: *number, about, after_printing });
        }
    }
    (calls, ended)
}

/// Runs a command that is killed when it is about to make a call.
pub fn killed_at(machine: &Machine, job: &Job, call: &Call) -> Ended {
    inject(machine, job, call, "signal=SIGKILL")
}

/// Runs a command of which one call fails.
pub fn failing_at(machine: &Machine, job: &Job, call: &Call, error: &str) -> Ended {
    inject(machine, job, call, &format!("error={error}"))
}

fn inject(machine: &Machine, job: &Job, call: &Call, what: &str) -> Ended {
    let trace = format!("trace={}", call.name);
    let inject = format!("inject={}:{what}:when={}", call.name, call.number);
    let strace = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    finish(&mut machine.under("strace", &strace, &job.arguments()))
}

/// So many of them, all if there are no more, beginning anywhere and always far from those before.
pub fn some(calls: &[Call], number: usize, chance: u64) -> impl Iterator<Item = &Call> {
    let all = calls.len();
    let divisor = |a: usize, b: usize| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // The golden ratio leaves the most even gaps; without a common divisor, each is met once.
    let step = (all * 618 / 1000..).find(|step| divisor(*step, all) <= 1).unwrap_or(1);
    let first = chance as usize % all.max(1);
    (0..all.min(number)).map(move |index| &calls[(first + index * step) % all])
}
