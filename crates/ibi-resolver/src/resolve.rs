//! A persistent URL answered by asking all Archives (4.2).

mod gather;
mod known;
mod load;
mod outcome;
mod roster;
mod round;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::{AcceptedLanguages, Decision, Purpose, Suspects, Wanted, suspects};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use known::Known;
pub(crate) use known::name;
pub use outcome::Outcome;
pub use round::{ANSWER_TIME, GRACE};

use crate::acknowledge::Acknowledgments;
use crate::alerts::{Recounts, Suspected};
use crate::archive::Archive;
use crate::ask::Ask;
use crate::evidence::{RecentEvidence, gather};
use crate::explain::Explanation;
use crate::inclusion::Clock;
pub(crate) use roster::Member;
use roster::{Roster, Rosters};
use round::Round;

/// How long one resolution may take, all rounds together.
pub const LONGEST: Duration = Duration::from_secs(10);
/// The most rounds whose late answers are still read.
const MOST_LATE: usize = 1024;

/// What a client asks (4.2 step 1).
#[derive(Debug, Clone)]
pub struct Asked {
    /// What for.
    pub url: PersistentUrl,
    /// The configured base URL, then path and query as received, undecoded (3.5).
    pub persistent: String,
    /// What it reads.
    pub languages: AcceptedLanguages,
    /// Its address, then its proxies': at least one.
    pub client: Vec<IpAddr>,
    /// Whether it wants to know how the answer came about.
    pub explain: bool,
    /// Whether it is sent where the answer leads: only then is the Archive told so (4.2 step 7).
    pub goes: bool,
}

impl Asked {
    /// The persistent URL in its one plain form, at the base that it was received with.
    fn plain(&self) -> String {
        let scheme = self.persistent.find("://").map_or(0, |at| at + "://".len());
        let base = self.persistent[scheme..].find('/').map_or(self.persistent.len(), |at| scheme + at);
        format!("{}{}", &self.persistent[..base], self.url)
    }
}

/// What it gets.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// What came of it.
    pub outcome: Outcome,
    /// How it came about, if that was asked.
    pub explanation: Option<Explanation>,
}

/// Resolves persistent URLs. A clone is another handle to the same.
pub struct Resolver<A, R>(Arc<Inner<A, R>>);

struct Inner<A, R> {
    ask: Arc<A>,
    known: Arc<R>,
    clock: Clock,
    rosters: Rosters,
    acknowledgments: Arc<Acknowledgments<A>>,
    recounts: Recounts,
    evidence: RecentEvidence,
    late: Arc<Semaphore>,
}

