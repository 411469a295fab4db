//! What a state on disk is worth: restored, copied, damaged, claimed by others, in this boot and in
//! the next.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ibi_id::{Granularity, Host, Instant};
use ibi_mint::clock::{ClockReading, MintClock};
use ibi_mint::{ClockLimits, DistributorEdition, MintRequest};
use ibi_mint::{MintError, MinterHalt};
use ibi_store::{BootTime, MarkStorageError};
use tempfile::TempDir;

const START: i64 = 1_794_778_003_250;
const DAY: i64 = 86_400_000;

/// A machine with clocks that are set by hand, a place for folders, and a host of its own.
struct Machine {
    /// Wall clock in milliseconds, boot, milliseconds since boot; what sleeping does to the wall
    /// clock besides.
    clocks: Mutex<(i64, u32, u64, i64)>,
    place: TempDir,
    host: String,
    printed: Mutex<HashSet<String>>,
}

impl Machine {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let host = format!("o{}x{}.opening.test", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (clocks, printed) = (Mutex::new((START, 0, 1000, 0)), Mutex::default());
        Self { clocks, place: TempDir::new().unwrap(), host, printed }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Sets the wall clock, without time passing.
    fn set(&self, wall: i64) {
        self.clocks.lock().unwrap().0 = wall;
    }

    fn pass(&self, millis: u64) {
        let mut clocks = self.clocks.lock().unwrap();
        (clocks.0, clocks.2) = (clocks.0 + millis.cast_signed(), clocks.2 + millis);
    }

    fn init(&self, name: &str) -> Result<(), MintError> {
        let host = Host::parse(&self.host).unwrap();
        let from = ibi_mint::MinterConfig {
            host: Some((host, None)),
            ip: None,
            edition: DistributorEdition::Rtc2015,
            allow_private: true,
        };
        // Each state has a name of its own.
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.now().to_be_bytes());
        random[8] = u8::try_from(name.len()).unwrap();
        random[9] = name.as_bytes()[0];
        ibi_mint::init(&self.folder(name), &from, random, &self).map(drop)
    }

    fn now(&self) -> i64 {
        self.clocks.lock().unwrap().0
    }

    /// Mints, and fails the test if a label was minted before.
    fn mint(&self, name: &str, count: usize, granularity: Granularity) -> Result<Vec<Instant>, MintError> {
        let minter = ibi_mint::open(&self.folder(name), self, ClockLimits::default())?;
        let request = MintRequest { count, granularity, max_wait: Duration::from_secs(20) };
        let minted = minter.mint(request)?;
        for label in minted.labels() {
            let rep = label.rep.unwrap();
            assert!(self.printed.lock().unwrap().insert(rep.clone()), "{rep} was minted twice");
        }
        Ok(minted.dates().to_vec())
    }

    fn recover(&self, name: &str) {
        ibi_mint::recover(&self.folder(name), &self).unwrap();
    }

    fn claims(&self) -> [PathBuf; 2] {
        let (word, rest) = self.host.split_once('.').unwrap();
        ["/run/lock", "/var/tmp"].map(|folder| Path::new(folder).join(format!("ibi-{rest}+{word}")))
    }

    fn state(&self, name: &str) -> PathBuf {
        self.folder(name).join("minter/state")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for claim in self.claims() {
            let _ = fs::remove_file(&claim);
            let _ = fs::remove_dir(&claim);
        }
    }
}

impl MintClock for &Machine {
    fn read(&self) -> ClockReading {
        let (wall, boot, since, _) = *self.clocks.lock().unwrap();
        let picos = wall.rem_euclid(1000).unsigned_abs() * 1_000_000_000;
        ClockReading {
            wall: Instant::new(wall.div_euclid(1000), picos).unwrap(),
            boot: BootTime { machine: "m".into(), id: format!("b{boot}"), nanos: since * 1_000_000 },
        }
    }

    fn sleep(&self, time: Duration) {
        let drift = self.clocks.lock().unwrap().3;
        self.pass(u64::try_from(time.as_millis()).unwrap().max(1));
        self.clocks.lock().unwrap().0 += drift;
    }
}

const SECOND: Granularity = Granularity::SECOND;
const NANO: Granularity = Granularity::NANOSECOND;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("minter")).unwrap();
    fs::copy(from.join("minter/state"), to.join("minter/state")).unwrap();
}

/// Without a child process: between its birth and its program it would hold the locks of other
/// tests.
fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[track_caller]
fn stopped<T>(result: Result<T, MintError>) -> MinterHalt {
    match result {
        Err(MintError::Stopped(stop)) => stop,
        Err(other) => unreachable!("refused otherwise: {other}"),
        Ok(_) => unreachable!("not refused"),
    }
}

