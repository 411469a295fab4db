//! Decides a resolution from the answers of Archives (4.2, 4.3). Pure: no clock, no network.
//!
//! The caller queries all Archives, turns each response into a [`RoundAnswer`] (with [`check()`])
//! and calls [`decide`] whenever something changes: an answer arrives, the grace period ends or the
//! deadline passes. [`RoundDecision`] says what to do; after [`RoundDecision::AskAgain`],
//! [`RoundQuery::next`] builds the next round's query.
//!
//! ```
//! use ibi_protocol::{PairsLimits, Pairs, analysis::*};
//! let query = RoundQuery::new("8JMKD3MGP8W/35MMLL8".parse()?);
//! let expected = AnswerExpectation {
//!     label: &query.label,
//!     verbs: &query.verbs,
//!     service: &"sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse()?,
//!     hosts: &["mtc-m16c.sid.inpe.br".to_owned()],
//! };
//! let body = b"ibi {ibip 8JMKD3MGP8W/35MMLL8} ibi.archiveservice {rep sid.inpe.br/mtc-m18/2008/03.17.15.17} \
//!              url http://mtc-m16c.sid.inpe.br/a.pdf state Copy";
//! let said = ArchiveReply::from(check(&Pairs::read(body, &PairsLimits::default())?, &expected));
//! let RoundDecision::Found(found) = decide(&[RoundAnswer { archive: ArchiveId(7), said }], &query) else { panic!() };
//! assert_eq!(found.url, "http://mtc-m16c.sid.inpe.br/a.pdf");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod claims;
mod deciders;
mod decision;
mod editions;
mod languages;
mod plan;
mod round;
mod spellings;
mod trail;

use ibi_id::Label;

pub use check::{AnswerCheckError, AnswerExpectation, AnswerOffer, CheckedAnswer, LiveAnswer, check};
pub use decision::{
    AnswerClaim, AnswerTombstone, CycleReason, FoundUrl, ItemQuery, KnownCopy, NotFoundReason,
    OriginalDispute, RequeryReason, RoundDecision,
};
pub use languages::AcceptedLanguages;
pub use trail::{FollowUpQuery, QueryTrail};

use crate::file_path::FilePath;
use crate::persistent::PersistentUrl;
use crate::verb::Verbs;
use round::RoundAnalysis;

/// Limit on query rounds in one resolution, of whatever purpose (4.2 step 5).
pub const MAX_ROUNDS: u32 = 32;

/// Caller-assigned number of an Archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveId(pub u64);

/// One Archive's reply in a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundAnswer {
    /// The Archive.
    pub archive: ArchiveId,
    /// Its reply.
    pub said: ArchiveReply,
}

/// The outcome of querying one Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveReply {
    /// A valid answer.
    Offered(CheckedAnswer),
    /// It does not hold the item.
    Nothing,
    /// No valid answer, or the Archive was not queried (offline, not confirmed), with the reason.
    Failed(String),
    /// Queried; the answer is outstanding.
    Waiting {
        /// Whether its service has the requested label's prefix. While such an Archive is
        /// outstanding, another Archive's claim to the Original is accepted only after the grace
        /// period (4.4).
        has_own_prefix: bool,
    },
}

impl From<Result<Option<CheckedAnswer>, AnswerCheckError>> for ArchiveReply {
    fn from(checked: Result<Option<CheckedAnswer>, AnswerCheckError>) -> Self {
        match checked {
            Ok(Some(offered)) => ArchiveReply::Offered(offered),
            Ok(None) => ArchiveReply::Nothing,
            Err(error) => ArchiveReply::Failed(error.to_string()),
        }
    }
}

/// The query of one round, with the state carried over from earlier rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundQuery {
    /// The requested item.
    pub label: Label,
    /// What is requested of the item.
    pub verbs: Verbs,
    /// The requested file within the item.
    pub file: Option<FilePath>,
    /// Whether only the Original is acceptable.
    pub original: bool,
    /// The client's preferred languages.
    pub languages: AcceptedLanguages,
    /// The questions of earlier rounds, oldest first.
    pub asked: Vec<ItemQuery>,
    /// The number of this round, from 1.
    pub round: u32,
    /// How the answers of this round are used.
    pub purpose: RoundPurpose,
    /// How the resolution got to this question, and its remaining fallbacks.
    pub trail: QueryTrail,
    /// Whether the grace period after the first usable answer is over. (After the deadline no
    /// Archive is [`ArchiveReply::Waiting`].)
    pub grace_over: bool,
}

