//! Power cuts, simulated (`powercut.c`, built beside this program).

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::machine::Machine;

/// A filesystem that forgets what was not synced.
pub struct PowerCut {
    /// What the disk holds while nothing is mounted.
    pub volatile: PathBuf,
    durable: PathBuf,
    mount: PathBuf,
}

impl PowerCut {
    /// Below a folder of the machine's home.
    pub fn new(machine: &Machine, below: &str) -> Self {
        let new = |name: &str| {
            let path = machine.home.join(name);
            fs::create_dir_all(&path).expect("room for a folder");
            path
        };
        Self { volatile: new("volatile"), durable: new("durable"), mount: new(below) }
    }

    pub fn mount(&self) {
        let filesystem = std::env::var("POWERCUT").expect("POWERCUT names the filesystem's program");
        let status = Command::new(filesystem)
            .args(["-s".as_ref(), self.mount.as_os_str()])
            .env("PC_V", &self.volatile)
            .env("PC_D", &self.durable)
            .status()
            .expect("it starts");
        assert!(status.success(), "the filesystem cannot be mounted (is /dev/fuse there?)");
    }

    /// Until the filesystem has laid out what is durable; it holds a lock so long.
    pub fn unmount(&self) {
        let unmounted = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.mount).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "the filesystem cannot be unmounted");
        let ended = Command::new("flock").args(["-w", "60"]).arg(&self.durable).arg("true").status();
        assert!(ended.is_ok_and(|status| status.success()), "the filesystem is still in use");
    }

    /// Throws away what is volatile and puts in its place what is durable.
    pub fn cut(&self) {
        self.unmount();
        fs::remove_dir_all(&self.volatile).expect("ours");
        fs::rename(self.durable.join("disk"), &self.volatile).expect("laid out when it was unmounted");
    }
}

impl Drop for PowerCut {
    /// For one that something went wrong with.
    fn drop(&mut self) {
        let mut unmount = Command::new("fusermount3");
        let _ = unmount.args(["-u", "-z"]).arg(&self.mount).stderr(Stdio::null()).status();
    }
}
