//! A mixed hostile load on a server that has little (docs/security.md, *Memory and processor*): 512
//! MB of memory (a cgroup) and 256 descriptors, ten hostile addresses with twenty connections each,
//! and one honest address, all in network namespaces of their own. The server is never killed,
//! answers `/livez`, and honest clients are served within five times of what they wait for alone.

mod attack;
mod holdings;
mod honest;
mod http;
mod report;
mod stage;

pub use attack::attack;
pub use honest::ask;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::machine::Machine;
use holdings::Holdings;
use report::{HonestFigures, HostileReport};
use stage::Stage;

/// Addresses that attack.
const HOSTILE_ADDRESSES: usize = 10;
/// Connections from each of them.
pub const CONNECTIONS_PER_ADDRESS: usize = 20;
/// The memory of the server, in bytes.
const SERVER_MEMORY: u64 = 512 << 20;
/// Descriptors of the server.
const SERVER_DESCRIPTORS: u32 = 256;
/// The honest load, in hundredths of what the server can do alone.
const HONEST_LOAD_PERCENT: u64 = 30;

/// Plays the load for so many seconds.
pub fn play(machine: &Machine, seconds: u64) -> HostileReport {
    let holdings = Holdings::prepare(machine);
    let targets = machine.home.join("targets");
    fs::write(&targets, holdings.to_text()).expect("room");
    let stage = Stage::set();
    let mut server = stage.serve(machine, SERVER_MEMORY, SERVER_DESCRIPTORS);
    let mut report = HostileReport::default();

    let alone_seconds = (seconds / 4).clamp(3, 15);
    let honest = |mode: &str, seconds: u64, rate: u64| {
        let arguments = ["honest-client", mode, &stage.address(), &seconds.to_string(), &rate.to_string()];
        let mut command = stage.in_namespace(&stage.honest, &own_program(), &arguments);
        command.arg(&targets).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    report.capacity = figures(honest("capacity", alone_seconds, 0)).a_second;
    let rate = (report.capacity * HONEST_LOAD_PERCENT / 100).max(10);
    report.rate = rate;
    report.alone = figures(honest("open", alone_seconds, rate));

    let attackers: Vec<Child> = stage
        .hostile
        .iter()
        .enumerate()
        .map(|(number, namespace)| {
            // They share the machine with the server, as they would not elsewhere: what they
            // compute themselves comes last.
            let own = own_program();
            let arguments = ["-n", "19", &own, "hostile-client", &stage.address()];
            let mut command = stage.in_namespace(namespace, "nice", &arguments);
            command.args([seconds.to_string(), number.to_string()]).arg(&targets);
            command.stdout(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    // They begin first.
    std::thread::sleep(std::time::Duration::from_millis(500));
    report.attacked = figures(honest("open", seconds.saturating_sub(1).max(1), rate));
    for attacker in attackers {
        let output = attacker.wait_with_output().expect("our child");
        report.add_attack(&String::from_utf8_lossy(&output.stdout));
    }
    report.peak_resident = stage::peak_resident(server.id());
    report.peak_cgroup = stage.peak_memory();
    report.killed_for_memory = stage.killed_for_memory();
    report.ended_early = server.try_wait().ok().flatten().map(|status| status.to_string());
    report.said = last_words(&machine.home.join("server-said"));
    let _ = server.kill();
    let _ = server.wait();
    report
}

fn own_program() -> String {
    let path = std::env::current_exe().expect("this program");
    path.to_str().expect("our own name").to_owned()
}

fn figures(child: Child) -> HonestFigures {
    let output = child.wait_with_output().expect("our child");
    HonestFigures::read(&String::from_utf8_lossy(&output.stdout))
}

fn last_words(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(600)..]).into_owned();
    said.lines().last().unwrap_or_default().to_owned()
}

fn must(command: &mut Command) {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
}
