//! Running server processes, and requests to them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Folder;
use super::client::{Reply, ask, exchange};
use crate::binary::IBI;

/// A running server process, which is stopped when it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// Host and port.
    pub(crate) at: String,
    said: BufReader<ChildStdout>,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Server {
    /// An Archive.
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        // It prints its public address: with `--address`, the port must be known in advance.
        let named = arguments.contains(&"--address");
        let listen = if named { free() } else { "127.0.0.1:0".to_owned() };
        let mut server = Self::run(&["archive", "serve", "--listen", &listen], data, arguments);
        if named {
            server.at = listen;
        }
        server
    }

    /// `ibi COMMAND --data DATA ARGUMENTS`, which prints its address when it listens.
    pub(crate) fn run(command: &[&str], data: &Path, arguments: &[&str]) -> Self {
        Self::spawn(command, data, arguments, false)
    }

    /// An Archive that contacts nothing on this machine.
    pub(crate) fn guarded(data: &Path) -> Self {
        Self::spawn(&["archive", "serve", "--listen", "127.0.0.1:0"], data, &[], true)
    }

    fn spawn(command: &[&str], data: &Path, arguments: &[&str], guarded: bool) -> Self {
        let mut child = Command::new(IBI)
            .args(command)
            .arg("--data")
            .arg(data)
            .args(arguments)
            .env("IBI_LOG", "trace")
            // All servers of the tests are on this machine.
            .env("IBI_ALLOW_PRIVATE", if guarded { "no" } else { "yes" })
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
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let at = line.trim().split_once("://").map(|(_, at)| at.trim_end_matches('/').to_owned());
        assert!(at.is_some(), "it did not start: {}", log.lock().unwrap());
        Self { child, at: at.unwrap(), said, log, reading: Some(reading) }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    /// `headers` are whole lines.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Reply {
        ask(&self.at, "GET", path, headers, b"")
    }

    /// A request to the API, with or without a token. A non-empty body is sent unchanged.
    pub(crate) fn api(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Reply {
        let token =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        ask(&self.at, method, &format!("/api/v1{path}"), &token, body)
    }

    /// The response to raw bytes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        exchange(&self.at, bytes)
    }

    /// A request to the Archive service.
    pub(crate) fn service(&self, folder: &Folder, query: &str) -> Reply {
        self.get(&format!("/{}?{query}", folder.service))
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Its log. Waits until it is complete, because it is written after the response.
    pub(crate) fn log(&self) -> String {
        let now = || self.log.lock().unwrap().clone();
        let mut log = now();
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(60));
            let later = now();
            if later.len() == log.len() {
                break;
            }
            log = later;
        }
        log
    }

    /// Its further output, after it has ended.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Stops it as an operator does, and returns its exit status and its whole log.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        (self.end(), self.log())
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let status = self.child.wait().unwrap().code();
        self.reading.take().map(JoinHandle::join);
        status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.reading.is_some() {
            let id = self.child.id().to_string();
            for signal in ["-TERM", "-CONT"] {
                let _ = Command::new("kill").args([signal, &id]).status();
            }
            let _ = self.child.wait();
        }
        if !thread::panicking() {
            let log = self.log.lock().unwrap();
            assert!(!log.contains("panicked"), "the server panicked: {log}");
        }
    }
}

/// A free address.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