impl<A, R> Clone for Resolver<A, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Ask, R: Known> Resolver<A, R> {
    /// A resolver of the Archives that are known, asking through `ask`.
    pub fn new(ask: Arc<A>, known: Arc<R>, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            acknowledgments: Arc::new(Acknowledgments::new(Arc::clone(&ask))),
            ask,
            known,
            clock,
            rosters: Rosters::default(),
            recounts: Recounts::default(),
            evidence: RecentEvidence::default(),
            late: Arc::new(Semaphore::new(MOST_LATE)),
        }))
    }

    /// Answers a client. What remains to be done then (late answers, the acknowledgment) is done in the background.
    pub async fn resolve(&self, asked: Asked) -> Resolution {
        let plain = asked.plain();
        let Asked { url, persistent, languages, client, explain, goes } = asked;
        let deadline = Instant::now() + LONGEST;
        // Printed plain, whatever stood before the label (4.1); the Archive is told what was received (3.5).
        let mut explanation = explain.then(|| Explanation::new(&plain, Instant::now()));
        let mut wanted = Wanted::of(&url, languages);
        loop {
            let mut round = self.begin(wanted, &client, deadline, explain);
            let decision = round.listen().await;
            if let (Some(explanation), Some(notes)) = (&mut explanation, round.notes.take()) {
                explanation.add(notes, &decision, &round.wanted, Instant::now());
            }
            if let Decision::AskAgain(again) = &decision {
                wanted = round.wanted.next(again);
                self.leave(round);
                continue;
            }
            let suspected = match &decision {
                Decision::Alert(doubted) => self.raise(doubted, &round.wanted, &round.roster).await,
                _ => Vec::new(),
            };
            let outcome = Outcome::new(decision, &round.roster, &url, suspected);
            if let Outcome::Found { archive, found, .. } = &outcome {
                if goes && let Some(acknowledgment) = found.acknowledgment(client.clone(), &persistent) {
                    self.0.acknowledgments.send(Arc::clone(archive), acknowledgment);
                }
                let doubted = !found.suspects.is_empty();
                self.stay(round, doubted, client);
            }
            if let Some(explanation) = &mut explanation {
                explanation.end(&outcome, Instant::now());
            }
            return Resolution { outcome, explanation };
        }
    }

    /// Waits until all acknowledgments are sent, but not longer than this.
    pub async fn close(&self, within: Duration) {
        self.0.acknowledgments.finish(within).await;
    }

    fn begin(&self, wanted: Wanted, client: &[IpAddr], deadline: Instant, explain: bool) -> Round {
        let Inner { ask, known, rosters, .. } = &*self.0;
        round::begin(&**ask, rosters.of(known.archives()), wanted, client, deadline, explain)
    }

    /// Leaves a round for the next. Answers that are on their way are still received, so that connections stay of use.
    fn leave(&self, mut round: Round) {
        if round.is_waiting() {
            self.later(async move { round.hear_rest().await });
        }
    }

    /// The client has gone; the answers that come later are still read (4.2 step 4).
    fn stay(&self, mut round: Round, doubted: bool, client: Vec<IpAddr>) {
        if !doubted && !round.is_waiting() {
            return;
        }
        let this = self.clone();
        self.later(async move {
            round.hear_rest().await;
            let doubted = suspects(&round.answers, &round.wanted);
            if doubted.is_empty() {
                return;
            }
            if round.wanted.purpose == Purpose::Recount {
                this.raise(&doubted, &round.wanted, &round.roster).await;
            } else if this.0.recounts.begin(&round.wanted) {
                // A transfer may have passed between two answers: they are asked again once before they count.
                let wanted = round.wanted.recount();
                drop(round);
                let mut recount = this.begin(wanted, &client, Instant::now() + ANSWER_TIME, false);
                recount.hear_rest().await;
                let doubted = suspects(&recount.answers, &recount.wanted);
                this.raise(&doubted, &recount.wanted, &recount.roster).await;
            }
        });
    }

    /// Does something in the background, unless there is too much of it already.
    fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.0.late).try_acquire_owned() else {
            metrics::counter!("ibi_late_answers_dropped_total").increment(1);
            return;
        };
        tokio::spawn(async move {
            work.await;
            drop(permit);
        });
    }

    async fn raise(&self, doubted: &[Suspects], wanted: &Wanted, roster: &Roster) -> Vec<Suspected> {
        let now = (self.0.clock)();
        let service = |id| roster.archive(id).map(|archive| archive.service.clone());
        let suspected: Vec<Suspected> =
            doubted.iter().map(|one| Suspected::new(one, wanted, now, service)).collect();
        if suspected.is_empty() {
            return suspected;
        }
        metrics::counter!("ibi_alerts_raised_total").increment(suspected.len() as u64);
        let known = Arc::clone(&self.0.known);
        let kept = tokio::task::spawn_blocking(move || {
            suspected.iter().for_each(|one| known.raise(one, now));
            suspected
        });
        let suspected = kept.await.unwrap_or_default();
        for (one, doubted) in suspected.iter().zip(doubted) {
            let claims = doubted.claims.iter().filter_map(|claim| roster.archive(claim.archive));
            self.look_into(one, claims.cloned().collect(), now);
        }
        suspected
    }

    /// Gathers what those who claim an original tell of it, in the background.
    fn look_into(&self, suspected: &Suspected, archives: Vec<Arc<Archive>>, now: i64) {
        let Some(label) = suspected.item.labels().first().cloned() else { return };
        if !self.0.evidence.begin(&label) {
            return;
        }
        let (ask, known, suspected) = (Arc::clone(&self.0.ask), Arc::clone(&self.0.known), suspected.clone());
        self.later(async move {
            let told = gather(&ask, archives, &label, now).await;
            if !told.is_empty() {
                let _ = tokio::task::spawn_blocking(move || known.add_evidence(&suspected, &told)).await;
            }
        });
    }
}
