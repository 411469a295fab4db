//! The scenarios: each plays rounds of one kind of trouble.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::ledger::Ledger;
use crate::machine::{Ended, Machine, finish, kill_after};
use crate::powercut::PowerCut;

/// Longer than any wait that `ibi mint` allows by itself.
const PATIENCE: Duration = Duration::from_secs(12);

/// kill -9 at random moments, with the clock stepped at each start: nine times of ten by at most 3
/// s, else by up to a day back or an hour ahead, where an operator has to confirm.
pub fn kill(mut machine: Machine, rounds: usize) -> Ledger {
    machine.init();
    let mut ledger = Ledger::default();
    for _ in 0..rounds {
        let near = machine.chance.below(10) > 0;
        let offset = match near {
            true => machine.chance.near(),
            false => machine.chance.below(90_000_000).cast_signed() - 86_400_000,
        };
        let gave = mint_and_kill(&mut machine, offset, &mut ledger);
        if near {
            ledger.near += 1;
            ledger.near_gave += usize::from(gave > 0);
        }
    }
    ledger
}

/// One start, killed in the middle; refused, it is recovered and started once more. How many labels
/// it gave.
fn mint_and_kill(machine: &mut Machine, offset: i64, ledger: &mut Ledger) -> usize {
    let number = [1, 7, 1000, 6000][machine.chance.below(4) as usize].to_string();
    let after = Duration::from_micros(machine.chance.below(3000));
    let start = |machine: &Machine, ledger: &mut Ledger| {
        ledger.starts += 1;
        let ended = kill_after(&mut machine.ibi(&["mint", "-n", &number], offset), after, PATIENCE);
        (ledger.take(&ended.printed), ended)
    };
    let (gave, ended) = start(machine, ledger);
    if ended.status != Some(4) {
        return gave;
    }
    if gave > 0 {
        ledger.wrongs.push(format!("refused and gave labels: {}", ended.said));
    }
    ledger.recoveries += 1;
    let recovered = finish(&mut machine.ibi(&["minter", "recover"], offset));
    if recovered.status != Some(0) {
        ledger.wrongs.push(format!("cannot recover: {}", recovered.said));
    }
    start(machine, ledger).0
}

/// Power cuts: what was not synced is gone, and so is what a reboot takes away.
pub fn power(mut machine: Machine, rounds: usize) -> Ledger {
    let disk = PowerCut::new(&machine, "data/minter");
    disk.mount();
    machine.init();
    let mut ledger = Ledger::default();
    for _ in 0..rounds {
        // What was acknowledged is there, beginning with the start of the prefix itself.
        disk.cut();
        machine.forget_claims();
        disk.mount();
        let offset = machine.chance.near();
        let gave = mint_and_kill(&mut machine, offset, &mut ledger);
        ledger.near += 1;
        ledger.near_gave += usize::from(gave > 0);
    }
    disk.unmount();
    ledger
}

/// Calls that change the disk, as strace names them.
const CHANGES: &str = "openat,mkdir,write,pwrite64,fsync,fdatasync,rename";

/// Every sync fails once (by strace and by a preloaded library), and the process is killed at every
/// call that changes the disk, of init, mint and recover.
pub fn sync(machine: Machine, rounds: usize) -> Ledger {
    let mut ledger = Ledger::default();
    // Killed at each call of init: it can be started after, or is started.
    killed_at_each_call(&machine, "init", &mut ledger);
    for _ in 0..rounds {
        for how in ["strace", "preload"] {
            let ended = with_failing_sync(&machine, how);
            ledger.starts += 1;
            let gave = ledger.take(&ended.printed);
            if gave > 0 || ended.status != Some(4) || !ended.said.contains("could not be made durable") {
                ledger.wrongs.push(format!(
                    "{how}: gave {gave} labels with status {:?}: {}",
                    ended.status, ended.said
                ));
            }
            mint(&machine, &mut ledger);
        }
        killed_at_each_call(&machine, "mint", &mut ledger);
        killed_at_each_call(&machine, "recover", &mut ledger);
    }
    ledger
}

fn with_failing_sync(machine: &Machine, how: &str) -> Ended {
    let mut command = match how {
        "strace" => machine.under(
            "strace",
            &[
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=fdatasync",
                "-e",
                "inject=fdatasync:error=EIO:when=1",
            ],
            &["mint", "-n", "3"],
        ),
        _ => {
            let mut command = machine.under("env", &[], &["mint", "-n", "3"]);
            command.env("LD_PRELOAD", std::env::var("FAILSYNC").expect("FAILSYNC names the library"));
            command
        }
    };
    finish(&mut command)
}

