//! Form `rep`: the uniform repository name, domain based (1.1).

use std::fmt::{self, Write as _};
use std::num::NonZeroU16;

use crate::civil::{Civil, Positions};
use crate::host::{self, Host, write_lower};
use crate::instant::{Instant, digits_from, optional_fraction};
use crate::text::MAX_LABEL_BYTES;
use crate::text::Suffix;
use crate::{ParseError, Rule};

/// The default port, which is not written.
pub const DEFAULT_PORT: u16 = 80;

/// A label of the form `rep`, such as `sid.inpe.br/mtc-m18/2009/02.16.17.46`, in its original
/// spelling.
#[derive(Debug, Clone, Copy)]
pub struct Repository<S = Box<str>> {
    spelling: S,
    // A label has at most 255 bytes.
    subdomain_end: u8,
    word: (u8, u8),
    suffix: u8,
    port: u16,
    instant: Instant,
}

impl<'a> Repository<&'a str> {
    /// Parses a repository name.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_LABEL_BYTES {
            return Err(ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES));
        }
        let (subdomain_end, slash) = host::domain(bytes, 0)?;
        let word = slash_after(bytes, slash, Rule::HostWord)?;
        let word_end = host::word(bytes, word)?;
        let (port, slash) = port(bytes, word_end)?;
        let suffix = slash_after(bytes, slash, if slash == word_end { Rule::HostWord } else { Rule::Port })?;
        // Syntax errors take precedence over semantic ones (1.4): an invalid port is reported only
        // if the date is well-formed.
        let (port, instant) = match (port, date(bytes, suffix)) {
            (Some(port), instant) => (port, instant?),
            (None, Err(error)) if error.rule().is_of_dates_grammar() => return Err(error),
            (None, _) => return Err(ParseError::new(Rule::Port, word_end + 1)),
        };
        Ok(Self {
            spelling: text,
            subdomain_end: subdomain_end as u8,
            word: (word as u8, word_end as u8),
            suffix: suffix as u8,
            port,
            instant,
        })
    }
}

impl<S: AsRef<str>> Repository<S> {
    /// The label as spelled.
    pub fn spelling(&self) -> &str {
        self.spelling.as_ref()
    }

    /// The host that minted it; in old labels possibly a login name.
    pub fn host(&self) -> Host<'_> {
        let text = self.spelling();
        let (word, end) = self.word;
        Host::from_parts(&text[usize::from(word)..usize::from(end)], &text[..usize::from(self.subdomain_end)])
    }

    /// The port; [`DEFAULT_PORT`] if none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The instant at which it was minted.
    pub fn instant(&self) -> Instant {
        self.instant
    }

    /// The prefix as spelled: `sid.inpe.br/mtc-m18`.
    pub fn prefix(&self) -> &str {
        &self.spelling()[..usize::from(self.suffix) - 1]
    }

    /// The suffix as spelled: `2009/02.16.17.46`.
    pub fn suffix(&self) -> &str {
        &self.spelling()[usize::from(self.suffix)..]
    }

    /// The same label with its own copy of the text.
    pub fn into_owned(self) -> Repository {
        self.map(|text| Box::from(text.as_ref()))
    }

    fn map<T>(self, spelling: impl FnOnce(S) -> T) -> Repository<T> {
        let Self { spelling: found, subdomain_end, word, suffix, port, instant } = self;
        Repository { spelling: spelling(found), subdomain_end, word, suffix, port, instant }
    }

    fn meaning(&self) -> (Host<'_>, u16, Instant) {
        (self.host(), self.port, self.instant)
    }
}

// By host, port and instant (1.3).
compared_by_meaning!(Repository);

/// Prints the canonical spelling.
impl<S: AsRef<str>> fmt::Display for Repository<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_prefix(self.host(), self.port, f)?;
        f.write_char('/')?;
        f.write_str(&suffix(self.instant))
    }
}

fn write_prefix(host: Host<'_>, port: u16, out: &mut impl fmt::Write) -> fmt::Result {
    write_lower(host.subdomain(), out)?;
    out.write_char('/')?;
    write_lower(host.word(), out)?;
    if port == DEFAULT_PORT { Ok(()) } else { write!(out, ".{port}") }
}

/// The canonical prefix of a host and port: the name of the subsystem that mints under it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryPrefix {
    text: String,
}

impl RepositoryPrefix {
    /// The prefix of a host (algorithm 1, D1): `mtc-m18.sid.inpe.br`, port 80, is
    /// `sid.inpe.br/mtc-m18`.
    ///
    /// No port is [`DEFAULT_PORT`].
    pub fn new(host: Host<'_>, port: Option<NonZeroU16>) -> Self {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write_prefix(host, port.map_or(DEFAULT_PORT, NonZeroU16::get), &mut text);
        Self { text }
    }

    /// The canonical prefix: `sid.inpe.br/mtc-m18`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical label for an instant; an error if it would be too long (1.4).
    pub fn label(&self, at: Instant) -> Result<String, ParseError> {
        let label = format!("{}/{}", self.text, suffix(at));
        if label.len() > MAX_LABEL_BYTES {
            return Err(ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES));
        }
        Ok(label)
    }
}

