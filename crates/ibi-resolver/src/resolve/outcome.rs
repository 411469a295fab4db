//! What a resolution ends in, with Archives by name (4.3).

use std::sync::Arc;

use ibi_protocol::analysis::{ArchiveId, Decision, Endless, Found, NotFound, Question, Tombstone};
use ibi_protocol::{Forms, PersistentUrl};

use super::roster::Roster;
use crate::alerts::Suspected;
use crate::archive::Archive;

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The client goes there.
    Found {
        /// The URL, with the pairs that belong to the item.
        location: String,
        /// Whose it is.
        archive: Arc<Archive>,
        /// What it is.
        found: Box<Found>,
    },
    /// Several Archives claim the original, which is required: nobody goes anywhere.
    Alert(Vec<Suspected>),
    /// The item was removed.
    Deleted {
        /// Who says so, and since when.
        tombstones: Vec<(Arc<Archive>, Tombstone)>,
        /// What lives instead, as an earlier edition.
        living: Option<Question>,
    },
    /// The spelling is canonical for several items (1.3).
    Ambiguous {
        /// The labels of each.
        items: Vec<Forms>,
        /// What was asked of them.
        asked: PersistentUrl,
    },
    /// The label is reserved for a draft.
    Reserved(Forms),
    /// Every Archive answered, and it is not there. Copies have the pairs that belong to the item in their URLs.
    NotFound(NotFound),
    /// It was not found, but some Archives did not answer.
    Incomplete {
        /// Who, and why.
        silent: Vec<(Arc<Archive>, String)>,
        /// What it would be without them.
        otherwise: NotFound,
    },
    /// The answers lead in circles, or too far.
    Cycle {
        /// The questions, the first one first; the last one was not asked.
        chain: Vec<Question>,
        /// Which of both.
        why: Endless,
    },
}

impl Outcome {
    /// A decision that ends a resolution, for its client.
    pub(super) fn new(
        decision: Decision,
        roster: &Roster,
        url: &PersistentUrl,
        suspected: Vec<Suspected>,
    ) -> Self {
        let nothing = |silent| Outcome::Incomplete { silent, otherwise: NotFound::Item };
        match decision {
            Decision::Found(found) => match roster.archive(found.archive) {
                Some(archive) => {
                    let (location, archive) = (url.append(&found.url), Arc::clone(archive));
                    Outcome::Found { location, archive, found }
                }
                None => nothing(Vec::new()),
            },
            Decision::Alert(_) => Outcome::Alert(suspected),
            Decision::Deleted { tombstones, living } => {
                Outcome::Deleted { tombstones: named(tombstones, roster), living }
            }
            Decision::Ambiguous(items) => Outcome::Ambiguous { items, asked: url.clone() },
            Decision::Reserved(item) => Outcome::Reserved(item),
            Decision::NotFound(not_found) => Outcome::NotFound(appended(not_found, url)),
            Decision::Incomplete { failed, otherwise } => {
                Outcome::Incomplete { silent: named(failed, roster), otherwise: appended(otherwise, url) }
            }
            Decision::Cycle { chain, why } => Outcome::Cycle { chain, why },
            // Neither ends a resolution.
            Decision::AskAgain(_) | Decision::Wait => nothing(Vec::new()),
        }
    }

    /// Its HTTP status (4.3).
    pub const fn status(&self) -> u16 {
        match self {
            Outcome::Found { .. } => 302,
            Outcome::NotFound(_) => 404,
            Outcome::Alert(_) => 409,
            Outcome::Deleted { .. } => 410,
            Outcome::Ambiguous { .. } => 300,
            Outcome::Reserved(_) => 403,
            Outcome::Incomplete { .. } => 503,
            Outcome::Cycle { .. } => 508,
        }
    }
}

fn named<T>(of: Vec<(ArchiveId, T)>, roster: &Roster) -> Vec<(Arc<Archive>, T)> {
    of.into_iter().filter_map(|(id, what)| Some((Arc::clone(roster.archive(id)?), what))).collect()
}

fn appended(mut not_found: NotFound, url: &PersistentUrl) -> NotFound {
    if let NotFound::Original { copies } = &mut not_found {
        copies.iter_mut().for_each(|copy| copy.url = url.append(&copy.url));
    }
    not_found
}
