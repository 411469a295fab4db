//! Host names as labels carry them: words of letters, digits and inner hyphens (1.1).

use std::fmt::{self, Write as _};

use crate::{ParseError, Rule};

const LONGEST_WORD: usize = 63;
const LONGEST_NAME: usize = 253;

/// A host name in the order of the norm: its first word, and the subdomain that the rest is.
///
/// Compared and printed without regard to case; a trailing dot is no part of it (1.3).
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    word: &'a str,
    subdomain: &'a str,
}

impl<'a> Host<'a> {
    /// Reads a host name in the order of the Internet: `mtc-m18.sid.inpe.br`.
    pub fn parse(name: &'a str) -> Result<Self, ParseError> {
        let bytes = name.as_bytes();
        let (end, next) = domain(bytes, 0)?;
        if next != bytes.len() {
            return Err(ParseError::new(Rule::HostWord, next));
        }
        if end > LONGEST_NAME {
            return Err(ParseError::new(Rule::HostLength, LONGEST_NAME));
        }
        match name[..end].split_once('.') {
            Some((word, subdomain)) => Ok(Self { word, subdomain }),
            None => Err(ParseError::new(Rule::HostTooFewWords, end)),
        }
    }

    /// Parts that the grammar was already checked on.
    pub(crate) const fn from_parts(word: &'a str, subdomain: &'a str) -> Self {
        Self { word, subdomain }
    }

    /// The first word: `mtc-m18`. In old labels this may be a login name (1.3).
    pub const fn word(&self) -> &'a str {
        self.word
    }

    /// All but the first word: `sid.inpe.br`.
    pub const fn subdomain(&self) -> &'a str {
        self.subdomain
    }

    /// The words from the last to the first.
    pub(crate) fn words_from_the_end(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.subdomain.rsplit('.').chain([self.word])
    }
}

impl PartialEq for Host<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.word.eq_ignore_ascii_case(other.word) && self.subdomain.eq_ignore_ascii_case(other.subdomain)
    }
}

impl Eq for Host<'_> {}

impl std::hash::Hash for Host<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for part in [self.word, self.subdomain] {
            part.bytes().for_each(|c| state.write_u8(c.to_ascii_lowercase()));
            // The parts have no slash: they cannot run into each other.
            state.write_u8(b'/');
        }
    }
}

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lower(self.word, f)?;
        f.write_char('.')?;
        write_lower(self.subdomain, f)
    }
}

pub(crate) fn write_lower(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    if text.bytes().any(|c| c.is_ascii_uppercase()) {
        text.chars().try_for_each(|c| out.write_char(c.to_ascii_lowercase()))
    } else {
        out.write_str(text)
    }
}

/// Reads `*(word ".") last-word [ "." ]` from `at`: where the last word ends, and where reading goes on.
#[inline]
pub(crate) fn domain(bytes: &[u8], mut at: usize) -> Result<(usize, usize), ParseError> {
    loop {
        let end = word(bytes, at)?;
        let dot = bytes.get(end) == Some(&b'.');
        if dot && bytes.get(end + 1).is_some_and(|&c| is_word(c)) {
            at = end + 1;
        } else if bytes[at].is_ascii_alphabetic() {
            return Ok((end, end + usize::from(dot)));
        } else {
            return Err(ParseError::new(Rule::HostLastWord, at));
        }
    }
}

/// Reads a word from `at`: where it ends.
#[inline]
pub(crate) fn word(bytes: &[u8], at: usize) -> Result<usize, ParseError> {
    let mut end = at;
    while end < bytes.len() && is_word(bytes[end]) {
        end += 1;
    }
    if end == at || bytes[at] == b'-' {
        Err(ParseError::new(Rule::HostWord, at))
    } else if bytes[end - 1] == b'-' {
        Err(ParseError::new(Rule::HostWord, end - 1))
    } else if end - at > LONGEST_WORD {
        Err(ParseError::new(Rule::HostWordLength, at + LONGEST_WORD))
    } else {
        Ok(end)
    }
}

#[inline]
fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut table = [false; 256];
        let mut c = 0;
        while c < 128_u8 {
            table[c as usize] = c.is_ascii_alphanumeric() || c == b'-';
            c += 1;
        }
        table
    };
    WORD[byte as usize]
}
