//! Metadata of an item: the 15 elements of Dublin Core, each repeatable, with languages (2.2).
//!
//! ```
//! use ibi_archive::dublin_core::DublinCore;
//!
//! let metadata = DublinCore::parse("title@pt=Identificadores\ncreator=Banon, Gerald")?;
//! assert_eq!(DublinCore::from_xml(&metadata.to_xml())?, metadata);
//! # Ok::<(), ibi_archive::dublin_core::DublinCoreError>(())
//! ```

#[cfg(feature = "web")]
mod first_title;
mod xml;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[cfg(feature = "web")]
pub(crate) use first_title::first_title;

use crate::language::Language;
use ibi_protocol::untrusted_text::quote_untrusted;

/// The most statements that the metadata of one item may have.
pub const MAX_STATEMENTS: usize = 10_000;

/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// Deeper nesting is refused: it is an attack on the parser, not metadata.
pub const MAX_XML_DEPTH: usize = 64;

/// The metadata of an item: statements, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<MetadataStatement>")]
pub struct DublinCore(Vec<MetadataStatement>);

impl DublinCore {
    /// Fails if there are more than [`MAX_STATEMENTS`].
    pub fn new(statements: Vec<MetadataStatement>) -> Result<Self, DublinCoreError> {
        if statements.len() > MAX_STATEMENTS { Err(DublinCoreError::TooMany) } else { Ok(Self(statements)) }
    }

    /// Parses user input: XML if it begins with `<`, otherwise one statement per line.
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
            let added = line.parse().and_then(|statement| push_statement(&mut statements, statement));
            with_line_number(at + 1, added)?;
        }
        Ok(Self(statements))
    }

    /// Parses XML: an `oai_dc:dc` document, or any other document that contains Dublin Core
    /// elements.
    ///
    /// It takes the 15 elements of `http://purl.org/dc/elements/1.1/`, and those of
    /// `http://purl.org/dc/terms/` with the same names. Other elements are ignored; inside a value,
    /// only their text is taken. Empty values are dropped. `xml:lang` is inherited, as XML defines
    /// it. A language that is not a well-formed [`LanguageTag`] (`pt_BR` is read as `pt-BR`) counts
    /// as none, because harvested records have many of them.
    pub fn from_xml(text: &str) -> Result<Self, DublinCoreError> {
        xml::read(text).map(Self)
    }

    /// The `oai_dc` document of OAI-PMH. The output is deterministic.
    pub fn to_xml(&self) -> String {
        xml::write(&self.0)
    }

    /// The statements in order.
    pub fn statements(&self) -> &[MetadataStatement] {
        &self.0
    }

    /// The statements of one element, in order.
    pub fn of(&self, element: Element) -> impl Iterator<Item = &MetadataStatement> {
        self.0.iter().filter(move |statement| statement.element == element)
    }
}

/// The languages in which metadata have values.
pub fn languages_of(metadata: &DublinCore) -> Vec<Language> {
    let mut languages: Vec<Language> = Vec::new();
    for statement in metadata.statements() {
        let language = statement.language().and_then(|tag| tag.as_str().parse().ok());
        if let Some(language) = language
            && !languages.contains(&language)
        {
            languages.push(language);
        }
    }
    languages
}

impl TryFrom<Vec<MetadataStatement>> for DublinCore {
    type Error = DublinCoreError;

    fn try_from(statements: Vec<MetadataStatement>) -> Result<Self, DublinCoreError> {
        Self::new(statements)
    }
}

fn push_statement(
    statements: &mut Vec<MetadataStatement>,
    statement: MetadataStatement,
) -> Result<(), DublinCoreError> {
    if statements.len() == MAX_STATEMENTS {
        return Err(DublinCoreError::TooMany);
    }
    statements.push(statement);
    Ok(())
}

fn with_line_number<T>(line: usize, result: Result<T, DublinCoreError>) -> Result<T, DublinCoreError> {
    result.map_err(|error| DublinCoreError::Line { line, error: Box::new(error) })
}

/// One value of one element: `title@pt=Identificadores`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedStatement")]
pub struct MetadataStatement {
    element: Element,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<LanguageTag>,
    value: String,
}

/// A statement in JSON, before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedStatement {
    element: Element,
    language: Option<LanguageTag>,
    value: String,
}

impl MetadataStatement {
    /// Trims the value. The trimmed value must not be empty or longer than [`MAX_VALUE_BYTES`], and
    /// must be representable in XML.
    pub fn new(
        element: Element,
        language: Option<LanguageTag>,
        mut value: String,
    ) -> Result<Self, DublinCoreError> {
        value.truncate(value.trim_end().len());
        value.drain(..value.len() - value.trim_start().len());
        if value.is_empty() {
            return Err(DublinCoreError::Empty { element });
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(DublinCoreError::TooLong { element, bytes: value.len() });
        }
        // Few values have one of these bytes. Scanning all bytes is faster than stopping at the
        // first.
        let doubtful = |found: bool, byte: u8| found | (byte < b' ') | (byte == 0xef);
        if value.bytes().fold(false, doubtful)
            && let Some((at, character)) = value.chars().enumerate().find(|(_, c)| !is_xml_char(*c))
        {
            return Err(DublinCoreError::Character { element, character, at: at + 1 });
        }
        Ok(Self { element, language, value })
    }

