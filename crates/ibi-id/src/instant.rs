//! Instants in exact decimal arithmetic: whole seconds and picoseconds, never floating point (1.5).

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::civil::{Civil, Positions};
use crate::granularity::PICOS_PER_SECOND;
use crate::{Granularity, ParseError, Rule};

/// An instant from 0001-01-01T00:00:00Z to the end of 9999, with picosecond resolution.
///
/// Parses RFC 3339 and Unix seconds, and prints RFC 3339 in UTC:
///
/// ```
/// use ibi_id::Instant;
/// let at: Instant = "2009-02-16T14:46:00.50-03:00".parse()?;
/// assert_eq!(at, "1234806360.5".parse()?);
/// assert_eq!(at.to_string(), "2009-02-16T17:46:00.5Z");
/// assert_eq!(at.unix().to_string(), "1234806360.5");
/// # Ok::<(), ibi_id::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    seconds: i64,
    picos: u64,
}

impl Instant {
    /// 0001-01-01T00:00:00Z, the first instant that a label can encode.
    pub const MIN: Self = Self { seconds: -62_135_596_800, picos: 0 };
    /// The last picosecond of 9999, the last instant that a label can encode.
    pub const MAX: Self = Self { seconds: 253_402_300_799, picos: PICOS_PER_SECOND - 1 };

    /// The instant this many seconds and picoseconds after the Unix epoch; `None` outside the years
    /// 0001 to 9999, or if `picos` is a second or more.
    #[inline]
    pub const fn new(seconds: i64, picos: u64) -> Option<Self> {
        if seconds < Self::MIN.seconds || seconds > Self::MAX.seconds || picos >= PICOS_PER_SECOND {
            return None;
        }
        Some(Self { seconds, picos })
    }

    /// Whole seconds since the Unix epoch, rounded down.
    #[inline]
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Picoseconds after [`Self::seconds`].
    #[inline]
    pub const fn picos(self) -> u64 {
        self.picos
    }

    /// Displays as decimal Unix seconds: `1234806360.5`.
    pub const fn unix(self) -> UnixSeconds {
        UnixSeconds(self)
    }

    /// `r * floor(self / r)`: the last multiple of the granularity not after this instant (1.5,
    /// step 1).
    #[inline]
    pub const fn floor(self, r: Granularity) -> Self {
        match r.picos() {
            None => Self { seconds: self.seconds - self.seconds.rem_euclid(60), picos: 0 },
            Some(step) => Self { seconds: self.seconds, picos: self.picos - self.picos % step },
        }
    }

    /// `self + r`; `None` after [`Self::MAX`].
    #[inline]
    pub const fn plus(self, r: Granularity) -> Option<Self> {
        match r.picos() {
            None => Self::new(self.seconds + 60, self.picos),
            Some(step) if self.picos + step < PICOS_PER_SECOND => {
                Some(Self { seconds: self.seconds, picos: self.picos + step })
            }
            Some(step) => Self::new(self.seconds + 1, self.picos + step - PICOS_PER_SECOND),
        }
    }

    pub(crate) fn from_civil(civil: Civil, picos: u64, at: &Positions) -> Result<Self, ParseError> {
        Ok(Self { seconds: civil.unix(at)?, picos })
    }

    pub(crate) fn civil(self) -> Civil {
        Civil::from_unix(self.seconds)
    }

    /// The fraction as an integer without trailing zeros, and its number of digits: .05 is (5, 2).
    #[inline]
    pub(crate) const fn fraction(self) -> (u64, usize) {
        let (mut value, mut digits) = (self.picos, 12);
        if value == 0 {
            return (0, 0);
        }
        // Most fractions are in nanoseconds or coarser: remove three zeros at a time first.
        while value % 1000 == 0 {
            value /= 1000;
            digits -= 3;
        }
        while value % 10 == 0 {
            value /= 10;
            digits -= 1;
        }
        (value, digits)
    }
}

/// Converts a fraction to picoseconds: `value`, written with `digits` digits after the point.
#[inline]
pub(crate) const fn picos_of(value: u64, digits: usize) -> u64 {
    const POWERS_OF_TEN: [u64; 13] = {
        let mut powers = [1; 13];
        let mut i = 1;
        while i < 13 {
            powers[i] = powers[i - 1] * 10;
            i += 1;
        }
        powers
    };
    value * POWERS_OF_TEN[12 - digits]
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second } = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        write_fraction(*self, f)?;
        f.write_char('Z')
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An [`Instant`] that displays as decimal Unix seconds.
#[derive(Debug, Clone, Copy)]
pub struct UnixSeconds(Instant);

