//! Metadata of an item: the 15 elements of Dublin Core, each as often as wanted, with languages (2.2).
//!
//! ```
//! use ibi_archive::dublin_core::DublinCore;
//!
//! let metadata = DublinCore::parse("title@pt=Identificadores\ncreator=Banon, Gerald")?;
//! assert_eq!(DublinCore::from_xml(&metadata.to_xml())?, metadata);
//! # Ok::<(), ibi_archive::dublin_core::DublinCoreError>(())
//! ```

mod xml;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::language::Language;
use ibi_protocol::shown::shown;

/// As many statements as the metadata of one item may have.
pub const MOST_STATEMENTS: usize = 10_000;

/// As many bytes as a value may have.
pub const LONGEST_VALUE: usize = 1 << 20;

/// Elements nested deeper than this are no metadata, but an attack on the reader.
pub const DEEPEST: usize = 64;

/// The metadata of an item: statements, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Statement>")]
pub struct DublinCore(Vec<Statement>);

impl DublinCore {
    /// From statements, at most [`MOST_STATEMENTS`].
    pub fn new(statements: Vec<Statement>) -> Result<Self, DublinCoreError> {
        if statements.len() > MOST_STATEMENTS { Err(DublinCoreError::TooMany) } else { Ok(Self(statements)) }
    }

    /// Reads what a person wrote: XML if it begins with `<`, otherwise one statement a line.
    ///
    /// Blank lines, and lines that begin with `#`, are skipped.
    pub fn parse(text: &str) -> Result<Self, DublinCoreError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with('<') {
            return Self::from_xml(text);
        }
        let mut statements = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let added = line.parse().and_then(|statement| add(&mut statements, statement));
            in_line(at + 1, added)?;
        }
        Ok(Self(statements))
    }

    /// Reads XML: an `oai_dc:dc` document, or any other that has elements of Dublin Core somewhere.
    ///
    /// These are the 15 of `http://purl.org/dc/elements/1.1/`, and those of `http://purl.org/dc/terms/` that have the same
    /// names. Others are passed over; of others within a value, the text is taken. Empty values are left out. A language
    /// holds for what is inside, as XML has it; one that is not of the form of a [`Tag`] (`pt_BR` is read as `pt-BR`)
    /// counts as none, for harvested records have many.
    pub fn from_xml(text: &str) -> Result<Self, DublinCoreError> {
        xml::read(text).map(Self)
    }

    /// The `oai_dc` document of OAI-PMH. The same statements always make the same bytes.
    pub fn to_xml(&self) -> String {
        xml::write(&self.0)
    }

    /// The statements in order.
    pub fn statements(&self) -> &[Statement] {
        &self.0
    }

    /// The statements of one element, in order.
    pub fn of(&self, element: Element) -> impl Iterator<Item = &Statement> {
        self.0.iter().filter(move |statement| statement.element == element)
    }
}

impl TryFrom<Vec<Statement>> for DublinCore {
    type Error = DublinCoreError;

    fn try_from(statements: Vec<Statement>) -> Result<Self, DublinCoreError> {
        Self::new(statements)
    }
}

fn add(statements: &mut Vec<Statement>, statement: Statement) -> Result<(), DublinCoreError> {
    if statements.len() == MOST_STATEMENTS {
        return Err(DublinCoreError::TooMany);
    }
    statements.push(statement);
    Ok(())
}

fn in_line<T>(line: usize, result: Result<T, DublinCoreError>) -> Result<T, DublinCoreError> {
    result.map_err(|error| DublinCoreError::Line { line, error: Box::new(error) })
}

/// One value of one element: `title@pt=Identificadores`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Given")]
pub struct Statement {
    element: Element,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<Tag>,
    value: String,
}

/// A statement in JSON, not checked yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    element: Element,
    language: Option<Tag>,
    value: String,
}

impl Statement {
    /// The value loses white space around it. What is left is not empty, not longer than [`LONGEST_VALUE`], and can be
    /// told in XML.
    pub fn new(element: Element, language: Option<Tag>, mut value: String) -> Result<Self, DublinCoreError> {
        value.truncate(value.trim_end().len());
        value.drain(..value.len() - value.trim_start().len());
        if value.is_empty() {
            return Err(DublinCoreError::Empty { element });
        }
        if value.len() > LONGEST_VALUE {
            return Err(DublinCoreError::TooLong { element, bytes: value.len() });
        }
        // Few values have one of these bytes, and looking at all of them is faster than stopping at the first.
        let doubtful = |found: bool, byte: u8| found | (byte < b' ') | (byte == 0xef);
        if value.bytes().fold(false, doubtful)
            && let Some((at, character)) = value.chars().enumerate().find(|(_, c)| !is_xml(*c))
        {
            return Err(DublinCoreError::Character { element, character, at: at + 1 });
        }
        Ok(Self { element, language, value })
    }

    /// What it tells.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The language that the value is in, if that was said.
    pub fn language(&self) -> Option<&Tag> {
        self.language.as_ref()
    }

    /// The value, without white space around it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl TryFrom<Given> for Statement {
    type Error = DublinCoreError;

    fn try_from(given: Given) -> Result<Self, DublinCoreError> {
        Self::new(given.element, given.language, given.value)
    }
}

