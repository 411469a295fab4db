//! Resolution of a persistent URL by querying all Archives (4.2).

mod asking_order;
mod copy_check;
pub mod explanation;
mod following;
mod gather;
mod holder_memory;
mod load;
mod outcome;
mod questions;
mod roster;
mod round;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::{
    AcceptedLanguages, ArchiveId, FoundUrl, OriginalDispute, RoundDecision, RoundPurpose, RoundQuery,
};
use ibi_protocol::{ContentType, State};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

pub use explanation::ResolutionExplanation;
pub use outcome::ResolutionOutcome;
pub use round::{ANSWER_TIMEOUT, BETTER_ANSWER_GRACE};

use crate::acknowledgments::AcknowledgmentSender;
use crate::alerts::{RaisedAlert, RecentRecounts};
use crate::archive::RegisteredArchive;
use crate::blocking::run_blocking;
use crate::clock::ResolverClock;
use crate::directory::ArchiveDirectory;
use crate::evidence::{RecentEvidence, gather_evidence};
use crate::location_index::LocationIndex;
use crate::location_index::usage::UsageCounter;
use crate::transport::ArchiveTransport;
use holder_memory::HolderMemory;
use questions::PendingQuestions;
pub(crate) use roster::RosterMember;
use roster::{ArchiveRoster, RosterCache};
use round::{AskedAlone, ResolutionRound, RoundTerms};

/// Deadline for one resolution, over all rounds.
pub const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a label counts as just minted. Clocks of Archives may differ.
const RECENT_LABEL_SECONDS: i64 = 120;
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
    /// Whether the client is a robot; they are counted separately.
    pub robot: bool,
    /// Whether the client wants what is true now, and not what was a few seconds ago
    /// (`Cache-Control: no-cache`).
    pub fresh: bool,
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
    pending: PendingQuestions,
    memory: HolderMemory,
    index: Option<ResolverIndex>,
}

/// The location index, and the counter of redirects that come from it.
#[derive(Debug, Clone)]
pub struct ResolverIndex {
    /// The index.
    pub index: LocationIndex,
    /// The counter.
    pub usage: Arc<UsageCounter>,
}

impl<A, R> Clone for Resolver<A, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: ArchiveTransport, R: ArchiveDirectory> Resolver<A, R> {
    /// A resolver over a directory of Archives, sending queries through `ask`.
    pub fn new(ask: Arc<A>, known: Arc<R>, clock: ResolverClock) -> Self {
        Self::with_index(ask, known, clock, None)
    }

    /// Like [`Resolver::new`], with a location index, which answers for the Archives it follows.
    pub fn with_index(
        ask: Arc<A>,
        known: Arc<R>,
        clock: ResolverClock,
        index: Option<ResolverIndex>,
    ) -> Self {
        Self(Arc::new(ResolverInner {
            acknowledgments: Arc::new(AcknowledgmentSender::new(Arc::clone(&ask))),
            ask,
            known,
            clock,
            rosters: RosterCache::default(),
            recounts: RecentRecounts::default(),
            evidence: RecentEvidence::default(),
            late: Arc::new(Semaphore::new(MAX_BACKGROUND_ROUNDS)),
            pending: PendingQuestions::default(),
            memory: HolderMemory::default(),
            index,
        }))
    }