impl fmt::Display for UnixSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instant { seconds, picos } = self.0;
        if seconds >= 0 || picos == 0 {
            write!(f, "{seconds}")?;
            return write_fraction(self.0, f);
        }
        // -0.25 is stored as -1 second and .75: print the magnitude.
        write!(f, "-{}", -(seconds + 1))?;
        write_fraction(Instant { seconds: 0, picos: PICOS_PER_SECOND - picos }, f)
    }
}

fn write_fraction(at: Instant, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match at.fraction() {
        (_, 0) => Ok(()),
        (value, digits) => write!(f, ".{value:0digits$}"),
    }
}

impl FromStr for Instant {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        // An RFC 3339 date has a hyphen after its year; Unix seconds have at most a leading sign.
        if unsigned.contains('-') { rfc3339(text.as_bytes()) } else { unix(text) }
    }
}

fn unix(text: &str) -> Result<Instant, ParseError> {
    let (negative, start) = if text.starts_with('-') { (true, 1) } else { (false, 0) };
    let bytes = text.as_bytes();
    let whole = digits_from(bytes, start);
    let shape = |at| ParseError::new(Rule::Time, at);
    if whole == start {
        return Err(shape(start));
    }
    let (picos, end) = optional_fraction(bytes, whole)?;
    if end != bytes.len() {
        return Err(shape(end));
    }
    let range = ParseError::new(Rule::InstantRange, 0);
    let seconds: i64 = text[start..whole].parse().map_err(|_| range)?;
    let at = match (negative, picos) {
        (false, _) => Instant::new(seconds, picos),
        (true, 0) => Instant::new(-seconds, 0),
        (true, _) => Instant::new(-seconds - 1, PICOS_PER_SECOND - picos),
    };
    at.ok_or(range)
}

fn rfc3339(bytes: &[u8]) -> Result<Instant, ParseError> {
    const FIELD_POSITIONS: Positions =
        Positions { year: 0, month: 5, day: 8, hour: 11, minute: 14, second: 17 };
    let shape = |at| ParseError::new(Rule::Time, at);
    let number = |at: usize, len: usize| -> Result<u16, ParseError> {
        (at..at + len).try_fold(0, |n, i| match bytes.get(i) {
            Some(c @ b'0'..=b'9') => Ok(n * 10 + u16::from(c - b'0')),
            _ => Err(shape(i.min(bytes.len()))),
        })
    };
    let two = |at| number(at, 2).map(|n| n as u8);
    let separator = |at: usize, allowed: &[u8]| match bytes.get(at) {
        Some(c) if allowed.contains(c) => Ok(*c),
        _ => Err(shape(at.min(bytes.len()))),
    };
    let year = number(FIELD_POSITIONS.year, 4)?;
    separator(4, b"-")?;
    let month = two(FIELD_POSITIONS.month)?;
    separator(7, b"-")?;
    let day = two(FIELD_POSITIONS.day)?;
    separator(10, b"Tt ")?;
    let hour = two(FIELD_POSITIONS.hour)?;
    separator(13, b":")?;
    let minute = two(FIELD_POSITIONS.minute)?;
    separator(16, b":")?;
    let second = two(FIELD_POSITIONS.second)?;
    let (picos, zone) = optional_fraction(bytes, 19)?;
    let (offset, end) = match separator(zone, b"Zz+-")? {
        b'Z' | b'z' => (0, zone + 1),
        sign => {
            let hours = two(zone + 1)?;
            separator(zone + 3, b":")?;
            let minutes = two(zone + 4)?;
            if hours > 23 || minutes > 59 {
                return Err(shape(zone));
            }
            let east = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            (if sign == b'-' { -east } else { east }, zone + 6)
        }
    };
    if end != bytes.len() {
        return Err(shape(end));
    }
    let local = Civil { year, month, day, hour, minute, second }.unix(&FIELD_POSITIONS)?;
    Instant::new(local - offset, picos).ok_or(ParseError::new(Rule::InstantRange, 0))
}

/// The end of the decimal digits that begin at `from`.
#[inline]
pub(crate) fn digits_from(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|c| c.is_ascii_digit()).count()
}

/// Parses `[ "." 1*12DIGIT ]` at `from`. Returns picoseconds, and where it ends.
pub(crate) fn optional_fraction(bytes: &[u8], from: usize) -> Result<(u64, usize), ParseError> {
    if bytes.get(from) != Some(&b'.') {
        return Ok((0, from));
    }
    let start = from + 1;
    let end = digits_from(bytes, start);
    match end - start {
        digits @ 1..=12 => {
            let value = bytes[start..end].iter().fold(0, |n, c| n * 10 + u64::from(c - b'0'));
            Ok((picos_of(value, digits), end))
        }
        0 => Err(ParseError::new(Rule::Fraction, start)),
        _ => Err(ParseError::new(Rule::Fraction, start + 12)),
    }
}
