//! A real filesystem in a file: ext4, which holds back what it is not told to write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::Machine;

pub struct Image {
    file: PathBuf,
    mount: PathBuf,
}

impl Image {
    /// Mounted on the data folder.
    pub fn new(machine: &Machine, megabytes: u64) -> Self {
        Self::at(machine, &machine.data(), megabytes)
    }

    /// Mounted on any folder.
    pub fn at(machine: &Machine, mount: &Path, megabytes: u64) -> Self {
        let image = Self { file: machine.home.join("image"), mount: mount.to_owned() };
        let file = fs::File::create(&image.file).expect("room");
        file.set_len(megabytes << 20).expect("it may have holes");
        must(Command::new("mkfs.ext4").args(["-q", "-F", "-i", "4096"]).arg(&image.file));
        image.mount();
        fs::remove_dir(image.mount.join("lost+found")).expect("it is empty");
        image
    }

    /// Its journal is written every five minutes, or when something is synced.
    fn mount(&self) {
        must(Command::new("mount").args(["-o", "loop,commit=300"]).args([&self.file, &self.mount]));
    }

    fn unmount(&self) {
        must(Command::new("umount").arg(&self.mount));
    }

    /// Cuts the power, and brings it back: what had not reached the disk is gone.
    pub fn cut(&self) {
        let unplug = std::env::var("UNPLUG").expect("UNPLUG names the program that pulls the plug");
        must(Command::new(unplug).arg(&self.mount));
        self.unmount();
        self.mount();
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.mount).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
        }
    }
}

fn must(command: &mut Command) {
    let status = command.status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed (only root can)");
}
