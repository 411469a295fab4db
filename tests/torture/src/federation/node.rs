//! One Archive of the ten: its folder, its server, and what it is asked.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Patience;
use super::asking::{Answer, ask, number, text};
use super::resolver::Resolver;
use crate::machine::{Ended, Machine, finish};

/// For a server to come online or to leave, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Node {
    ibi: String,
    pub data: PathBuf,
    pub log: PathBuf,
    port: u16,
    pub url: String,
    operator: String,
    /// What each of the others is known by here.
    pub holders: Vec<String>,
    /// The label of its service.
    pub service: String,
    /// Where its resolver is, and the key that it comes online with.
    resolver: String,
    key: PathBuf,
    server: Mutex<Option<Child>>,
}

/// How an item stands at an Archive.
pub struct Stand {
    pub state: String,
    pub epoch: u64,
    pub source: Option<String>,
    pub whole: String,
}

impl Node {
    /// A new Archive, with tokens for so many others.
    pub fn new(machine: &Machine, resolver: &Resolver, number: usize, others: usize) -> Self {
        let folder = machine.home.join("federation");
        fs::create_dir_all(&folder).expect("room");
        let port = free_port();
        let mut node = Self {
            ibi: machine.ibi.clone(),
            data: folder.join(format!("{number}")),
            log: folder.join(format!("{number}.log")),
            port,
            url: format!("http://127.0.0.1:{port}"),
            operator: String::new(),
            holders: Vec::new(),
            service: String::new(),
            resolver: resolver.url(),
            key: folder.join(format!("{number}.key")),
            server: Mutex::default(),
        };
        let host = format!("n{number}.{}", machine.host());
        let printed = node.must(&["archive", "init", "--host", &host, "--allow-private"]);
        node.service = printed.split(['\t', '\n']).next().unwrap_or_default().to_owned();
        let key = format!("{:010}", 1_234_567_890 + number);
        fs::write(&node.key, &key).expect("room");
        resolver.register(&node.service, &key);
        node.operator = node.token("operator", "librarian");
        node.holders = (0..others).map(|other| node.token("holder", &format!("n{other}"))).collect();
        node
    }

    fn token(&self, role: &str, name: &str) -> String {
        let said = self.must(&["archive", "token", "create", "--role", role, "--name", name]);
        said.lines().last().unwrap_or_default().to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.ibi);
        command.env("IBI_ALLOW_PRIVATE", "yes");
        command.args(arguments).arg("--data").arg(&self.data);
        command
    }

    /// A command that may be refused.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        finish(&mut self.command(arguments))
    }

    /// One that may not.
    pub fn must(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.said);
        ended.printed
    }

    /// Asks its API, as its operator.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Option<Answer> {
        ask(self.port, method, path, &self.operator, body)
    }

    /// How an item stands here; nothing if it is not here, or nobody answers.
    pub fn stand(&self, item: &str) -> Option<Stand> {
        let answer = self.ask("GET", &format!("/items/{item}/transfer"), "")?;
        let whole = answer.body;
        let source = text(&whole, "source").map(str::to_owned);
        Some(Stand {
            state: text(&whole, "state")?.to_owned(),
            epoch: number(&whole, "epoch")?,
            source,
            whole,
        })
        .filter(|_| answer.status == 200)
    }

    /// Puts it online.
    pub fn start(&self) -> Result<(), String> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        self.start_in(&mut server)
    }

    fn start_in(&self, server: &mut Option<Child>) -> Result<(), String> {
        let log = File::options().create(true).append(true).open(&self.log).expect("room");
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command =
            self.command(&["archive", "serve", "--listen", &listen, "--resolver", &self.resolver]);
        command.arg("--key-file").arg(&self.key);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
        let child = server.insert(child);
        let time = Patience::new(PATIENCE);
        while time.lasts() {
            if self.ask("GET", "/items?limit=1", "").is_some() {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("{} does not come online: {status}", self.data.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} does not come online", self.data.display()))
    }

    /// Takes it offline: kindly, or with kill -9. If it is to come back, that is after a pause.
    pub fn stop(&self, kindly: bool, back: Option<Duration>) -> Result<(), String> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stopped = Ok(());
        if let Some(mut child) = server.take() {
            if kindly {
                stopped = leave(&mut child).map_err(|why| format!("{}: {why}", self.data.display()));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        let Some(pause) = back else { return stopped };
        std::thread::sleep(pause);
        self.start_in(&mut server).and(stopped)
    }
}

/// Free just now; nobody else here is given it soon.
pub fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
    free.expect("a free port").port()
}

/// Told to stop, a server does.
fn leave(child: &mut Child) -> Result<(), String> {
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(told.is_ok_and(|told| told.success()), "our own child");
    let time = Patience::new(PATIENCE);
    while time.lasts() {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("told to stop, it ended with {status}")),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    Err("told to stop, it does not".to_owned())
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.stop(false, None);
    }
}
