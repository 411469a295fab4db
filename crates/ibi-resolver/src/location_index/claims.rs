//! Who keeps the readers of an item that several Archives claim as Original (4.4): the Archive that
//! was known as the holder first. What decides that is stored with each claim when it is made, so
//! that neither a pause of the holder nor another record of the claimant changes it.

use ibi_id::Label;
use ibi_protocol::State;

use super::posting::{LabelPosting, PostingRole};

/// Two claims of one Original that are first seen within this time are seen at once: which of them
/// counts, is decided as without an index. An earlier claim keeps the readers.
const FIRST_SIGHT_SECONDS: i64 = 600;

/// What is stored with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClaimTerms {
    /// When the Archive began to claim this state, in seconds since the Unix epoch.
    pub(super) since: i64,
    /// Whether another Archive was known as the holder of the Original by then.
    pub(super) is_late: bool,
    /// Whether the Archive with the label's own prefix has said that it is only a Copy there, while
    /// this one claimed the Original: it was handed over.
    pub(super) is_granted: bool,
}

impl ClaimTerms {
    fn of(posting: &LabelPosting<'_>) -> Self {
        Self { since: posting.since, is_late: posting.is_late, is_granted: posting.is_granted }
    }

    /// The terms on which an Archive claims a label in a state from now on.
    ///
    /// `before` is what it claimed until now, `others` what the other Archives claim, and
    /// `is_owner` says whether an Archive's service has the prefix of the label.
    pub(super) fn new<'a, I: Iterator<Item = LabelPosting<'a>>>(
        archive: u64,
        state: State,
        before: Option<&PriorClaim>,
        others: impl Fn() -> I,
        is_owner: &dyn Fn(u64) -> bool,
        now: i64,
    ) -> Self {
        if let Some(before) = before.filter(|before| before.state == state) {
            return before.terms;
        }
        let mut claims = others().filter(is_original);
        let is_late = state == State::Original
            && claims.any(|other| {
                // Anybody can claim a label before the Archive that gives it does.
                let is_older = !other.is_late && now - other.since > FIRST_SIGHT_SECONDS;
                is_older && (other.is_granted || is_owner(other.archive) || !is_owner(archive))
            });
        let is_granted = state == State::Original
            && others().any(|other| other.state == State::Copy && is_owner(other.archive));
        Self { since: now, is_late, is_granted }
    }
}

/// What an Archive claimed under a label before a record changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PriorClaim {
    state: State,
    terms: ClaimTerms,
}

impl PriorClaim {
    /// The claim of an Archive among the postings of a label.
    pub(super) fn find<'a>(
        postings: impl Iterator<Item = LabelPosting<'a>>,
        archive: u64,
        state: State,
    ) -> Option<Self> {
        let own = postings.filter(|posting| posting.archive == archive && posting.role == PostingRole::Item);
        let prior =
            |posting: LabelPosting<'_>| Self { state: posting.state, terms: ClaimTerms::of(&posting) };
        // Of several items under one label, the one in the same state.
        own.map(prior).max_by_key(|prior| prior.state == state)
    }

    /// Whether the holder of the Original lets go of it with a record in this state.
    pub(super) fn lets_go(&self, state: State) -> bool {
        self.state == State::Original && !self.terms.is_late && state == State::Copy
    }
}

/// The terms of another Archive's claim after the holder of the Original, or the Archive with the
/// label's own prefix, has said that it has a Copy. The taker of a hand-over has claimed it just
/// now, or is the only one that claims it.
pub(super) fn after_copy(
    claim: &LabelPosting<'_>,
    is_only_claim: bool,
    holder_let_go: bool,
    is_owner: bool,
    now: i64,
) -> ClaimTerms {
    let mut terms = ClaimTerms::of(claim);
    if terms.is_late && holder_let_go {
        if now - terms.since <= FIRST_SIGHT_SECONDS {
            terms.is_late = false;
        } else if is_only_claim {
            // It counts from now on, so that it is no older than a taker who reports later.
            terms = ClaimTerms { since: now, is_late: false, ..terms };
        }
    }
    terms.is_granted |= is_owner && !terms.is_late;
    terms
}

/// Whether a posting claims an Original.
pub(super) fn is_original(posting: &LabelPosting<'_>) -> bool {
    posting.role == PostingRole::Item && posting.state == State::Original
}

/// Whether a label has the prefix of a service.
pub(super) fn has_prefix_of(label: &Label<impl AsRef<str>>, service: &Label) -> bool {
    label.shares_prefix(service) == Some(true)
}