    /// Resolves a request. Remaining work (late answers, the acknowledgment) continues in the
    /// background.
    pub async fn resolve(&self, asked: ResolutionRequest) -> ResolutionResult {
        let plain = asked.plain_url();
        let ResolutionRequest { url, persistent, languages, client, explain, robot, goes, fresh } = asked;
        let deadline = Instant::now() + RESOLUTION_TIMEOUT;
        // Shown in canonical form, without whatever preceded the label (4.1); the Archive gets the
        // URL as received (3.5).
        let mut explanation = explain.then(|| ResolutionExplanation::new(&plain, Instant::now()));
        let mut is_synced = false;
        if fresh && let Some(index) = &self.0.index {
            let _ = timeout_at(deadline, index.index.sync()).await;
            is_synced = true;
        }
        let first = RoundQuery::of(&url, languages);
        let (mut wanted, mut questions) = (first.clone(), Vec::new());
        // Background recounts wait until the client has its response.
        let (_answering, over) = watch::channel(());
        let mut indexed: BTreeSet<ArchiveId> = BTreeSet::new();
        loop {
            // Who wants what is true now gets no answer to an earlier question, nor does a round
            // that repeats one.
            let shares = !fresh && !is_synced && !questions.contains(&wanted.question());
            questions.push(wanted.question());
            let mut round = self.begin_round(wanted, &client, deadline, explain, shares);
            let decision = round.await_decision().await;
            if round.alone == AskedAlone::Refuted {
                self.0.memory.forget(&round.wanted.label);
            }
            indexed.extend(round.indexed().iter().copied());
            if let (Some(explanation), Some(notes)) = (&mut explanation, round.notes.take()) {
                explanation.add(notes, &decision, &round.wanted, Instant::now());
            }
            // A label that was minted just now may not be in the index yet.
            if matches!(decision, RoundDecision::NotFound(_))
                && !is_synced
                && self.is_recent(&url.label)
                && let Some(index) = &self.0.index
            {
                let _ = timeout_at(deadline, index.index.sync()).await;
                (is_synced, wanted) = (true, first.clone());
                continue;
            }
            if let RoundDecision::AskAgain(again) = &decision {
                wanted = round.wanted.next(again);
                match round.wanted.purpose {
                    // Several claims of the Original raise an alert.
                    RoundPurpose::WhoDecides { .. } => {
                        let doubted = !round.disputes().is_empty();
                        self.drain_and_recheck(round, doubted, client.clone(), over.clone(), None);
                    }
                    _ if round.has_late_claims() => {
                        self.drain_and_recheck(round, true, client.clone(), over.clone(), None);
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
                // A key came from the Archive itself, in this round or an earlier one.
                if goes && found.urlkey.is_none() && indexed.contains(&archive.id) {
                    self.count_usage(archive.id, found, robot);
                }
                if goes && let Some(acknowledgment) = found.acknowledgment(client.clone(), &persistent) {
                    let acknowledgments = &self.0.acknowledgments;
                    match acknowledgments.use_key(archive.id, &acknowledgment.urlkey) {
                        false if self.is_followed(archive.id) => self.count_usage(archive.id, found, robot),
                        _ => acknowledgments.send(Arc::clone(archive), acknowledgment),
                    }
                }
                let doubted = !found.suspects.is_empty();
                if !doubted {
                    self.0.memory.learn(&round.wanted.label, archive.id);
                }
                let is_original = found.state == Some(State::Original) && found.relation.is_empty();
                let holder = is_original.then_some(archive.id);
                self.drain_and_recheck(round, doubted, client, over, holder);
            }
            if let Some(explanation) = &mut explanation {
                explanation.end(&outcome, Instant::now());
            }
            return ResolutionResult { outcome, explanation };
        }
    }

    /// Whether a label was minted so recently that the index may not have it yet.
    fn is_recent(&self, label: &Label) -> bool {
        let age = (self.0.clock)() - label.instant().seconds();
        age < RECENT_LABEL_SECONDS
    }

    /// Whether an Archive takes reports of redirects.
    fn is_followed(&self, archive: ArchiveId) -> bool {
        let Some(ResolverIndex { index, .. }) = &self.0.index else { return false };
        index.followed_record(archive).is_ok_and(|followed| !followed.token.is_empty())
    }

    /// Counts a redirect that the index answered.
    fn count_usage(&self, archive: ArchiveId, found: &FoundUrl, robot: bool) {
        let Some(ResolverIndex { usage, .. }) = &self.0.index else { return };
        let label = found.ibi.as_ref().and_then(|ibi| ibi.labels().first());
        if let Some(label) = label {
            let contenttype = found.contenttype.unwrap_or(ContentType::Data);
            usage.count(archive, label.spelling(), contenttype, robot, (self.0.clock)());
        }
    }

    /// Finds the URL of a plain label in the index alone: an Original, or where no Archive may
    /// know of one, a Copy. `None` if the rules of 4.2 have to decide.
    pub fn locate(&self, url: &PersistentUrl, robot: bool) -> Option<String> {
        let ResolverInner { ask, known, rosters, index, clock, .. } = &*self.0;
        let ResolverIndex { index, usage } = index.as_ref()?;
        if !url.verbs.is_empty() || url.file.is_some() || url.original {
            return None;
        }
        let roster = rosters.of(known.archives(), Some(index), ask.health());
        let found = index.locate(&url.label).ok()??;
        let member = roster.members.iter().find(|member| member.archive.id == found.archive)?;
        let is_current = member.followed.as_ref().is_some_and(|followed| index.age(followed).is_some());
        if member.absent.is_some() || !is_current {
            return None;
        }
        // Another Archive may claim the Original: it counts less than the one that gave the label.
        let has_own_prefix = url.label.shares_prefix(&member.archive.service) == Some(true);
        let is_final = found.state == State::Original && has_own_prefix;
        if !is_final && !roster.is_indexed(index) {
            return None;
        }
        if found.state == State::Copy && !found.is_alone {
            return None;
        }
        let target = member.archive.url(&found.path)?;
        usage.count(found.archive, url.label.spelling(), found.contenttype, robot, clock());
        Some(url.append(&target))
    }

    /// Whether the index alone can tell that no Archive has the item: every feed is current, the
    /// label is in none of them, and it was not minted just now (4.3, 4.4).
    pub fn is_unknown(&self, label: &Label) -> bool {
        let ResolverInner { ask, known, rosters, index, .. } = &*self.0;
        let Some(ResolverIndex { index, .. }) = index else { return false };
        let roster = rosters.of(known.archives(), Some(index), ask.health());
        roster.is_indexed(index)
            && !self.is_recent(label)
            && index.has_label(label).is_ok_and(|has_label| !has_label)
            // A feed that failed meanwhile may have hidden it.
            && roster.is_indexed(index)
    }

    /// Waits until all acknowledgments are sent or the timeout expires.
    pub async fn close(&self, within: Duration) {
        self.0.acknowledgments.finish(within).await;
        if let Some(index) = &self.0.index {
            index.usage.write_pending();
        }
    }

    fn begin_round(
        &self,
        wanted: RoundQuery,
        client: &[IpAddr],
        deadline: Instant,
        explain: bool,
        shares: bool,
    ) -> ResolutionRound {
        let ResolverInner { ask, known, rosters, index, pending, memory, .. } = &*self.0;
        let index = index.as_ref().map(|index| &index.index);
        let roster = rosters.of(known.archives(), index, ask.health());
        // The Original, and who claims it, is always asked afresh (4.4).
        let shares = shares && !wanted.original && wanted.purpose != RoundPurpose::Recount;
        let terms = RoundTerms { ask, pending, memory, index, client, deadline, explain, shares };
        round::ask_all(&terms, roster, wanted)
    }

    /// Remembers the holder of an Original that nobody else claimed, so that it is asked alone for
    /// a short time.
    fn remember(&self, round: &ResolutionRound, holder: Option<ArchiveId>) {
        // One that was asked alone is not remembered for longer: now and then, all are asked.
        if let Some(holder) = holder
            && round.alone != AskedAlone::Enough
            && !round.is_minter_silent(holder)
        {
            self.0.memory.remember(&round.wanted.label, holder, Instant::now());
        }
    }

    /// Leaves a round for the next one. Pending answers are still received, so that their
    /// connections can be reused.
    fn drain_round(&self, mut round: ResolutionRound) {
        round.drop_held();
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
        holder: Option<ArchiveId>,
    ) {
        if !doubted && !round.is_waiting() && !round.has_late_claims() {
            self.remember(&round, holder);
            return;
        }
        let this = self.clone();
        self.spawn_background(async move {
            round.receive_rest().await;
            let doubted = round.disputes();
            if doubted.is_empty() {
                this.remember(&round, holder);
                return;
            }
            this.0.memory.disputed(&round.wanted.label, &doubted);
            // The sender is dropped when the client has its response.
            let _ = over.changed().await;
            if round.wanted.purpose == RoundPurpose::Recount {
                this.raise_alerts(&doubted, &round.wanted, &round.roster).await;
            } else if this.0.recounts.begin(&round.wanted) {
                // A transfer may have happened between two answers: ask once more before the claims
                // count.
                let wanted = round.wanted.recount();
                drop(round);
                let mut recount =
                    this.begin_round(wanted, &client, Instant::now() + ANSWER_TIMEOUT, false, false);
                recount.receive_rest().await;
                let doubted = recount.disputes();
                this.raise_alerts(&doubted, &recount.wanted, &recount.roster).await;
            }
        });
    }

    /// Asks all Archives who has the Original of an item that two feeds claim, and raises an alert
    /// if they insist.
    pub async fn check_dispute(&self, label: &str) {
        let Ok(label) = label.parse::<Label>() else { return };
        let wanted = RoundQuery { original: true, ..RoundQuery::new(label) };
        if !self.0.recounts.begin(&wanted) {
            return;
        }
        let nobody = [IpAddr::from([0, 0, 0, 0])];
        // A transfer may pass between two answers: only the second count matters.
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let mut round = self.begin_round(wanted.recount(), &nobody, deadline, false, false);
        round.receive_rest().await;
        let doubted = round.disputes();
        self.raise_alerts(&doubted, &round.wanted, &round.roster).await;
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
        let kept = run_blocking(move || {
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
                let _ = run_blocking(move || known.add_evidence(&suspected, &told)).await;
            }
        });
    }
}
