//! A memory cgroup of version 1 or 2 for one resolver. Where there is none, nothing is judged.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The memory of a resolver, in bytes.
pub const RESOLVER_MEMORY: u64 = 256 << 20;

pub struct ResolverCgroup {
    folder: PathBuf,
    peak: &'static str,
    events: &'static str,
}

impl ResolverCgroup {
    pub fn new(lane: usize) -> Result<Self, String> {
        let root = PathBuf::from("/sys/fs/cgroup");
        let name = format!("ibi-hostile-archive-{}-{lane}", std::process::id());
        let (folder, limit, peak, events) = if root.join("cgroup.controllers").exists() {
            // Version 2: children have the controller only if that is said.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
            (root.join(name), "memory.max", "memory.peak", "memory.events")
        } else {
            let (limit, peak) = ("memory.limit_in_bytes", "memory.max_usage_in_bytes");
            (root.join("memory").join(name), limit, peak, "memory.oom_control")
        };
        let failed =
            |why| format!("no memory cgroup can be made ({}): {why}; run this as root", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let cgroup = Self { folder, peak, events };
        fs::write(cgroup.folder.join(limit), RESOLVER_MEMORY.to_string())
            .map_err(|why| format!("there is no memory controller: {why}"))?;
        // Nothing is swapped out.
        let _ = fs::write(cgroup.folder.join("memory.swap.max"), "0");
        Ok(cgroup)
    }

    /// The file that a process writes its number to, to be in it.
    pub fn procs(&self) -> String {
        self.folder.join("cgroup.procs").display().to_string()
    }

    /// Bytes, with those of files that the kernel keeps in memory.
    pub fn peak(&self) -> u64 {
        self.read(self.peak).trim().parse().unwrap_or(0)
    }

    /// How many processes were killed because there was no memory left.
    pub fn killed(&self) -> u64 {
        let events = self.read(self.events);
        events.lines().find_map(|line| line.strip_prefix("oom_kill ")).map_or(0, |n| n.parse().unwrap_or(0))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }
}

impl Drop for ResolverCgroup {
    fn drop(&mut self) {
        // What was killed leaves a moment later.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
