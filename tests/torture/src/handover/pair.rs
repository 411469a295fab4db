//! Two Archives on line, and an item to hand over from one to the other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::trap::{Trap, last_words};
use crate::archive::jobs::text;
use crate::archive::trial::{copy_folder, is_copied};
use crate::machine::{Machine, finish, stopwatch};

/// The files of an object, and all their bytes.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What an Archive answers for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It does not answer.
    Down,
    /// It has nothing of it.
    Nothing,
    Copy,
    Original,
    Deleted,
}

impl Answer {
    /// What an item's description says first.
    pub fn told(description: &str) -> Self {
        match description.split("\"state\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
            Some("Original") => Self::Original,
            Some("Copy") => Self::Copy,
            Some("Deleted") => Self::Deleted,
            _ => Self::Nothing,
        }
    }
}

/// Where an Archive is asked, from any thread.
#[derive(Debug, Clone)]
pub struct Address {
    pub data: PathBuf,
    pub port: u16,
    pub path: String,
}

impl Address {
    /// Asks over HTTP, at the address that counts for nothing (`killat.c`).
    pub fn ask(&self) -> Answer {
        let body = || -> std::io::Result<String> {
            let patience = Duration::from_secs(5);
            let address = SocketAddr::from(([127, 0, 0, 2], self.port));
            let mut stream = TcpStream::connect_timeout(&address, patience)?;
            stream.set_read_timeout(Some(patience))?;
            let (path, port) = (&self.path, self.port);
            let head = format!("GET /api/v1/items/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
            stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        match body() {
            Ok(body) if body.starts_with("HTTP/1.1 200") && body.trim_end().ends_with('}') => {
                Answer::told(&body)
            }
            Ok(body) if body.starts_with("HTTP/1.1 404") || body.starts_with("HTTP/1.1 410") => {
                Answer::Nothing
            }
            _ => Answer::Down,
        }
    }

    pub fn journal(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.data.join("journal")).unwrap_or_default()).into_owned()
    }

    /// Whether the journal tells that this happened to the item.
    pub fn has(&self, verb: &str) -> bool {
        let (verb, path) = (format!(" {verb} batch="), format!(" path={} ", self.path));
        self.journal().lines().any(|line| line.contains(&verb) && line.contains(&path))
    }

    pub fn object(&self) -> PathBuf {
        self.data.join("tree").join(&self.path)
    }
}

