//! How a resolution came about: which Archives were queried, what each replied and when, and why
//! this result was chosen.

mod explanation_text;

use std::collections::BTreeMap;
use std::time::Duration;

use ibi_http::accept::UiLanguage;
use ibi_http::pooled_client::HttpScheme;
use ibi_protocol::analysis::{
    ArchiveReply, CheckedAnswer, LiveAnswer, RoundAnswer, RoundDecision, RoundQuery,
};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use super::{ResolutionOutcome, RosterMember};
use explanation_text::decision_reason;
pub(crate) use explanation_text::question_text;

/// The explanation of one resolution: serialised as JSON, or formatted for a terminal by `Display`.
#[derive(Debug, Clone, Serialize)]
pub struct ResolutionExplanation {
    /// The persistent URL.
    pub persistent: String,
    /// The rounds of queries.
    pub rounds: Vec<ExplainedRound>,
    /// The HTTP status.
    pub status: u16,
    /// The redirect target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The reason for the result.
    pub because: ExplainedReason,
    /// The duration.
    pub microseconds: u64,
    #[serde(skip)]
    began: Instant,
}

/// A reason in both languages of the pages; JSON has the English one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainedReason {
    english: String,
    portuguese: String,
}

impl ExplainedReason {
    /// A reason in both languages.
    pub fn new(english: &str, portuguese: &str) -> Self {
        Self { english: english.to_owned(), portuguese: portuguese.to_owned() }
    }

    /// The reason in a language.
    pub fn text(&self, language: UiLanguage) -> &str {
        match language {
            UiLanguage::English => &self.english,
            UiLanguage::Portuguese => &self.portuguese,
        }
    }
}

impl Serialize for ExplainedReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.english)
    }
}

/// One query to all Archives.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedRound {
    /// The query as a persistent URL, without the resolver.
    pub question: String,
    /// Why it was asked.
    pub why: ExplainedReason,
    /// The query string sent to each Archive.
    pub query: String,
    /// The replies in the order of arrival, then all other Archives.
    pub archives: Vec<ExplainedAnswer>,
    /// The time until the resolver went on.
    pub microseconds: u64,
}

/// The reply of one Archive.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedAnswer {
    /// The label of its service.
    pub archive: String,
    /// Its address.
    pub address: Option<String>,
    /// Whether it is asked over TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secure: bool,
    /// The reply.
    #[serde(flatten)]
    pub said: ExplainedReply,
    /// The time until its reply, if it was queried and the reply was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microseconds: Option<u64>,
    /// The age of the index in milliseconds, if it answered for the Archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_age: Option<u64>,
}

/// A summary of a reply.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub enum ExplainedReply {
    /// It does not hold the item.
    Nothing,
    /// It knows the item.
    Offered {
        /// The item.
        item: String,
        /// What it offers of the item.
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
        /// The item was removed.
        item: String,
        /// When it was removed.
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
    /// No valid answer, or the Archive could not be queried.
    Failed {
        /// The reason.
        why: String,
    },
    /// The resolver went on without waiting for it.
    Waiting,
}

/// An offer for one relation.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedOffer {
    /// The relation, as modifiers; empty for the item itself.
    pub modifiers: String,
    /// The item that the relation leads to.
    pub ibi: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// `Original` or `Copy`.
    pub state: Option<&'static str>,
}

/// Notes taken during a round.
pub(crate) struct RoundNotes {
    began: Instant,
    round: ExplainedRound,
    /// The members that have not replied yet, with their positions.
    unheard: Vec<(usize, ExplainedAnswer)>,
}

impl RoundNotes {
    /// Starts the notes of a round. The given answers are of the Archives that could not be
    /// queried.
    pub(crate) fn new(
        wanted: &RoundQuery,
        query: String,
        began: Instant,
        members: &[RosterMember],
        absent: &[RoundAnswer],
    ) -> Self {
        let heard = |member: &RosterMember| {
            let answer = absent.iter().find(|answer| answer.archive == member.archive.id);
            ExplainedAnswer {
                archive: member.archive.service.spelling().to_owned(),
                address: member.archive.address.clone(),
                secure: member.archive.scheme() == HttpScheme::Https,
                said: answer.map_or(ExplainedReply::Waiting, |answer| ExplainedReply::new(&answer.said)),
                microseconds: None,
                index_age: None,
            }
        };
        let round = ExplainedRound {
            question: question_text(&wanted.question()),
            why: ExplainedReason::new("requested by the client", "pedido pelo cliente"),
            query,
            archives: Vec::new(),
            microseconds: 0,
        };
        Self { began, round, unheard: members.iter().map(heard).enumerate().collect() }
    }

