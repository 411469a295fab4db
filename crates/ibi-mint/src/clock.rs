//! The clocks of the machine, handed in so that tests can step them.

use std::time::{Duration, SystemTime};

use ibi_id::Instant;
use ibi_store::BootTime;

/// What both clocks say at one moment.
#[derive(Debug, Clone)]
pub struct ClockReading {
    /// The wall clock, which anybody can set.
    pub wall: Instant,
    /// The boot clock, which nobody can.
    pub boot: BootTime,
}

/// The clocks of a machine.
pub trait MintClock: Send + Sync {
    /// Reads both.
    fn read(&self) -> ClockReading;

    /// Sleeps for about so long.
    fn sleep(&self, time: Duration);
}

/// The clocks of this machine.
#[derive(Debug)]
pub struct SystemClock {
    machine: String,
    boot: String,
}

impl SystemClock {
    /// Finds out which machine and which boot this is.
    pub fn new() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
        // A machine that does not tell its boots apart: every start counts as a new one, which is
        // safe.
        let machine = read("/etc/machine-id").unwrap_or_else(|_| "unknown".to_owned());
        let boot = read("/proc/sys/kernel/random/boot_id");
        let boot = boot.unwrap_or_else(|_| format!("unknown-{}-{}", std::process::id(), since_boot()));
        Self { machine: single_word(machine), boot: single_word(boot) }
    }
}

/// Nanoseconds since the machine was started, sleep included.
fn since_boot() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A name that is one word in a file of lines.
fn single_word(mut text: String) -> String {
    text.retain(|c| c.is_ascii_graphic());
    if text.is_empty() { "unknown".to_owned() } else { text }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl MintClock for SystemClock {
    fn read(&self) -> ClockReading {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that is handed in")]
        let now = SystemTime::now();
        let wall = match now.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Instant::new(since.as_secs().cast_signed(), u64::from(since.subsec_nanos()) * 1000),
            // Before 1970: as far back as a label can tell, and surely before any mark.
            Err(_) => Some(Instant::MIN),
        };
        let boot = BootTime { machine: self.machine.clone(), id: self.boot.clone(), nanos: since_boot() };
        ClockReading { wall: wall.unwrap_or(Instant::MAX), boot }
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// How long it is from one instant to a later one; zero if it is not later.
pub(crate) fn duration_between(from: Instant, to: Instant) -> Duration {
    if to <= from {
        return Duration::ZERO;
    }
    let (seconds, picos) =
        (to.seconds() - from.seconds(), to.picos().cast_signed() - from.picos().cast_signed());
    let (seconds, picos) =
        if picos < 0 { (seconds - 1, picos + 1_000_000_000_000) } else { (seconds, picos) };
    // Rounded up: whoever waits so long has waited long enough.
    Duration::new(seconds.unsigned_abs(), 0) + Duration::from_nanos(picos.unsigned_abs().div_ceil(1000))
}
