//! Resolution of a persistent URL by querying all Archives (4.2).

mod directory;
pub mod explanation;
mod gather;
mod load;
mod outcome;
mod roster;
mod round;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::{
    AcceptedLanguages, OriginalDispute, RoundDecision, RoundPurpose, RoundQuery, suspects,
};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

pub use directory::ArchiveDirectory;
pub(crate) use directory::alert_item_name;
pub use explanation::ResolutionExplanation;
pub use outcome::ResolutionOutcome;
pub use round::{ANSWER_TIMEOUT, BETTER_ANSWER_GRACE};

use crate::acknowledgments::AcknowledgmentSender;
use crate::alerts::{RaisedAlert, RecentRecounts};
use crate::archive::RegisteredArchive;
use crate::evidence::{RecentEvidence, gather_evidence};
use crate::inclusion::ResolverClock;
use crate::transport::ArchiveTransport;
pub(crate) use roster::RosterMember;
use roster::{ArchiveRoster, RosterCache};
use round::ResolutionRound;

/// Deadline for one resolution, over all rounds.
pub const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of rounds whose late answers are still read.
const MAX_BACKGROUND_ROUNDS: usize = 1024;

/// A client's request (4.2 step 1).
#[derive(Debug, Clone)]
pub struct ResolutionRequest {
    /// The requested persistent URL.
    pub url: PersistentUrl,
    /// The configured base URL, then path and query as received, undecoded (3.5).
    pub persistent: String,
    /// The languages that the client accepts.
    pub languages: AcceptedLanguages,
    /// The client's address, then those of its proxies: at least one.
    pub client: Vec<IpAddr>,
    /// Whether the client wants an explanation.
    pub explain: bool,
    /// Whether the client is redirected: only then is the Archive sent an acknowledgment (4.2 step
    /// 7).
    pub goes: bool,
}

impl ResolutionRequest {
    /// The persistent URL in its canonical form, at the base URL of the request.
    fn plain_url(&self) -> String {
        let scheme = self.persistent.find("://").map_or(0, |at| at + "://".len());
        let base = self.persistent[scheme..].find('/').map_or(self.persistent.len(), |at| scheme + at);
        format!("{}{}", &self.persistent[..base], self.url)
    }
}

/// The result for the client.
#[derive(Debug, Clone)]
pub struct ResolutionResult {
    /// The outcome.
    pub outcome: ResolutionOutcome,
    /// The explanation, if requested.
    pub explanation: Option<ResolutionExplanation>,
}

/// Resolves persistent URLs. Clones share the same state.
pub struct Resolver<A, R>(Arc<ResolverInner<A, R>>);

struct ResolverInner<A, R> {
    ask: Arc<A>,
    known: Arc<R>,
    clock: ResolverClock,
    rosters: RosterCache,
    acknowledgments: Arc<AcknowledgmentSender<A>>,
    recounts: RecentRecounts,
    evidence: RecentEvidence,
    late: Arc<Semaphore>,
}

impl<A, R> Clone for Resolver<A, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: ArchiveTransport, R: ArchiveDirectory> Resolver<A, R> {
    /// A resolver over a directory of Archives, sending queries through `ask`.
    pub fn new(ask: Arc<A>, known: Arc<R>, clock: ResolverClock) -> Self {
        Self(Arc::new(ResolverInner {
            acknowledgments: Arc::new(AcknowledgmentSender::new(Arc::clone(&ask))),
            ask,
            known,
            clock,
            rosters: RosterCache::default(),
            recounts: RecentRecounts::default(),
            evidence: RecentEvidence::default(),
            late: Arc::new(Semaphore::new(MAX_BACKGROUND_ROUNDS)),
        }))
    }

    /// Resolves a request. Remaining work (late answers, the acknowledgment) continues in the
    /// background.
    pub async fn resolve(&self, asked: ResolutionRequest) -> ResolutionResult {
        let plain = asked.plain_url();
        let ResolutionRequest { url, persistent, languages, client, explain, goes } = asked;
        let deadline = Instant::now() + RESOLUTION_TIMEOUT;
        // Shown in canonical form, without whatever preceded the label (4.1); the Archive gets the
        // URL as received (3.5).
        let mut explanation = explain.then(|| ResolutionExplanation::new(&plain, Instant::now()));
        let mut wanted = RoundQuery::of(&url, languages);
        // Background recounts wait until the client has its response.
        let (_answering, over) = watch::channel(());
        loop {
            let mut round = self.begin_round(wanted, &client, deadline, explain);
            let decision = round.await_decision().await;
            if let (Some(explanation), Some(notes)) = (&mut explanation, round.notes.take()) {
                explanation.add(notes, &decision, &round.wanted, Instant::now());
            }
            if let RoundDecision::AskAgain(again) = &decision {
                wanted = round.wanted.next(again);
                match round.wanted.purpose {
                    // Several claims of the Original raise an alert.
                    RoundPurpose::WhoDecides { .. } => {
                        let doubted = !suspects(&round.answers, &round.wanted).is_empty();
                        self.drain_and_recheck(round, doubted, client.clone(), over.clone());
                    }
                    _ => self.drain_round(round),
                }
                continue;
            }
            let suspected = match &decision {
                RoundDecision::Alert(doubted) => {
                    self.raise_alerts(doubted, &round.wanted, &round.roster).await
                }
                _ => Vec::new(),
            };
            let outcome = ResolutionOutcome::new(decision, &round.roster, &url, suspected);
            if let ResolutionOutcome::Found { archive, found, .. } = &outcome {
                if goes && let Some(acknowledgment) = found.acknowledgment(client.clone(), &persistent) {
                    self.0.acknowledgments.send(Arc::clone(archive), acknowledgment);
                }
                let doubted = !found.suspects.is_empty();
                self.drain_and_recheck(round, doubted, client, over);
            }
            if let Some(explanation) = &mut explanation {
                explanation.end(&outcome, Instant::now());
            }
            return ResolutionResult { outcome, explanation };
        }
    }

