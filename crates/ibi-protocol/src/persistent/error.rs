//! What can be wrong with a persistent URL: which rule, and where.

use ibi_id::Rule;

use crate::file_path::FilePathError;
use crate::relation::RelationError;
use crate::verb::VerbError;

/// The part of a URL that a position counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The path, from its `/` on.
    Path,
    /// The query, without its `?`.
    Query,
}

/// A persistent URL that was refused (400). Positions count bytes from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersistentError {
    /// There is no label where one has to be.
    #[error("this is no IBI: {} (at byte {at} of the path)", rule.message())]
    Label {
        /// The rule of labels that is broken.
        rule: Rule,
        /// Where in the path.
        at: usize,
    },
    /// What follows the label are no modifiers.
    #[error("after the IBI, {why} (at byte {at} of the path)")]
    Modifiers {
        /// What is wrong.
        why: RelationError,
        /// Where in the path.
        at: usize,
    },
    /// A language that is spelled in another way than the norm's.
    #[error("`{given}` is written `{right}` in a persistent URL (at byte {at} of the {})", word(*place))]
    Spelling {
        /// What was given.
        given: String,
        /// How it is written.
        right: String,
        /// Whether it is a modifier or a verb.
        place: Place,
        /// Where in the path or the query.
        at: usize,
    },
    /// A path that no file can have.
    #[error("{why} (at byte {at} of the path)")]
    File {
        /// What is wrong.
        why: FilePathError,
        /// Where in the path.
        at: usize,
    },
    /// A list of verbs that spells nothing.
    #[error("ibiurl.verblist: {why} (at byte {at} of the query)")]
    Verbs {
        /// What is wrong.
        why: VerbError,
        /// Where in the query.
        at: usize,
    },
    /// A status that nobody can ask for.
    #[error(
        "ibiurl.requireditemstatus: `{given}` cannot be required: write Original, or leave it out (at byte {at} of the \
         query)"
    )]
    Status {
        /// What was given.
        given: String,
        /// Where in the query.
        at: usize,
    },
    /// One of our pairs is there twice: which of them counts would be anybody's guess.
    #[error("{name} is there twice: say it once (at byte {at} of the query)")]
    Twice {
        /// Its name.
        name: &'static str,
        /// Where in the query.
        at: usize,
    },
}

impl PersistentError {
    /// In which part of the URL the rule is broken, and at which byte.
    pub const fn position(&self) -> (Place, usize) {
        match *self {
            PersistentError::Label { at, .. }
            | PersistentError::Modifiers { at, .. }
            | PersistentError::File { at, .. } => (Place::Path, at),
            PersistentError::Spelling { place, at, .. } => (place, at),
            PersistentError::Verbs { at, .. }
            | PersistentError::Status { at, .. }
            | PersistentError::Twice { at, .. } => (Place::Query, at),
        }
    }

    /// A short stable name, for programs. That of a label is the rule's own.
    pub const fn code(&self) -> &'static str {
        match self {
            PersistentError::Label { rule, .. } => rule.code(),
            PersistentError::Modifiers { .. } => "modifiers",
            PersistentError::Spelling { .. } => "spelling",
            PersistentError::File { .. } => "file",
            PersistentError::Verbs { .. } => "verbs",
            PersistentError::Status { .. } => "status",
            PersistentError::Twice { .. } => "pair-twice",
        }
    }
}

const fn word(place: Place) -> &'static str {
    match place {
        Place::Path => "path",
        Place::Query => "query",
    }
}
