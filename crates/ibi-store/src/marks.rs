//! The minter's marks, and the storage that they need.

use std::fmt;
use std::str::FromStr;

use ibi_id::Instant;

use crate::MarkStorageError;

/// One identification subsystem, fixed when its minter is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subsystem {
    /// A random id of this state, 32 hex digits. Folders that were created separately have
    /// different ids.
    pub id: String,
    /// The canonical prefix of its labels of the form `rep`.
    pub rep: Option<String>,
    /// The canonical prefix of its labels of the form `ibip`.
    pub ibip: Option<String>,
    /// The edition of the standard that its distributor follows.
    pub edition: DistributorEdition,
}

/// The edition of the standard that the distributor follows (clause 1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistributorEdition {
    /// RTC-10-I: any granularity.
    Rtc2015,
    /// NBR 16066:2012: whole seconds.
    Nbr2011,
}

impl DistributorEdition {
    /// `2015` or `2011`.
    pub const fn name(self) -> &'static str {
        match self {
            DistributorEdition::Rtc2015 => "2015",
            DistributorEdition::Nbr2011 => "2011",
        }
    }
}

impl fmt::Display for DistributorEdition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DistributorEdition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "2015" => Ok(DistributorEdition::Rtc2015),
            "2011" => Ok(DistributorEdition::Nbr2011),
            _ => Err("the editions are 2015 and 2011"),
        }
    }
}

/// The progress of minting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintMark {
    /// The sequence number of this mark within its state, from 1.
    pub sequence: u64,
    /// No date at or before this instant is issued any more.
    pub last: Instant,
    /// The issued dates as ranges, by time. Those after `last` are never issued again.
    pub used: Vec<IssuedRange>,
    /// The wall clock at the time of this mark.
    pub wall: Instant,
    /// The boot clock at the time of this mark.
    pub boot: BootTime,
}

impl MintMark {
    /// Checks that a store with this mark may accept the next one.
    pub(crate) fn check_successor(&self, next: &MintMark, stopped: bool) -> Result<(), MarkStorageError> {
        if stopped {
            return Err(MarkStorageError::Stopped);
        }
        if next.sequence != self.sequence + 1 {
            return Err(MarkStorageError::OutOfOrder { last: self.sequence, given: next.sequence });
        }
        Ok(())
    }
}

/// A range of issued dates, without long gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssuedRange {
    /// The first date.
    pub first: Instant,
    /// The last date.
    pub last: Instant,
}

impl fmt::Display for IssuedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.first.unix(), self.last.unix())
    }
}

/// A reading of the boot clock, which nobody can set. It is meaningful only within one boot of one
/// machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// The machine id.
    pub machine: String,
    /// The boot id.
    pub id: String,
    /// Nanoseconds since that boot, including time asleep.
    pub nanos: u64,
}

/// A store for the mark of one subsystem.
pub trait MarkStorage: Send {
    /// The last durable mark.
    fn mark(&self) -> &MintMark;

    /// Makes a mark with the next sequence number durable. Once this returns without error, the
    /// mark survives a crash and a power cut.
    ///
    /// After an error, nothing that the mark was to cover may be issued, and the store rejects all
    /// further marks: a failed sync may have lost the data, and a retry would not report it.
    fn advance(&mut self, mark: MintMark) -> Result<(), MarkStorageError>;
}
