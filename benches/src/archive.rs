//! The Archive beside what the same disk, processor and database do without it.

pub(crate) mod large;
pub(crate) mod lookup;
mod rebuild;
pub(crate) mod table;

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
pub(crate) struct Place {
    folder: PathBuf,
    pub(crate) ibi: String,
    host: String,
}

impl Place {
    pub(crate) fn new(folder: &str, ibi: &str) -> Self {
        let number = std::process::id();
        let folder = Path::new(folder).join(format!("ibi-bench-{number}"));
        fs::create_dir_all(&folder).expect("room for a folder");
        let folder = folder.canonicalize().expect("just made");
        Self { folder, ibi: ibi.to_owned(), host: format!("a{number}.bench.test") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts an Archive anew.
    pub(crate) fn init(&self) {
        let _ = fs::remove_dir_all(self.path("data"));
        self.forget();
        self.archive(&["init", "--host", &self.host, "--allow-private"]);
    }

    /// `ibi archive …`, and how long it took.
    pub(crate) fn archive(&self, arguments: &[&str]) -> Duration {
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

    /// The same, and the label of the Archive service.
    pub(crate) fn init_told(&self) -> String {
        self.init();
        self.told(&["list"]).split_whitespace().next().expect("the service").to_owned()
    }

    /// Deposits a file, and tells its label.
    pub(crate) fn deposited(&self, file: &str) -> String {
        self.told(&["deposit", file]).split_whitespace().next().expect("a label").to_owned()
    }

    /// A token that allows everything.
    pub(crate) fn token(&self) -> String {
        self.told(&["token", "create", "--role", "operator"]).trim().to_owned()
    }

    fn told(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.ibi)
            .arg("archive")
            .args(arguments)
            .arg("--data")
            .arg(self.path("data"))
            .stderr(Stdio::null())
            .output()
            .expect("the built binary");
        String::from_utf8(output.stdout).expect("text")
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
pub(crate) fn judge(name: &str, ratio: f64, bar: f64, details: &str) -> bool {
    let verdict = if ratio >= bar { "met" } else { "MISSED" };
    println!("{name:<14} {ratio:>6.2} times, bar {bar}: {verdict} ({details})");
    ratio >= bar
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Waits until the disk has nothing to do for others.
pub(crate) fn settle() {
    rustix::fs::sync();
}
