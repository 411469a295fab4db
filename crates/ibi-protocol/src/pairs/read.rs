//! Parses untrusted lists of pairs in one pass without recursion, so that nesting costs nothing.

use percent_encoding::percent_encode_byte;

use super::{PairValue, PairsLimits};

/// Why a list is invalid, and at which byte, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairsError {
    /// An unclosed brace.
    #[error("the brace at byte {at} is never closed: add `}}`, or write `{{` as %7B")]
    Open {
        /// Its position.
        at: usize,
    },
    /// An unmatched closing brace.
    #[error("the brace at byte {at} closes nothing: remove it, or write it as %7D")]
    Close {
        /// Its position.
        at: usize,
    },
    /// Text directly after a closing brace.
    #[error("at byte {at} something follows a closing brace: put a space between them")]
    NoSpace {
        /// Its position.
        at: usize,
    },
    /// A name without a value.
    #[error("the name at byte {at} has no value: an empty one is written {{}}")]
    NoValue {
        /// Its position.
        at: usize,
    },
    /// Braces nested too deeply.
    #[error("at byte {at} braces nest deeper than {most} levels, which is the limit")]
    TooDeep {
        /// Its position.
        at: usize,
        /// The limit.
        most: usize,
    },
    /// Too many bytes.
    #[error("the list is longer than {most} bytes, which is the limit")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// Too many pairs.
    #[error("at byte {at} there are more than {most} pairs, which is the limit")]
    TooMany {
        /// Its position.
        at: usize,
        /// The limit.
        most: usize,
    },
}

impl PairsError {
    /// Whether Tcl's backslashes could be the cause.
    fn is_of_grammar(self) -> bool {
        !matches!(self, PairsError::TooDeep { .. } | PairsError::TooLong { .. } | PairsError::TooMany { .. })
    }
}

/// Splits a value into words like a Tcl list: at white space; text in braces is one word, without
/// the braces.
///
/// Split a word again to read a nested list.
pub fn words(value: &str) -> Result<Vec<&str>, PairsError> {
    let mut words = Vec::new();
    let mut scan = PairsScanner::new(value.as_bytes(), usize::MAX, false);
    while let Some(word) = scan.word()? {
        // Words begin and end at ASCII, so the fallback is never used.
        words.push(value.get(word.start..word.end).unwrap_or_default());
    }
    Ok(words)
}

pub(super) fn read_list(bytes: &[u8], limits: &PairsLimits) -> Result<Vec<(String, PairValue)>, PairsError> {
    if bytes.len() > limits.bytes {
        return Err(PairsError::TooLong { most: limits.bytes });
    }
    match pairs(bytes, limits, false) {
        // The grammar has priority, because it allows a word to end in `\`. Its error is also the
        // one reported.
        Err(wrong) if wrong.is_of_grammar() && bytes.contains(&b'\\') => {
            pairs(bytes, limits, true).map_err(|_| wrong)
        }
        read => read,
    }
}

fn pairs(bytes: &[u8], limits: &PairsLimits, tcl: bool) -> Result<Vec<(String, PairValue)>, PairsError> {
    let mut scan = PairsScanner::new(bytes, limits.depth, tcl);
    let mut pairs = Vec::new();
    while let Some(name) = scan.word()? {
        if pairs.len() == limits.pairs {
            return Err(PairsError::TooMany { at: name.start, most: limits.pairs });
        }
        let value = scan.word()?.ok_or(PairsError::NoValue { at: name.start })?;
        let text = normalized_text(&bytes[value.start..value.end], false, tcl);
        let text = text.trim_matches(' ').to_owned();
        pairs.push((
            normalized_text(&bytes[name.start..name.end], true, tcl),
            PairValue::new(text, value.braces),
        ));
    }
    Ok(pairs)
}

/// The position of a word, without its braces.
struct WordSpan {
    start: usize,
    end: usize,
    braces: bool,
}

struct PairsScanner<'a> {
    bytes: &'a [u8],
    position: usize,
    depth: usize,
    /// Whether `\` escapes the character after it.
    tcl: bool,
}

impl<'a> PairsScanner<'a> {
    fn new(bytes: &'a [u8], depth: usize, tcl: bool) -> Self {
        Self { bytes, position: 0, depth, tcl }
    }

    fn word(&mut self) -> Result<Option<WordSpan>, PairsError> {
        self.position += self.bytes[self.position..].iter().take_while(|c| is_space(**c)).count();
        let start = self.position;
        let braces = self.bytes.get(start) == Some(&b'{');
        // An unbraced word gets braces when it is written again.
        let outer = usize::from(!braces);
        let (mut depth, mut outermost) = (0_usize, start);
        while let Some(&c) = self.bytes.get(self.position) {
            match c {
                b'\\'
                    if self.tcl && self.bytes.get(self.position + 1).is_some_and(|c| can_be_escaped(*c)) =>
                {
                    self.position += 1;
                }
                b'{' if depth + outer == self.depth => {
                    return Err(PairsError::TooDeep { at: self.position, most: self.depth });
                }
                b'{' => {
                    outermost = if depth == 0 { self.position } else { outermost };
                    depth += 1;
                }
                b'}' if depth == 0 => return Err(PairsError::Close { at: self.position }),
                b'}' => {
                    depth -= 1;
                    if braces && depth == 0 {
                        return self.end_braced_word(start).map(Some);
                    }
                }
                _ if depth == 0 && is_space(c) => break,
                _ => {}
            }
            self.position += 1;
        }
        if depth > 0 {
            return Err(PairsError::Open { at: outermost });
        }
        Ok((self.position > start).then_some(WordSpan { start, end: self.position, braces: false }))
    }

    /// Ends a word in braces at the current closing brace.
    fn end_braced_word(&mut self, start: usize) -> Result<WordSpan, PairsError> {
        let end = self.position;
        self.position += 1;
        match self.bytes.get(self.position) {
            Some(&b'}') => Err(PairsError::Close { at: self.position }),
            Some(&c) if !is_space(c) => Err(PairsError::NoSpace { at: self.position }),
            _ => Ok(WordSpan { start: start + 1, end, braces: true }),
        }
    }
}

/// Tcl's white space: SP, HT, LF, VT, FF, CR.
fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

fn can_be_escaped(c: u8) -> bool {
    is_space(c) || matches!(c, b'{' | b'}' | b'\\')
}

/// The normalized text of a word: characters outside the grammar are percent-encoded, white space
/// inside braces becomes spaces. In names, spaces and braces are encoded too.
fn normalized_text(bytes: &[u8], name: bool, tcl: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(c) = rest.next() {
        match c {
            b'\\' if tcl && rest.peek().is_some_and(|c| can_be_escaped(*c)) => {
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
