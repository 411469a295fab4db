//! An Archive online, which may be killed and started again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use super::address::{Address, Answer};
use super::trap::{Trap, last_words};
use crate::archive::trial::{copy_folder, is_copied};
use crate::machine::{Machine, finish, stopwatch};

/// An Archive online.
pub struct Side {
    pub address: Address,
    pub trap: Trap,
    /// As it was in the beginning.
    pub start: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Side {
    pub fn new(machine: &Machine, home: &Path, name: &str, port: u16) -> Self {
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

    /// Puts it online; what it said, if it does not come.
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

    /// As it was in the beginning.
    pub fn lay_out(&mut self) {
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
