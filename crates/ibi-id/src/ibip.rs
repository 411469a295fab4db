//! Form `ibip`: opaque, IP based (1.2).

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::address::{self, V4_DIGITS, V6_DIGITS};
use crate::digits::{W, X, digit_27, encode_27, encode_27_short, is_ibip, meaning};
use crate::instant::{Instant, picos_of};
use crate::text::MAX_LABEL_BYTES;
use crate::text::Suffix;
use crate::{ParseError, Rule};

/// The default port, which is not written.
pub const DEFAULT_PORT: u16 = 800;

/// 1995-08-01T00:00:00Z in Unix seconds, the month of the first label: the epoch of suffixes.
pub const IBIP_EPOCH_SECONDS: i64 = 807_235_200;

/// A label of the form `ibip`, such as `8JMKD3MGP8W/34PGRBS`, in its original spelling.
#[derive(Debug, Clone, Copy)]
pub struct Ibip<S = Box<str>> {
    spelling: S,
    suffix: u8,
    port: u16,
    ip: IpAddr,
    instant: Instant,
}

impl<'a> Ibip<&'a str> {
    /// Parses an IBIp.
    #[inline]
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        // Syntax errors take precedence over semantic ones (1.4).
        Self::read(text).map_err(|error| grammar(text.as_bytes()).err().unwrap_or(error))
    }

    /// Parses it and reports the first error in reading order.
    #[inline]
    pub(crate) fn read(text: &'a str) -> Result<Self, ParseError> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_LABEL_BYTES {
            return Err(ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES));
        }
        let (number, marker) = number(bytes, 0);
        let ip = match bytes.get(marker).map(|&c| meaning(c)) {
            Some(W) if marker > 0 && significant(bytes, 0, marker) <= V4_DIGITS => {
                address::v4_from_number(number).map(IpAddr::V4)
            }
            Some(X) if marker > 0 => v6(&bytes[..marker]),
            Some(W) if marker > 0 => None,
            _ => return Err(unexpected(bytes, marker, Rule::IbipMarker)),
        };
        let ip = ip.ok_or(ParseError::new(Rule::IbipAddress, 0))?;
        let (port, slash) = port(bytes, marker + 1)?;
        if bytes.get(slash) != Some(&b'/') {
            return Err(unexpected(bytes, slash, Rule::IbipMarker));
        }
        let instant = instant(bytes, slash + 1)?;
        Ok(Self { spelling: text, suffix: (slash + 1) as u8, port, ip, instant })
    }
}

impl<S: AsRef<str>> Ibip<S> {
    /// The label as spelled.
    pub fn spelling(&self) -> &str {
        self.spelling.as_ref()
    }

    /// The address that minted it.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The port; [`DEFAULT_PORT`] if none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The instant at which it was minted.
    pub fn instant(&self) -> Instant {
        self.instant
    }

    /// The prefix as spelled: `8JMKD3MGP8W`.
    pub fn prefix(&self) -> &str {
        &self.spelling()[..usize::from(self.suffix) - 1]
    }

    /// The suffix as spelled: `34PGRBS`.
    pub fn suffix(&self) -> &str {
        &self.spelling()[usize::from(self.suffix)..]
    }

    /// The same label with its own copy of the text.
    pub fn into_owned(self) -> Ibip {
        self.map(|text| Box::from(text.as_ref()))
    }

    fn map<T>(self, spelling: impl FnOnce(S) -> T) -> Ibip<T> {
        let Self { spelling: found, suffix, port, ip, instant } = self;
        Ibip { spelling: spelling(found), suffix, port, ip, instant }
    }

    fn meaning(&self) -> (IpAddr, u16, Instant) {
        (self.ip, self.port, self.instant)
    }
}

// By address, port and instant (1.3).
compared_by_meaning!(Ibip);

/// Prints the canonical spelling.
impl<S: AsRef<str>> fmt::Display for Ibip<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&prefix(self.ip, self.port))?;
        f.write_str("/")?;
        // A parsed instant is never before the epoch.
        let suffix = suffix(self.instant).map_err(|_| fmt::Error)?;
        f.write_str(&suffix)
    }
}

