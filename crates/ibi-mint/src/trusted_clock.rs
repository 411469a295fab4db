//! The clock for access decisions: never ahead of what the minter would trust (clauses 1.6 and
//! 2.2).
//!
//! An embargo must not end because somebody set the clock forward. While minting refuses the clock,
//! time continues from the last mint by the boot clock, which nobody can set. After a reboot it
//! stands still until the operator has recovered the minter.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use ibi_store::FileMarkStorage;

use crate::MinterHalt;
use crate::clock::{ClockReading, MintClock as _, SystemClock};
use crate::clock_limits::ClockLimits;

/// How long a mark is cached, in nanoseconds.
const MARK_LIFETIME_NANOS: u64 = 1_000_000_000;

/// How long after the last change the clock is trusted without a minter's mark, in seconds.
const MAX_UNMARKED_SECONDS: i64 = 300;

/// A larger step of the wall clock relative to the boot clock causes the mark to be read again at
/// once, in seconds.
const CLOCK_STEP_SECONDS: i64 = 1;

/// The machine's clock, limited by what the minter of a data folder trusts.
#[derive(Debug)]
pub struct TrustedClock {
    data: PathBuf,
    clock: SystemClock,
    /// By the boot clock; 0 is never.
    checked: AtomicU64,
    /// The wall clock less the boot clock, then.
    offset: AtomicI64,
    /// How far the wall clock is ahead of what is believed, in seconds.
    ahead: AtomicI64,
    is_refused: AtomicBool,
}

impl TrustedClock {
    /// The clock of a data folder.
    pub fn new(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            clock: SystemClock::new(),
            checked: AtomicU64::new(0),
            offset: AtomicI64::new(0),
            ahead: AtomicI64::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    /// The trusted time, in seconds since the Unix epoch.
    pub fn unix_seconds(&self) -> i64 {
        let now = self.clock.read();
        let offset = now.wall.seconds() - (now.boot.nanos / 1_000_000_000).cast_signed();
        let checked = self.checked.load(Ordering::Acquire);
        let is_old = checked == 0 || now.boot.nanos.saturating_sub(checked) > MARK_LIFETIME_NANOS;
        if is_old || (offset - self.offset.load(Ordering::Acquire)).abs() > CLOCK_STEP_SECONDS {
            let ahead = self.measure_lead(&now);
            self.ahead.store(ahead, Ordering::Release);
            self.offset.store(offset, Ordering::Release);
            self.checked.store(now.boot.nanos.max(1), Ordering::Release);
        }
        now.wall.seconds() - self.ahead.load(Ordering::Acquire)
    }

    /// Whether the machine's clock is ahead of the trusted time.
    pub fn is_refused(&self) -> bool {
        self.unix_seconds();
        self.is_refused.load(Ordering::Acquire)
    }

    fn measure_lead(&self, now: &ClockReading) -> i64 {
        let mark = FileMarkStorage::read_current(&self.data).ok().and_then(|state| match state.mark {
            Ok(mark) => Some(mark),
            Err(damage) => damage.readable.into_iter().next_back(),
        });
        let Some(mark) = mark else { return self.lead_since_change(now) };
        let stop = ClockLimits::default().check(&mark, now).err();
        let ahead = match &stop {
            Some(MinterHalt::ClockJumped { by, .. }) => by.as_secs(),
            Some(MinterHalt::LongGap { gap, .. }) => gap.as_secs(),
            _ => 0,
        };
        let was_refused = self.is_refused.swap(ahead > 0, Ordering::AcqRel);
        if let Some(stop) = stop.filter(|_| ahead > 0 && !was_refused) {
            tell(&stop);
        }
        ahead.cast_signed()
    }

    /// Without a mark the minter refuses everything; then the trusted time is that of the Archive's
    /// last change.
    fn lead_since_change(&self, now: &ClockReading) -> i64 {
        let changed = std::fs::metadata(self.data.join("journal")).and_then(|file| file.modified()).ok();
        let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let changed = changed.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0);
        let ahead = now.wall.seconds() - changed;
        let is_refused = ahead > MAX_UNMARKED_SECONDS;
        self.is_refused.store(is_refused, Ordering::Release);
        if is_refused { ahead } else { 0 }
    }
}

fn tell(stop: &MinterHalt) {
    tracing::error!(error = %stop, "clock not trusted: embargoes stay closed");
}