/// The purpose of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RoundPurpose {
    /// Find the requested URL.
    #[default]
    Find,
    /// Repeat the question; claims to the Original are now binding (4.2 step 3).
    Recount,
    /// Archives disagree on editions or translations: find the holder of the Original, which
    /// decides (2.4).
    WhoDecides {
        /// The question to repeat afterwards.
        then: ItemQuery,
    },
    /// The requested relation was not found: list what the item does have.
    NameOffers {
        /// The question that found nothing.
        missed: ItemQuery,
    },
    /// The last edition was removed: find the newest earlier edition that still exists (4.3).
    LastLiving {
        /// The Archives that report the removal, with their tombstones.
        tombstones: Vec<(ArchiveId, AnswerTombstone)>,
        /// The newest existing edition found so far.
        living: ItemQuery,
    },
}

impl RoundQuery {
    /// A query for an item itself, without further requirements.
    pub fn new(label: Label) -> Self {
        Self {
            label,
            verbs: Verbs::default(),
            file: None,
            original: false,
            languages: AcceptedLanguages::default(),
            asked: Vec::new(),
            round: 1,
            purpose: RoundPurpose::Find,
            trail: QueryTrail::default(),
            grace_over: false,
        }
    }

    /// The query that a persistent URL expresses.
    pub fn of(url: &PersistentUrl, languages: AcceptedLanguages) -> Self {
        let PersistentUrl { label, verbs, file, original, passed_on: _ } = url.clone();
        Self { verbs, file, original, languages, ..Self::new(label) }
    }

    /// This round's question.
    pub fn question(&self) -> ItemQuery {
        ItemQuery { label: self.label.clone(), verbs: self.verbs.clone(), file: self.file.clone() }
    }

    /// The query of the round that a decision leads to.
    pub fn next(&self, again: &FollowUpQuery) -> Self {
        let FollowUpQuery { question, why: _, purpose, trail } = again.clone();
        let mut asked = self.asked.clone();
        let finds_decider = |purpose: &RoundPurpose| matches!(purpose, RoundPurpose::WhoDecides { .. });
        let is_repeat =
            purpose == RoundPurpose::Recount || finds_decider(&purpose) || finds_decider(&self.purpose);
        if !is_repeat {
            asked.push(self.question());
        }
        let ItemQuery { label, verbs, file } = question;
        let (original, languages) = (self.original, self.languages.clone());
        // Finding the decider happens at most once per question and does not advance the
        // resolution, so it does not count as a round.
        let advances = !finds_decider(&purpose) && !finds_decider(&self.purpose);
        let round = if advances { self.round.saturating_add(1) } else { self.round };
        Self { label, verbs, file, original, languages, asked, round, purpose, trail, grace_over: false }
    }

    /// Repeats the question so that claims to the Original become binding (4.2 step 3).
    pub fn recount(&self) -> Self {
        self.next(&self.recount_query())
    }

    fn recount_query(&self) -> FollowUpQuery {
        let (question, trail) = (self.question(), self.trail.clone());
        FollowUpQuery { question, why: RequeryReason::Claims, purpose: RoundPurpose::Recount, trail }
    }
}

/// Decides what follows from the answers so far (4.2 steps 3 to 6, 4.3).
///
/// `answers` has one entry for each registered Archive that is not retired, in order of arrival.
/// Entries with [`ArchiveReply::Nothing`] have no effect and may be omitted. One
/// [`ArchiveReply::Waiting`] may stand for all outstanding Archives; if the service of any of them
/// has the label's prefix, it must say so.
pub fn decide(answers: &[RoundAnswer], query: &RoundQuery) -> RoundDecision {
    RoundAnalysis::new(answers, query).decide()
}

/// Disputed Originals, including answers that arrived after the client was redirected (4.2 step 4):
/// [`FoundUrl::suspects`] brought up to date.
pub fn suspects(answers: &[RoundAnswer], query: &RoundQuery) -> Vec<OriginalDispute> {
    RoundAnalysis::new(answers, query).suspects()
}
