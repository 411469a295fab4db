//! Lists of pairs, the answers of Archives and resolver: written strictly, read liberally (3.1).
//!
//! ```text
//! list  = pair *( space pair )        pair  = name 1*SP value
//! value = word | "{" [ word *( 1*SP word ) ] "}"
//! word  = 1*( %x21-7A | %x7C | %x7E ) ; printable ASCII without { and }
//! space = SP | CRLF                   ; readers also take LF alone and runs of white space
//! ```
//!
//! Anything else is percent-encoded: on writing, as the norm has it, and on reading too, for those who sent it as it
//! was. So a raw byte F3 (`ó` in ISO 8859-1) in a URL becomes `%F3`, which is what it meant, and every value that is
//! held is ASCII, without control characters, ready to be written again. Values are never decoded (D25).

mod read;

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

pub use read::{PairsError, words};

/// What no word can have. `%` can: a value has been encoded by who knows what it means.
const IN_WORDS: &AsciiSet = &CONTROLS.add(b' ').add(b'{').add(b'}');
/// The same for values of several words.
const IN_VALUES: &AsciiSet = &CONTROLS.add(b'{').add(b'}');

/// How much is read before a list is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes.
    pub bytes: usize,
    /// The most pairs.
    pub pairs: usize,
    /// How deep braces may nest.
    pub depth: usize,
}

impl Default for Limits {
    /// Hundreds of times what the norm's examples need.
    fn default() -> Self {
        Self { bytes: 1 << 20, pairs: 4096, depth: 32 }
    }
}

/// The value of a pair: what stands between its braces, or its one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Value {
    /// ASCII without control characters; braces balance; no space at either end.
    text: String,
    /// Always so if the text is not one strict word.
    braces: bool,
}

impl Value {
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

impl AsRef<str> for Value {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.braces {
            return f.write_str(&self.text);
        }
        f.write_str("{")?;
        f.write_str(&self.text)?;
        f.write_str("}")
    }
}

/// A list of pairs, in order. A name can come again; the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Pairs(Vec<(String, Value)>);

impl Pairs {
    /// No pairs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a list, liberally: any white space between names and values, values in braces that nest, names that
    /// nobody knows. What is outside the grammar's characters is percent-encoded, and white space inside braces is
    /// read as spaces.
    ///
    /// If a text makes no list by the grammar, it is read once more as Tcl writes lists, where `\` takes the meaning
    /// from a brace or a space after it.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, PairsError> {
        read::list(bytes, limits).map(Self)
    }

    /// Adds a pair. The value is one word, or words between spaces; spaces at its ends are dropped.
    pub fn push(&mut self, name: impl Into<String>, value: &str) {
        let text: Cow<'_, str> = percent_encode(value.trim_matches(' ').as_bytes(), IN_VALUES).into();
        self.0.push((named(name.into()), Value::new(text.into_owned(), false)));
    }

    /// Adds a pair whose value is these words in braces, as in `ibi {rep … ibip …}`. A space in a word is encoded; an
    /// empty word, for which the grammar has nothing, is written `{}`.
    pub fn push_words(&mut self, name: impl Into<String>, words: &[&str]) {
        let words: Vec<Cow<'_, str>> = words
            .iter()
            .map(|word| if word.is_empty() { "{}".into() } else { encoded_word(word.as_bytes()) })
            .collect();
        self.0.push((named(name.into()), Value::new(words.join(" "), true)));
    }

    /// Adds a pair whose value is a list of lists, `{{…} {…}}`: labels and names of forms, which need no encoding.
    pub(crate) fn push_list(&mut self, name: impl Into<String>, list: &str) {
        self.0.push((named(name.into()), Value::new(list.to_owned(), true)));
    }

    /// The value of the first pair of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Every name and its value, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
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

    /// Orders them by name, as the norm's examples are; pairs of one name keep their order.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
    }

    /// Keeps only the pairs that are wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&str, &Value) -> bool) {
        self.0.retain(|(name, value)| wanted(name, value));
    }
}

impl fmt::Display for Pairs {
    /// One pair to a line, with CRLF between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = "";
        for (name, value) in &self.0 {
            let name = if name.is_empty() { "{}" } else { name };
            f.write_str(line)?;
            f.write_str(name)?;
            f.write_str(" ")?;
            value.fmt(f)?;
            line = "\r\n";
        }
        Ok(())
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic() && !matches!(c, b'{' | b'}'))
}

/// A name is a word, whatever was given.
fn named(name: String) -> String {
    if is_word(&name) { name } else { encoded_word(name.as_bytes()).into_owned() }
}

fn encoded_word(bytes: &[u8]) -> Cow<'_, str> {
    percent_encode(bytes, IN_WORDS).into()
}
