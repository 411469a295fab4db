//! The Archive online: server on one core, load on the other.

mod ask;
mod bare;
mod copy;
mod file;
mod load;
mod warm;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::archive::Place;

pub use bare::serve as serve_bare;
pub use warm::{serve_feeds, serve_redirects};

type Comparison = fn(&Place) -> bool;

const ALL: [(&str, Comparison); 4] =
    [("ask", ask::compare), ("file", file::compare), ("copy", copy::compare), ("warm", warm::compare)];

/// Runs all of them in a folder on the disk to measure.
pub fn compare(folder: &str, ibi: &str, name: Option<&str>) -> ExitCode {
    // We are the load.
    pin(std::process::id(), 1);
    let place = Place::new(folder, ibi);
    let chosen = ALL.iter().filter(|(known, _)| name.is_none_or(|name| name == *known));
    let met: Vec<bool> = chosen.map(|(_, compare)| compare(&place)).collect();
    if met.into_iter().all(|met| met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A server on the first core, stopped when it is dropped.
pub(crate) struct Server {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
}

impl Server {
    /// Starts a command that prints its address when it listens.
    pub(crate) fn start(command: &[&str]) -> Self {
        let mut child = Command::new("taskset")
            .args(["-c", "0"])
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("taskset");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        assert!(!address.is_empty(), "{command:?} did not start");
        Self { child, address }
    }

    fn archive(place: &Place) -> Self {
        let data = place.path("data").display().to_string();
        Self::start(&[&place.ibi, "archive", "serve", "--data", &data, "--listen", "127.0.0.1:0"])
    }

    /// Seconds of processor time so far, of it and its children.
    fn processor(&self) -> f64 {
        processor(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Seconds of processor time that a process took so far.
fn processor(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("Linux");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().expect("ticks")).sum();
    ticks as f64 / 100.0
}

pub(crate) fn pin(process: u32, core: u32) {
    let pinned = Command::new("taskset")
        .args(["-a", "-cp", &core.to_string(), &process.to_string()])
        .stdout(Stdio::null())
        .status();
    assert!(pinned.is_ok_and(|status| status.success()), "taskset");
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