fn killed_at_each_call(machine: &Machine, what: &str, ledger: &mut Ledger) {
    for call in 1.. {
        assert!(call < 500, "{what} never ends");
        let inject = format!("inject={CHANGES}:signal=SIGKILL:when={call}");
        let trace = format!("trace={CHANGES}");
        let strace = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        let ended = match what {
            "init" => {
                let init = machine.init_command();
                let mut command = Command::new("strace");
                command.args(strace).arg(init.get_program()).args(init.get_args());
                finish(&mut command)
            }
            "mint" => finish(&mut machine.under("strace", &strace, &["mint", "-n", "3"])),
            _ => finish(&mut machine.under("strace", &strace, &["minter", "recover"])),
        };
        ledger.starts += 1;
        ledger.take(&ended.printed);
        if what == "init" {
            let again = finish(&mut machine.init_command());
            // Killed late, there is a minter already.
            let made = || finish(&mut machine.ibi(&["minter", "show"], 0)).status == Some(0);
            if again.status != Some(0) && !made() {
                ledger.wrongs.push(format!("init killed at call {call}: {}", again.said));
            }
            mint(machine, ledger);
            let _ = fs::remove_dir_all(machine.data().join("minter"));
        } else {
            mint(machine, ledger);
        }
        // strace ends with the status of the command; killed, it has none, or 128 and more.
        if ended.status.is_some_and(|status| status < 128) {
            break;
        }
    }
    if what == "init" {
        machine.init();
    }
}

/// A start that nothing happens to: it must give a label.
fn mint(machine: &Machine, ledger: &mut Ledger) {
    ledger.starts += 1;
    let ended = finish(&mut machine.ibi(&["mint"], 0));
    if ledger.take(&ended.printed) == 0 {
        ledger.wrongs.push(format!("no label: {}", ended.said));
    }
}

/// An older state is put back, in every way one might, within the same minute and under a right
/// clock.
pub fn restore(machine: Machine, rounds: usize) -> Ledger {
    machine.init();
    let mut ledger = Ledger::default();
    let (state, home) = (machine.data().join("minter/state"), machine.data().join("minter"));
    let aside = machine.home.join("aside");
    for round in 0..rounds {
        mint(&machine, &mut ledger);
        let backup = fs::read(&state).expect("it is there");
        for _ in 0..3 {
            mint(&machine, &mut ledger);
        }
        match round % 5 {
            // Written over.
            0 => fs::write(&state, &backup).expect("room"),
            // A new file in its place.
            1 => {
                fs::remove_file(&state).expect("it is there");
                fs::write(&state, &backup).expect("room");
            }
            // A new folder in its place.
            2 => {
                fs::rename(&home, &aside).expect("ours");
                fs::create_dir(&home).expect("room");
                fs::write(&state, &backup).expect("room");
                fs::remove_dir_all(&aside).expect("ours");
            }
            // After what a reboot takes away.
            3 => {
                fs::write(&state, &backup).expect("room");
                machine.forget_claims();
            }
            // And lost altogether.
            _ => fs::remove_file(&state).expect("it is there"),
        }
        ledger.starts += 1;
        let ended = finish(&mut machine.ibi(&["mint"], 0));
        if ledger.take(&ended.printed) == 0 {
            if ended.status != Some(4) {
                ledger.wrongs.push(format!("neither minted nor refused: {}", ended.said));
            }
            ledger.recoveries += 1;
            let recovered = finish(&mut machine.ibi(&["minter", "recover"], 0));
            if recovered.status != Some(0) {
                machine.init();
            }
            mint(&machine, &mut ledger);
        }
        mint(&machine, &mut ledger);
    }
    ledger
}

/// A full disk: nothing can be started on it, but what was started goes on, for its room is its
/// own.
pub fn full(machine: Machine) -> Ledger {
    let mut ledger = Ledger::default();
    let data = machine.data();
    let mount = |arguments: &[&str]| {
        let status = Command::new(arguments[0]).args(&arguments[1..]).arg(&data).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot {arguments:?} (only root can)");
    };
    mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]);
    let fill = |data: &Path| while fs::write(data.join("filler"), vec![0; 1 << 20]).is_ok() {};
    fill(&data);
    let refused = finish(&mut machine.init_command());
    if refused.status != Some(4) || !refused.said.contains("No space left") {
        ledger.wrongs.push(format!("started on a full disk: {:?} {}", refused.status, refused.said));
    }
    fs::remove_file(data.join("filler")).expect("it is there");
    let _ = fs::remove_dir_all(data.join("minter"));
    machine.init();
    fill(&data);
    for _ in 0..5 {
        mint(&machine, &mut ledger);
    }
    mount(&["umount"]);
    ledger
}
