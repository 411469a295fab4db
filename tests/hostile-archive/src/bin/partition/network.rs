//! The namespaces of the Archives, and the ways in which they are cut off.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::process::must;
use crate::world::PartitionArchive;

/// How an Archive is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFault {
    /// Nothing arrives or leaves, and nobody is told (nftables).
    BlackHole,
    /// Its connections are reset (nftables).
    Reset,
    /// Its link is down.
    Partition,
}

/// A namespace with one link to the bridge of this one.
pub struct ArchiveNamespace {
    pub name: String,
    /// Its end of the link in this namespace.
    link: String,
}

/// The bridge of this namespace, and its address.
pub fn make_bridge() -> Result<(), String> {
    ip("link set lo up")?;
    ip("link add br0 type bridge")?;
    ip("addr add 10.77.0.1/16 dev br0")?;
    ip("link set br0 up")
}

impl ArchiveNamespace {
    pub fn new(number: usize, address: &str) -> Result<Self, String> {
        let name = format!("ibi-p{}-{number}", std::process::id());
        let namespace = Self { link: format!("v{number}"), name: name.clone() };
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add v{number} type veth peer name eth0 netns {name}"))?;
        ip(&format!("link set v{number} master br0 up"))?;
        ip(&format!("-n {name} addr add {address}/16 dev eth0"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} link set eth0 up"))?;
        Ok(namespace)
    }

    /// A program in the namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    pub fn cut(&self, fault: ArchiveFault) -> Result<(), String> {
        match fault {
            ArchiveFault::BlackHole => {
                self.filter("input", "iifname eth0 drop")?;
                self.filter("output", "oifname eth0 drop")
            }
            ArchiveFault::Reset => {
                self.filter("input", "iifname eth0 meta l4proto tcp reject with tcp reset")
            }
            ArchiveFault::Partition => ip(&format!("link set {} down", self.link)),
        }
    }

    pub fn heal(&self, fault: ArchiveFault) -> Result<(), String> {
        match fault {
            ArchiveFault::BlackHole | ArchiveFault::Reset => self.nft("flush ruleset\n"),
            ArchiveFault::Partition => ip(&format!("link set {} up", self.link)),
        }
    }

    /// Adds a rule for what arrives (`input`) or leaves (`output`).
    fn filter(&self, hook: &str, rule: &str) -> Result<(), String> {
        let chain = format!("type filter hook {hook} priority 0; policy accept; {rule};");
        self.nft(&format!("table inet partition {{ chain {hook}_rules {{ {chain} }}; }}\n"))
    }

    fn nft(&self, rules: &str) -> Result<(), String> {
        let mut command = self.command("nft");
        let command = command.args(["-f", "-"]).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("nft: {why}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(rules.as_bytes()).map_err(|why| format!("nft: {why}"))?;
        }
        let status = child.wait().map_err(|why| format!("nft: {why}"))?;
        if status.success() { Ok(()) } else { Err(format!("nft refuses these rules: {rules}")) }
    }
}

impl Drop for ArchiveNamespace {
    fn drop(&mut self) {
        let _ = ip(&format!("netns del {}", self.name));
    }
}

/// Heals everything that was cut off.
pub fn heal(archives: &[PartitionArchive], faults: &[Option<ArchiveFault>]) -> Result<(), String> {
    for (archive, fault) in archives.iter().zip(faults) {
        if let Some(fault) = fault {
            archive.namespace.heal(*fault)?;
        }
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<(), String> {
    must(Command::new("ip").args(arguments.split(' '))).map(drop)
}
