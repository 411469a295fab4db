//! What a resolver does next, or tells its client (4.3).

use std::net::IpAddr;

use ibi_id::Label;

use super::ArchiveId;
use super::check::Live;
use super::trail::AskAgain;
use crate::answer::{ContentType, State};
use crate::file_path::FilePath;
use crate::forms::Forms;
use crate::message::{Acknowledgment, SentUrl};
use crate::relation::{Part, Relation};
use crate::verb::Verbs;

/// One question to all Archives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// The item.
    pub label: Label,
    /// What is wanted of it.
    pub verbs: Verbs,
    /// A file in it.
    pub file: Option<FilePath>,
}

/// What follows from the answers so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The client goes to a URL.
    Found(Box<Found>),
    /// All Archives are asked something else, or the same once more.
    AskAgain(Box<AskAgain>),
    /// Several Archives claim the original that the client requires: nobody goes anywhere. An investigation record stays
    /// until it is resolved.
    Alert(Vec<Suspects>),
    /// The item was removed, and nobody who answered has it live.
    Deleted {
        /// Which Archives say so, and since when.
        tombstones: Vec<(ArchiveId, Tombstone)>,
        /// What lives instead: the last edition before it, or the item that it is a translation of.
        living: Option<Question>,
    },
    /// The spelling asked for is canonical for several items (1.3): the labels of each.
    Ambiguous(Vec<Forms>),
    /// The label is reserved for a draft: the item that it will name.
    Reserved(Forms),
    /// Every Archive answered, and it is not there.
    NotFound(NotFound),
    /// It was not found, but some Archives did not answer: what it would be if they had nothing to say.
    Incomplete {
        /// Who did not answer, or not in a way that counts, and why.
        failed: Vec<(ArchiveId, String)>,
        /// What is known without them.
        otherwise: NotFound,
    },
    /// The answers lead in circles, or too far.
    Cycle {
        /// The questions, the first one first; the last one was not asked.
        chain: Vec<Question>,
        /// Which of both.
        why: Endless,
    },
    /// Somebody may still say something better. Once the grace is over, or all have answered, it is no longer this.
    Wait,
}

impl Decision {
    /// The HTTP status that a client gets (4.3); none while there is more to do.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Decision::Found(_) => Some(302),
            Decision::NotFound(_) => Some(404),
            Decision::Alert(_) => Some(409),
            Decision::Deleted { .. } => Some(410),
            Decision::Ambiguous(_) => Some(300),
            Decision::Reserved(_) => Some(403),
            Decision::Incomplete { .. } => Some(503),
            Decision::Cycle { .. } => Some(508),
            Decision::AskAgain(_) | Decision::Wait => None,
        }
    }
}

/// Where the client goes, and what an acknowledgment says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whose URL it is.
    pub archive: ArchiveId,
    /// The URL as the Archive gave it, without what is passed on to it.
    pub url: String,
    /// The relation that was chosen, with its language.
    pub relation: Relation,
    /// The item that it leads to, where it is known.
    pub ibi: Option<Forms>,
    /// What is found there, where the Archive says so.
    pub contenttype: Option<ContentType>,
    /// `Original` or `Copy`, where the Archive says so.
    pub state: Option<State>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// The key of the answer.
    pub urlkey: Option<String>,
    /// Originals that several Archives claim all the same. They have to be asked again once before they count.
    pub suspects: Vec<Suspects>,
}

impl Found {
    /// The acknowledgment to that Archive (3.5); none without a key, for then it has nothing to count.
    pub fn acknowledgment(&self, client: Vec<IpAddr>, persistent: &str) -> Option<Acknowledgment> {
        let is_metadata = self.relation.parts().iter().any(|part| matches!(part, Part::Metadata(_)));
        let guess = if is_metadata { ContentType::Metadata } else { ContentType::Data };
        Some(Acknowledgment {
            client,
            contenttype: self.contenttype.unwrap_or(guess),
            ibi: self.ibi.clone(),
            state: self.state,
            url: SentUrl::new(&self.url),
            persistent: SentUrl::new(persistent),
            urlkey: self.urlkey.clone()?,
        })
    }
}

/// Why Archives are asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nobody has a URL, but somebody knows the item to which this much of the relation leads (4.2 step 5).
    Leading(Relation),
    /// There is a next edition (4.2 steps 4 and 5).
    NextEdition,
    /// Somebody holds a copy of what it calls the last edition: the others are asked whether they know a newer one
    /// (4.2 step 4).
    CopyOfLast,
    /// The best way came to nothing: the next best (4.2 step 6).
    NextBest(Box<Why>),
    /// The last edition was removed: to find the last one that lives (4.3).
    LastLiving,
    /// No translation suits the client: the item itself will do (4.2 step 6).
    WithoutTranslation,
    /// Several Archives claim the original, or none does: a transfer may have passed between two answers (4.2 step 3).
    Claims,
    /// The item is known, but not what is wanted of it: to name what there is (4.3).
    Offers,
}

/// Archives that claim the original of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspects {
    /// The item, in all forms that they know; empty where none says.
    pub ibi: Forms,
    /// What they claim, two or more: one claim for each Archive.
    pub claims: Vec<Claimed>,
    /// Whether they were asked again, so that the claims count.
    pub counts: bool,
}

/// An Archive's claim of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Which Archive.
    pub archive: ArchiveId,
    /// Where it has it, if it can serve it.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
}

/// What is left of a removed item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The item.
    pub ibi: Forms,
    /// When it was removed, as the Archive writes it.
    pub timestamp: Option<String>,
    /// Its next edition and its translations, as far as the Archive tells them (3.4): without URLs.
    pub links: Box<Live>,
}

impl Tombstone {
    /// One that tells of nothing else.
    pub fn new(ibi: Forms, timestamp: Option<String>) -> Self {
        let links = Live {
            item: ibi.clone(),
            alias: None,
            next_edition: None,
            translated_next: Vec::new(),
            offers: Vec::new(),
            urlkey: None,
        };
        Self { ibi, timestamp, links: Box::new(links) }
    }
}

/// What is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// Nobody has the item.
    Item,
    /// The item is known, but not that translation, format or edition.
    Related {
        /// The item.
        item: Forms,
        /// What there is of it.
        offered: Vec<Relation>,
    },
    /// What is wanted of the item is there, but not with that file in it.
    File {
        /// The item.
        item: Forms,
        /// What there is of it.
        offered: Vec<Relation>,
    },
    /// An Archive knows which item it is (a newer edition, a translation), but nobody has that item.
    Unheld {
        /// The item that nobody has.
        item: Forms,
        /// What can be had instead: an older edition, or the item without the translation.
        older: Option<Question>,
    },
    /// The original is required, and there are only copies.
    Original {
        /// The copies.
        copies: Vec<KnownCopy>,
    },
}

/// A copy of what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCopy {
    /// Who has it.
    pub archive: ArchiveId,
    /// The item, where it is known.
    pub ibi: Option<Forms>,
    /// Where it is.
    pub url: String,
}

/// Why a resolution has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endless {
    /// The last question of the chain was asked before.
    Repeats,
    /// The last question of the chain is one too many.
    TooManyRounds,
}
