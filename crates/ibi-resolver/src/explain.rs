//! How an answer came about: who was asked what, what each said and when, and why this one was chosen.

mod words;

use std::collections::BTreeMap;

use ibi_protocol::analysis::{Answer, Decision, Live, Offered, Said, Wanted};
use serde::Serialize;
use tokio::time::Instant;

use crate::resolve::{Member, Outcome};
use words::because;
pub(crate) use words::question;

/// The account of one resolution, for JSON and, by `Display`, for a terminal.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The persistent URL.
    pub persistent: String,
    /// What was asked, round by round.
    pub rounds: Vec<ExplainedRound>,
    /// The HTTP status.
    pub status: u16,
    /// Where the client goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Why it ends so.
    pub because: String,
    /// How long it took.
    pub microseconds: u64,
    #[serde(skip)]
    began: Instant,
}

/// One question to all Archives.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedRound {
    /// The question, as a persistent URL has it, without the resolver.
    pub question: String,
    /// Why it was asked.
    pub why: String,
    /// The query that each Archive got.
    pub query: String,
    /// What they said: who answered, in that order, and then all others.
    pub archives: Vec<Heard>,
    /// How long it took until the resolver went on.
    pub microseconds: u64,
}

/// What one Archive said.
#[derive(Debug, Clone, Serialize)]
pub struct Heard {
    /// The label of its service.
    pub archive: String,
    /// Where it is.
    pub address: Option<String>,
    /// What it said.
    #[serde(flatten)]
    pub said: Heeded,
    /// After how long, if it was asked and something came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microseconds: Option<u64>,
}

/// What it said, in short.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub enum Heeded {
    /// It does not hold the item.
    Nothing,
    /// It knows the item.
    Offered {
        /// The item.
        item: String,
        /// What it has of it.
        offers: Vec<ExplainedOffer>,
        /// Its next edition.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_edition: Option<String>,
        /// The next editions of its translations, by their modifiers.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        translated_next: BTreeMap<String, String>,
    },
    /// The item was removed.
    Deleted {
        /// The item.
        item: String,
        /// When.
        #[serde(skip_serializing_if = "Option::is_none")]
        timestamp: Option<String>,
        /// Its next edition.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_edition: Option<String>,
        /// Its translations.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        offers: Vec<ExplainedOffer>,
    },
    /// The spelling is canonical for several of its items.
    Several {
        /// The labels of each.
        items: Vec<String>,
    },
    /// The label is reserved for a draft.
    Reserved {
        /// The label.
        item: String,
    },
    /// It gave no answer that counts, or could not be asked.
    Failed {
        /// Why.
        why: String,
    },
    /// The resolver went on without waiting for it.
    Waiting,
}

/// What an Archive has of a relation.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedOffer {
    /// The relation, as modifiers; empty for the item itself.
    pub modifiers: String,
    /// The item that it leads to.
    pub ibi: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// `Original` or `Copy`.
    pub state: Option<&'static str>,
}

/// What is taken down during a round.
pub(crate) struct Notes {
    began: Instant,
    round: ExplainedRound,
    /// The members of whom nothing was heard yet, and where they stand.
    unheard: Vec<(usize, Heard)>,
}

impl Notes {
    /// The beginning of a round. The answers are of those who could not be asked.
    pub(crate) fn new(
        wanted: &Wanted,
        query: String,
        began: Instant,
        members: &[Member],
        absent: &[Answer],
    ) -> Self {
        let heard = |member: &Member| {
            let answer = absent.iter().find(|answer| answer.archive == member.archive.id);
            Heard {
                archive: member.archive.service.spelling().to_owned(),
                address: member.archive.address.clone(),
                said: answer.map_or(Heeded::Waiting, |answer| Heeded::new(&answer.said)),
                microseconds: None,
            }
        };
        let round = ExplainedRound {
            question: question(&wanted.question()),
            why: "the client asks for it".to_owned(),
            query,
            archives: Vec::new(),
            microseconds: 0,
        };
        Self { began, round, unheard: members.iter().map(heard).enumerate().collect() }
    }

    /// An Archive said something.
    pub(crate) fn heard(&mut self, place: usize, said: &Said, now: Instant) {
        if let Some(at) = self.unheard.iter().position(|(other, _)| *other == place) {
            let (_, mut heard) = self.unheard.remove(at);
            heard.said = Heeded::new(said);
            heard.microseconds = Some(micros(self.began, now));
            self.round.archives.push(heard);
        }
    }
}

impl Heeded {
    fn new(said: &Said) -> Self {
        match said {
            Said::Nothing => Heeded::Nothing,
            Said::Waiting => Heeded::Waiting,
            Said::Failed(why) => Heeded::Failed { why: why.clone() },
            Said::Offered(Offered::Deleted(tombstone)) => Heeded::Deleted {
                item: tombstone.ibi.to_string(),
                timestamp: tombstone.timestamp.clone(),
                next_edition: tombstone.links.next_edition.as_ref().map(ToString::to_string),
                offers: explained_offers(&tombstone.links),
            },
            Said::Offered(Offered::Several(items)) => {
                Heeded::Several { items: items.iter().map(ToString::to_string).collect() }
            }
            Said::Offered(Offered::Reserved(item)) => Heeded::Reserved { item: item.to_string() },
            Said::Offered(Offered::Live(live)) => Heeded::Offered {
                item: live.item.to_string(),
                offers: explained_offers(live),
                next_edition: live.next_edition.as_ref().map(ToString::to_string),
                translated_next: live
                    .translated_next
                    .iter()
                    .map(|(relation, next)| (relation.modifiers(), next.to_string()))
                    .collect(),
            },
        }
    }
}

fn explained_offers(live: &Live) -> Vec<ExplainedOffer> {
    let told = live.offers.iter().filter(|offer| offer.url.is_some() || !offer.relation.is_empty());
    let explained = told.map(|offer| ExplainedOffer {
        modifiers: offer.relation.modifiers(),
        ibi: offer.ibi.as_ref().map(ToString::to_string),
        url: offer.url.clone(),
        state: offer.state.map(ibi_protocol::State::as_str),
    });
    explained.collect()
}

impl Explanation {
    pub(crate) fn new(persistent: &str, began: Instant) -> Self {
        let (rounds, because) = (Vec::new(), String::new());
        let persistent = persistent.to_owned();
        Self { persistent, rounds, status: 0, location: None, because, microseconds: 0, began }
    }

    /// A round is over, and this follows from it.
    pub(crate) fn add(&mut self, notes: Notes, decision: &Decision, wanted: &Wanted, now: Instant) {
        let Notes { began, mut round, unheard } = notes;
        round.archives.extend(unheard.into_iter().map(|(_, heard)| heard));
        round.microseconds = micros(began, now);
        if !self.because.is_empty() {
            round.why = std::mem::take(&mut self.because);
        }
        self.rounds.push(round);
        self.because = because(decision, wanted);
    }

    /// The resolution is over.
    pub(crate) fn end(&mut self, outcome: &Outcome, now: Instant) {
        self.status = outcome.status();
        if let Outcome::Found { location, .. } = outcome {
            self.location = Some(location.clone());
        }
        self.microseconds = micros(self.began, now);
    }
}

fn micros(began: Instant, now: Instant) -> u64 {
    u64::try_from(now.duration_since(began).as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