    /// Records a reply.
    pub(crate) fn record_reply(&mut self, place: usize, said: &ArchiveReply, now: Instant) {
        if let Some(at) = self.unheard.iter().position(|(other, _)| *other == place) {
            let (_, mut heard) = self.unheard.remove(at);
            heard.said = ExplainedReply::new(said);
            heard.microseconds = Some(micros(self.began, now));
            self.round.archives.push(heard);
        }
    }
}

impl RoundNotes {
    /// Records what the index answers for an Archive.
    pub(crate) fn record_indexed(&mut self, place: usize, said: &ArchiveReply, age: Duration) {
        if let Some(at) = self.unheard.iter().position(|(other, _)| *other == place) {
            let (_, mut heard) = self.unheard.remove(at);
            heard.said = ExplainedReply::new(said);
            heard.index_age = Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
            self.round.archives.push(heard);
        }
    }
}

impl ExplainedReply {
    fn new(said: &ArchiveReply) -> Self {
        match said {
            ArchiveReply::Nothing => ExplainedReply::Nothing,
            ArchiveReply::Waiting { .. } => ExplainedReply::Waiting,
            ArchiveReply::Failed(why) => ExplainedReply::Failed { why: why.clone() },
            ArchiveReply::Offered(CheckedAnswer::Deleted(tombstone)) => ExplainedReply::Deleted {
                item: tombstone.ibi.to_string(),
                timestamp: tombstone.timestamp.clone(),
                next_edition: tombstone.links.next_edition.as_ref().map(ToString::to_string),
                offers: explained_offers(&tombstone.links),
            },
            ArchiveReply::Offered(CheckedAnswer::Several(items)) => {
                ExplainedReply::Several { items: items.iter().map(ToString::to_string).collect() }
            }
            ArchiveReply::Offered(CheckedAnswer::Reserved(item)) => {
                ExplainedReply::Reserved { item: item.to_string() }
            }
            ArchiveReply::Offered(CheckedAnswer::Live(live)) => ExplainedReply::Offered {
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

fn explained_offers(live: &LiveAnswer) -> Vec<ExplainedOffer> {
    let told = live.offers.iter().filter(|offer| offer.url.is_some() || !offer.relation.is_empty());
    let explained = told.map(|offer| ExplainedOffer {
        modifiers: offer.relation.modifiers(),
        ibi: offer.ibi.as_ref().map(ToString::to_string),
        url: offer.url.clone(),
        state: offer.state.map(ibi_protocol::State::as_str),
    });
    explained.collect()
}

impl ResolutionExplanation {
    pub(crate) fn new(persistent: &str, began: Instant) -> Self {
        let (rounds, because) = (Vec::new(), ExplainedReason::default());
        let persistent = persistent.to_owned();
        Self { persistent, rounds, status: 0, location: None, because, microseconds: 0, began }
    }

    /// Records the end of a round and the resulting decision.
    pub(crate) fn add(
        &mut self,
        notes: RoundNotes,
        decision: &RoundDecision,
        wanted: &RoundQuery,
        now: Instant,
    ) {
        let RoundNotes { began, mut round, unheard } = notes;
        round.archives.extend(unheard.into_iter().map(|(_, heard)| heard));
        round.microseconds = micros(began, now);
        if self.because != ExplainedReason::default() {
            round.why = std::mem::take(&mut self.because);
        }
        self.rounds.push(round);
        self.because = decision_reason(decision, wanted);
    }

    /// Records the end of the resolution.
    pub(crate) fn end(&mut self, outcome: &ResolutionOutcome, now: Instant) {
        self.status = outcome.status();
        if let ResolutionOutcome::Found { location, .. } = outcome {
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
