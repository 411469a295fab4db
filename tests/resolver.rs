//! A resolver and its Archives, each a process of the built binary.

mod api;
mod asking;
mod clients;
mod commands;
mod continuity;
mod editions;
mod evidence;
mod explained;
mod foreign_copies;
mod forms;
mod holders;
mod hostile;
mod index_status;
mod indexed;
mod language;
mod life;
mod one_command;
mod outcomes;
mod registration;
mod relations;
mod schemes;
pub(crate) mod scripted;
mod secrets;
mod secure;
mod several_originals;
mod side_by_side;
mod spelled_apart;
mod targets;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Run, ibi};
use crate::online::client::{Reply, ask};
use crate::online::server::Server;
use crate::online::{Folder, until};
use scripted::Scripted;

/// The public base of persistent URLs. The tests do not reach the resolver by that name.
const PUBLIC: &str = "http://resolver.test";

/// The service of the resolver, the standard's.
const SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// A resolver in its own folder, with its own address, which is known before it listens.
pub(crate) struct Resolver {
    place: TempDir,
    pub(crate) at: String,
}

impl Resolver {
    pub(crate) fn new() -> Self {
        let resolver = Self { place: tempfile::tempdir().unwrap(), at: address() };
        let run = resolver.run("init", &["--public-url", PUBLIC]);
        assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        resolver
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// `ibi resolver COMMAND --data …`.
    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> Run {
        let data = self.data().display().to_string();
        let mut all: Vec<&str> = std::iter::once("resolver").chain(command.split(' ')).collect();
        all.extend(["--data", &data]);
        all.extend_from_slice(arguments);
        ibi(&all)
    }

    /// The same with `--json`, which must succeed.
    pub(crate) fn json(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let run = self.run(command, &[arguments, &["--json"]].concat());
        assert_eq!(run.status, 0, "{command}: {}", run.stderr);
        run.json()
    }

    /// Registers an Archive and returns the generated key.
    pub(crate) fn register(&self, service: &str) -> String {
        let made = self.json("register", &["--service", service]).pop().unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// The secret of a new token.
    pub(crate) fn token(&self) -> String {
        let made = self.json("token create", &["--name", "Ana"]).pop().unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&["--allow-private"])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Server {
        Server::run(&["resolver", "serve", "--listen", &self.at], &self.data(), arguments)
    }

    /// Registers an Archive unless it is registered, puts it online and waits until the resolver
    /// queries it there.
    pub(crate) fn on_line(&self, folder: &Folder) -> Server {
        let key = folder.place.path().join("key");
        if !key.exists() {
            fs::write(&key, self.register(&folder.service)).unwrap();
        }
        let url = format!("http://{}", self.at);
        let server = folder.serve_with(&["--resolver", &url, "--key-file", &key.display().to_string()]);
        until("it is online", || self.standing(&folder.service) == ("online".to_owned(), server.at.clone()));
        server
    }

    /// The standing and the address of an Archive, as the running resolver reports them.
    pub(crate) fn standing(&self, service: &str) -> (String, String) {
        let listed = ask(&self.at, "GET", "/api/v1/archives", "", b"").json();
        let all = listed["archives"].as_array().unwrap();
        // Changes by a command are seen with a short delay.
        let archive = all.iter().find(|archive| archive["service"] == service).unwrap_or(&Value::Null);
        let text = |name: &str| archive[name].as_str().unwrap_or_default().to_owned();
        (text("standing"), text("address"))
    }
}

/// A loopback address that nothing else uses.
fn address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let (number, process) = (COUNT.fetch_add(1, Ordering::Relaxed), std::process::id());
    format!("127.{}.{}.{}:8642", 1 + process / 250 % 250, 1 + process % 250, 1 + number % 250)
}

/// The redirect target of a client.
fn location(reply: &Reply) -> &str {
    assert_eq!(reply.status, 302, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    let location = reply.header("location");
    assert_eq!(reply.text(), format!("{location}\n"));
    location
}

/// Follows the redirect.
fn follow(reply: &Reply) -> Reply {
    let (at, path) = location(reply).strip_prefix("http://").unwrap().split_once('/').unwrap();
    let found = ask(at, "GET", &format!("/{path}"), "", b"");
    assert_eq!(found.status, 200, "{at}/{path}: {}", found.text());
    found
}

/// The value of a metric, if present.
fn figure(server: &Server, name: &str) -> String {
    let text = server.get("/metrics").text();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_default().to_owned()
}