    /// Waits until all acknowledgments are sent or the timeout expires.
    pub async fn close(&self, within: Duration) {
        self.0.acknowledgments.finish(within).await;
    }

    fn begin_round(
        &self,
        wanted: RoundQuery,
        client: &[IpAddr],
        deadline: Instant,
        explain: bool,
    ) -> ResolutionRound {
        let ResolverInner { ask, known, rosters, .. } = &*self.0;
        round::ask_all(&**ask, rosters.of(known.archives()), wanted, client, deadline, explain)
    }

    /// Leaves a round for the next one. Pending answers are still received, so that their
    /// connections can be reused.
    fn drain_round(&self, mut round: ResolutionRound) {
        if round.is_waiting() {
            self.spawn_background(async move { round.receive_rest().await });
        }
    }

    /// Still reads late answers (4.2 step 4); once the client has its response, disputed claims are
    /// queried again.
    fn drain_and_recheck(
        &self,
        mut round: ResolutionRound,
        doubted: bool,
        client: Vec<IpAddr>,
        mut over: watch::Receiver<()>,
    ) {
        if !doubted && !round.is_waiting() {
            return;
        }
        let this = self.clone();
        self.spawn_background(async move {
            round.receive_rest().await;
            let doubted = suspects(&round.answers, &round.wanted);
            if doubted.is_empty() {
                return;
            }
            // The sender is dropped when the client has its response.
            let _ = over.changed().await;
            if round.wanted.purpose == RoundPurpose::Recount {
                this.raise_alerts(&doubted, &round.wanted, &round.roster).await;
            } else if this.0.recounts.begin(&round.wanted) {
                // A transfer may have happened between two answers: ask once more before the claims
                // count.
                let wanted = round.wanted.recount();
                drop(round);
                let mut recount = this.begin_round(wanted, &client, Instant::now() + ANSWER_TIMEOUT, false);
                recount.receive_rest().await;
                let doubted = suspects(&recount.answers, &recount.wanted);
                this.raise_alerts(&doubted, &recount.wanted, &recount.roster).await;
            }
        });
    }

    /// Runs work in the background, unless too much is running already.
    fn spawn_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.0.late).try_acquire_owned() else {
            metrics::counter!("ibi_late_answers_dropped_total").increment(1);
            return;
        };
        tokio::spawn(async move {
            work.await;
            drop(permit);
        });
    }

    async fn raise_alerts(
        &self,
        doubted: &[OriginalDispute],
        wanted: &RoundQuery,
        roster: &ArchiveRoster,
    ) -> Vec<RaisedAlert> {
        let now = (self.0.clock)();
        let service = |id| roster.archive(id).map(|archive| archive.service.clone());
        let suspected: Vec<RaisedAlert> =
            doubted.iter().map(|one| RaisedAlert::new(one, wanted, now, service)).collect();
        if suspected.is_empty() {
            return suspected;
        }
        metrics::counter!("ibi_alerts_raised_total").increment(suspected.len() as u64);
        let known = Arc::clone(&self.0.known);
        let kept = tokio::task::spawn_blocking(move || {
            suspected.iter().for_each(|one| known.record_alert(one, now));
            suspected
        });
        let suspected = kept.await.unwrap_or_default();
        for (one, doubted) in suspected.iter().zip(doubted) {
            let claims = doubted.claims.iter().filter_map(|claim| roster.archive(claim.archive));
            self.gather_alert_evidence(one, claims.cloned().collect(), now);
        }
        suspected
    }

    /// Gathers evidence from the claimants of an original in the background.
    fn gather_alert_evidence(
        &self,
        suspected: &RaisedAlert,
        archives: Vec<Arc<RegisteredArchive>>,
        now: i64,
    ) {
        let Some(label) = suspected.item.labels().first().cloned() else { return };
        if !self.0.evidence.begin(&label) {
            return;
        }
        let (ask, known, suspected) = (Arc::clone(&self.0.ask), Arc::clone(&self.0.known), suspected.clone());
        self.spawn_background(async move {
            let told = gather_evidence(&ask, archives, &label, now).await;
            if !told.is_empty() {
                let _ = tokio::task::spawn_blocking(move || known.add_evidence(&suspected, &told)).await;
            }
        });
    }
}
