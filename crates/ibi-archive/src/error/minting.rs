//! Why no label was given out.

use std::sync::Arc;
use std::time::Duration;

use ibi_id::{Instant, NotUnique};
use ibi_store::StoreError;

/// A request that was refused. Nothing was given out; unless it says so, nothing was consumed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It would take longer than the caller allows.
    #[error("{}", would_wait(.need, .allowed, *.now, *.ahead))]
    WouldWait {
        /// How long it would take.
        need: Duration,
        /// How long the caller allows.
        allowed: Duration,
        /// What the clock says.
        now: Instant,
        /// The end of the dates that are taken already, if that lies ahead of the clock.
        ahead: Option<Instant>,
    },
    /// A longer wait than any caller may allow.
    #[error("a wait of {} is too long: {} is the most, so that the minter never runs far ahead of the clock",
        seconds(.asked), seconds(.most))]
    WaitTooLong {
        /// What the caller asked for.
        asked: Duration,
        /// The most.
        most: Duration,
    },
    /// More labels than one call may ask for, or none.
    #[error("{asked} labels cannot be minted in one call: from 1 to {most}")]
    Count {
        /// What the caller asked for.
        asked: usize,
        /// The most.
        most: usize,
    },
    /// The 2011 edition has no other granularity than a second.
    #[error("this minter follows the 2011 edition, which counts whole seconds: take the granularity 1")]
    Granularity2011,
    /// Too many wait already.
    #[error("too many requests are waiting already: try again later")]
    Full,
    /// The years have run out.
    #[error("no date is left: the years end with 9999")]
    NoDateLeft,
    /// The clock went back while a label waited for its time: the labels are lost, none was given out.
    #[error(
        "the clock was set back by more than the allowed wait while labels waited for their time: they are lost"
    )]
    ClockSetBackWhileWaiting,
    /// The minter has stopped until an operator confirms.
    #[error("{0}")]
    Stopped(Stop),
    /// The prefix is not unique in the world.
    #[error(
        "{from} is not unique in the world: {reason}. If you know that and want it all the same, say --allow-private"
    )]
    NotUnique {
        /// The host or the address.
        from: String,
        /// Why it is not.
        reason: NotUnique,
    },
    /// A subsystem without prefix.
    #[error("a minter needs a host name, an IP address, or both")]
    NoPrefix,
    /// A host name so long that labels under it would be too long.
    #[error(
        "the prefix of this host has {length} characters, and {most} is the most: labels would be too long"
    )]
    PrefixTooLong {
        /// How long it is.
        length: usize,
        /// The most.
        most: usize,
    },
    /// An address cannot tell instants before 1995-08-01.
    #[error("the clock stands before 1995-08-01, which labels of an IP address cannot tell: set it right")]
    BeforeIbip,
    /// The store could not do its work.
    #[error("{0}")]
    Store(#[source] Arc<StoreError>),
    /// The one who was serving this request died.
    #[error("the request was lost inside the minter: nothing was given out")]
    Abandoned,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Refusal::Store(Arc::new(error))
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Refusal::Stopped(stop)
    }
}

/// Why a minter has stopped until an operator confirms with `recover` (clause 1.6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The wall clock gained more on the boot clock than it may.
    #[error(
        "the clock was set forward by {} since the last label (it says {now}). If it is right now, run `ibi minter \
         recover`; if not, set it right", seconds(.by)
    )]
    ClockJumped {
        /// By how much.
        by: Duration,
        /// What it says.
        now: Instant,
    },
    /// After a reboot, more time has passed than is plausible.
    #[error(
        "the clock says {now}, {} days after the last label, and the machine was started anew since. If the clock is \
         right, run `ibi minter recover`; if not, set it right", .gap.as_secs() / 86_400
    )]
    LongGap {
        /// The gap.
        gap: Duration,
        /// What the clock says.
        now: Instant,
    },
    /// After a reboot, the clock stands before the last label.
    #[error(
        "the clock says {now}, which is before the last label ({last}), and the machine was started anew since. Set \
         the clock right; if it is, the last label was minted with a clock that was ahead: run `ibi minter recover`"
    )]
    ClockBehind {
        /// What the clock says.
        now: Instant,
        /// The last mark.
        last: Instant,
    },
    /// The state does not know of labels that this machine remembers.
    #[error(
        "labels up to {seen} were given out that the minter's state, which ends at {last}, does not know of: an older \
         state was put back, or another folder had the prefix. Run `ibi minter recover` to go on around them"
    )]
    Restored {
        /// Where the state ends.
        last: Instant,
        /// What was given out.
        seen: Instant,
    },
    /// The state cannot be read whole.
    #[error(
        "the minter's state is damaged: a mark cannot be read. Check the disk; then `ibi minter recover` goes on from \
         this instant, which is safe only if the clock is right"
    )]
    Damaged,
}

fn seconds(time: &Duration) -> String {
    let whole = time.as_secs();
    match (whole, time.subsec_nanos()) {
        (0, nanos) if nanos < 1_000_000 => format!("{nanos} ns"),
        (0, nanos) => format!("{} ms", nanos.div_ceil(1_000_000)),
        (_, 0) => format!("{whole} s"),
        (_, nanos) => format!("{whole}.{:03} s", nanos / 1_000_000),
    }
}

fn would_wait(need: &Duration, allowed: &Duration, now: Instant, ahead: Option<Instant>) -> String {
    let wait = format!("this would need a wait of {}, and {} is allowed", seconds(need), seconds(allowed));
    match ahead {
        None => format!("{wait}: allow more (--max-wait), ask for fewer labels, or take a finer granularity"),
        Some(last) => format!(
            "{wait}: instants up to {last} are taken, and the clock says {now}. If the clock is behind, set it right. If \
             it is right, wait until then; or, if they were taken while the clock was ahead, `ibi minter recover` goes on \
             from now"
        ),
    }
}