    /// The element that the value belongs to.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The language of the value, if given.
    pub fn language(&self) -> Option<&LanguageTag> {
        self.language.as_ref()
    }

    /// The value, without white space around it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl TryFrom<UncheckedStatement> for MetadataStatement {
    type Error = DublinCoreError;

    fn try_from(given: UncheckedStatement) -> Result<Self, DublinCoreError> {
        Self::new(given.element, given.language, given.value)
    }
}

impl FromStr for MetadataStatement {
    type Err = DublinCoreError;

    /// Parses `title=…` or `title@pt=…`, with an optional `dc:` or `dc.` before the element.
    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(DublinCoreError::NoValue { given: quote_untrusted(text) });
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

impl fmt::Display for MetadataStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.language {
            None => write!(f, "{}={}", self.element, self.value),
            Some(language) => write!(f, "{}@{language}={}", self.element, self.value),
        }
    }
}

/// The characters that XML 1.0 allows. Every forbidden character begins, in UTF-8, with a byte
/// below 0x20 or with 0xef.
fn is_xml_char(c: char) -> bool {
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

            /// Case-sensitive lookup by name.
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

    /// Case-insensitive.
    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        Element::named(&text.to_ascii_lowercase())
            .ok_or_else(|| DublinCoreError::Element { given: quote_untrusted(text) })
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The language of a value, in the form of BCP 47: `pt`, `por`, `pt-BR`, `zh-Hant-TW`. The spelling
/// is preserved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct LanguageTag(String);

impl LanguageTag {
    /// The longest language tag. The longest in use are half as long.
    const MAX_LANGUAGE_TAG_BYTES: usize = 64;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The item language that this tag means; `None` if it has three letters or names no known
    /// language.
    pub fn language(&self) -> Option<Language> {
        let mut parts = self.0.split('-');
        let language = parts.next()?;
        // A script of four letters may stand between language and country. A single letter begins
        // an extension.
        let country = parts.take_while(|part| part.len() > 1).find(|part| part.len() == 2);
        country
            .and_then(|country| format!("{language}-{country}").parse().ok())
            .or_else(|| language.parse().ok())
    }
}

impl FromStr for LanguageTag {
    type Err = DublinCoreError;

    fn from_str(text: &str) -> Result<Self, DublinCoreError> {
        let is_part =
            |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_alphanumeric());
        let starts =
            text.split('-').next().is_some_and(|first| first.bytes().all(|c| c.is_ascii_alphabetic()));
        if text.len() <= Self::MAX_LANGUAGE_TAG_BYTES && starts && text.split('-').all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DublinCoreError::Tag { given: quote_untrusted(text) })
        }
    }
}

impl fmt::Display for LanguageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for LanguageTag {
    type Error = DublinCoreError;

    fn try_from(text: String) -> Result<Self, DublinCoreError> {
        text.parse()
    }
}

/// Why metadata cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DublinCoreError {
    /// Not one of the 15.
    #[error("`{given}` is not an element of Dublin Core: these are {}", Element::ALL.map(Element::name).join(", "))]
    Element {
        /// What was given.
        given: String,
    },
    /// Not a well-formed language tag.
    #[error("`{given}` is not the language of a value: write it as in pt, pt-BR or por")]
    Tag {
        /// What was given.
        given: String,
    },
    /// No `=`.
    #[error("`{given}` is not element=value: write it like title=… or title@pt=…")]
    NoValue {
        /// What was given.
        given: String,
    },
    /// The value has only white space.
    #[error("the value of {element} is empty: write one, or leave the element out")]
    Empty {
        /// Of which element.
        element: Element,
    },
    /// More than [`MAX_VALUE_BYTES`].
    #[error(
        "the value of {element} has {bytes} bytes, and {MAX_VALUE_BYTES} is the most: deposit a text of this size as a file"
    )]
    TooLong {
        /// Of which element.
        element: Element,
        /// How long it is.
        bytes: usize,
    },
    /// A character that XML 1.0 does not allow.
    #[error(
        "the value of {element} has U+{:04X} as its character {at}, which XML does not allow: remove it",
        u32::from(*.character)
    )]
    Character {
        /// Of which element.
        element: Element,
        /// The character.
        character: char,
        /// Its position in the value, from 1.
        at: usize,
    },
    /// More than [`MAX_STATEMENTS`].
    #[error("there are more than {MAX_STATEMENTS} statements: leave some out")]
    TooMany,
    /// XML that is malformed or refused.
    #[error("the XML cannot be read: {what}")]
    Xml {
        /// What is wrong.
        what: String,
    },
    /// The line of the file at which parsing failed.
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
