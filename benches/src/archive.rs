//! The Archive beside what the same disk, processor and database do without it.

mod large;
mod lookup;
mod rebuild;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Comparison = fn(&Place) -> bool;

const ALL: [(&str, Comparison); 4] = [
    ("large", large::compare),
    ("table", table::compare),
    ("lookup", lookup::compare),
    ("rebuild", rebuild::compare),
];

/// Runs all of them, or the one of this name, in a folder on the disk to measure.
pub fn compare(folder: &str, ibi: &str, name: Option<&str>) -> ExitCode {
    let place = Place::new(folder, ibi);
    let chosen = ALL.iter().filter(|(known, _)| name.is_none_or(|name| name == *known));
    let met: Vec<bool> = chosen.map(|(_, compare)| compare(&place)).collect();
    if met.into_iter().all(|met| met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A folder of its own, with an Archive.
struct Place {
    folder: PathBuf,
    ibi: String,
    host: String,
}

impl Place {
    fn new(folder: &str, ibi: &str) -> Self {
        let number = std::process::id();
        let folder = Path::new(folder).join(format!("ibi-bench-{number}"));
        fs::create_dir_all(&folder).expect("room for a folder");
        let folder = folder.canonicalize().expect("just made");
        Self { folder, ibi: ibi.to_owned(), host: format!("a{number}.bench.test") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts an Archive anew.
    fn init(&self) {
        let _ = fs::remove_dir_all(self.path("data"));
        self.forget();
        self.archive(&["init", "--host", &self.host, "--allow-private"]);
    }

    /// `ibi archive …`, and how long it took.
    fn archive(&self, arguments: &[&str]) -> Duration {
        let start = Instant::now();
        let status = Command::new(&self.ibi)
            .arg("archive")
            .args(arguments)
            .arg("--data")
            .arg(self.path("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the built binary");
        assert!(status.success(), "ibi archive {arguments:?}: {status}");
        start.elapsed()
    }

    fn forget(&self) {
        let (machine, domain) = self.host.split_once('.').expect("a name with a dot");
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-{domain}+{machine}"));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.forget();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Says a ratio beside its bar, and whether it is met. A ratio above the bar is better.
fn judge(name: &str, ratio: f64, bar: f64, details: &str) -> bool {
    let verdict = if ratio >= bar { "met" } else { "MISSED" };
    println!("{name:<14} {ratio:>6.2} times, bar {bar}: {verdict} ({details})");
    ratio >= bar
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Waits until the disk has nothing to do for others.
fn settle() {
    rustix::fs::sync();
}
