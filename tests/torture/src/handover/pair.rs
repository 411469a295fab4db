//! Two Archives online, and an item to hand over from one to the other.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::address::{Files, files};
use super::links::Family;
use super::side::Side;
use super::trap::{Trap, last_words};
use crate::archive::jobs::text;
use crate::archive::trial::copy_folder;
use crate::machine::{Machine, finish};

pub struct Pair {
    pub giver: Side,
    pub taker: Side,
    /// For the command that begins a hand-over.
    pub trap: Trap,
    /// The item's object, as it was deposited.
    pub files: Files,
    /// What it has links with.
    pub family: Family,
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
        let family = Family::deposit(|arguments| must(data, arguments), &one);
        let path = family.item().to_owned();
        must(data, &["archive", "update", &path, &two]);
        let role = ["archive", "token", "create", "--role", "holder", "--name", "giver"];
        let printed = must(&taker.address.data, &role);
        must(&taker.address.data, &["archive", "givers", "trust", &giver.url()]);
        let token = home.join("token");
        fs::write(&token, printed.lines().last().unwrap_or_default()).expect("room");
        let files = files(&giver.address.data.join("tree").join(&path));
        for side in [&mut giver, &mut taker] {
            side.address.path.clone_from(&path);
            copy_folder(&side.address.data, &side.start);
        }
        let (trap, said) = (Trap::new(home.join("trap-command")), home.join("command.log"));
        Self { giver, taker, trap, files, family, token, said }
    }

    /// As it was in the beginning, and online.
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
        fs::read_to_string(&self.said).is_ok_and(|said| said.contains("transferring to"))
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
