//! The verbs by which a client says what it wants of an item (4.1).

use std::fmt;
use std::str::FromStr;

use crate::relation::{Part, Relation, RelationError};
use crate::shown::shown;

/// The longest list that is read, in bytes. The longest that means something has under 200.
const LONGEST: usize = 512;
/// The most verbs that are read: no list that means something has more than five.
const MOST: usize = 8;

const FILE_LIST: &str = "GetFileList";

/// A list of verbs, read: `GetLastEdition GetMetadata(oai_dc)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verbs {
    /// What all verbs but `GetFileList` spell.
    pub relation: Relation,
    /// Whether `GetFileList` is among them.
    pub file_list: bool,
}

impl Verbs {
    /// Reads a list. `GetFileList` may stand anywhere, the others must spell a relation.
    ///
    /// Verbs are separated by spaces, or by `+` as persistent URLs have it (D16).
    pub fn parse(list: &str) -> Result<Self, VerbError> {
        Self::joined(&Relation::default(), list)
    }

    /// The verbs of a persistent URL that has modifiers and a list: those of the modifiers as they stand, then those
    /// of the list that are not already among them (4.1, D29).
    ///
    /// The list alone need not spell a relation here: `!` and `GetMetadata GetLastEdition` are `!:`.
    pub fn joined(modifiers: &Relation, list: &str) -> Result<Self, VerbError> {
        if list.len() > LONGEST {
            return Err(VerbError::TooLong);
        }
        let mut parts = modifiers.parts().to_vec();
        let mut file_list = false;
        for (count, verb) in list.split([' ', '+']).filter(|verb| !verb.is_empty()).enumerate() {
            if count == MOST {
                return Err(VerbError::TooMany);
            }
            if verb == FILE_LIST {
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
        if self.file_list { write!(f, "{space}{FILE_LIST}") } else { Ok(()) }
    }
}

fn verb(part: &Part) -> &'static str {
    match part {
        Part::LastEdition => "GetLastEdition",
        Part::Translation(_) => "GetTranslation",
        Part::Metadata(_) => "GetMetadata",
    }
}

fn read(text: &str) -> Result<Part, VerbError> {
    let unknown = || VerbError::Unknown { given: shown(text) };
    let (name, parameter) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(unknown)?)),
    };
    let part = [Part::LastEdition, Part::Translation(None), Part::Metadata(None)]
        .into_iter()
        .find(|part| verb(part) == name)
        .ok_or_else(unknown)?;
    match parameter {
        None => Ok(part),
        Some(parameter) => Ok(part.with(parameter)?),
    }
}

/// What is wrong with a list of verbs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerbError {
    /// A verb that nobody knows.
    #[error(
        "`{given}` is no verb: use GetLastEdition, GetTranslation, GetMetadata or GetFileList, the second and third \
         with a parameter if needed, as in GetTranslation(pt) or GetMetadata(oai_dc)"
    )]
    Unknown {
        /// What was given.
        given: String,
    },
    /// More bytes than any list needs.
    #[error("the list of verbs is too long: it has at most {LONGEST} bytes")]
    TooLong,
    /// More verbs than any list needs.
    #[error("there are too many verbs: a list has at most {MOST}")]
    TooMany,
    /// Verbs that do not go together, or a parameter that means nothing.
    #[error(transparent)]
    Relation(#[from] RelationError),
}
