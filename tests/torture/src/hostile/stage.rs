//! Where it is played: a network namespace for the server, one for each client, a bridge between
//! them, and a memory cgroup, of version 1 or 2.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{HOSTILE_ADDRESSES, must};
use crate::machine::{Machine, stopwatch};

const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    server: String,
    pub(super) honest: String,
    pub(super) hostile: Vec<String>,
    cgroup: MemoryCgroup,
}

/// What the kernel calls the files of a cgroup.
struct MemoryCgroup {
    folder: PathBuf,
    limit: &'static str,
    peak: &'static str,
    events: &'static str,
}

impl Stage {
    pub(super) fn set() -> Self {
        let process = std::process::id();
        let name = |what: &str| format!("ibi-{process}-{what}");
        let server = name("server");
        let mut names = vec![name("honest")];
        names.extend((1..=HOSTILE_ADDRESSES).map(|number| name(&number.to_string())));
        // Made before anything else, so that it is all taken away again if something goes wrong.
        let stage = Self {
            server: server.clone(),
            honest: names[0].clone(),
            hostile: names[1..].to_vec(),
            cgroup: MemoryCgroup::new(&name("hostile-load")),
        };
        ip(&format!("netns add {server}"));
        ip(&format!("-n {server} link set lo up"));
        ip(&format!("-n {server} link add br0 type bridge"));
        ip(&format!("-n {server} addr add 10.77.0.1/24 dev br0"));
        ip(&format!("-n {server} link set br0 up"));
        for (number, name) in names.iter().enumerate() {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {server} link add v{number} type veth peer name eth0 netns {name}"));
            ip(&format!("-n {server} link set v{number} master br0 up"));
            ip(&format!("-n {name} addr add 10.77.0.{}/24 dev eth0", number + 10));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} link set eth0 up"));
        }
        stage
    }

    pub(super) fn address(&self) -> String {
        "10.77.0.1:8080".to_owned()
    }

    pub(super) fn in_namespace(&self, namespace: &str, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]).args(arguments).stdin(Stdio::null());
        command
    }

    /// The server, in its cgroup and with few descriptors, once it listens.
    pub(super) fn serve(&self, machine: &Machine, memory: u64, descriptors: u32) -> Child {
        self.cgroup.write(self.cgroup.limit, memory);
        let (said, listens) = (machine.home.join("server-said"), machine.home.join("server-listens"));
        let procs = self.cgroup.folder.join("cgroup.procs");
        // The cgroup first: within the namespace its files are out of sight.
        let script = format!(
            "echo $$ > {} && ulimit -n {descriptors} && exec ip netns exec {} \"$@\"",
            procs.display(),
            self.server
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", &machine.ibi, "archive", "serve", "--data"]).arg(machine.data());
        command.args(["--listen", &self.address()]);
        command.args(std::env::var("HOSTILE_SERVE").unwrap_or_default().split_whitespace());
        command.env("IBI_LOG", "warn").stdin(Stdio::null());
        command.stdout(File::create(&listens).expect("room")).stderr(File::create(&said).expect("room"));
        let mut server = command.spawn().expect("it starts");
        let started = stopwatch();
        while fs::metadata(&listens).map_or(0, |file| file.len()) == 0 {
            let ended = server.try_wait().ok().flatten();
            let late = started.elapsed() > START_TIMEOUT;
            assert!(
                ended.is_none() && !late,
                "the server does not start: {}",
                fs::read_to_string(&said).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Bytes, with those of files that the kernel keeps in memory.
    pub(super) fn peak_memory(&self) -> u64 {
        let text = fs::read_to_string(self.cgroup.folder.join(self.cgroup.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// How many processes the kernel killed because there was no memory left.
    pub(super) fn killed_for_memory(&self) -> u64 {
        let text = fs::read_to_string(self.cgroup.folder.join(self.cgroup.events)).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).map_or(0, |n| n.parse().unwrap_or(0))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for name in self.hostile.iter().chain([&self.honest, &self.server]) {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
        // What was killed leaves a moment later.
        for _ in 0..50 {
            if fs::remove_dir(&self.cgroup.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl MemoryCgroup {
    fn new(name: &str) -> Self {
        let root = PathBuf::from("/sys/fs/cgroup");
        let cgroup = if root.join("cgroup.controllers").exists() {
            // Version 2: children have the controller only if that is said.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
            let (limit, peak) = ("memory.max", "memory.peak");
            Self { folder: root.join(name), limit, peak, events: "memory.events" }
        } else {
            let (limit, peak) = ("memory.limit_in_bytes", "memory.max_usage_in_bytes");
            Self { folder: root.join("memory").join(name), limit, peak, events: "memory.oom_control" }
        };
        fs::create_dir(&cgroup.folder).expect("only root can make a memory cgroup (version 1 or 2)");
        assert!(cgroup.folder.join(cgroup.limit).exists(), "there is no memory controller");
        // Nothing is swapped out.
        let _ = fs::write(cgroup.folder.join("memory.swap.max"), "0");
        cgroup
    }

    fn write(&self, file: &str, value: u64) {
        fs::write(self.folder.join(file), value.to_string()).expect("a limit can be set");
    }
}

/// Bytes of a process that were in memory at a time, at most.
pub(super) fn peak_resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

fn ip(arguments: &str) {
    must(Command::new("ip").args(arguments.split(' ')));
}
