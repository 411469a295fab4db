//! How what is asked for is related to the item: its last edition, a translation, its metadata (2.4).
//!
//! ```text
//! relation = ([u [t]] | [t [u]]) [m [t]]
//! ```

use std::fmt;
use std::str::FromStr;

use crate::language::{Language, LanguageError};
use crate::shown::shown;

/// The longest name of a metadata format.
const LONGEST_FORMAT: usize = 64;

/// One step from an item to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// `.lastedition`, `!`.
    LastEdition,
    /// `.translation(pt)`, `+(pt)`; without a language, whichever suits the client.
    Translation(Option<Language>),
    /// `.metadata(oai_dc)`, `:(oai_dc)`; without a format, the page for people.
    Metadata(Option<String>),
}

impl Part {
    /// Whether an offer is what somebody wants who asks for this part: without a language a translation is any, and
    /// `pt` takes `pt-BR` too (3.4).
    pub fn takes(&self, offer: &Part) -> bool {
        match (self, offer) {
            (Part::Translation(None), Part::Translation(_)) => true,
            (Part::Translation(Some(wanted)), Part::Translation(Some(offered))) => offered.matches(*wanted),
            _ => self == offer,
        }
    }

    /// What stands in the parentheses.
    pub(crate) fn parameter(&self) -> Option<String> {
        match self {
            Part::LastEdition => None,
            Part::Translation(language) => language.map(|language| language.to_string()),
            Part::Metadata(format) => format.clone(),
        }
    }

    /// The same step with what was found in the parentheses.
    pub(crate) fn with(self, parameter: &str) -> Result<Part, RelationError> {
        match self {
            Part::LastEdition => Err(RelationError::Parameter { given: shown(parameter) }),
            Part::Translation(_) => Ok(Part::Translation(Some(parameter.parse()?))),
            Part::Metadata(_) if is_format(parameter) => Ok(Part::Metadata(Some(parameter.to_owned()))),
            Part::Metadata(_) => Err(RelationError::Format { given: shown(parameter) }),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Part::LastEdition => ".lastedition",
            Part::Translation(_) => ".translation",
            Part::Metadata(_) => ".metadata",
        }
    }

    fn sign(&self) -> char {
        match self {
            Part::LastEdition => '!',
            Part::Translation(_) => '+',
            Part::Metadata(_) => ':',
        }
    }
}

/// A relation: nothing (the item itself), or one of the 14 compositions, with or without parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation(Vec<Part>);

impl Relation {
    /// The 14 compositions of 4.1, written as modifiers, without parameters.
    pub const ALL: [&'static str; 14] =
        [":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+"];

    /// Puts steps together, if the grammar lets them follow one another so.
    pub fn new(parts: Vec<Part>) -> Result<Self, RelationError> {
        let signs: String = parts.iter().map(Part::sign).collect();
        if !signs.is_empty() && !Self::ALL.contains(&signs.as_str()) {
            return Err(RelationError::Order { given: shown(&signs) });
        }
        for part in &parts {
            if let Part::Metadata(Some(format)) = part
                && !is_format(format)
            {
                return Err(RelationError::Format { given: shown(format) });
            }
        }
        Ok(Self(parts))
    }

    /// Every composition, without parameters; the item itself is not among them.
    pub fn all() -> impl Iterator<Item = Relation> {
        Self::ALL.into_iter().filter_map(|signs| Self::from_modifiers(signs).ok())
    }

    /// Reads a relation as it stands in the names of pairs: `.lastedition.metadata(oai_dc)`, or nothing.
    pub fn parse(text: &str) -> Result<Self, RelationError> {
        read(text, |rest| {
            [Part::LastEdition, Part::Translation(None), Part::Metadata(None)]
                .into_iter()
                .find_map(|part| Some((rest.strip_prefix(part.word())?, part)))
        })
    }

    /// Reads the modifiers of a persistent URL: `!:(oai_dc)`, or nothing (4.1).
    pub fn from_modifiers(text: &str) -> Result<Self, RelationError> {
        read(text, |rest| {
            [Part::LastEdition, Part::Translation(None), Part::Metadata(None)]
                .into_iter()
                .find_map(|part| Some((rest.strip_prefix(part.sign())?, part)))
        })
    }

    /// Its steps, in order.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether it is the item itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its leading parts that are neither the whole nor nothing, the longest first (4.2 step 5).
    pub fn leading(&self) -> impl Iterator<Item = Relation> + '_ {
        // Whatever a relation begins with is a relation: the grammar only ever lets the end be left out.
        (1..self.0.len()).rev().map(|length| Self(self.0[..length].to_vec()))
    }

    /// What stands before `.lastedition`, if that is in it: nothing, or a translation (3.4).
    pub fn before_last_edition(&self) -> Option<Relation> {
        let at = self.0.iter().position(|part| *part == Part::LastEdition)?;
        Some(Self(self.0[..at].to_vec()))
    }

    /// What is left to ask of the item that a leading part leads to (4.2 step 5): the steps after it, and before them
    /// the metadata in the format that the leading part had, for a format is no item of its own. `None` if this
    /// relation does not begin so.
    pub fn after(&self, leading: &Relation) -> Option<Relation> {
        let rest = self.0.strip_prefix(leading.parts())?;
        let format = leading.0.iter().find(|part| matches!(part, Part::Metadata(Some(_))));
        Some(Self(format.into_iter().chain(rest).cloned().collect()))
    }

    /// Whether an offered relation is what somebody wants who asks for this one, step by step (3.4).
    pub fn takes(&self, offer: &Relation) -> bool {
        self.0.len() == offer.0.len()
            && self.0.iter().zip(&offer.0).all(|(wanted, offered)| wanted.takes(offered))
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

/// Reads steps from a text, given how one of them is spelled.
fn read(text: &str, step: impl Fn(&str) -> Option<(&str, Part)>) -> Result<Relation, RelationError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let unknown = || RelationError::Step { given: shown(rest) };
        let (after, part) = step(rest).ok_or_else(unknown)?;
        let (after, part) = match after.strip_prefix('(') {
            None => (after, part),
            Some(inside) => {
                let (parameter, after) = inside.split_once(')').ok_or_else(unknown)?;
                (after, part.with(parameter)?)
            }
        };
        // No composition has more than four steps: a long text is refused before it fills the memory.
        if parts.len() == 4 {
            return Err(RelationError::Order { given: shown(text) });
        }
        parts.push(part);
        rest = after;
    }
    Relation::new(parts)
}

/// Formats are open-ended (4.1): these are the characters of OAI-PMH's `metadataPrefix`, without parentheses.
fn is_format(text: &str) -> bool {
    (1..=LONGEST_FORMAT).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.!~*'".contains(&c))
}

/// What is wrong with a relation, with modifiers or with a list of verbs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelationError {
    /// Steps that cannot follow one another.
    #[error(
        "`{given}` does not go together: last edition (!) and translation (+) come first, each at most once, then \
         metadata (:), then a translation of the metadata, as in !+(pt):+(pt)"
    )]
    Order {
        /// What was given.
        given: String,
    },
    /// A step that nobody knows.
    #[error(
        "`{given}` is no relation: use .lastedition (!), .translation (+) or .metadata (:), the last two with a \
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
    /// A name that no format can have.
    #[error(
        "`{given}` is no name of a metadata format: it has 1 to 64 letters, digits or signs of -_.!~*' as in oai_dc"
    )]
    Format {
        /// What was given.
        given: String,
    },
    /// A language that is none.
    #[error(transparent)]
    Language(#[from] LanguageError),
}