/// The canonical prefix of an address and port: the name of the subsystem that mints under it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IbipPrefix {
    text: String,
}

impl IbipPrefix {
    /// The prefix of an address (algorithm 5): `150.163.34.243`, port 800, is `8JMKD3MGP8W`. No
    /// port is [`DEFAULT_PORT`].
    pub fn new(ip: IpAddr, port: Option<NonZeroU16>) -> Self {
        Self { text: prefix(ip, port.map_or(DEFAULT_PORT, NonZeroU16::get)) }
    }

    /// The canonical prefix: `8JMKD3MGP8W`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical label for an instant; an error before 1995-08-01.
    pub fn label(&self, at: Instant) -> Result<String, ParseError> {
        Ok(format!("{}/{}", self.text, suffix(at)?))
    }
}

fn prefix(ip: IpAddr, port: u16) -> String {
    let mut text = String::with_capacity(V6_DIGITS + 5);
    match ip {
        IpAddr::V4(ip) => {
            push_27(&mut text, address::v4_number(ip));
            text.push('W');
        }
        IpAddr::V6(ip) => {
            address::encode_v6(ip, &mut |digit| text.push(char::from(digit)));
            text.push('X');
        }
    }
    if port != DEFAULT_PORT {
        push_27(&mut text, port.into());
    }
    text
}

fn push_27(text: &mut String, number: u64) {
    let mut buffer = [0; 14];
    let start = encode_27(number, &mut buffer);
    text.extend(buffer[start..].iter().map(|&c| char::from(c)));
}

/// The canonical suffix of an instant (algorithm 6 and D3); an error before 1995-08-01.
pub fn suffix(at: Instant) -> Result<Suffix, ParseError> {
    let mut text = Suffix::EMPTY;
    write_suffix(at, &mut text)?;
    Ok(text)
}

/// Like [`suffix`], but overwrites `text`: avoids moving the text when minting many labels.
#[inline]
pub fn write_suffix(at: Instant, text: &mut Suffix) -> Result<(), ParseError> {
    let seconds =
        u64::try_from(at.seconds() - IBIP_EPOCH_SECONDS).map_err(|_| ParseError::new(Rule::BeforeIbip, 0))?;
    // The year 9999 ends before 27^8 seconds.
    let (whole, length) = encode_27_short(seconds);
    text.start(whole, length);
    if at.picos() != 0 {
        push_fraction(text, at);
    }
    Ok(())
}

fn push_fraction(text: &mut Suffix, at: Instant) {
    let (fraction, digits) = at.fraction();
    text.push(b"W");
    // D3: each leading zero of the fraction is written as one zero digit.
    let zeros = digits - (fraction.ilog10() as usize + 1);
    text.push(&[digit_27(0); 12][..zeros]);
    let mut buffer = [0; 14];
    let start = encode_27(fraction, &mut buffer);
    text.push(&buffer[start..]);
}

/// Parses digits from `at`. Returns the number modulo 2^64, and where they end.
#[inline]
fn number(bytes: &[u8], at: usize) -> (u64, usize) {
    let (mut number, mut end) = (0_u64, at);
    // Two digits per step, which halves the chain of dependent multiplications.
    while let Some(&[high, low]) = bytes.get(end..end + 2) {
        let (high, low) = (meaning(high), meaning(low));
        if high >= W || low >= W {
            break;
        }
        number = number.wrapping_mul(729).wrapping_add(u64::from(high) * 27 + u64::from(low));
        end += 2;
    }
    match bytes.get(end).map(|&c| meaning(c)) {
        Some(digit @ ..W) => (number.wrapping_mul(27).wrapping_add(digit.into()), end + 1),
        _ => (number, end),
    }
}

/// The number of significant digits; leading zeros are accepted but do not count (1.4).
#[inline]
fn significant(bytes: &[u8], mut start: usize, end: usize) -> usize {
    while start < end && meaning(bytes[start]) == 0 {
        start += 1;
    }
    end - start
}

fn v6(digits: &[u8]) -> Option<IpAddr> {
    let digits = &digits[digits.len() - significant(digits, 0, digits.len())..];
    if digits.len() > V6_DIGITS {
        return None;
    }
    address::decode_v6(digits).map(IpAddr::V6)
}

