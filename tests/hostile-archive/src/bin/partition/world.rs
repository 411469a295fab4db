//! Twenty Archives of the built binary with items, and a resolver that follows them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::network::{ArchiveFault, ArchiveNamespace, make_bridge};
use crate::process::{RunningServer, must};

const ARCHIVES: usize = 20;
const KEY: &str = "1234567890-0987654321";
pub const RESOLVER: &str = "10.77.0.1:8642";

pub struct PartitionWorld {
    ibi: String,
    home: PathBuf,
    pub archives: Vec<PartitionArchive>,
    resolver: Option<RunningServer>,
}

pub struct PartitionArchive {
    /// Ends before its namespace does.
    _server: RunningServer,
    pub namespace: ArchiveNamespace,
    pub host: String,
    pub service: String,
    /// Under its own prefix, and under one that nobody has.
    pub labels: [String; 2],
    /// A label under its prefix that it never gave.
    pub unknown: String,
}

impl PartitionWorld {
    pub fn prepare(ibi: &str) -> Result<Self, String> {
        let home = std::env::temp_dir().join(format!("partition-{}", std::process::id()));
        fs::create_dir_all(&home).map_err(|why| format!("{}: {why}", home.display()))?;
        let mut world = Self { ibi: ibi.to_owned(), home, archives: Vec::new(), resolver: None };
        make_bridge()?;
        let written = fs::write(world.home.join("report.txt"), "a report")
            .and_then(|()| fs::write(world.home.join("key"), KEY));
        written.map_err(|why| format!("{}: {why}", world.home.display()))?;
        let made: Vec<Result<([String; 2], String), String>> = std::thread::scope(|scope| {
            let world = &world;
            let made: Vec<_> = (1..=ARCHIVES).map(|number| scope.spawn(move || world.make(number))).collect();
            let join = |one: std::thread::ScopedJoinHandle<'_, _>| {
                one.join().unwrap_or_else(|_| Err("an Archive was not made".to_owned()))
            };
            made.into_iter().map(join).collect()
        });
        world.run("resolver", "resolver", &["init", "--public-url", &format!("http://{RESOLVER}")])?;
        let made: Vec<([String; 2], String)> = made.into_iter().collect::<Result<_, _>>()?;
        for (_, service) in &made {
            world.run("resolver", "resolver", &["register", "--service", service, "--key", KEY])?;
        }
        world.start_resolver()?;
        for (number, (labels, service)) in (1..).zip(made) {
            let archive = world.serve(number, labels, service)?;
            world.archives.push(archive);
        }
        Ok(world)
    }

    /// An Archive with two items: their labels, and that of its service.
    fn make(&self, number: usize) -> Result<([String; 2], String), String> {
        let data = format!("archive{number}");
        // A prefix belongs to one folder of a machine, also when that folder is gone.
        let host = format!("archive.p{}x{number}.test", std::process::id());
        let service = self.run("archive", &data, &["init", "--host", &host, "--allow-private"])?;
        let report = self.home.join("report.txt").display().to_string();
        let own = self.run("archive", &data, &["deposit", &report, "--dc", "title=A report"])?;
        let imported = format!("old{number}.p{}.test/archive/1999/02.03.04.05", std::process::id());
        let deposit = ["deposit", &report, "--dc", "title=An old report", "--label", &imported, "--original"];
        self.run("archive", &data, &deposit)?;
        Ok(([own, imported], service))
    }

    fn serve(&self, number: usize, labels: [String; 2], service: String) -> Result<PartitionArchive, String> {
        let host = format!("10.77.1.{number}");
        let namespace = ArchiveNamespace::new(number, &host)?;
        let address = format!("{host}:8642");
        let mut command = namespace.command(&self.ibi);
        command.args(["archive", "serve", "--allow-private", "--listen", &address, "--address", &address]);
        command.args(["--resolver", &format!("http://{RESOLVER}"), "--key-file"]).arg(self.home.join("key"));
        command.arg("--data").arg(self.home.join(format!("archive{number}"))).env("IBI_LOG", "warn");
        let server = RunningServer::start(&mut command, &self.home.join(format!("archive{number}.log")))?;
        let prefix: Vec<&str> = service.split('/').take(2).collect();
        let unknown = format!("{}/2001/02.03.04.05", prefix.join("/"));
        Ok(PartitionArchive { _server: server, namespace, host, service, labels, unknown })
    }

    fn start_resolver(&mut self) -> Result<(), String> {
        let mut command = Command::new(&self.ibi);
        command.args(["resolver", "serve", "--allow-private", "--listen", RESOLVER]);
        command.args(["--quota", "unknown-address=off", "--data"]).arg(self.home.join("resolver"));
        command.env("IBI_LOG", "warn");
        self.resolver = Some(RunningServer::start(&mut command, &self.home.join("resolver.log"))?);
        Ok(())
    }

    /// Whether the resolver ended by itself, or panicked.
    pub fn resolver_failure(&mut self) -> Option<String> {
        let log = fs::read_to_string(self.home.join("resolver.log")).unwrap_or_default();
        let panic = log.lines().find(|line| line.contains("panicked")).map(str::to_owned);
        self.resolver.as_mut().and_then(RunningServer::ended).or(panic)
    }

    /// Ends the resolver, deletes its index and starts it again.
    pub fn restart_resolver_cold(&mut self) -> Result<(), String> {
        drop(self.resolver.take());
        let index = self.home.join("resolver/locations");
        fs::remove_dir_all(&index).map_err(|why| format!("{}: {why}", index.display()))?;
        self.start_resolver()
    }

    pub fn break_archives(&self, faults: &[Option<ArchiveFault>]) -> Result<(), String> {
        for (archive, fault) in self.archives.iter().zip(faults) {
            if let Some(fault) = fault {
                archive.namespace.cut(*fault)?;
            }
        }
        Ok(())
    }

    /// The operator says that the Archives that are cut off never come back.
    pub fn retire(&self, faults: &[Option<ArchiveFault>]) -> Result<(), String> {
        for (archive, _) in self.archives.iter().zip(faults).filter(|(_, fault)| fault.is_some()) {
            self.run("resolver", "resolver", &["retire", "--service", &archive.service])?;
        }
        Ok(())
    }

    /// Runs a command of the binary: the first word that it prints.
    fn run(&self, group: &str, data: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.ibi);
        command.arg(group).args(arguments).arg("--data").arg(self.home.join(data));
        let printed = must(&mut command)?;
        Ok(printed.split_whitespace().next().unwrap_or_default().to_owned())
    }
}

impl Drop for PartitionWorld {
    fn drop(&mut self) {
        drop(self.resolver.take());
        self.archives.clear();
        let _ = fs::remove_dir_all(&self.home);
    }
}