#[test]
fn what_another_state_gave_out_is_not_forgotten() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    copy(&machine.folder("a"), &machine.folder("backup"));
    machine.mint("a", 2, SECOND).unwrap();
    fs::remove_dir_all(machine.folder("a")).unwrap();
    machine.pass(10);
    machine.init("b").unwrap();
    fs::remove_dir_all(machine.folder("b")).unwrap();
    fs::rename(machine.folder("backup"), machine.folder("a")).unwrap();
    machine.set(machine.now() - 6000);
    assert!(matches!(stopped(machine.mint("a", 3, SECOND)), MinterHalt::Restored { .. }));
    machine.recover("a");
    machine.mint("a", 3, SECOND).unwrap();
}

#[test]
fn labels_ahead_of_the_clock_outlive_the_folder_that_minted_them() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    copy(&machine.folder("a"), &machine.folder("backup"));
    fs::remove_dir_all(machine.folder("a")).unwrap();
    machine.init("b").unwrap();
    machine.set(START + 2 * DAY);
    machine.recover("b");
    machine.mint("b", 2, SECOND).unwrap();
    machine.set(START);
    machine.recover("b");
    fs::remove_dir_all(machine.folder("b")).unwrap();
    fs::rename(machine.folder("backup"), machine.folder("a")).unwrap();
    assert!(matches!(stopped(machine.mint("a", 1, SECOND)), MinterHalt::Restored { .. }));
    machine.recover("a");
    machine.mint("a", 1, SECOND).unwrap();
    machine.set(START + 2 * DAY);
    machine.recover("a");
    machine.mint("a", 3, SECOND).unwrap();
}

#[test]
fn who_takes_over_after_a_reboot_knows_what_the_other_folder_gave_out() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    machine.mint("a", 1, SECOND).unwrap();
    copy(&machine.folder("a"), &machine.folder("b"));
    // Minted a little ahead, within what the clock may gain.
    machine.set(machine.now() + 200_000);
    machine.mint("a", 9, SECOND).unwrap();
    machine.set(machine.now() - 200_000);
    machine.clocks.lock().unwrap().1 += 1;
    fs::remove_file(&machine.claims()[0]).unwrap();
    machine.recover("b");
    machine.mint("b", 5, SECOND).unwrap();
    machine.set(machine.now() + 200_000);
    machine.mint("b", 5, SECOND).unwrap();
}

#[test]
fn a_free_year_is_never_given_up() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    machine.mint("a", 1, NANO).unwrap();
    // A reboot with a clock a year ahead, less than what stops the minter; then more runs than are
    // told apart.
    machine.clocks.lock().unwrap().1 += 1;
    machine.set(START + 365 * DAY);
    for _ in 0..40 {
        machine.pass(130_000);
        machine.mint("a", 1, NANO).unwrap();
    }
    machine.set(START + 10_000_000);
    machine.recover("a");
    machine.pass(1);
    machine.mint("a", 3, NANO).unwrap();
}

#[test]
fn a_state_that_is_a_pipe_is_refused_without_waiting() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    fs::remove_file(machine.state("a")).unwrap();
    make_pipe(&machine.state("a"));
    assert!(matches!(machine.mint("a", 1, NANO), Err(MintError::Store(_))));
    assert!(ibi_mint::read_state(&machine.folder("a")).is_err());
    // A claim that leads there does not make others wait either.
    machine.init("b").unwrap();
}

#[test]
fn either_claim_finds_an_older_state_out() {
    for lost in 0..2 {
        let machine = Machine::new();
        machine.init("a").unwrap();
        let older = fs::read(machine.state("a")).unwrap();
        machine.pass(2000);
        machine.mint("a", 2, SECOND).unwrap();
        fs::write(machine.state("a"), older).unwrap();
        fs::remove_file(&machine.claims()[lost]).unwrap();
        assert!(matches!(stopped(machine.mint("a", 2, SECOND)), MinterHalt::Restored { .. }));
        machine.recover("a");
        machine.mint("a", 2, SECOND).unwrap();
    }
}

#[test]
fn without_claims_or_in_another_boot_the_mark_is_raised_to_now() {
    for reboot in [false, true] {
        let machine = Machine::new();
        machine.init("a").unwrap();
        machine.pass(65_000);
        let older = fs::read(machine.state("a")).unwrap();
        machine.mint("a", 1, NANO).unwrap();
        fs::write(machine.state("a"), older).unwrap();
        if reboot {
            machine.clocks.lock().unwrap().1 += 1;
        }
        machine.claims().iter().for_each(|claim| fs::remove_file(claim).unwrap());
        let now = (&&machine).read().wall;
        machine.pass(3);
        // Without being raised, the short label of the minute would come again.
        assert!(machine.mint("a", 1, NANO).unwrap()[0] > now);
    }
}

