//! Relations from an item to what is requested: its last edition, a translation, its metadata
//! (2.4).
//!
//! ```text
//! relation = ([u [t]] | [t [u]]) [m [t]]
//! ```

use std::fmt;
use std::str::FromStr;

use crate::language::{Language, LanguageError};
use crate::untrusted_text::quote_untrusted;

/// Limit on the name of a metadata format.
const MAX_METADATA_FORMAT_BYTES: usize = 64;

/// One step from an item to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelationPart {
    /// `.lastedition`, `!`.
    LastEdition,
    /// `.translation(pt)`, `+(pt)`; without a language, the one that best matches the client.
    Translation(Option<Language>),
    /// `.metadata(oai_dc)`, `:(oai_dc)`; without a format, the HTML page.
    Metadata(Option<String>),
}

impl RelationPart {
    /// Whether an offered part satisfies a request for this one: a translation without a language
    /// accepts any, and `pt` accepts `pt-BR` (3.4).
    pub fn accepts_part(&self, offer: &RelationPart) -> bool {
        match (self, offer) {
            (RelationPart::Translation(None), RelationPart::Translation(_)) => true,
            (RelationPart::Translation(Some(requested)), RelationPart::Translation(Some(offered))) => {
                offered.matches(*requested)
            }
            _ => self == offer,
        }
    }

    /// The text in parentheses.
    pub(crate) fn parameter(&self) -> Option<String> {
        match self {
            RelationPart::LastEdition => None,
            RelationPart::Translation(language) => language.map(|language| language.to_string()),
            RelationPart::Metadata(format) => format.clone(),
        }
    }

    /// The same part with a parameter.
    pub(crate) fn with_parameter(self, parameter: &str) -> Result<RelationPart, RelationError> {
        match self {
            RelationPart::LastEdition => Err(RelationError::Parameter { given: quote_untrusted(parameter) }),
            RelationPart::Translation(_) => Ok(RelationPart::Translation(Some(parameter.parse()?))),
            RelationPart::Metadata(_) if is_format(parameter) => {
                Ok(RelationPart::Metadata(Some(parameter.to_owned())))
            }
            RelationPart::Metadata(_) => Err(RelationError::Format { given: quote_untrusted(parameter) }),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            RelationPart::LastEdition => ".lastedition",
            RelationPart::Translation(_) => ".translation",
            RelationPart::Metadata(_) => ".metadata",
        }
    }

    fn sign(&self) -> char {
        match self {
            RelationPart::LastEdition => '!',
            RelationPart::Translation(_) => '+',
            RelationPart::Metadata(_) => ':',
        }
    }
}

/// A relation: empty (the item itself), or one of the 14 compositions, with or without parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation(Vec<RelationPart>);

impl Relation {
    /// The 14 compositions of 4.1, written as modifiers, without parameters.
    pub const ALL_COMPOSITIONS: [&'static str; 14] =
        [":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+"];

    /// Composes parts, if the grammar allows their order.
    pub fn new(parts: Vec<RelationPart>) -> Result<Self, RelationError> {
        let signs: String = parts.iter().map(RelationPart::sign).collect();
        if !signs.is_empty() && !Self::ALL_COMPOSITIONS.contains(&signs.as_str()) {
            return Err(RelationError::Order { given: quote_untrusted(&signs) });
        }
        for part in &parts {
            if let RelationPart::Metadata(Some(format)) = part
                && !is_format(format)
            {
                return Err(RelationError::Format { given: quote_untrusted(format) });
            }
        }
        Ok(Self(parts))
    }

    /// All compositions without parameters; the empty relation is not included.
    pub fn all() -> impl Iterator<Item = Relation> {
        Self::ALL_COMPOSITIONS.into_iter().filter_map(|signs| Self::from_modifiers(signs).ok())
    }

    /// Parses a relation from the name of a pair: `.lastedition.metadata(oai_dc)`, or empty.
    pub fn parse(text: &str) -> Result<Self, RelationError> {
        read(text, |rest| {
            [RelationPart::LastEdition, RelationPart::Translation(None), RelationPart::Metadata(None)]
                .into_iter()
                .find_map(|part| Some((rest.strip_prefix(part.word())?, part)))
        })
    }

    /// Parses the modifiers of a persistent URL: `!:(oai_dc)`, or empty (4.1).
    pub fn from_modifiers(text: &str) -> Result<Self, RelationError> {
        read(text, |rest| {
            [RelationPart::LastEdition, RelationPart::Translation(None), RelationPart::Metadata(None)]
                .into_iter()
                .find_map(|part| Some((rest.strip_prefix(part.sign())?, part)))
        })
    }

    /// Its parts, in order.
    pub fn parts(&self) -> &[RelationPart] {
        &self.0
    }

    /// Whether it is the item itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its proper, non-empty prefixes, longest first (4.2 step 5).
    pub fn leading(&self) -> impl Iterator<Item = Relation> + '_ {
        // Every prefix of a relation is a relation: in the grammar only the end is optional.
        (1..self.0.len()).rev().map(|length| Self(self.0[..length].to_vec()))
    }

