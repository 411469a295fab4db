//! Reading lists of pairs from whoever sends them. One pass without recursion, so that depth costs nothing.

use percent_encoding::percent_encode_byte;

use super::{Limits, Value};

/// What is wrong with a list, and at which byte, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairsError {
    /// A brace that is never closed.
    #[error("the brace at byte {at} is never closed: add `}}`, or write `{{` as %7B")]
    Open {
        /// Where it is.
        at: usize,
    },
    /// A brace that closes nothing.
    #[error("the brace at byte {at} closes nothing: take it out, or write it as %7D")]
    Close {
        /// Where it is.
        at: usize,
    },
    /// Something right after a closing brace.
    #[error("at byte {at} something follows a closing brace: put a space between them")]
    NoSpace {
        /// Where it is.
        at: usize,
    },
    /// A name without a value.
    #[error("the name at byte {at} has no value: an empty one is written {{}}")]
    NoValue {
        /// Where it is.
        at: usize,
    },
    /// Braces in braces in braces.
    #[error("at byte {at} braces nest deeper than {most}: that is the most that is read here")]
    TooDeep {
        /// Where it is.
        at: usize,
        /// The bound.
        most: usize,
    },
    /// More bytes than are read.
    #[error("the list is longer than {most} bytes: that is the most that is read here")]
    TooLong {
        /// The bound.
        most: usize,
    },
    /// More pairs than are read.
    #[error("at byte {at} there are more than {most} pairs: that is the most that is read here")]
    TooMany {
        /// Where it is.
        at: usize,
        /// The bound.
        most: usize,
    },
}

impl PairsError {
    /// Whether Tcl's backslashes could have been the reason.
    fn is_of_grammar(self) -> bool {
        !matches!(self, PairsError::TooDeep { .. } | PairsError::TooLong { .. } | PairsError::TooMany { .. })
    }
}

/// Splits a value into words, as a Tcl list: between white space, and what is in braces is one word, without them.
///
/// Nested lists are read by splitting a word again.
pub fn words(value: &str) -> Result<Vec<&str>, PairsError> {
    let mut words = Vec::new();
    let mut scan = Scan::new(value.as_bytes(), usize::MAX, false);
    while let Some(word) = scan.word()? {
        // Words begin and end at ASCII, so this is never the empty fallback.
        words.push(value.get(word.start..word.end).unwrap_or_default());
    }
    Ok(words)
}

pub(super) fn list(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Value)>, PairsError> {
    if bytes.len() > limits.bytes {
        return Err(PairsError::TooLong { most: limits.bytes });
    }
    match pairs(bytes, limits, false) {
        // The grammar comes first, for it lets a word end in `\`. The error that is told is the grammar's, too.
        Err(wrong) if wrong.is_of_grammar() && bytes.contains(&b'\\') => {
            pairs(bytes, limits, true).map_err(|_| wrong)
        }
        read => read,
    }
}

fn pairs(bytes: &[u8], limits: &Limits, tcl: bool) -> Result<Vec<(String, Value)>, PairsError> {
    let mut scan = Scan::new(bytes, limits.depth, tcl);
    let mut pairs = Vec::new();
    while let Some(name) = scan.word()? {
        if pairs.len() == limits.pairs {
            return Err(PairsError::TooMany { at: name.start, most: limits.pairs });
        }
        let value = scan.word()?.ok_or(PairsError::NoValue { at: name.start })?;
        let text = kept(&bytes[value.start..value.end], false, tcl);
        let text = text.trim_matches(' ').to_owned();
        pairs.push((kept(&bytes[name.start..name.end], true, tcl), Value::new(text, value.braces)));
    }
    Ok(pairs)
}

/// Where a word is, without its braces.
struct Word {
    start: usize,
    end: usize,
    braces: bool,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Whether `\` takes the meaning from what follows it.
    tcl: bool,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8], depth: usize, tcl: bool) -> Self {
        Self { bytes, at: 0, depth, tcl }
    }

    fn word(&mut self) -> Result<Option<Word>, PairsError> {
        self.at += self.bytes[self.at..].iter().take_while(|c| is_space(**c)).count();
        let start = self.at;
        let braces = self.bytes.get(start) == Some(&b'{');
        // What is not in braces will be, once it is written again.
        let outer = usize::from(!braces);
        let (mut depth, mut outermost) = (0_usize, start);
        while let Some(&c) = self.bytes.get(self.at) {
            match c {
                b'\\' if self.tcl && self.bytes.get(self.at + 1).is_some_and(|c| escapes(*c)) => self.at += 1,
                b'{' if depth + outer == self.depth => {
                    return Err(PairsError::TooDeep { at: self.at, most: self.depth });
                }
                b'{' => {
                    outermost = if depth == 0 { self.at } else { outermost };
                    depth += 1;
                }
                b'}' if depth == 0 => return Err(PairsError::Close { at: self.at }),
                b'}' => {
                    depth -= 1;
                    if braces && depth == 0 {
                        return self.closed(start).map(Some);
                    }
                }
                _ if depth == 0 && is_space(c) => break,
                _ => {}
            }
            self.at += 1;
        }
        if depth > 0 {
            return Err(PairsError::Open { at: outermost });
        }
        Ok((self.at > start).then_some(Word { start, end: self.at, braces: false }))
    }

    /// A word in braces, the reader being at the last of them.
    fn closed(&mut self, start: usize) -> Result<Word, PairsError> {
        let end = self.at;
        self.at += 1;
        match self.bytes.get(self.at) {
            Some(&b'}') => Err(PairsError::Close { at: self.at }),
            Some(&c) if !is_space(c) => Err(PairsError::NoSpace { at: self.at }),
            _ => Ok(Word { start: start + 1, end, braces: true }),
        }
    }
}

/// Tcl's white space: SP, HT, LF, VT, FF, CR.
fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

fn escapes(c: u8) -> bool {
    is_space(c) || matches!(c, b'{' | b'}' | b'\\')
}

/// The text of a word as it is kept: what is outside the grammar's characters is percent-encoded, white space inside
/// braces is spaces. A name is one word: there, spaces and braces are outside too.
fn kept(bytes: &[u8], name: bool, tcl: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(c) = rest.next() {
        match c {
            b'\\' if tcl && rest.peek().is_some_and(|c| escapes(*c)) => {
                let escaped = rest.next().unwrap_or(c);
                if escaped == b'\\' {
                    text.push('\\');
                } else {
                    text.push_str(percent_encode_byte(escaped));
                }
            }
            _ if !name && is_space(c) => text.push(' '),
            b'{' | b'}' if !name => text.push(char::from(c)),
            _ if c.is_ascii_graphic() && !matches!(c, b'{' | b'}') => text.push(char::from(c)),
            _ => text.push_str(percent_encode_byte(c)),
        }
    }
    text
}