#[test]
fn a_copy_of_the_file_is_told_from_it() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    machine.pass(65_000);
    machine.mint("a", 1, NANO).unwrap();
    let bytes = fs::read(machine.state("a")).unwrap();
    fs::write(machine.folder("a").join("new"), bytes).unwrap();
    fs::rename(machine.folder("a").join("new"), machine.state("a")).unwrap();
    machine.pass(65_000);
    let now = (&&machine).read().wall;
    machine.pass(3);
    assert!(machine.mint("a", 1, NANO).unwrap()[0] > now, "raised, so that no minute is given out");
    machine.pass(125_000);
    assert!(
        machine.mint("a", 1, NANO).unwrap()[0] < (&&machine).read().wall,
        "and back to short labels after"
    );
}

#[test]
fn half_a_state_is_trusted_only_if_the_claims_know_it_as_the_last() {
    let damage = |machine: &Machine, sequence: u64| {
        let mut bytes = fs::read(machine.state("a")).unwrap();
        bytes[4096 * (1 + usize::try_from(sequence % 2).unwrap()) + 10] ^= 4;
        fs::write(machine.state("a"), bytes).unwrap();
    };
    let machine = Machine::new();
    machine.init("a").unwrap();
    machine.mint("a", 2, SECOND).unwrap();
    let sequence = ibi_mint::read_state(&machine.folder("a")).unwrap().mark.unwrap().sequence;
    damage(&machine, sequence + 1);
    machine.mint("a", 2, SECOND).unwrap();
    assert!(ibi_mint::read_state(&machine.folder("a")).unwrap().mark.is_ok(), "mended by the next mark");
    damage(&machine, sequence + 1);
    assert_eq!(stopped(machine.mint("a", 2, SECOND)), MinterHalt::Damaged, "the last mark itself");
    machine.recover("a");
    machine.mint("a", 2, SECOND).unwrap();
}

#[test]
fn marks_that_do_not_follow_each_other_are_damage_and_recovery_keeps_what_both_know() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    machine.set(START + 2 * DAY);
    machine.recover("a");
    machine.mint("a", 3, SECOND).unwrap();
    machine.set(START);
    machine.recover("a");
    let older = fs::read(machine.state("a")).unwrap();
    for _ in 0..4 {
        machine.mint("a", 1, SECOND).unwrap();
    }
    // A write that the disk lost: one place is older than it should be.
    let mut bytes = fs::read(machine.state("a")).unwrap();
    bytes[4096..8192].copy_from_slice(&older[4096..8192]);
    fs::write(machine.state("a"), bytes).unwrap();
    machine.claims().iter().for_each(|claim| fs::remove_file(claim).unwrap());
    assert_eq!(stopped(machine.mint("a", 1, SECOND)), MinterHalt::Damaged);
    machine.recover("a");
    machine.mint("a", 3, SECOND).unwrap();
    machine.set(START + 2 * DAY);
    machine.recover("a");
    machine.mint("a", 3, SECOND).unwrap();
}

#[test]
fn a_claim_that_cannot_be_taken_is_somebodys() {
    for which in 0..2 {
        let machine = Machine::new();
        fs::create_dir(&machine.claims()[which]).unwrap();
        let Err(MintError::Store(error)) = machine.init("a") else { unreachable!("not refused") };
        assert!(matches!(*error, MarkStorageError::Claim { .. }), "{error}");
        assert!(!machine.folder("a").exists(), "nothing is left behind");
    }
}

#[test]
fn a_claim_that_is_a_pipe_is_refused_without_waiting() {
    let machine = Machine::new();
    make_pipe(&machine.claims()[0]);
    assert!(matches!(machine.init("a"), Err(MintError::Store(_))));
}

#[test]
fn a_clock_that_goes_back_while_labels_wait_ends_the_wait() {
    let machine = Machine::new();
    machine.init("a").unwrap();
    // Sleeping a while sets the clock back further than the while.
    machine.clocks.lock().unwrap().3 = -1000;
    assert!(matches!(machine.mint("a", 2, SECOND), Err(MintError::ClockSetBackWhileWaiting)));
    machine.clocks.lock().unwrap().3 = 0;
    machine.set(START + 60_000);
    machine.mint("a", 2, SECOND).unwrap();
}
