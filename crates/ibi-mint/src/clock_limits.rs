//! When the clock is not trusted (clause 1.6): one mint with a clock in 2030 would block the prefix
//! for years.

use std::time::Duration;

use ibi_store::MintMark;

use crate::MinterHalt;
use crate::clock::{ClockReading, duration_between};

/// The longest wait that a caller may allow: the minter never runs further ahead of the clock.
pub const MAX_MINT_WAIT: Duration = Duration::from_secs(300);

/// How much the clock may do before an operator is asked.
#[derive(Debug, Clone, Copy)]
pub struct ClockLimits {
    /// What the wall clock may gain on the boot clock between two mints of one boot.
    pub gain: Duration,
    /// The longest time between the last mint and the first after a reboot.
    pub gap: Duration,
}

impl Default for ClockLimits {
    /// 5 minutes, and 400 days.
    fn default() -> Self {
        Self { gain: Duration::from_secs(300), gap: Duration::from_secs(400 * 86_400) }
    }
}

impl ClockLimits {
    /// Whether the clock may be believed, given what it said when the mark was made.
    pub(crate) fn check(&self, mark: &MintMark, now: &ClockReading) -> Result<(), MinterHalt> {
        if (&mark.boot.id, &mark.boot.machine) == (&now.boot.id, &now.boot.machine) {
            let true_time = Duration::from_nanos(now.boot.nanos.saturating_sub(mark.boot.nanos));
            let gained = duration_between(mark.wall, now.wall).saturating_sub(true_time);
            if gained > self.gain {
                return Err(MinterHalt::ClockJumped { by: gained, now: now.wall });
            }
            return Ok(());
        }
        if now.wall < mark.last {
            return Err(MinterHalt::ClockBehind { now: now.wall, last: mark.last });
        }
        let gap = duration_between(mark.wall, now.wall);
        if gap > self.gap {
            return Err(MinterHalt::LongGap { gap, now: now.wall });
        }
        Ok(())
    }
}
