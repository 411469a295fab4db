//! The path of a resolution to its current question, and its fallbacks (4.2 steps 5 and 6).

use super::deciders::LinkDeciders;
use super::{AnswerTombstone, ArchiveId, FoundUrl, ItemQuery, RequeryReason, RoundPurpose};

/// Limit on fallbacks kept by one resolution.
const MAX_FALLBACKS: usize = 64;

/// The path of a resolution to its current question, and its fallbacks. Passed from round to round
/// by [`super::RoundQuery::next`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryTrail {
    /// The questions that led to this one, without failed branches.
    pub(super) path: Vec<ItemQuery>,
    /// Whether the item was named by an Archive rather than the client.
    pub(super) by_link: bool,
    /// The available alternative: the last item on the path that an Archive holds, with the
    /// remaining verbs.
    pub(super) older: Option<ItemQuery>,
    /// The edition after `older`, if the path skipped it.
    pub(super) skipped: Option<ItemQuery>,
    /// A removed last edition, reported to the client if all other paths fail.
    pub(super) removed: Option<RemovedEdition>,
    /// The deciders about the queried item's links, if they were determined.
    pub(super) deciders: Option<LinkDeciders>,
    /// The translations chosen on the path, each by its position among the languages offered.
    pub(super) language_choices: Vec<usize>,
    /// The fallbacks in order.
    pub(super) fallbacks: Vec<QueryFallback>,
}

impl QueryTrail {
    /// Inserts fallbacks before the existing ones.
    pub(super) fn add_fallbacks(&mut self, first: impl Iterator<Item = QueryFallback>) {
        let later = std::mem::take(&mut self.fallbacks);
        self.fallbacks = first.chain(later).take(MAX_FALLBACKS).collect();
    }
}

/// A step to try if the current question leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryFallback {
    pub(super) step: FallbackStep,
    /// Tried even if an Archive that did not answer might have the requested item, as long as no
    /// better language is given up for it.
    pub(super) despite_silence: bool,
    /// See [`QueryTrail::language_choices`].
    pub(super) language_choices: Vec<usize>,
    /// Presumed last edition; dropped as soon as a newer edition is known.
    pub(super) ends_chain: bool,
    /// Claimed by only some Archives: tried if no Archive holds the next edition, whose own Archive
    /// would decide.
    pub(super) only_if_unheld: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FallbackStep {
    Ask(Box<NextQuery>),
    /// Redirect to a URL offered in an earlier round.
    Go(Box<FoundUrl>),
}

/// A question that may be asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextQuery {
    pub(super) question: ItemQuery,
    pub(super) why: RequeryReason,
    /// Its trail, without fallbacks.
    pub(super) trail: QueryTrail,
}

/// A last edition that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovedEdition {
    pub(super) tombstones: Vec<(ArchiveId, AnswerTombstone)>,
    pub(super) living: Option<ItemQuery>,
}

/// The question to send to all Archives next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowUpQuery {
    /// The question.
    pub question: ItemQuery,
    /// The reason for it.
    pub why: RequeryReason,
    pub(super) purpose: RoundPurpose,
    pub(super) trail: QueryTrail,
}
