//! What a resolver does next, or responds to its client (4.3).

use std::net::IpAddr;

use ibi_id::Label;

use super::ArchiveId;
use super::check::LiveAnswer;
use super::trail::FollowUpQuery;
use crate::answer::{ContentType, State};
use crate::file_path::FilePath;
use crate::forms::LabelForms;
use crate::message::{Acknowledgment, SentUrl};
use crate::relation::{Relation, RelationPart};
use crate::verb::Verbs;

/// A question that is sent to all Archives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemQuery {
    /// The item.
    pub label: Label,
    /// What is requested of the item.
    pub verbs: Verbs,
    /// The requested file within the item.
    pub file: Option<FilePath>,
}

/// The outcome of the answers so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundDecision {
    /// Redirect the client to a URL.
    Found(Box<FoundUrl>),
    /// Query all Archives again, with another question or the same one.
    AskAgain(Box<FollowUpQuery>),
    /// Several Archives claim the Original that the client requires, so there is no redirect. An
    /// investigation record stays open until the dispute is resolved.
    Alert(Vec<OriginalDispute>),
    /// The item was removed and no Archive that answered still holds it.
    Deleted {
        /// The Archives that report the removal, with their tombstones.
        tombstones: Vec<(ArchiveId, AnswerTombstone)>,
        /// What still exists instead: the last edition before it, or the item it is a translation
        /// of.
        living: Option<ItemQuery>,
    },
    /// The queried spelling is canonical for several items (1.3): the labels of each.
    Ambiguous(Vec<LabelForms>),
    /// The label is reserved for a draft; these are the labels of the future item.
    Reserved(LabelForms),
    /// Every Archive answered; nothing was found.
    NotFound(NotFoundReason),
    /// Nothing was found, but some Archives did not answer.
    Incomplete {
        /// The Archives without a valid answer, and why.
        failed: Vec<(ArchiveId, String)>,
        /// The result if those Archives hold nothing.
        otherwise: NotFoundReason,
    },
    /// The answers lead in a circle, or through too many rounds.
    Cycle {
        /// The questions, oldest first; the last one was not sent.
        chain: Vec<ItemQuery>,
        /// The reason.
        why: CycleReason,
    },
    /// A better answer may still arrive. Never returned once the grace period is over or all have
    /// answered.
    Wait,
}

impl RoundDecision {
    /// The HTTP status for the client (4.3); `None` while the resolution continues.
    pub const fn status(&self) -> Option<u16> {
        match self {
            RoundDecision::Found(_) => Some(302),
            RoundDecision::NotFound(_) => Some(404),
            RoundDecision::Alert(_) => Some(409),
            RoundDecision::Deleted { .. } => Some(410),
            RoundDecision::Ambiguous(_) => Some(300),
            RoundDecision::Reserved(_) => Some(403),
            RoundDecision::Incomplete { .. } => Some(503),
            RoundDecision::Cycle { .. } => Some(508),
            RoundDecision::AskAgain(_) | RoundDecision::Wait => None,
        }
    }
}

/// Where the client is redirected, with the data for the acknowledgment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundUrl {
    /// The Archive that serves the URL.
    pub archive: ArchiveId,
    /// The URL as the Archive gave it, without the client's query.
    pub url: String,
    /// The chosen relation, with its language.
    pub relation: Relation,
    /// The item that the URL leads to, if known.
    pub ibi: Option<LabelForms>,
    /// The content type, if the Archive states it.
    pub contenttype: Option<ContentType>,
    /// `Original` or `Copy`, if the Archive states it.
    pub state: Option<State>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// The `urlkey` of the answer.
    pub urlkey: Option<String>,
    /// Disputed Originals noticed on the way. They become binding only after a second query.
    pub suspects: Vec<OriginalDispute>,
}

