//! The outcome of a resolution, with Archives by name (4.3).

use std::sync::Arc;

use ibi_protocol::analysis::{
    AnswerTombstone, ArchiveId, CycleReason, FoundUrl, ItemQuery, NotFoundReason, RoundDecision,
};
use ibi_protocol::{LabelForms, PersistentUrl};

use super::roster::ArchiveRoster;
use crate::alerts::RaisedAlert;
use crate::archive::RegisteredArchive;

/// The outcome for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolutionOutcome {
    /// Redirect the client.
    Found {
        /// The URL, with the query pairs that belong to the item.
        location: String,
        /// The Archive that has this URL.
        archive: Arc<RegisteredArchive>,
        /// The chosen offer.
        found: Box<FoundUrl>,
    },
    /// Several Archives claim the original, which is required: no redirect.
    Alert(Vec<RaisedAlert>),
    /// The item was removed.
    Deleted {
        /// The Archives that report the removal, and since when.
        tombstones: Vec<(Arc<RegisteredArchive>, AnswerTombstone)>,
        /// What is available instead, such as an earlier edition.
        living: Option<ItemQuery>,
    },
    /// The spelling is canonical for several items (1.3).
    Ambiguous {
        /// The labels of each.
        items: Vec<LabelForms>,
        /// The request.
        asked: PersistentUrl,
    },
    /// The label is reserved for a draft.
    Reserved(LabelForms),
    /// Every Archive answered, and none has it. URLs of copies include the query pairs that belong
    /// to the item.
    NotFound(NotFoundReason),
    /// Not found, but some Archives did not answer.
    Incomplete {
        /// Those Archives, and why they did not answer.
        silent: Vec<(Arc<RegisteredArchive>, String)>,
        /// The outcome without them.
        otherwise: NotFoundReason,
    },
    /// The answers form a cycle or exceed the limit of rounds.
    Cycle {
        /// The queries in order; the last one was not sent.
        chain: Vec<ItemQuery>,
        /// Which of the two.
        why: CycleReason,
    },
}

impl ResolutionOutcome {
    /// Turns a final decision into the outcome for the client.
    pub(super) fn new(
        decision: RoundDecision,
        roster: &ArchiveRoster,
        url: &PersistentUrl,
        suspected: Vec<RaisedAlert>,
    ) -> Self {
        let nothing = |silent| ResolutionOutcome::Incomplete { silent, otherwise: NotFoundReason::Item };
        match decision {
            RoundDecision::Found(found) => match roster.archive(found.archive) {
                Some(archive) => {
                    let (location, archive) = (url.append(&found.url), Arc::clone(archive));
                    ResolutionOutcome::Found { location, archive, found }
                }
                None => nothing(Vec::new()),
            },
            RoundDecision::Alert(_) => ResolutionOutcome::Alert(suspected),
            RoundDecision::Deleted { tombstones, living } => {
                ResolutionOutcome::Deleted { tombstones: named(tombstones, roster), living }
            }
            RoundDecision::Ambiguous(items) => ResolutionOutcome::Ambiguous { items, asked: url.clone() },
            RoundDecision::Reserved(item) => ResolutionOutcome::Reserved(item),
            RoundDecision::NotFound(not_found) => {
                ResolutionOutcome::NotFound(with_passed_query(not_found, url))
            }
            RoundDecision::Incomplete { failed, otherwise } => ResolutionOutcome::Incomplete {
                silent: named(failed, roster),
                otherwise: with_passed_query(otherwise, url),
            },
            RoundDecision::Cycle { chain, why } => ResolutionOutcome::Cycle { chain, why },
            // Neither of these ends a resolution.
            RoundDecision::AskAgain(_) | RoundDecision::Wait => nothing(Vec::new()),
        }
    }

    /// Its HTTP status (4.3).
    pub const fn status(&self) -> u16 {
        match self {
            ResolutionOutcome::Found { .. } => 302,
            ResolutionOutcome::NotFound(_) => 404,
            ResolutionOutcome::Alert(_) => 409,
            ResolutionOutcome::Deleted { .. } => 410,
            ResolutionOutcome::Ambiguous { .. } => 300,
            ResolutionOutcome::Reserved(_) => 403,
            ResolutionOutcome::Incomplete { .. } => 503,
            ResolutionOutcome::Cycle { .. } => 508,
        }
    }
}

fn named<T>(of: Vec<(ArchiveId, T)>, roster: &ArchiveRoster) -> Vec<(Arc<RegisteredArchive>, T)> {
    of.into_iter().filter_map(|(id, what)| Some((Arc::clone(roster.archive(id)?), what))).collect()
}

fn with_passed_query(mut not_found: NotFoundReason, url: &PersistentUrl) -> NotFoundReason {
    if let NotFoundReason::Original { copies } = &mut not_found {
        copies.iter_mut().for_each(|copy| copy.url = url.append(&copy.url));
    }
    not_found
}
