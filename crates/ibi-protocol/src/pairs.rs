//! Lists of pairs, the response format of Archives and resolvers: written strictly, read liberally
//! (3.1).
//!
//! ```text
//! list  = pair *( space pair )        pair  = name 1*SP value
//! value = word | "{" [ word *( 1*SP word ) ] "}"
//! word  = 1*( %x21-7A | %x7C | %x7E ) ; printable ASCII without { and }
//! space = SP | CRLF                   ; readers also take LF alone and runs of white space
//! ```
//!
//! Anything else is percent-encoded, on writing as the standard requires and also on reading, for
//! senders that did not encode. A raw byte F3 (`ó` in ISO 8859-1) in a URL becomes the intended
//! `%F3`. Every held value is thus ASCII without control characters and can be written as it is.
//! Values are never decoded (D25).

mod read;

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

pub use read::{PairsError, words};

/// Characters escaped in words. `%` is not: whoever produced the value has already encoded it.
const WORD_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'{').add(b'}');
/// The same for values of several words.
const PAIR_VALUE_ESCAPES: &AsciiSet = &CONTROLS.add(b'{').add(b'}');

/// Limits on a list that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairsLimits {
    /// Maximum bytes.
    pub bytes: usize,
    /// Maximum pairs.
    pub pairs: usize,
    /// Maximum nesting of braces.
    pub depth: usize,
}

impl Default for PairsLimits {
    /// Hundreds of times what the standard's examples need.
    fn default() -> Self {
        Self { bytes: 1 << 20, pairs: 4096, depth: 32 }
    }
}

/// The value of a pair: the text between its braces, or a single word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PairValue {
    /// ASCII without control characters; braces balance; no space at either end.
    text: String,
    /// Always true if the text is not a single strict word.
    braces: bool,
}

impl PairValue {
    fn new(text: String, braces: bool) -> Self {
        let braces = braces || !is_word(&text);
        Self { text, braces }
    }

    /// The text without the outer braces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its words (see [`words`]).
    pub fn words(&self) -> Result<Vec<&str>, PairsError> {
        words(&self.text)
    }
}

impl AsRef<str> for PairValue {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PairValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.braces {
            return f.write_str(&self.text);
        }
        f.write_str("{")?;
        f.write_str(&self.text)?;
        f.write_str("}")
    }
}

/// An ordered list of pairs. Names may repeat; the first one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Pairs(Vec<(String, PairValue)>);

impl Pairs {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a list liberally: any white space between names and values, nested braces, unknown
    /// names. Characters outside the grammar are percent-encoded, and white space inside braces
    /// becomes spaces.
    ///
    /// A text that does not match the grammar is parsed again as a Tcl list, where `\` escapes a
    /// following brace or space.
    pub fn read(bytes: &[u8], limits: &PairsLimits) -> Result<Self, PairsError> {
        read::read_list(bytes, limits).map(Self)
    }

    /// Adds a pair. The value is one word or several separated by spaces; surrounding spaces are
    /// dropped.
    pub fn push(&mut self, name: impl Into<String>, value: &str) {
        let text: Cow<'_, str> =
            percent_encode(value.trim_matches(' ').as_bytes(), PAIR_VALUE_ESCAPES).into();
        self.0.push((encoded_name(name.into()), PairValue::new(text.into_owned(), false)));
    }

    /// Adds a pair whose value is these words in braces, as in `ibi {rep … ibip …}`. A space in a
    /// word is encoded; an empty word, for which the grammar has nothing, is written `{}`.
    pub fn push_words(&mut self, name: impl Into<String>, words: &[&str]) {
        let words: Vec<Cow<'_, str>> = words
            .iter()
            .map(|word| if word.is_empty() { "{}".into() } else { encoded_word(word.as_bytes()) })
            .collect();
        self.0.push((encoded_name(name.into()), PairValue::new(words.join(" "), true)));
    }

    /// Adds a pair whose value is a list of lists, `{{…} {…}}`: labels and names of forms, which
    /// need no encoding.
    pub(crate) fn push_list(&mut self, name: impl Into<String>, list: &str) {
        self.0.push((encoded_name(name.into()), PairValue::new(list.to_owned(), true)));
    }

    /// The value of the first pair of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Every name and its value, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &PairValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no pair: the answer of an Archive that does not hold the IBI (3.4).
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sorts by name, as in the standard's examples; stable for equal names.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
    }

    /// Keeps only the pairs that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &PairValue) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }
}

impl fmt::Display for Pairs {
    /// One pair per line, separated by CRLF.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, value) in &self.0 {
            let name = if name.is_empty() { "{}" } else { name };
            f.write_str(separator)?;
            f.write_str(name)?;
            f.write_str(" ")?;
            value.fmt(f)?;
            separator = "\r\n";
        }
        Ok(())
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic() && !matches!(c, b'{' | b'}'))
}

/// Encodes a name as a strict word.
fn encoded_name(name: String) -> String {
    if is_word(&name) { name } else { encoded_word(name.as_bytes()).into_owned() }
}

fn encoded_word(bytes: &[u8]) -> Cow<'_, str> {
    percent_encode(bytes, WORD_ESCAPES).into()
}