    /// The parts before `.lastedition`, if it contains that: none, or a translation (3.4).
    pub fn before_last_edition(&self) -> Option<Relation> {
        let index = self.0.iter().position(|part| *part == RelationPart::LastEdition)?;
        Some(Self(self.0[..index].to_vec()))
    }

    /// What remains to be requested of the item that a leading part leads to (4.2 step 5): the
    /// parts after it, preceded by the metadata format of the leading part, because a format is not
    /// an item of its own. `None` if this relation does not begin with `leading`.
    pub fn after(&self, leading: &Relation) -> Option<Relation> {
        let rest = self.0.strip_prefix(leading.parts())?;
        let format = leading.0.iter().find(|part| matches!(part, RelationPart::Metadata(Some(_))));
        Some(Self(format.into_iter().chain(rest).cloned().collect()))
    }

    /// Whether an offered relation satisfies a request for this one, part by part (3.4).
    pub fn accepts(&self, offer: &Relation) -> bool {
        self.0.len() == offer.0.len()
            && self.0.iter().zip(&offer.0).all(|(requested, offered)| requested.accepts_part(offered))
    }

    /// As modifiers of a persistent URL: `!+(pt):(oai_dc)`.
    pub fn modifiers(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            text.push(part.sign());
            text.extend(part.parameter().map(|parameter| format!("({parameter})")));
        }
        text
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            f.write_str(part.word())?;
            if let Some(parameter) = part.parameter() {
                write!(f, "({parameter})")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Relation {
    type Err = RelationError;

    fn from_str(text: &str) -> Result<Self, RelationError> {
        Self::parse(text)
    }
}

/// Parses parts, given how one of them is spelled.
fn read(text: &str, step: impl Fn(&str) -> Option<(&str, RelationPart)>) -> Result<Relation, RelationError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let unknown = || RelationError::Step { given: quote_untrusted(rest) };
        let (after, part) = step(rest).ok_or_else(unknown)?;
        let (after, part) = match after.strip_prefix('(') {
            None => (after, part),
            Some(inside) => {
                let (parameter, after) = inside.split_once(')').ok_or_else(unknown)?;
                (after, part.with_parameter(parameter)?)
            }
        };
        // No composition has more than four parts; this bounds memory use.
        if parts.len() == 4 {
            return Err(RelationError::Order { given: quote_untrusted(text) });
        }
        parts.push(part);
        rest = after;
    }
    Relation::new(parts)
}

/// Formats are open-ended (4.1): these are the characters of OAI-PMH's `metadataPrefix`, without
/// parentheses.
fn is_format(text: &str) -> bool {
    (1..=MAX_METADATA_FORMAT_BYTES).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.!~*'".contains(&c))
}

/// Why a relation, modifiers or a list of verbs is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelationError {
    /// Parts in an invalid order.
    #[error(
        "`{given}` does not go together: last edition (!) and translation (+) come first, each at most once, then \
         metadata (:), then a translation of the metadata, as in !+(pt):+(pt)"
    )]
    Order {
        /// What was given.
        given: String,
    },
    /// An unknown part.
    #[error(
        "`{given}` is not a relation: use .lastedition (!), .translation (+) or .metadata (:), the last two with a \
         parameter if needed, as in .translation(pt) or :(oai_dc)"
    )]
    Step {
        /// What was given.
        given: String,
    },
    /// A last edition with a parameter.
    #[error("the last edition has no parameter: leave out `({given})`")]
    Parameter {
        /// What was given.
        given: String,
    },
    /// An invalid format name.
    #[error(
        "`{given}` is not a metadata format: a name has 1 to 64 letters, digits or characters of -_.!~*' as in oai_dc"
    )]
    Format {
        /// What was given.
        given: String,
    },
    /// An invalid language.
    #[error(transparent)]
    Language(#[from] LanguageError),
}
