//! An Archive on line, through the built binary and a socket.

mod access;
mod api;
mod client;
mod commands;
mod counts;
mod damage;
mod drafts;
mod feed;
mod files;
mod hostile;
mod names;
mod resolver;
mod roles;
mod secrets;
mod service;
mod stop;
mod traversal;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{IBI, Run, ibi};
use client::{Reply, ask, exchange};

/// An Archive in a folder of its own, with a prefix of its own. Its claims go with it.
struct Folder {
    place: TempDir,
    host: String,
    service: String,
}

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = tempfile::tempdir().unwrap();
        let host = format!("o{}x{number}.online.test", std::process::id());
        let mut folder = Self { place, host, service: String::new() };
        let run = folder.archive("init", &["--host", &folder.host, "--allow-private"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let listed = folder.archive("list", &[]).json();
        folder.service = rep(&listed[0]);
        folder
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// `ibi archive COMMAND --data … --json`.
    fn archive(&self, command: &str, arguments: &[&str]) -> Run {
        let data = self.data().display().to_string();
        let mut all: Vec<&str> = std::iter::once("archive").chain(command.split(' ')).collect();
        all.extend(["--data", &data, "--json"]);
        all.extend_from_slice(arguments);
        ibi(&all)
    }

    /// Deposits files, which may be named in any bytes, and returns the `rep` of the item.
    fn deposit(&self, files: &[(&[u8], &[u8])], arguments: &[&str]) -> String {
        let from = self.folder(files).display().to_string();
        let mut all = vec![from.as_str()];
        all.extend_from_slice(arguments);
        let run = self.archive("deposit", &all);
        assert_eq!(run.status, 0, "{}", run.stderr);
        rep(&run.json()[0])
    }

    /// A folder of files, as a deposit is made from.
    fn folder(&self, files: &[(&[u8], &[u8])]) -> PathBuf {
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
    fn token(&self, role: &str) -> String {
        let run = self.archive("token create", &["--role", role, "--name", role]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let made = run.json().pop().unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    fn serve_with(&self, arguments: &[&str]) -> Server {
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

/// A server at work. It is told to stop when it is dropped.
struct Server {
    child: Child,
    /// Host and port.
    at: String,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Server {
    fn start(data: &Path, arguments: &[&str]) -> Self {
        // What it prints is its address on the Web: with one of its own, the port must be known before.
        let named = arguments.contains(&"--address");
        let listen = if named { free() } else { "127.0.0.1:0".to_owned() };
        let mut child = Command::new(IBI)
            .args(["archive", "serve", "--listen", &listen, "--data"])
            .arg(data)
            .args(arguments)
            .env("IBI_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let reading = {
            let (log, stderr) = (Arc::clone(&log), BufReader::new(child.stderr.take().unwrap()));
            thread::spawn(move || {
                for line in stderr.split(b'\n').map_while(Result::ok) {
                    *log.lock().unwrap() += &(String::from_utf8(line).unwrap() + "\n");
                }
            })
        };
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("http://").map(|at| at.trim_end_matches('/').to_owned());
        assert!(at.is_some(), "it did not start: {}", log.lock().unwrap());
        let at = if named { listen } else { at.unwrap() };
        Self { child, at, log, reading: Some(reading) }
    }

    fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    /// `headers` are whole lines.
    fn get_with(&self, path: &str, headers: &str) -> Reply {
        ask(&self.at, "GET", path, headers, b"")
    }

    /// A request to the API, with a token or without. A body that is not empty is sent as it is.
    fn api(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Reply {
        let token =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        ask(&self.at, method, &format!("/api/v1{path}"), &token, body)
    }

    /// What raw bytes are answered with.
    fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        exchange(&self.at, bytes)
    }

    /// A request to the Archive service.
    fn service(&self, folder: &Folder, query: &str) -> Reply {
        self.get(&format!("/{}?{query}", folder.service))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Stops it as an operator does, and returns how it ended and its whole log.
    fn stop(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        (self.end(), self.log())
    }

    /// Waits for its end.
    fn end(&mut self) -> Option<i32> {
        let status = self.child.wait().unwrap().code();
        self.reading.take().map(JoinHandle::join);
        status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.reading.is_some() {
            let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
            let _ = self.child.wait();
        }
    }
}

fn rep(item: &Value) -> String {
    item["rep"].as_str().unwrap().to_owned()
}

/// An address that nobody listens on.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let so = (0..600).any(|_| {
        let so = is_so();
        if !so {
            thread::sleep(Duration::from_millis(50));
        }
        so
    });
    assert!(so, "never: {what}");
}

/// What a program of the system says of some bytes.
fn filter(program: &str, bytes: &[u8]) -> String {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), bytes).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    said
}

/// Bytes in which no block is like another.
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
