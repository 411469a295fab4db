//! Message errors and their response (3.6).

use std::fmt;

use crate::pairs::Pairs;
use crate::untrusted_text::quote_untrusted;

/// A rejected message. The response is [`MessageError::to_pairs`] with HTTP status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// An unknown `servicesubject`.
    #[error(
        "`{given}` is not a servicesubject: use one of inclusionConfirmationRequest, urlRequest, acknowledgment, \
         inclusionRequest, exclusionRequest"
    )]
    Subject {
        /// What was given.
        given: String,
    },
    /// A mandatory pair is missing.
    #[error("{name} is missing or empty: add it to the query")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// A pair occurs twice: which one applies would be ambiguous.
    #[error("{name} occurs twice: give it once")]
    Twice {
        /// Its name.
        name: &'static str,
    },
    /// An invalid value.
    #[error("{name}: {why}")]
    Value {
        /// The name of the pair.
        name: &'static str,
        /// The reason, with a correction.
        why: String,
    },
    /// The query is too long.
    #[error("the query has more than {most} bytes, which is the limit")]
    TooLong {
        /// The limit.
        most: usize,
    },
}

impl MessageError {
    pub(super) fn unknown(subject: &str) -> Self {
        MessageError::Subject { given: quote_untrusted(subject) }
    }

    pub(super) fn value(name: &'static str, why: impl fmt::Display) -> Self {
        MessageError::Value { name, why: why.to_string() }
    }

    /// A short stable code for programs: the value of `error`.
    pub const fn code(&self) -> &'static str {
        match self {
            MessageError::Subject { .. } => "unknown-servicesubject",
            MessageError::Missing { .. } => "missing-pair",
            MessageError::Twice { .. } => "pair-twice",
            MessageError::Value { .. } => "bad-value",
            MessageError::TooLong { .. } => "too-long",
        }
    }

    /// The response: `error <code>` and `message {…}`.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        pairs.push("error", self.code());
        pairs.push("message", &self.to_string());
        pairs
    }
}