/// The canonical suffix of an instant (algorithm 2): `2009/02.16.17.46`, with seconds and fraction
/// only if not zero, and without trailing zeros.
pub fn suffix(at: Instant) -> Suffix {
    let mut text = Suffix::EMPTY;
    write_suffix(at, &mut text);
    text
}

/// Like [`suffix`], but overwrites `text`: avoids moving the text when minting many labels.
#[inline]
pub fn write_suffix(at: Instant, text: &mut Suffix) {
    let Civil { year, month, day, hour, minute, second } = at.civil();
    text.start([0; 8], 0);
    text.push_two((year / 100) as u8);
    text.push_two((year % 100) as u8);
    for (separator, number) in [(b'/', month), (b'.', day), (b'.', hour), (b'.', minute)] {
        text.push(&[separator]);
        text.push_two(number);
    }
    let (mut fraction, digits) = at.fraction();
    if second != 0 || digits != 0 {
        text.push(b".");
        text.push_two(second);
    }
    if digits != 0 {
        let mut written = [b'.'; 13];
        for digit in written[1..=digits].iter_mut().rev() {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        text.push(&written[..=digits]);
    }
}

/// Skips the slash at `at`; anything else there violates `otherwise`.
#[inline]
fn slash_after(bytes: &[u8], at: usize, otherwise: Rule) -> Result<usize, ParseError> {
    match bytes.get(at) {
        Some(b'/') => Ok(at + 1),
        None => Err(ParseError::new(Rule::RepositoryParts, at)),
        Some(_) => Err(ParseError::new(otherwise, at)),
    }
}

/// Parses `[ ("." | "@") port ]`. Returns the port, if valid, and where it ends.
#[inline]
fn port(bytes: &[u8], at: usize) -> Result<(Option<u16>, usize), ParseError> {
    if !matches!(bytes.get(at), Some(b'.' | b'@')) {
        return Ok((Some(DEFAULT_PORT), at));
    }
    let start = at + 1;
    let (mut port, mut end) = (0_u32, start);
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        port = (port * 10 + u32::from(digit - b'0')).min(u32::from(u16::MAX) + 1);
        end += 1;
    }
    if end == start {
        return Err(ParseError::new(Rule::Port, start));
    }
    Ok((u16::try_from(port).ok().filter(|port| *port > 0), end))
}

/// Parses the suffix up to the end of the text.
#[inline]
fn date(bytes: &[u8], at: usize) -> Result<Instant, ParseError> {
    let shape = |at| ParseError::new(Rule::DateShape, at);
    let two = |at: usize| match bytes.get(at..at + 2) {
        Some(&[high @ b'0'..=b'9', low @ b'0'..=b'9']) => Ok((high - b'0') * 10 + (low - b'0')),
        _ => Err(shape(digits_from(bytes, at))),
    };
    let separator = |at: usize, expected: u8| match bytes.get(at) {
        Some(&c) if c == expected => Ok(()),
        _ => Err(shape(at)),
    };
    let year = year(bytes, at)?;
    let positions =
        Positions { year: at, month: at + 5, day: at + 8, hour: at + 11, minute: at + 14, second: at + 17 };
    let month = two(positions.month)?;
    separator(positions.month + 2, b'.')?;
    let day = two(positions.day)?;
    separator(positions.day + 2, b'.')?;
    let hour = two(positions.hour)?;
    separator(positions.hour + 2, b'.')?;
    let minute = two(positions.minute)?;
    let (second, picos, end) = if bytes.get(positions.minute + 2) == Some(&b'.') {
        let second = two(positions.second)?;
        let (picos, end) = optional_fraction(bytes, positions.second + 2)?;
        (second, picos, end)
    } else {
        (0, 0, positions.minute + 2)
    };
    match bytes.get(end) {
        None => {}
        Some(b'/') => return Err(ParseError::new(Rule::Extra, end)),
        Some(_) => return Err(shape(end)),
    }
    Instant::from_civil(Civil { year, month, day, hour, minute, second }, picos, &positions)
}

/// Parses the year and the slash after it, which must be followed by something.
#[inline]
fn year(bytes: &[u8], at: usize) -> Result<u16, ParseError> {
    match bytes.get(at..) {
        Some(&[a, b, c, d, b'/', _, ..]) if [a, b, c, d].iter().all(u8::is_ascii_digit) => {
            Ok([a, b, c, d].iter().fold(0, |year, &c| year * 10 + u16::from(c - b'0')))
        }
        _ => Err(no_year(bytes, at)),
    }
}

#[cold]
fn no_year(bytes: &[u8], at: usize) -> ParseError {
    let end = digits_from(bytes, at);
    match (end - at, bytes.get(end)) {
        // A part is missing: this one or the next.
        (0, None) | (4, Some(b'/') | None) => ParseError::new(Rule::RepositoryParts, bytes.len()),
        (_, Some(b'/') | None) | (5.., _) => ParseError::new(Rule::Year, at),
        (_, Some(_)) => ParseError::new(Rule::DateShape, end),
    }
}
