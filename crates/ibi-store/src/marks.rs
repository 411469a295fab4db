//! What a store of marks keeps, and what it must be able to do.

use std::fmt;
use std::str::FromStr;

use ibi_id::Instant;

use crate::StoreError;

/// One identification subsystem: who mints, fixed when it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subsystem {
    /// A random name of this state, 32 hex digits: two folders that were started apart differ in it.
    pub id: String,
    /// The canonical prefix of its labels of the form `rep`.
    pub rep: Option<String>,
    /// The canonical prefix of its labels of the form `ibip`.
    pub ibip: Option<String>,
    /// The edition of the norm whose distributor it follows.
    pub edition: Edition,
}

/// The edition of the norm whose distributor is followed (clause 1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// RTC-10-I: any granularity.
    Rtc2015,
    /// NBR 16066:2012: whole seconds.
    Nbr2011,
}

impl Edition {
    /// `2015` or `2011`.
    pub const fn name(self) -> &'static str {
        match self {
            Edition::Rtc2015 => "2015",
            Edition::Nbr2011 => "2011",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Edition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "2015" => Ok(Edition::Rtc2015),
            "2011" => Ok(Edition::Nbr2011),
            _ => Err("the editions are 2015 and 2011"),
        }
    }
}

/// How far minting has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Counts the marks of one state, from 1.
    pub sequence: u64,
    /// No date at or before this instant is given out any more.
    pub last: Instant,
    /// The dates that were given out, as runs in order of time; those after `last` are never given out again.
    pub used: Vec<Run>,
    /// The wall clock when this mark was made.
    pub wall: Instant,
    /// The boot clock when this mark was made.
    pub boot: Boot,
}

impl Mark {
    /// Whether a store that has this mark, and has not stopped, may take the next.
    pub(crate) fn may_be_followed_by(&self, next: &Mark, stopped: bool) -> Result<(), StoreError> {
        if stopped {
            return Err(StoreError::Stopped);
        }
        if next.sequence != self.sequence + 1 {
            return Err(StoreError::OutOfOrder { last: self.sequence, given: next.sequence });
        }
        Ok(())
    }
}

/// Dates that were given out, from the first to the last, without long gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: Instant,
    /// The last.
    pub last: Instant,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.first.unix(), self.last.unix())
    }
}

/// A moment on the boot clock, which nobody can set: it only means something within one boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The machine.
    pub machine: String,
    /// The boot.
    pub id: String,
    /// Nanoseconds since that boot, sleep included.
    pub nanos: u64,
}

/// A store that keeps the mark of one subsystem.
pub trait Marks: Send {
    /// The last mark that is durable.
    fn mark(&self) -> &Mark;

    /// Makes a mark with the next sequence number durable. When this returns without error, no crash and no power
    /// cut undoes it.
    ///
    /// After an error nothing may be given out that the mark was to cover, and the store refuses all further marks:
    /// a sync that failed may have lost what it was asked to write, and a second try would not tell.
    fn advance(&mut self, mark: Mark) -> Result<(), StoreError>;
}