/// An Archive on line.
pub struct Side {
    pub address: Address,
    pub trap: Trap,
    start: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Side {
    fn new(machine: &Machine, home: &Path, name: &str, port: u16) -> Self {
        let data = home.join(name);
        let host = format!("{name}-{port}.{}", machine.host());
        let ended = finish(&mut machine.at(&data, &["archive", "init", "--host", &host, "--allow-private"]));
        assert_eq!(ended.status, Some(0), "{}", ended.said);
        Self {
            address: Address { data, port, path: String::new() },
            trap: Trap::new(home.join(format!("trap-{name}"))),
            start: home.join(format!("start-{name}")),
            log: home.join(format!("{name}.log")),
            child: None,
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.address.port)
    }

    /// Puts it on line; what it said, if it does not come.
    pub fn start(&mut self, machine: &Machine) -> Result<(), String> {
        let port = self.address.port;
        let (listen, address) = (format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}"));
        let arguments = ["archive", "serve", "--listen", &listen, "--address", &address];
        let mut command = machine.at(&self.address.data, &arguments);
        self.trap.set(&mut command);
        let log = || fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("room");
        command.env("IBI_LOG", "warn").stdin(Stdio::null()).stdout(log()).stderr(log());
        self.child = Some(command.spawn().expect("it starts"));
        let begun = stopwatch();
        while self.address.ask() == Answer::Down {
            if self.is_dead() || begun.elapsed() > Duration::from_secs(30) {
                return Err(format!("it does not start: {}", self.said()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub fn is_dead(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|status| status.is_some()))
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn said(&self) -> String {
        last_words(&self.log)
    }

    /// What it durably is while it is down: what opening a copy of its folder answers.
    pub fn durable(&self, machine: &Machine) -> Answer {
        let copy = self.start.with_extension("dead");
        // The command may just be opening or closing it.
        while !is_copied(&self.address.data, &copy) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = finish(&mut machine.at(&copy, &["archive", "show", &self.address.path, "--json"]));
        Answer::told(&ended.printed)
    }

    fn lay_out(&mut self) {
        self.stop();
        copy_folder(&self.start, &self.address.data);
        self.trap.reset();
        let _ = fs::remove_file(&self.log);
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.stop();
    }
}

pub struct Pair {
    pub giver: Side,
    pub taker: Side,
    /// For the command that begins a hand-over.
    pub trap: Trap,
    /// The item's object, as it was deposited.
    pub files: Files,
    token: PathBuf,
    said: PathBuf,
}

impl Pair {
    /// Two Archives, an item of two versions in one; `sources` has the files of the versions.
    pub fn new(machine: &Machine, home: &Path, sources: &[PathBuf; 2], port: u16) -> Self {
        fs::create_dir_all(home).expect("room");
        let first = free_port(port);
        let mut giver = Side::new(machine, home, "giver", first);
        let mut taker = Side::new(machine, home, "taker", free_port(first + 1));
        let must = |data: &Path, arguments: &[&str]| {
            let ended = finish(&mut machine.at(data, arguments));
            assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.said);
            ended.printed
        };
        let data = &giver.address.data;
        let [one, two] = sources.each_ref().map(|source| text(source));
        let printed = must(data, &["archive", "deposit", &one, "--dc", "title=Handed over"]);
        let path = printed.split(['\t', '\n']).next().unwrap_or_default().to_owned();
        must(data, &["archive", "update", &path, &two]);
        let role = ["archive", "token", "create", "--role", "holder", "--name", "giver"];
        let printed = must(&taker.address.data, &role);
        let token = home.join("token");
        fs::write(&token, printed.lines().last().unwrap_or_default()).expect("room");
        let files = files(&giver.address.data.join("tree").join(&path));
        for side in [&mut giver, &mut taker] {
            side.address.path.clone_from(&path);
            copy_folder(&side.address.data, &side.start);
        }
        let (trap, said) = (Trap::new(home.join("trap-command")), home.join("command.log"));
        Self { giver, taker, trap, files, token, said }
    }

    /// As it was in the beginning, and on line.
    pub fn begin(&mut self, machine: &Machine) -> Result<(), String> {
        self.trap.reset();
        for side in [&mut self.giver, &mut self.taker] {
            side.lay_out();
            side.start(machine)?;
        }
        Ok(())
    }

    /// Those of the giver, the taker and the command.
    pub fn traps(&self) -> [&Trap; 3] {
        [&self.giver.trap, &self.taker.trap, &self.trap]
    }

    pub fn transfer(&self, machine: &Machine, keep: bool) -> Child {
        let (path, to, token) = (&self.giver.address.path, self.taker.url(), text(&self.token));
        let keep = if keep { "copy" } else { "nothing" };
        let arguments = ["archive", "transfer", path, "--to", &to, "--token-file", &token, "--keep", keep];
        let mut command: Command = machine.at(&self.giver.address.data, &arguments);
        self.trap.set(&mut command);
        let log = fs::File::create(&self.said).expect("room");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("it starts")
    }

    /// What the command said last.
    pub fn said(&self) -> String {
        last_words(&self.said)
    }

    /// Whether the command said that it noted a hand-over.
    pub fn has_begun(&self) -> bool {
        fs::read_to_string(&self.said).is_ok_and(|said| said.contains("handing over to"))
    }

    /// Whether a hand-over is noted at the giver.
    pub fn is_handing(&self) -> bool {
        let folder = self.giver.address.data.join("service/handovers");
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    }
}

/// A port that nobody has, below those that connections go out from.
fn free_port(from: u16) -> u16 {
    (from..32_000).find(|&port| TcpListener::bind(("0.0.0.0", port)).is_ok()).expect("a free port")
}

/// All files below a folder; those that go away meanwhile are left out.
pub fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(bytes), Ok(name)) = (fs::read(&path), path.strip_prefix(folder)) {
                found.insert(name.to_owned(), bytes);
            }
        }
    }
    found
}
