//! The legacy form, from before 2009: parsed, recorded and resolved, never minted (1.3).

use std::fmt;

use crate::digits::value_53;
use crate::ibip::IBIP_EPOCH_SECONDS;
use crate::instant::Instant;
use crate::text::MAX_LABEL_BYTES;
use crate::{ParseError, Rule};

/// A label of the legacy form, such as `83LX3pFwXQZeBBx/hwiTk`. Case-sensitive: every spelling is a
/// label of its own.
#[derive(Debug, Clone, Copy)]
pub struct Legacy<S = Box<str>> {
    spelling: S,
    suffix: u8,
    instant: Instant,
}

impl<'a> Legacy<&'a str> {
    /// Parses a legacy label.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_LABEL_BYTES {
            return Err(ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES));
        }
        let slash = bytes.iter().take_while(|c| c.is_ascii_alphanumeric()).count();
        if bytes.get(slash) != Some(&b'/') || !bytes[..slash].contains(&b'Z') {
            return Err(ParseError::new(Rule::LegacyWord, slash));
        }
        let suffix = slash + 1;
        Ok(Self { spelling: text, suffix: suffix as u8, instant: instant(bytes, suffix)? })
    }
}

impl<S: AsRef<str>> Legacy<S> {
    /// The label as spelled, which is also its canonical spelling.
    pub fn spelling(&self) -> &str {
        self.spelling.as_ref()
    }

    /// The instant at which it was minted.
    pub fn instant(&self) -> Instant {
        self.instant
    }

    /// The first word: `83LX3pFwXQZeBBx`. Its encoding is unknown.
    pub fn prefix(&self) -> &str {
        &self.spelling()[..usize::from(self.suffix) - 1]
    }

    /// The second word: `hwiTk`.
    pub fn suffix(&self) -> &str {
        &self.spelling()[usize::from(self.suffix)..]
    }

    /// The same label with its own copy of the text.
    pub fn into_owned(self) -> Legacy {
        self.map(|text| Box::from(text.as_ref()))
    }

    fn meaning(&self) -> &str {
        self.spelling()
    }

    fn map<T>(self, spelling: impl FnOnce(S) -> T) -> Legacy<T> {
        let Self { spelling: found, suffix, instant } = self;
        Legacy { spelling: spelling(found), suffix, instant }
    }
}

// Compared by bytes (1.3).
compared_by_meaning!(Legacy);

impl<S: AsRef<str>> fmt::Display for Legacy<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spelling())
    }
}

/// Parses seconds since 1995-08-01 in base 53, up to the end of the text.
fn instant(bytes: &[u8], at: usize) -> Result<Instant, ParseError> {
    let range = ParseError::new(Rule::InstantRange, at);
    if at == bytes.len() {
        return Err(ParseError::new(Rule::LegacyDigit, at));
    }
    let seconds = bytes[at..].iter().enumerate().try_fold(0_i64, |seconds, (i, &c)| {
        let digit = value_53(c).ok_or(ParseError::new(Rule::LegacyDigit, at + i))?;
        // Saturates, so it cannot overflow; the sum below is then out of range.
        Ok((seconds * 53 + i64::from(digit)).min(Instant::MAX.seconds()))
    })?;
    Instant::new(IBIP_EPOCH_SECONDS + seconds, 0).ok_or(range)
}
