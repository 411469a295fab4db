//! How a resolution came to its question, and what it may try if that leads nowhere (4.2 steps 5
//! and 6).

use super::{ArchiveId, Found, Purpose, Question, Tombstone, Why};

/// The most alternatives that one resolution remembers.
const MAX_FALLBACKS: usize = 64;

/// How a resolution came to its question, and what it may try if that leads nowhere. It is handed
/// from round to round by [`super::Wanted::next`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail {
    /// The questions that led to this one. Those of branches that came to nothing are not among
    /// them.
    pub(super) path: Vec<Question>,
    /// Whether an Archive named the item, and not the client.
    pub(super) by_link: bool,
    /// What can be had instead: the last item on the way that somebody holds, with the verbs that
    /// are left.
    pub(super) older: Option<Question>,
    /// The edition after `older`, where the way jumped over it.
    pub(super) skipped: Option<Question>,
    /// A last edition that was removed: what the client is told if another way that was known leads
    /// nowhere either.
    pub(super) removed: Option<RemovedEdition>,
    /// What to try next, the first one first.
    pub(super) fallbacks: Vec<Fallback>,
}

impl Trail {
    /// Puts alternatives before those that are there already.
    pub(super) fn add_fallbacks(&mut self, first: impl Iterator<Item = Fallback>) {
        let later = std::mem::take(&mut self.fallbacks);
        self.fallbacks = first.chain(later).take(MAX_FALLBACKS).collect();
    }
}

/// Something to try if the present way comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fallback {
    pub(super) step: FallbackStep,
    /// Tried even if somebody who did not answer might have what was looked for.
    pub(super) despite_silence: bool,
    /// A last edition as far as is known: no longer one as soon as somebody knows a newer edition.
    pub(super) ends_chain: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FallbackStep {
    Ask(Box<NextQuestion>),
    /// A URL that was offered before.
    Go(Box<Found>),
}

/// A question that may be asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextQuestion {
    pub(super) question: Question,
    pub(super) why: Why,
    /// How it came about: without fallbacks.
    pub(super) trail: Trail,
}

/// A last edition that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovedEdition {
    pub(super) tombstones: Vec<(ArchiveId, Tombstone)>,
    pub(super) living: Option<Question>,
}

/// What all Archives are asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskAgain {
    /// The question.
    pub question: Question,
    /// What led to it.
    pub why: Why,
    pub(super) purpose: Purpose,
    pub(super) trail: Trail,
}
