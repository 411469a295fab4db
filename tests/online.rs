//! An Archive online, through the built binary and a socket.

mod access;
mod api;
mod behind;
mod by_whom;
mod charset;
pub(crate) mod client;
mod clocks;
mod commands;
mod counts;
mod damage;
mod drafts;
mod feed;
mod files;
mod hostile;
mod inert;
mod links_check;
mod names;
mod own_address;
mod pages;
mod resolver;
mod roles;
mod secrets;
pub(crate) mod server;
mod service;
mod stop;
mod targets;
mod traversal;
mod warnings;

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Run, ibi};
use client::{Reply, ask};
use server::Server;

/// An Archive in its own folder, with its own prefix. Its claims are removed with it.
pub(crate) struct Folder {
    pub(crate) place: TempDir,
    host: String,
    pub(crate) service: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self::begun_with(&[])
    }

    /// The same, with more arguments for `ibi archive init`.
    pub(crate) fn begun_with(more: &[&str]) -> Self {
        Self::in_place(tempfile::tempdir().unwrap(), more)
    }

    /// The same in an existing folder.
    pub(crate) fn in_place(place: TempDir, more: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let host = format!("o{}x{number}.online.test", std::process::id());
        let mut folder = Self { place, host, service: String::new() };
        let run = folder.archive("init", &[&["--host", &folder.host, "--allow-private"], more].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        let settings = folder.archive("settings", &[]).json();
        folder.service = settings[0]["service"][0].as_str().unwrap().to_owned();
        folder
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// `ibi archive COMMAND --data … --json`.
    pub(crate) fn archive(&self, command: &str, arguments: &[&str]) -> Run {
        let data = self.data().display().to_string();
        let mut all: Vec<&str> = std::iter::once("archive").chain(command.split(' ')).collect();
        all.extend(["--data", &data, "--json"]);
        all.extend_from_slice(arguments);
        ibi(&all)
    }

    /// Deposits files, which may be named in any bytes, and returns the `rep` of the item.
    pub(crate) fn deposit(&self, files: &[(&[u8], &[u8])], arguments: &[&str]) -> String {
        rep(&self.put(files, arguments))
    }

    /// Deposits files, and returns the JSON of the item.
    pub(crate) fn put(&self, files: &[(&[u8], &[u8])], arguments: &[&str]) -> Value {
        let from = self.folder(files).display().to_string();
        let mut all = vec![from.as_str()];
        all.extend_from_slice(arguments);
        let run = self.archive("deposit", &all);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json().remove(0)
    }

    /// A folder with files, to be deposited.
    pub(crate) fn folder(&self, files: &[(&[u8], &[u8])]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = self.place.path().join("folder");
        let _ = fs::remove_dir_all(&folder);
        for (name, bytes) in files {
            let path = folder.join(std::ffi::OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    /// The secret of a new token.
    pub(crate) fn token(&self, role: &str) -> String {
        // No token may have the operator's name.
        let name = if role == "operator" { "librarian" } else { role };
        let named = self.archive("token create", &["--role", role, "--name", name]);
        // Names are unique: the second token of a role is named after its id.
        let run = if named.status == 0 { named } else { self.archive("token create", &["--role", role]) };
        assert_eq!(run.status, 0, "{}", run.stderr);
        let made = run.json().pop().unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    /// Trusts a giver, for one item or for those that nobody knows.
    pub(crate) fn trusts_giver(&self, giver: &str, item: Option<&str>) {
        let data = self.data().display().to_string();
        let said = ["archive", "givers", "trust", "--data", &data, giver];
        let run = ibi(&said.into_iter().chain(item).collect::<Vec<_>>());
        assert_eq!(run.status, 0, "{}", run.stderr);
    }

    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Server {
        Server::start(&self.data(), arguments)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let (machine, domain) = self.host.split_once('.').unwrap();
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-{domain}+{machine}"));
        }
    }
}

pub(crate) fn rep(item: &Value) -> String {
    item["rep"].as_str().unwrap().to_owned()
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let so = (0..600).any(|_| {
        let so = is_so();
        if !so {
            thread::sleep(Duration::from_millis(50));
        }
        so
    });
    assert!(so, "never: {what}");
}

/// The output of a system program for some bytes.
pub(crate) fn filter(program: &str, bytes: &[u8]) -> String {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), bytes).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    said
}

/// Bytes without two equal blocks.
fn bytes(many: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(many)
    .collect()
}
