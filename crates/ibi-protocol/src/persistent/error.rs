//! Errors of persistent URLs: the rule and the position.

use ibi_id::Rule;

use crate::file_path::FilePathError;
use crate::relation::RelationError;
use crate::verb::VerbError;

/// The part of a URL that a position refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPart {
    /// The path, from its `/`.
    Path,
    /// The query, without its `?`.
    Query,
}

/// A rejected persistent URL (status 400). Positions count bytes from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersistentUrlError {
    /// No valid label where one is required.
    #[error("not a valid IBI: {} (at byte {at} of the path)", rule.message())]
    Label {
        /// The violated label rule.
        rule: Rule,
        /// Position in the path.
        at: usize,
    },
    /// The text after the label is not a valid list of modifiers.
    #[error("after the IBI, {why} (at byte {at} of the path)")]
    Modifiers {
        /// What is wrong.
        why: RelationError,
        /// Position in the path.
        at: usize,
    },
    /// Not in the standard's spelling.
    #[error("`{given}` is written `{right}` in a persistent URL (at byte {at} of the {})", word(*part))]
    Spelling {
        /// What was given.
        given: String,
        /// The standard's spelling.
        right: String,
        /// The part of the URL.
        part: UrlPart,
        /// Position in that part.
        at: usize,
    },
    /// An invalid file path.
    #[error("{why} (at byte {at} of the path)")]
    File {
        /// What is wrong.
        why: FilePathError,
        /// Position in the path.
        at: usize,
    },
    /// An invalid list of verbs.
    #[error("ibiurl.verblist: {why} (at byte {at} of the query)")]
    Verbs {
        /// What is wrong.
        why: VerbError,
        /// Position in the query.
        at: usize,
    },
    /// A status that cannot be required.
    #[error(
        "ibiurl.requireditemstatus: `{given}` cannot be required: write Original, or leave it out (at byte {at} of the \
         query)"
    )]
    Status {
        /// What was given.
        given: String,
        /// Position in the query.
        at: usize,
    },
    /// One of the `ibiurl.` pairs occurs twice: which one applies would be ambiguous.
    #[error("{name} occurs twice: give it once (at byte {at} of the query)")]
    Twice {
        /// Its name.
        name: &'static str,
        /// Position in the query.
        at: usize,
    },
}

impl PersistentUrlError {
    /// The part of the URL and the byte at which the rule is violated.
    pub const fn position(&self) -> (UrlPart, usize) {
        match *self {
            PersistentUrlError::Label { at, .. }
            | PersistentUrlError::Modifiers { at, .. }
            | PersistentUrlError::File { at, .. } => (UrlPart::Path, at),
            PersistentUrlError::Spelling { part, at, .. } => (part, at),
            PersistentUrlError::Verbs { at, .. }
            | PersistentUrlError::Status { at, .. }
            | PersistentUrlError::Twice { at, .. } => (UrlPart::Query, at),
        }
    }

    /// A short stable code for programs. For labels, the rule's own.
    pub const fn code(&self) -> &'static str {
        match self {
            PersistentUrlError::Label { rule, .. } => rule.code(),
            PersistentUrlError::Modifiers { .. } => "modifiers",
            PersistentUrlError::Spelling { .. } => "spelling",
            PersistentUrlError::File { .. } => "file",
            PersistentUrlError::Verbs { .. } => "verbs",
            PersistentUrlError::Status { .. } => "status",
            PersistentUrlError::Twice { .. } => "pair-twice",
        }
    }
}

const fn word(part: UrlPart) -> &'static str {
    match part {
        UrlPart::Path => "path",
        UrlPart::Query => "query",
    }
}