impl FromStr for Statement {
    type Err = DublinCoreError;

    /// Reads `title=…` or `title@pt=…`; before the element, `dc:` or `dc.` may stand.
    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(DublinCoreError::NoValue { given: shown(text) });
        };
        let (name, language) = match name.split_once('@') {
            None => (name, None),
            Some((name, language)) => (name, Some(language.trim().parse()?)),
        };
        let name = name.trim();
        let bare = name.split_once([':', '.']).filter(|(prefix, _)| prefix.eq_ignore_ascii_case("dc"));
        let element = bare.map_or(name, |(_, bare)| bare).parse()?;
        Self::new(element, language, value.trim().to_owned())
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.language {
            None => write!(f, "{}={}", self.element, self.value),
            Some(language) => write!(f, "{}@{language}={}", self.element, self.value),
        }
    }
}

/// The characters that XML 1.0 allows. Those that it does not, and UTF-8 has, begin with a byte below 0x20 or 0xef.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

macro_rules! elements {
    ($($variant:ident $name:literal)*) => {
        /// The 15 elements of Dublin Core, in their customary order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Element { $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $variant),* }

        impl Element {
            /// All 15.
            pub const ALL: [Element; 15] = [$(Element::$variant),*];

            /// The name, in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(Element::$variant => $name),* }
            }

            /// The element of this very name.
            fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Element::$variant),)* _ => None }
            }
        }
    };
}

elements! {
    Title "title"
    Creator "creator"
    Subject "subject"
    Description "description"
    Publisher "publisher"
    Contributor "contributor"
    Date "date"
    Type "type"
    Format "format"
    Identifier "identifier"
    Source "source"
    Language "language"
    Relation "relation"
    Coverage "coverage"
    Rights "rights"
}

impl FromStr for Element {
    type Err = DublinCoreError;

    /// Without regard to case.
    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        Element::named(&text.to_ascii_lowercase())
            .ok_or_else(|| DublinCoreError::Element { given: shown(text) })
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The language of a value, of the form that BCP 47 gives it: `pt`, `por`, `pt-BR`, `zh-Hant-TW`. It keeps its spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Tag(String);

impl Tag {
    /// As many characters as a tag may have. The longest in use are half as long.
    const LONGEST: usize = 64;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it means as a language of an item: nothing if it has three letters, or letters that mean no language.
    pub fn language(&self) -> Option<Language> {
        let mut parts = self.0.split('-');
        let language = parts.next()?;
        // Between language and country may stand a script, of four letters; what follows a single letter is an extension.
        let country = parts.take_while(|part| part.len() > 1).find(|part| part.len() == 2);
        country
            .and_then(|country| format!("{language}-{country}").parse().ok())
            .or_else(|| language.parse().ok())
    }
}

impl FromStr for Tag {
    type Err = DublinCoreError;

    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        let is_part =
            |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_alphanumeric());
        let starts =
            text.split('-').next().is_some_and(|first| first.bytes().all(|c| c.is_ascii_alphabetic()));
        if text.len() <= Self::LONGEST && starts && text.split('-').all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DublinCoreError::Tag { given: shown(text) })
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for Tag {
    type Error = DublinCoreError;

    fn try_from(text: String) -> Result<Self, DublinCoreError> {
        text.parse()
    }
}

/// Metadata that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DublinCoreError {
    /// Not one of the 15.
    #[error("`{given}` is not an element of Dublin Core: these are {}", Element::ALL.map(Element::name).join(", "))]
    Element {
        /// What was given.
        given: String,
    },
    /// Not of the form of a language.
    #[error("`{given}` is not the language of a value: write it as in pt, pt-BR or por")]
    Tag {
        /// What was given.
        given: String,
    },
    /// No `=`.
    #[error("`{given}` says nothing: write an element, `=` and a value, as in title=… or title@pt=…")]
    NoValue {
        /// What was given.
        given: String,
    },
    /// Nothing but white space.
    #[error("the value of {element} is empty: write one, or leave the element out")]
    Empty {
        /// Of which element.
        element: Element,
    },
    /// More than [`LONGEST_VALUE`].
    #[error(
        "the value of {element} has {bytes} bytes, and {LONGEST_VALUE} is the most: deposit a text of this size as a file"
    )]
    TooLong {
        /// Of which element.
        element: Element,
        /// How long it is.
        bytes: usize,
    },
    /// A character that XML 1.0 does not allow.
    #[error(
        "the value of {element} has U+{:04X} as its character {at}, which XML cannot hold: take it out",
        u32::from(*.character)
    )]
    Character {
        /// Of which element.
        element: Element,
        /// The character.
        character: char,
        /// The how-manieth character of the value it is, from 1.
        at: usize,
    },
    /// More than [`MOST_STATEMENTS`].
    #[error("there are more than {MOST_STATEMENTS} statements: leave some out")]
    TooMany,
    /// XML that is not well-formed, or that is refused.
    #[error("the XML cannot be read: {what}")]
    Xml {
        /// What is wrong.
        what: String,
    },
    /// Where in a file it went wrong.
    #[error("line {line}: {error}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        #[source]
        error: Box<DublinCoreError>,
    },
}

#[cfg(test)]
mod tests;