/// Parses the port up to the slash. Returns the port, and where it ends.
#[inline]
fn port(bytes: &[u8], at: usize) -> Result<(u16, usize), ParseError> {
    let (number, end) = number(bytes, at);
    if end == at {
        return Ok((DEFAULT_PORT, end));
    }
    // 27^4 > 65535.
    match u16::try_from(number) {
        Ok(port @ 1..) if significant(bytes, at, end) <= 4 => Ok((port, end)),
        _ => Err(ParseError::new(Rule::Port, at)),
    }
}

/// Parses the suffix up to the end of the text.
#[inline]
fn instant(bytes: &[u8], at: usize) -> Result<Instant, ParseError> {
    let (seconds, end) = number(bytes, at);
    if end == at {
        return Err(unexpected(bytes, at, Rule::IbipSuffix));
    }
    let picos = match bytes.get(end) {
        None => 0,
        Some(&c) if meaning(c) == W => fraction(bytes, end + 1)?,
        Some(_) => return Err(unexpected(bytes, end, Rule::IbipSuffix)),
    };
    // Nine digits are beyond the year 9999.
    let range = ParseError::new(Rule::InstantRange, at);
    if significant(bytes, at, end) > 9 {
        return Err(range);
    }
    // Below 27^9, so the cast is lossless.
    Instant::new(seconds as i64 + IBIP_EPOCH_SECONDS, picos).ok_or(range)
}

/// Parses a fraction (D3) up to the end of the text, in picoseconds.
fn fraction(bytes: &[u8], at: usize) -> Result<u64, ParseError> {
    let (value, end) = number(bytes, at);
    if end == at || end != bytes.len() {
        return Err(unexpected(bytes, end, Rule::IbipSuffix));
    }
    let rest = significant(bytes, at, end);
    let zeros = end - at - rest;
    // 27^9 > 10^12.
    let digits = match value {
        _ if rest > 9 => 13,
        0 => zeros,
        value => zeros + value.ilog10() as usize + 1,
    };
    if digits > 12 {
        return Err(ParseError::new(Rule::Fraction, at));
    }
    Ok(picos_of(value, digits))
}

/// Checks the syntax of an IBIp, not its meaning: its characters, then their order.
#[cold]
fn grammar(bytes: &[u8]) -> Result<(), ParseError> {
    if bytes.len() > MAX_LABEL_BYTES {
        return Err(ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES));
    }
    if let Some(at) = bytes.iter().position(|&c| !is_ibip(c) && c != b'/') {
        return Err(unexpected(bytes, at, Rule::IbipCharacter));
    }
    let expect = |at: usize, holds: bool, rule| if holds { Ok(()) } else { Err(ParseError::new(rule, at)) };
    let marker = number(bytes, 0).1;
    expect(marker, marker > 0 && bytes.get(marker).is_some_and(|c| *c != b'/'), Rule::IbipMarker)?;
    let slash = number(bytes, marker + 1).1;
    expect(slash, bytes.get(slash) == Some(&b'/'), Rule::IbipMarker)?;
    let end = number(bytes, slash + 1).1;
    expect(end, end > slash + 1, Rule::IbipSuffix)?;
    match bytes.get(end).map(|&c| meaning(c)) {
        None => Ok(()),
        Some(W) => {
            let fraction = number(bytes, end + 1).1;
            expect(fraction, fraction > end + 1 && fraction == bytes.len(), Rule::IbipSuffix)
        }
        Some(_) => Err(ParseError::new(Rule::IbipSuffix, end)),
    }
}

/// The error for a byte that is not a digit: not allowed in any IBIp, or not at this position.
#[cold]
fn unexpected(bytes: &[u8], at: usize, otherwise: Rule) -> ParseError {
    let rule = match bytes.get(at) {
        Some(b'z') => Rule::LegacyLowerZ,
        Some(&c) if !is_ibip(c) && c != b'/' => Rule::IbipCharacter,
        _ => otherwise,
    };
    ParseError::new(rule, at)
}
