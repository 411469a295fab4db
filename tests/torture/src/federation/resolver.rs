//! The resolver of the ten: it finds Archives for one another, and persistent URLs lead through it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Patience;
use super::asking::{Led, follow};
use super::node::free_port;
use crate::machine::{Machine, finish};

/// For a resolver to come online, on a loaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Resolver {
    ibi: String,
    data: PathBuf,
    pub log: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Resolver {
    pub fn new(machine: &Machine, ibi: &str) -> Self {
        let folder = machine.home.join("federation");
        fs::create_dir_all(&folder).expect("room");
        let (data, log) = (folder.join("resolver"), folder.join("resolver.log"));
        let resolver = Self { ibi: ibi.to_owned(), data, log, port: free_port(), server: None };
        resolver.must(&["init", "--public-url", "http://resolver.test"]);
        resolver
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Lets an Archive come online with this key.
    pub fn register(&self, service: &str, key: &str) {
        self.must(&["register", "--service", service, "--key", key]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.ibi);
        command.env("IBI_ALLOW_PRIVATE", "yes");
        command.arg("resolver").args(arguments).arg("--data").arg(&self.data);
        command
    }

    fn must(&self, arguments: &[&str]) {
        let ended = finish(&mut self.command(arguments));
        assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.said);
    }

    pub fn start(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log).expect("room");
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = self.command(&["serve", "--listen", &listen, "--allow-private"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.server = Some(child.expect("it starts"));
        let time = Patience::new(START_TIMEOUT);
        while follow(self.port, "").is_none() {
            assert!(time.lasts(), "the resolver does not come online");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where a persistent URL leads; nothing if there was no whole answer.
    pub fn follow(&self, url: &str) -> Option<Led> {
        follow(self.port, url)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
