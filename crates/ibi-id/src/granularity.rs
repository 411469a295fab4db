//! The resolution of the time grid for labels (1.5).

use std::fmt;
use std::str::FromStr;

use crate::{ParseError, Rule};

/// Picoseconds in a second: up to twelve fraction digits are read (1.4).
pub(crate) const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// The resolution of dates: a minute, a second, or a decimal fraction of a second down to a
/// nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Granularity(GranularityStep);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GranularityStep {
    Minute,
    /// 10^-n seconds, n from 0 to 9.
    Decimal(u8),
}

impl Granularity {
    /// 60 seconds, the coarsest.
    pub const MINUTE: Self = Self(GranularityStep::Minute);
    /// 1 second.
    pub const SECOND: Self = Self(GranularityStep::Decimal(0));
    /// 10^-9 seconds, the finest for minting (1.4).
    pub const NANOSECOND: Self = Self(GranularityStep::Decimal(9));

    /// 10^-`digits` seconds, for 0 to 9 digits.
    pub const fn decimal(digits: u8) -> Option<Self> {
        if digits <= 9 { Some(Self(GranularityStep::Decimal(digits))) } else { None }
    }

    /// All eleven, finest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..=9).rev().map(|n| Self(GranularityStep::Decimal(n))).chain([Self::MINUTE])
    }

    /// The next step of {r, 10r, …, 1, 60} (1.5, step 5): ten times coarser up to a second, then
    /// the minute.
    pub const fn coarser(self) -> Option<Self> {
        match self.0 {
            GranularityStep::Minute => None,
            GranularityStep::Decimal(0) => Some(Self::MINUTE),
            GranularityStep::Decimal(n) => Some(Self(GranularityStep::Decimal(n - 1))),
        }
    }

    /// Its length in picoseconds; `None` for the minute, which is more than a second.
    #[inline]
    pub(crate) const fn picos(self) -> Option<u64> {
        match self.0 {
            GranularityStep::Minute => None,
            GranularityStep::Decimal(n) => Some(PICOS_PER_SECOND / 10_u64.pow(n as u32)),
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            GranularityStep::Minute => f.write_str("60"),
            GranularityStep::Decimal(0) => f.write_str("1"),
            GranularityStep::Decimal(n) => write!(f, "0.{:0width$}", 1, width = usize::from(n)),
        }
    }
}

impl FromStr for Granularity {
    type Err = ParseError;

    /// Parses `60`, `1`, `0.001` and `1e-3`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = if text == "60" {
            return Ok(Self::MINUTE);
        } else if text == "1" {
            Some(0)
        } else if let Some(exponent) = text.strip_prefix("1e-") {
            exponent.bytes().all(|c| c.is_ascii_digit()).then(|| exponent.parse().ok()).flatten()
        } else {
            // 0.001: zeros and a one at the end.
            text.strip_prefix("0.").and_then(|fraction| {
                let zeros = fraction.strip_suffix('1')?;
                zeros.bytes().all(|c| c == b'0').then(|| u8::try_from(zeros.len() + 1).ok()).flatten()
            })
        };
        digits.and_then(Self::decimal).ok_or(ParseError::new(Rule::Granularity, 0))
    }
}
