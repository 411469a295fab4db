//! The binary, the folder it works in, its clock, and chance.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub struct Machine {
    pub ibi: String,
    pub home: PathBuf,
    pub chance: Chance,
    prefixes: [String; 2],
    faketime: String,
}

/// What a process left behind.
pub struct Ended {
    pub printed: String,
    /// Nothing if it was killed.
    pub status: Option<i32>,
    pub said: String,
}

impl Machine {
    pub fn new(ibi: &str, seed: u64) -> Self {
        let home = std::env::temp_dir().join(format!("ibi-torture-{}-{seed}", std::process::id()));
        fs::create_dir_all(home.join("data")).expect("room for a folder");
        let faketime =
            ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/faketime", "/usr/lib"]
                .iter()
                .flat_map(|folder| {
                    [format!("{folder}/faketime/libfaketimeMT.so.1"), format!("{folder}/libfaketimeMT.so.1")]
                })
                .find(|path| fs::exists(path).unwrap_or(false))
                .expect("libfaketime is installed (package faketime)");
        let mut chance = Chance(seed);
        // Prefixes of this process alone: an unallocated word of a name, and an address of the
        // documentation's.
        let process = u64::from(std::process::id());
        let host = format!("t{:x}-{process}.torture.test", chance.next());
        let ip = format!("192.0.2.{}", (chance.next() + process) % 256);
        Self { ibi: ibi.to_owned(), home, chance, prefixes: [host, ip], faketime }
    }

    /// A host name of this process alone.
    pub fn host(&self) -> &str {
        &self.prefixes[0]
    }

    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// `ibi` with arguments and the data folder, its clock off by some milliseconds.
    pub fn ibi(&self, arguments: &[&str], offset: i64) -> Command {
        let mut command = Command::new(&self.ibi);
        command.env("IBI_ALLOW_PRIVATE", "yes");
        command.args(arguments).arg("--data").arg(self.data());
        self.set_clock(&mut command, offset);
        command
    }

    /// The same under another program, which gets `ibi` and its arguments at the end of its own.
    pub fn under(&self, program: &str, its: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(its).arg(&self.ibi).args(arguments).arg("--data").arg(self.data());
        command
    }

    /// The same under the right clock, without help of a library, in any data folder.
    pub fn at(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.ibi);
        command.env("IBI_ALLOW_PRIVATE", "yes");
        command.args(arguments).arg("--data").arg(data);
        command
    }

    fn set_clock(&self, command: &mut Command, offset: i64) {
        let sign = if offset < 0 { '-' } else { '+' };
        let offset = offset.unsigned_abs();
        command
            .env("LD_PRELOAD", &self.faketime)
            .env("FAKETIME", format!("{sign}{}.{:03}", offset / 1000, offset % 1000))
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    }

    /// Starts the prefix.
    pub fn init(&self) {
        let ended = finish(&mut self.init_command());
        assert_eq!(ended.status, Some(0), "{}", ended.said);
    }

    pub fn init_command(&self) -> Command {
        let [host, ip] = &self.prefixes;
        let port = self.port();
        self.ibi(&["minter", "init", "--host", host, "--ip", ip, "--ip-port", &port, "--allow-private"], 0)
    }

    fn port(&self) -> String {
        (1000 + (self.chance.0 % 60_000 + u64::from(std::process::id())) % 60_000).to_string()
    }

    /// Starts an Archive.
    pub fn init_archive(&self) {
        let arguments = self.archive_arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = finish(&mut self.at(&self.data(), &arguments));
        assert_eq!(ended.status, Some(0), "{}", ended.said);
    }

    pub fn archive_arguments(&self) -> Vec<String> {
        let [host, ip] = &self.prefixes;
        let port = self.port();
        let from = ["archive", "init", "--host", host, "--ip", ip, "--ip-port", &port, "--allow-private"];
        from.map(str::to_owned).to_vec()
    }

    /// What this machine remembers of the prefixes: a reboot takes it away, or makes it count for
    /// nothing.
    pub fn forget_claims(&self) {
        for folder in ["/run/lock", "/var/tmp"] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let ours = entry.file_name().to_string_lossy().starts_with("ibi-");
                if ours && names_folder_in(&entry.path(), &self.home) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.forget_claims();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Whether a claim is of a data folder below this one.
fn names_folder_in(claim: &Path, home: &Path) -> bool {
    let hex: String =
        home.as_os_str().as_encoded_bytes().iter().chain(b"/").map(|byte| format!("{byte:02x}")).collect();
    fs::read_to_string(claim).is_ok_and(|text| text.contains(&format!("folder {hex}")))
}

/// libfaketime keeps shared memory named after the process; killed, it leaves it behind, and a
/// later process with that number could not start.
fn sweep() {
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.rsplit('_').next().unwrap_or_default();
        if name.contains("faketime") && !fs::exists(format!("/proc/{process}")).unwrap_or(true) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Ended {
    sweep();
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    Ended {
        printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        status: output.status.code(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a command and kills it some time after it first printed something, or after `patience` if
/// it never does.
pub fn kill_after(command: &mut Command, after: Duration, patience: Duration) -> Ended {
    sweep();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let (sender, first) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut all, mut part) = (Vec::new(), [0; 65536]);
        while let Ok(length @ 1..) = stdout.read(&mut part) {
            all.extend_from_slice(&part[..length]);
            let _ = sender.send(());
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    let talk = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        said
    });
    let killed = match first.recv_timeout(patience) {
        // It printed: some time later, kill it. The channel closes when it ends by itself.
        Ok(()) => {
            std::thread::sleep(after);
            true
        }
        Err(mpsc::RecvTimeoutError::Timeout) => true,
        Err(mpsc::RecvTimeoutError::Disconnected) => false,
    };
    if killed {
        let _ = child.kill();
    }
    let status = child.wait().expect("our child");
    Ended {
        printed: reader.join().expect("it reads"),
        status: status.code(),
        said: talk.join().expect("it reads"),
    }
}

/// Measures how long something takes here; the programs that are tortured have clocks of their own.
#[expect(clippy::disallowed_methods, reason = "it is for waiting, and no test stops it")]
pub fn stopwatch() -> std::time::Instant {
    std::time::Instant::now()
}

/// Random numbers from a seed.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From -3000 to 3000: milliseconds.
    pub fn near(&mut self) -> i64 {
        self.below(6001).cast_signed() - 3000
    }
}