impl FoundUrl {
    /// The acknowledgment for that Archive (3.5). `None` without a key, because the Archive could
    /// not count it.
    pub fn acknowledgment(&self, client: Vec<IpAddr>, persistent: &str) -> Option<Acknowledgment> {
        let is_metadata = self.relation.parts().iter().any(|part| matches!(part, RelationPart::Metadata(_)));
        let default = if is_metadata { ContentType::Metadata } else { ContentType::Data };
        Some(Acknowledgment {
            client,
            contenttype: self.contenttype.unwrap_or(default),
            ibi: self.ibi.clone(),
            state: self.state,
            url: SentUrl::new(&self.url),
            persistent: SentUrl::new(persistent),
            urlkey: self.urlkey.clone()?,
        })
    }
}

/// Why Archives are queried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequeryReason {
    /// No Archive has a URL, but one knows the item that this leading part of the relation leads to
    /// (4.2 step 5).
    Leading(Relation),
    /// There is a next edition (4.2 steps 4 and 5).
    NextEdition,
    /// Only a Copy of the presumed last edition was found: check whether others know a newer one
    /// (4.2 step 4).
    CopyOfLast,
    /// Archives disagree on editions or translations: find the holder of the Original, which
    /// decides (2.4).
    WhoDecides,
    /// The deciding Archive was found (2.4).
    Decided,
    /// The preferred question led nowhere: try the next fallback (4.2 step 6).
    NextBest(Box<RequeryReason>),
    /// The last edition was removed: find the newest one that still exists (4.3).
    LastLiving,
    /// No translation matches the client's languages: fall back to the item itself (4.2 step 6).
    WithoutTranslation,
    /// Several Archives claim the Original, or none does: a hand-over may have happened between two
    /// answers (4.2 step 3).
    Claims,
    /// The item is known but not the requested relation: list what it does have (4.3).
    Offers,
}

/// A conflict between Archives that claim the Original of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalDispute {
    /// All labels of the item that they state; may be empty.
    pub ibi: LabelForms,
    /// The claims, at least two, one per Archive.
    pub claims: Vec<AnswerClaim>,
    /// Whether the Archives were queried again, which makes the claims binding.
    pub counts: bool,
}

/// An Archive's claim to the Original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerClaim {
    /// The claiming Archive.
    pub archive: ArchiveId,
    /// Its URL, if it can serve the item.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
}

/// The tombstone of a removed item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerTombstone {
    /// The item.
    pub ibi: LabelForms,
    /// The time of removal, as the Archive writes it.
    pub timestamp: Option<String>,
    /// The next edition and translations that the Archive still reports (3.4), without URLs.
    pub links: Box<LiveAnswer>,
}

impl AnswerTombstone {
    /// A tombstone without links.
    pub fn new(ibi: LabelForms, timestamp: Option<String>) -> Self {
        let links = LiveAnswer {
            item: ibi.clone(),
            alias: None,
            next_edition: None,
            translated_next: Vec::new(),
            offers: Vec::new(),
            urlkey: None,
            service: None,
        };
        Self { ibi, timestamp, links: Box::new(links) }
    }
}

/// What was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFoundReason {
    /// No Archive holds the item.
    Item,
    /// The item is known, but not that translation, format or edition.
    Related {
        /// The item.
        item: LabelForms,
        /// The relations that are available.
        offered: Vec<Relation>,
    },
    /// The requested relation exists, but the file does not.
    File {
        /// The item.
        item: LabelForms,
        /// The relations that are available.
        offered: Vec<Relation>,
    },
    /// An Archive names the target (a newer edition, a translation), but no Archive holds it.
    Unheld {
        /// The item that no Archive holds.
        item: LabelForms,
        /// An available alternative: an older edition, or the item without the translation.
        older: Option<ItemQuery>,
    },
    /// The Original is required, but only Copies were found.
    Original {
        /// The Copies found.
        copies: Vec<KnownCopy>,
    },
}

/// A Copy of the requested item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCopy {
    /// The Archive that holds it.
    pub archive: ArchiveId,
    /// The item, if known.
    pub ibi: Option<LabelForms>,
    /// Its URL.
    pub url: String,
}

/// Why a resolution was aborted as endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleReason {
    /// The last question of the chain was sent before.
    Repeats,
    /// The last question of the chain would exceed [`super::MAX_ROUNDS`].
    TooManyRounds,
}
