//! Host names in labels: words of letters, digits and inner hyphens (1.1).

use std::fmt::{self, Write as _};

use crate::{ParseError, Rule};

const MAX_HOST_WORD_BYTES: usize = 63;
const MAX_HOST_NAME_BYTES: usize = 253;

/// A host name, split as in the standard: its first word, and the subdomain.
///
/// Compared and printed case-insensitively; a trailing dot is ignored (1.3).
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    word: &'a str,
    subdomain: &'a str,
}

impl<'a> Host<'a> {
    /// Parses a host name in DNS order: `mtc-m18.sid.inpe.br`.
    pub fn parse(name: &'a str) -> Result<Self, ParseError> {
        let bytes = name.as_bytes();
        let (end, next) = domain(bytes, 0)?;
        if next != bytes.len() {
            return Err(ParseError::new(Rule::HostWord, next));
        }
        if end > MAX_HOST_NAME_BYTES {
            return Err(ParseError::new(Rule::HostLength, MAX_HOST_NAME_BYTES));
        }
        match name[..end].split_once('.') {
            Some((word, subdomain)) => Ok(Self { word, subdomain }),
            None => Err(ParseError::new(Rule::HostTooFewWords, end)),
        }
    }

    /// From parts whose syntax was already checked.
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

    /// The words in reverse order.
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
            // The parts contain no slash, so it separates them unambiguously.
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

/// Parses `*(word ".") last-word [ "." ]` at `at`. Returns the end of the last word, and where to
/// continue.
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

/// Parses a word at `at` and returns its end.
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
    } else if end - at > MAX_HOST_WORD_BYTES {
        Err(ParseError::new(Rule::HostWordLength, at + MAX_HOST_WORD_BYTES))
    } else {
        Ok(end)
    }
}

#[inline]
fn is_word(byte: u8) -> bool {
    const IS_HOST_WORD_BYTE: [bool; 256] = {
        let mut table = [false; 256];
        let mut c = 0;
        while c < 128_u8 {
            table[c as usize] = c.is_ascii_alphanumeric() || c == b'-';
            c += 1;
        }
        table
    };
    IS_HOST_WORD_BYTE[byte as usize]
}
