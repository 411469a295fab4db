//! Why minting failed.

use std::sync::Arc;
use std::time::Duration;

use ibi_id::{Instant, NotUnique};
use ibi_store::MarkStorageError;

/// A refused request. No label was issued; unless the variant says otherwise, none was consumed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MintError {
    /// The wait would exceed the caller's limit.
    #[error("{}", would_wait(.need, .allowed, *.now, *.ahead))]
    WouldWait {
        /// The required wait.
        need: Duration,
        /// The caller's limit.
        allowed: Duration,
        /// The current time.
        now: Instant,
        /// The end of the dates already used, if it is ahead of the clock.
        ahead: Option<Instant>,
    },
    /// The caller's limit is above the maximum.
    #[error("a wait of {} is too long: {} is the most, so that the minter never runs far ahead of the clock",
        seconds(.asked), seconds(.most))]
    WaitTooLong {
        /// The requested limit.
        asked: Duration,
        /// The maximum.
        most: Duration,
    },
    /// Zero labels, or more than one call may request.
    #[error("{asked} labels cannot be minted in one call: from 1 to {most}")]
    Count {
        /// The requested count.
        asked: usize,
        /// The maximum.
        most: usize,
    },
    /// The 2011 edition supports only a granularity of one second.
    #[error("this minter follows the 2011 edition, which counts whole seconds: take the granularity 1")]
    Granularity2011,
    /// The waiting room is full.
    #[error("too many requests are waiting already: try again later")]
    Full,
    /// The calendar of labels is exhausted.
    #[error("no date is left: the years end with 9999")]
    NoDateLeft,
    /// The clock went back while labels waited for their time. The labels are lost; none was given
    /// out.
    #[error(
        "the clock was set back by more than the allowed wait while labels waited for their time: they are lost"
    )]
    ClockSetBackWhileWaiting,
    /// The minter is halted until an operator confirms.
    #[error("{0}")]
    Stopped(MinterHalt),
    /// The prefix is not globally unique.
    #[error("{from} is not globally unique: {reason}")]
    NotUnique {
        /// The host or the address.
        from: String,
        /// Why it is not unique.
        reason: NotUnique,
    },
    /// A subsystem without a prefix.
    #[error("a minter needs a host name, an IP address, or both")]
    NoPrefix,
    /// A host name that is too long for valid labels.
    #[error(
        "the prefix of this host has {length} characters, and {most} is the most: labels would be too long"
    )]
    PrefixTooLong {
        /// How long it is.
        length: usize,
        /// The maximum.
        most: usize,
    },
    /// Labels of an IP address cannot represent instants before 1995-08-01.
    #[error(
        "the clock reads a time before 1995-08-01, which labels of an IP address cannot represent: \
        correct it"
    )]
    BeforeIbip,
    /// The mark storage failed.
    #[error("{0}")]
    Store(#[source] Arc<MarkStorageError>),
    /// The thread that was serving this request died.
    #[error("the request was lost inside the minter: nothing was given out")]
    Abandoned,
}

/// Why the granularity could not be set.
#[derive(Debug, thiserror::Error)]
pub enum GranularityError {
    /// The minter cannot have it.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] ibi_store::StorageError),
}

impl From<MarkStorageError> for MintError {
    fn from(error: MarkStorageError) -> Self {
        MintError::Store(Arc::new(error))
    }
}

impl From<MinterHalt> for MintError {
    fn from(stop: MinterHalt) -> Self {
        MintError::Stopped(stop)
    }
}

/// Why a minter is halted until an operator confirms with `recover` (clause 1.6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MinterHalt {
    /// The wall clock advanced too far relative to the boot clock.
    #[error(
        "the clock was set forward by {} since the last label (it says {now}). If it is right now, run `ibi \
         minter recover`; if not, correct it", seconds(.by)
    )]
    ClockJumped {
        /// By how much.
        by: Duration,
        /// The current time.
        now: Instant,
    },
    /// An implausibly long time has passed since the last label, across a reboot.
    #[error(
        "the clock says {now}, {} days after the last label, and the machine was rebooted since. If the \
         clock is right, run `ibi minter recover`; if not, correct it", .gap.as_secs() / 86_400
    )]
    LongGap {
        /// The gap.
        gap: Duration,
        /// The current time.
        now: Instant,
    },
    /// After a reboot, the clock is before the last label.
    #[error(
        "the clock says {now}, which is before the last label ({last}), and the machine was rebooted since. \
         Correct the clock; if it is right, the last label was minted with a clock that was ahead: run `ibi minter recover`"
    )]
    ClockBehind {
        /// The current time.
        now: Instant,
        /// The last mark.
        last: Instant,
    },
    /// The machine remembers labels that the state does not know of: the state is outdated.
    #[error(
        "labels up to {seen} were issued that the minter's state, which ends at {last}, does not contain: \
         an older state was restored, or another folder had the prefix. Run `ibi minter recover` to skip them"
    )]
    Restored {
        /// Where the state ends.
        last: Instant,
        /// The last label that was given out.
        seen: Instant,
    },
    /// The state is damaged.
    #[error(
        "the minter's state is damaged: a mark cannot be read. Check the disk; then `ibi minter recover` \
         resumes from this instant, which is safe only if the clock is right"
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
        None => format!("{wait}: allow a longer wait, ask for fewer labels, or choose a finer granularity"),
        Some(last) => format!(
            "{wait}: instants up to {last} are taken, and the clock says {now}. If the clock is behind, \
             correct it. If it is right, wait until then; or, if they were taken while the clock was ahead, `ibi minter recover` resumes from now"
        ),
    }
}
