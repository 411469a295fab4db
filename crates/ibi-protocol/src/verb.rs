//! The verbs by which a client requests parts of an item or related items (4.1).

use std::fmt;
use std::str::FromStr;

use crate::relation::{Relation, RelationError, RelationPart};
use crate::untrusted_text::quote_untrusted;

/// Limit on a list. The longest valid list has less than 200 bytes.
const MAX_VERB_LIST_BYTES: usize = 512;
/// Limit on verbs; valid lists have at most five.
const MAX_VERBS: usize = 8;

const FILE_LIST_VERB: &str = "GetFileList";

/// A parsed list of verbs: `GetLastEdition GetMetadata(oai_dc)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verbs {
    /// The relation spelled by all verbs except `GetFileList`.
    pub relation: Relation,
    /// Whether `GetFileList` is among them.
    pub file_list: bool,
}

impl Verbs {
    /// Parses a list. `GetFileList` may be anywhere; the others must spell a relation.
    ///
    /// Verbs are separated by spaces, or by `+` as in persistent URLs (D16).
    pub fn parse(list: &str) -> Result<Self, VerbError> {
        Self::with_modifiers(&Relation::default(), list)
    }

    /// The verbs of a persistent URL with modifiers and a list: first the modifiers in order, then
    /// the verbs of the list that are not yet among them (4.1, D29).
    ///
    /// The list alone need not spell a relation: `!` with `GetMetadata GetLastEdition` is `!:`.
    pub fn with_modifiers(modifiers: &Relation, list: &str) -> Result<Self, VerbError> {
        if list.len() > MAX_VERB_LIST_BYTES {
            return Err(VerbError::TooLong);
        }
        let mut parts = modifiers.parts().to_vec();
        let mut file_list = false;
        for (count, verb) in list.split([' ', '+']).filter(|verb| !verb.is_empty()).enumerate() {
            if count == MAX_VERBS {
                return Err(VerbError::TooMany);
            }
            if verb == FILE_LIST_VERB {
                file_list = true;
                continue;
            }
            let part = read(verb)?;
            if !modifiers.parts().contains(&part) {
                parts.push(part);
            }
        }
        Ok(Self { relation: Relation::new(parts)?, file_list })
    }

    /// Whether there is no verb at all.
    pub fn is_empty(&self) -> bool {
        self.relation.is_empty() && !self.file_list
    }
}

impl From<Relation> for Verbs {
    fn from(relation: Relation) -> Self {
        Self { relation, file_list: false }
    }
}

impl FromStr for Verbs {
    type Err = VerbError;

    fn from_str(list: &str) -> Result<Self, VerbError> {
        Self::parse(list)
    }
}

impl fmt::Display for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for part in self.relation.parts() {
            write!(f, "{space}{}", verb(part))?;
            if let Some(parameter) = part.parameter() {
                write!(f, "({parameter})")?;
            }
            space = " ";
        }
        if self.file_list { write!(f, "{space}{FILE_LIST_VERB}") } else { Ok(()) }
    }
}

fn verb(part: &RelationPart) -> &'static str {
    match part {
        RelationPart::LastEdition => "GetLastEdition",
        RelationPart::Translation(_) => "GetTranslation",
        RelationPart::Metadata(_) => "GetMetadata",
    }
}

fn read(text: &str) -> Result<RelationPart, VerbError> {
    let unknown = || VerbError::Unknown { given: quote_untrusted(text) };
    let (name, parameter) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(unknown)?)),
    };
    let part = [RelationPart::LastEdition, RelationPart::Translation(None), RelationPart::Metadata(None)]
        .into_iter()
        .find(|part| verb(part) == name)
        .ok_or_else(unknown)?;
    match parameter {
        None => Ok(part),
        Some(parameter) => Ok(part.with_parameter(parameter)?),
    }
}

/// Why a list of verbs is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerbError {
    /// An unknown verb.
    #[error(
        "`{given}` is not a verb: use GetLastEdition, GetTranslation, GetMetadata or GetFileList, the second and third \
         with a parameter if needed, as in GetTranslation(pt) or GetMetadata(oai_dc)"
    )]
    Unknown {
        /// What was given.
        given: String,
    },
    /// Too many bytes.
    #[error("the list of verbs is too long: the limit is {MAX_VERB_LIST_BYTES} bytes")]
    TooLong,
    /// Too many verbs.
    #[error("too many verbs: the limit is {MAX_VERBS}")]
    TooMany,
    /// Verbs that do not form a relation, or an invalid parameter.
    #[error(transparent)]
    Relation(#[from] RelationError),
}
