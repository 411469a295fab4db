//! What a resolver makes of the answers of Archives (4.2, 4.3): pure, without a clock and without a network.
//!
//! The caller asks all Archives, turns what comes into [`Answer`]s (with [`check()`]), and calls [`decide`] whenever
//! something has changed: an answer came, the grace or the deadline is over. [`Decision`] says what to do; after
//! [`Decision::AskAgain`], [`Wanted::next`] is what is wanted in the next round.
//!
//! ```
//! use ibi_protocol::{Limits, Pairs, analysis::*};
//! let wanted = Wanted::new("8JMKD3MGP8W/35MMLL8".parse()?);
//! let asked = Asked {
//!     label: &wanted.label,
//!     verbs: &wanted.verbs,
//!     service: &"sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse()?,
//!     hosts: &["mtc-m16c.sid.inpe.br".to_owned()],
//! };
//! let body = b"ibi {ibip 8JMKD3MGP8W/35MMLL8} ibi.archiveservice {rep sid.inpe.br/mtc-m18/2008/03.17.15.17} \
//!              url http://mtc-m16c.sid.inpe.br/a.pdf state Copy";
//! let said = Said::from(check(&Pairs::read(body, &Limits::default())?, &asked));
//! let Decision::Found(found) = decide(&[Answer { archive: ArchiveId(7), said }], &wanted) else { panic!() };
//! assert_eq!(found.url, "http://mtc-m16c.sid.inpe.br/a.pdf");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod claims;
mod decision;
mod editions;
mod languages;
mod plan;
mod round;
mod spellings;
mod trail;

use ibi_id::Label;

pub use check::{Asked, CheckError, Live, Offer, Offered, check};
pub use decision::{
    Claimed, Decision, Endless, Found, KnownCopy, NotFound, Question, Suspects, Tombstone, Why,
};
pub use languages::AcceptedLanguages;
pub use trail::{AskAgain, Trail};

use crate::file_path::FilePath;
use crate::persistent::PersistentUrl;
use crate::verb::Verbs;
use round::Round;

/// The most rounds of questions to all Archives in one resolution, of whatever kind (4.2 step 5).
pub const MOST_ROUNDS: u32 = 32;

/// The caller's number for an Archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveId(pub u64);

/// What one Archive said in a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Which Archive.
    pub archive: ArchiveId,
    /// What it said.
    pub said: Said,
}

/// What an Archive said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// An answer that counts.
    Offered(Offered),
    /// It does not hold the item.
    Nothing,
    /// It did not answer, or not in a way that counts, or was not asked (off line, not confirmed): why.
    Failed(String),
    /// It was asked and may still answer.
    Waiting,
}

impl From<Result<Option<Offered>, CheckError>> for Said {
    fn from(checked: Result<Option<Offered>, CheckError>) -> Self {
        match checked {
            Ok(Some(offered)) => Said::Offered(offered),
            Ok(None) => Said::Nothing,
            Err(error) => Said::Failed(error.to_string()),
        }
    }
}

/// What is wanted in this round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The item that was asked for.
    pub label: Label,
    /// What is wanted of it.
    pub verbs: Verbs,
    /// A file in it.
    pub file: Option<FilePath>,
    /// Whether it has to be the original.
    pub original: bool,
    /// What the client reads.
    pub languages: AcceptedLanguages,
    /// The questions of the rounds before, the first one first.
    pub asked: Vec<Question>,
    /// Which round this is, from 1 on.
    pub round: u32,
    /// What the answers of this round are for.
    pub purpose: Purpose,
    /// How the question came about, and what else may be tried.
    pub trail: Trail,
    /// Whether the time is over in which a better answer is waited for, after the first that will do. (Once the deadline
    /// is over, nobody is [`Said::Waiting`].)
    pub grace_over: bool,
}

/// What a round is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To find what is wanted.
    #[default]
    Find,
    /// The same once more: now claims of the original count.
    Recount,
    /// To name what there is, since this was not there.
    NameOffers {
        /// What was not there.
        missed: Question,
    },
    /// The last edition was removed: to find the last one before it that lives (4.3).
    LastLiving {
        /// Who says that it was removed, and since when.
        tombstones: Vec<(ArchiveId, Tombstone)>,
        /// The last one that is known to live so far.
        living: Question,
    },
}

impl Wanted {
    /// An item itself, wanted by somebody who has no further wishes.
    pub fn new(label: Label) -> Self {
        Self {
            label,
            verbs: Verbs::default(),
            file: None,
            original: false,
            languages: AcceptedLanguages::default(),
            asked: Vec::new(),
            round: 1,
            purpose: Purpose::Find,
            trail: Trail::default(),
            grace_over: false,
        }
    }

    /// What a persistent URL asks for.
    pub fn of(url: &PersistentUrl, languages: AcceptedLanguages) -> Self {
        let PersistentUrl { label, verbs, file, original, passed_on: _ } = url.clone();
        Self { verbs, file, original, languages, ..Self::new(label) }
    }

    /// The question of this round.
    pub fn question(&self) -> Question {
        Question { label: self.label.clone(), verbs: self.verbs.clone(), file: self.file.clone() }
    }

    /// What is wanted in the round that a decision leads to.
    pub fn next(&self, again: &AskAgain) -> Self {
        let AskAgain { question, why: _, purpose, trail } = again.clone();
        let mut asked = self.asked.clone();
        if purpose != Purpose::Recount {
            asked.push(self.question());
        }
        let Question { label, verbs, file } = question;
        let (original, languages) = (self.original, self.languages.clone());
        let round = self.round.saturating_add(1);
        Self { label, verbs, file, original, languages, asked, round, purpose, trail, grace_over: false }
    }

    /// The same question once more, so that the claims of the original count (4.2 step 3).
    pub fn recount(&self) -> Self {
        self.next(&self.again())
    }

    fn again(&self) -> AskAgain {
        let (question, trail) = (self.question(), self.trail.clone());
        AskAgain { question, why: Why::Claims, purpose: Purpose::Recount, trail }
    }
}

/// What follows from what was said so far: one answer for each registered Archive that is not retired, in the order in
/// which they came. (4.2 steps 3 to 6, 4.3) Those that said nothing change nothing and can be left out, and one that is
/// waited for may stand for all of them.
pub fn decide(answers: &[Answer], wanted: &Wanted) -> Decision {
    Round::new(answers, wanted).decide()
}

/// The originals that several Archives claim among answers that came after the client went (4.2 step 4): the same as
/// [`Found::suspects`], with all that has been said since.
pub fn suspects(answers: &[Answer], wanted: &Wanted) -> Vec<Suspects> {
    Round::new(answers, wanted).suspects()
}
