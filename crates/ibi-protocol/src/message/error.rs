//! What can be wrong with a message, and the answer that says so (3.6).

use std::fmt;

use crate::pairs::Pairs;
use crate::shown::shown;

/// A message that was refused. The answer is [`MessageError::to_pairs`], with HTTP status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A `servicesubject` that we do not know.
    #[error(
        "`{given}` is no servicesubject: it is one of inclusionConfirmationRequest, urlRequest, acknowledgment, \
         inclusionRequest, exclusionRequest"
    )]
    Subject {
        /// What was given.
        given: String,
    },
    /// A pair that has to be there.
    #[error("{name} is missing, or empty: add it to the query")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// A pair that is there twice: which of them counts would be anybody's guess.
    #[error("{name} is there twice: say it once")]
    Twice {
        /// Its name.
        name: &'static str,
    },
    /// A value that does not mean what it should.
    #[error("{name}: {why}")]
    Value {
        /// The name of the pair.
        name: &'static str,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A query beyond all measure.
    #[error("the query has more than {most} bytes: that is the most that is read here")]
    TooLong {
        /// The bound.
        most: usize,
    },
}

impl MessageError {
    pub(super) fn unknown(subject: &str) -> Self {
        MessageError::Subject { given: shown(subject) }
    }

    pub(super) fn value(name: &'static str, why: impl fmt::Display) -> Self {
        MessageError::Value { name, why: why.to_string() }
    }

    /// A short stable name, for programs: the value of `error`.
    pub const fn code(&self) -> &'static str {
        match self {
            MessageError::Subject { .. } => "unknown-servicesubject",
            MessageError::Missing { .. } => "missing-pair",
            MessageError::Twice { .. } => "pair-twice",
            MessageError::Value { .. } => "bad-value",
            MessageError::TooLong { .. } => "too-long",
        }
    }

    /// The answer: `error <code>` and `message {…}`.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        pairs.push("error", self.code());
        pairs.push("message", &self.to_string());
        pairs
    }
}
