//! One round: a query to all Archives, and their replies until a decision is possible (4.2 steps 2
//! to 6). Archives that probably hold the item are asked first, the others when these have not
//! decided it (`asking_order.rs`).

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ibi_protocol::analysis::{
    AnswerExpectation, AnswerOffer, ArchiveId, ArchiveReply, CheckedAnswer, OriginalDispute, RoundAnswer,
    RoundDecision, RoundPurpose, RoundQuery, check, decide, suspects,
};
use ibi_protocol::{Pairs, PairsLimits, State, UrlRequest, WireRequest};
use tokio::time::{Instant, Sleep, sleep_until};

use super::asking_order::{AskingOrder, LIKELY_HEAD_START};
use super::explanation::RoundNotes;
use super::gather::{FutureSet, PendingFuture};
use super::holder_memory::HolderMemory;
use super::questions::{AnswerBody, PendingQuestions};
use super::roster::{ArchiveRoster, RosterMember};
use crate::archive::RegisteredArchive;
use crate::location_index::{IndexReply, LocationIndex};
use crate::transport::{ArchiveTransport, ArchiveTransportError};

/// Timeout for the answers to one query.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Grace period for a better answer after the first usable one (4.2 step 4).
pub const BETTER_ANSWER_GRACE: Duration = Duration::from_millis(150);

/// Asks the Archive at a position of the roster, or says why not.
type QuestionLauncher = dyn Fn(usize) -> Result<PendingFuture<AnswerBody>, &'static str> + Send + Sync;

/// Why the claim of an Archive counts neither as an answer nor as the absence of one.
const UNSETTLED_CLAIM: &str = "another Archive held the Original, and its feed is not current";

/// A query and the replies so far.
pub(super) struct ResolutionRound {
    pub(super) wanted: RoundQuery,
    /// In the order of arrival. Archives that do not hold the item are omitted: they change
    /// nothing.
    pub(super) answers: Vec<RoundAnswer>,
    pub(super) roster: Arc<ArchiveRoster>,
    /// Whether one Archive is asked alone.
    pub(super) alone: AskedAlone,
    launch: Box<QuestionLauncher>,
    /// The positions of the queried Archives among the members.
    places: Vec<usize>,
    /// The positions of those that are not asked yet.
    held: Vec<usize>,
    /// The Archives that the index answered for.
    indexed: Vec<ArchiveId>,
    /// The Archive that is known to hold the Original, if its feed is current (4.4).
    holder: Option<ArchiveId>,
    /// Claims of the Original that another Archive holds: they may raise an alert, and count for
    /// nothing else.
    late_claims: Vec<RoundAnswer>,
    /// How many of both share the label's prefix and have not answered.
    minters_waiting: usize,
    waiting: FutureSet<AnswerBody>,
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    pub(super) notes: Option<RoundNotes>,
}

/// Whether the Archive that lately held the Original is asked alone (4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedAlone {
    /// All are asked.
    No,
    /// It has not answered yet.
    Trying,
    /// Its answer was good: nobody else is asked.
    Enough,
    /// It gave no good answer: all are asked.
    Refuted,
}

/// What a round is asked with.
pub(super) struct RoundTerms<'a, A> {
    pub(super) ask: &'a Arc<A>,
    pub(super) pending: &'a PendingQuestions,
    pub(super) memory: &'a HolderMemory,
    pub(super) index: Option<&'a LocationIndex>,
    pub(super) client: &'a [IpAddr],
    pub(super) deadline: Instant,
    pub(super) explain: bool,
    /// Whether what others asked a moment ago may be used: a question under way, a known holder.
    pub(super) shares: bool,
}

/// An event in a round.
enum RoundEvent {
    Answered(usize, AnswerBody),
    TimeIsUp,
}

/// Begins a round: queries all online Archives, or first those that probably hold the item.
pub(super) fn ask_all<A: ArchiveTransport>(
    terms: &RoundTerms<'_, A>,
    roster: Arc<ArchiveRoster>,
    wanted: RoundQuery,
) -> ResolutionRound {
    let RoundTerms { ask, pending, memory, index, client, deadline, explain, shares } = *terms;
    let must_be_asked = wanted.original || wanted.purpose == RoundPurpose::Recount;
    // Whoever requires the Original, and disputed claims, are for the Archives themselves (4.4).
    let index = index.filter(|_| !must_be_asked);
    let found = index.and_then(|index| {
        let mut found = index.find(&wanted).ok()?;
        found.retain_archives(|id| roster.archive(id).is_some());
        Some((index, found))
    });
    let query: Arc<str> = WireRequest::Url(UrlRequest {
        client: client.to_vec(),
        ibi: wanted.label.spelling().to_owned(),
        file: wanted.file.clone(),
        verbs: wanted.verbs.clone(),
        wants_all: false,
    })
    .to_query()
    .into();
    let began = Instant::now();
    let (mut answers, mut indexed) = (Vec::new(), Vec::new());
    let mut open = Vec::with_capacity(roster.members.len());
    for (place, member) in roster.members.iter().enumerate() {
        let RosterMember { archive, absent, followed, hosts, .. } = member;
        if absent.is_none()
            && let Some((index, found)) = &found
            && let Some(age) = followed.as_ref().and_then(|followed| index.age(followed))
        {
            let reply = match index.reply(found, archive, &wanted) {
                Ok(IndexReply::Nothing) => Some(ArchiveReply::Nothing),
                Ok(IndexReply::Answer(pairs)) => check(&pairs, &expectation(&wanted, archive, hosts))
                    .ok()
                    .map(|checked| ArchiveReply::from(Ok(checked))),
                Ok(IndexReply::Unsettled) => Some(ArchiveReply::Failed(UNSETTLED_CLAIM.to_owned())),
                Ok(IndexReply::Ask) | Err(_) => None,
            };
            if let Some(reply) = reply {
                indexed.push((place, age, reply));
                continue;
            }
        }
        let Some(why) = absent else {
            open.push(place);
            continue;
        };
        let links = found.as_ref().and_then(|(index, found)| {
            let links = index.last_known_links(found, archive, &wanted).ok()??;
            check(&links, &expectation(&wanted, archive, hosts)).ok()?
        });
        if let Some(known) = links {
            answers.push(RoundAnswer { archive: archive.id, said: ArchiveReply::Offered(known) });
        }
        answers.push(RoundAnswer { archive: archive.id, said: ArchiveReply::Failed(why.clone()) });
    }
    let order = if wanted.purpose == RoundPurpose::Find && !wanted.original {
        let is_indexed = |id: ArchiveId| {
            indexed.iter().any(|(place, ..): &(usize, _, _)| roster.members[*place].archive.id == id)
        };
        let holder = shares.then(|| memory.holder(&wanted.label, began)).flatten();
        let mut likely = memory.of_prefix(&wanted.label);
        likely.extend(found.iter().flat_map(|(_, found)| found.holders()));
        AskingOrder::new(&roster, open, &wanted.label, holder, &likely, is_indexed)
    } else {
        AskingOrder { first: open, rest: Vec::new(), is_alone: false }
    };
    let minters = order.first.iter().chain(&order.rest);
    let minters = minters.filter(|place| has_own_prefix(&roster.members[**place].archive, &wanted)).count();
    let deadline = deadline.min(began + ANSWER_TIMEOUT);
    let timer = if order.rest.is_empty() { deadline } else { deadline.min(began + LIKELY_HEAD_START) };
    let launch = {
        let (ask, pending, roster, query) =
            (Arc::clone(ask), pending.clone(), Arc::clone(&roster), Arc::clone(&query));
        Box::new(move |place: usize| pending.ask(&*ask, &roster.members[place], &query, shares))
    };
    let holder = found.as_ref().and_then(|(index, found)| {
        let is_current = |holder: &ArchiveId| index.age(&index.followed(*holder)).is_some();
        found.holder_as_spelled().filter(is_current)
    });
    let from_index = indexed.iter().map(|(place, ..)| roster.members[*place].archive.id).collect();
    let mut round = ResolutionRound {
        wanted,
        answers,
        roster,
        alone: if order.is_alone { AskedAlone::Trying } else { AskedAlone::No },
        launch,
        places: Vec::with_capacity(order.first.len()),
        held: order.rest,
        indexed: from_index,
        holder,
        late_claims: Vec::new(),
        minters_waiting: minters,
        waiting: FutureSet::new(std::iter::empty()),
        timer: Box::pin(sleep_until(timer)),
        deadline,
        notes: None,
    };
    round.launch(order.first);
    if explain {
        let members = &round.roster.members;
        round.notes = Some(RoundNotes::new(&round.wanted, query.to_string(), began, members, &round.answers));
    }
    for (place, age, said) in indexed {
        if let Some(notes) = &mut round.notes {
            notes.record_indexed(place, &said, age);
        }
        if !matches!(said, ArchiveReply::Nothing) {
            let archive = round.roster.members[place].archive.id;
            round.answers.push(RoundAnswer { archive, said });
        }
    }
    round
}

impl ResolutionRound {
    /// Receives answers until a decision is possible; never returns [`RoundDecision::Wait`].
    pub(super) async fn await_decision(&mut self) -> RoundDecision {
        let mut in_hand = false;
        // What the index knows may be enough.
        if self.is_waiting() && self.answers.iter().any(is_offer) {
            match self.decide_early() {
                RoundDecision::Wait => self.wait_for_better(&mut in_hand),
                decision => return decision,
            }
        }
        while self.is_waiting() {
            if self.waiting.is_empty() {
                // Those that were asked first do not have it.
                self.ask_held();
                continue;
            }
            match self.next().await {
                RoundEvent::Answered(at, sent) => {
                    let minters_waiting = self.minters_waiting;
                    let offered = self.receive_answer(at, sent);
                    let changes = offered || self.minters_waiting < minters_waiting;
                    // An Archive that offers nothing cannot improve the result, but another's claim
                    // of the Original may have waited for it; and the last answer ends the round.
                    if !changes || !self.is_waiting() {
                        continue;
                    }
                    match self.decide_early() {
                        RoundDecision::Wait => self.wait_for_better(&mut in_hand),
                        decision => return decision,
                    }
                }
                RoundEvent::TimeIsUp if Instant::now() >= self.deadline => self.give_up(),
                RoundEvent::TimeIsUp if !self.held.is_empty() => self.ask_held(),
                RoundEvent::TimeIsUp => {
                    self.wanted.grace_over = true;
                    self.timer.as_mut().reset(self.deadline);
                    match self.decide() {
                        RoundDecision::Wait => {}
                        decision => return decision,
                    }
                }
            }
        }
        self.decide()
    }

    /// Goes on without a decision: everybody is asked, and what is usable waits for something
    /// better.
    fn wait_for_better(&mut self, in_hand: &mut bool) {
        // Without an offer, one of those that were asked first may still have it.
        if self.answers.iter().any(is_offer) {
            self.ask_held();
        }
        if !*in_hand && self.has_usable_answer() {
            *in_hand = true;
            let grace = self.deadline.min(Instant::now() + BETTER_ANSWER_GRACE);
            self.timer.as_mut().reset(grace);
        }
    }

    /// Receives all remaining answers, also of those that were not asked yet, whatever follows.
    pub(super) async fn receive_rest(&mut self) {
        self.ask_held();
        self.timer.as_mut().reset(self.deadline);
        while !self.waiting.is_empty() {
            match self.next().await {
                RoundEvent::Answered(at, sent) => {
                    self.receive_answer(at, sent);
                }
                RoundEvent::TimeIsUp => self.give_up(),
            }
        }
    }

    /// The Archives that the index answered for: they know nothing of the reader.
    pub(super) fn indexed(&self) -> &[ArchiveId] {
        &self.indexed
    }

    /// Whether answers are still pending, or Archives not asked yet.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.held.is_empty()
    }

    /// Asks nobody else.
    pub(super) fn drop_held(&mut self) {
        self.held.clear();
    }

    /// Whether an Archive other than `holder` that has the label's own prefix gave no answer.
    pub(super) fn is_minter_silent(&self, holder: ArchiveId) -> bool {
        let is_silent =
            |answer: &RoundAnswer| answer.archive != holder && matches!(answer.said, ArchiveReply::Failed(_));
        let mut silent = self.answers.iter().filter(|answer| is_silent(answer));
        silent.any(|answer| {
            let archive = self.roster.archive(answer.archive);
            archive.is_some_and(|archive| has_own_prefix(archive, &self.wanted))
        })
    }

    /// Asks those that were not asked yet.
    fn ask_held(&mut self) {
        if self.alone == AskedAlone::Trying {
            let has_answered = self.waiting.is_empty();
            self.alone = if has_answered { AskedAlone::Refuted } else { AskedAlone::No };
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.launch(held);
            self.timer.as_mut().reset(self.deadline);
        }
    }

    fn launch(&mut self, places: Vec<usize>) {
        let mut asked = Vec::with_capacity(places.len());
        for place in places {
            match (self.launch)(place) {
                Ok(answer) => {
                    self.places.push(place);
                    asked.push(answer);
                }
                Err(why) => {
                    let said = ArchiveReply::Failed(why.to_owned());
                    if let Some(notes) = &mut self.notes {
                        notes.record_reply(place, &said, Instant::now());
                    }
                    let archive = &self.roster.members[place].archive;
                    self.minters_waiting -= usize::from(has_own_prefix(archive, &self.wanted));
                    self.answers.push(RoundAnswer { archive: archive.id, said });
                }
            }
        }
        self.waiting.extend(asked.into_iter());
    }

    async fn next(&mut self) -> RoundEvent {
        poll_fn(|cx| {
            if let Poll::Ready(Some((at, sent))) = self.waiting.poll_next(cx) {
                return Poll::Ready(RoundEvent::Answered(at, sent));
            }
            self.timer.as_mut().poll(cx).map(|()| RoundEvent::TimeIsUp)
        })
        .await
    }

    /// The decision while some have not answered. An Archive that is asked alone decides alone, if
    /// its answer is good.
    fn decide_early(&mut self) -> RoundDecision {
        if self.alone == AskedAlone::Trying {
            let decision = self.decide_while(false);
            if matches!(decision, RoundDecision::Found(_)) {
                self.alone = AskedAlone::Enough;
                self.held.clear();
                return decision;
            }
            self.ask_held();
        }
        self.decide()
    }

    /// The decision on the answers so far.
    fn decide(&mut self) -> RoundDecision {
        if !self.is_waiting() {
            return decide(&self.answers, &self.wanted);
        }
        self.decide_while(self.minters_waiting > 0)
    }

    /// The decision while some have not answered, among them one with the label's own prefix or
    /// not.
    fn decide_while(&mut self, has_own_prefix: bool) -> RoundDecision {
        // One entry stands for all pending Archives.
        let place = self.places.first().or(self.held.first()).copied().unwrap_or_default();
        let archive = self.roster.members[place].archive.id;
        self.answers.push(RoundAnswer { archive, said: ArchiveReply::Waiting { has_own_prefix } });
        let decision = decide(&self.answers, &self.wanted);
        self.answers.pop();
        decision
    }

    /// Whether there is a usable result, should nothing better arrive: never before an Archive has
    /// offered something.
    fn has_usable_answer(&mut self) -> bool {
        if !self.answers.iter().any(is_offer) {
            return false;
        }
        self.wanted.grace_over = true;
        let decision = self.decide();
        self.wanted.grace_over = false;
        !matches!(decision, RoundDecision::Wait)
    }

    /// Records an answer and returns whether it offers something.
    fn receive_answer(&mut self, at: usize, sent: AnswerBody) -> bool {
        let place = self.places[at];
        let member = &self.roster.members[place];
        let said = read_answer(&sent, member, &self.wanted);
        if let Some(notes) = &mut self.notes {
            notes.record_reply(place, &said, Instant::now());
        }
        self.minters_waiting -= usize::from(has_own_prefix(&member.archive, &self.wanted));
        let answer = RoundAnswer { archive: member.archive.id, said };
        if self.is_late_claim(&answer) {
            self.late_claims.push(answer);
            return false;
        }
        let offered = is_offer(&answer);
        if !matches!(answer.said, ArchiveReply::Nothing) {
            self.answers.push(answer);
        }
        offered
    }

    /// Whether an Archive claims the Original of an item that another one is known to hold. The
    /// Archive with the label's own prefix can claim it of one that has another.
    fn is_late_claim(&self, answer: &RoundAnswer) -> bool {
        let ArchiveReply::Offered(CheckedAnswer::Live(live)) = &answer.said else { return false };
        let Some(holder) = self.holder.filter(|holder| *holder != answer.archive) else { return false };
        // Another spelling is another item (1.3).
        let queried = self.wanted.label.spelling();
        if !live.item.labels().iter().any(|label| label.spelling().eq_ignore_ascii_case(queried)) {
            return false;
        }
        let claims = |offer: &AnswerOffer| offer.relation.is_empty() && offer.state == Some(State::Original);
        let has_prefix =
            |id| self.roster.archive(id).is_some_and(|archive| has_own_prefix(archive, &self.wanted));
        live.offers.iter().any(claims) && (has_prefix(holder) || !has_prefix(answer.archive))
    }

    /// Whether an Archive claims an Original that another one is known to hold.
    pub(super) fn has_late_claims(&self) -> bool {
        !self.late_claims.is_empty()
    }

    /// The Originals that several Archives claim, also those whose claim counts for nothing.
    pub(super) fn disputes(&self) -> Vec<OriginalDispute> {
        if self.late_claims.is_empty() {
            return suspects(&self.answers, &self.wanted);
        }
        let all: Vec<RoundAnswer> = self.answers.iter().chain(&self.late_claims).cloned().collect();
        suspects(&all, &self.wanted)
    }

    /// Marks all Archives that have not answered as failed.
    fn give_up(&mut self) {
        let silent: Vec<usize> = self.waiting.give_up().map(|at| self.places[at]).collect();
        for place in silent.into_iter().chain(std::mem::take(&mut self.held)) {
            let said = ArchiveReply::Failed("no answer in time".to_owned());
            if let Some(notes) = &mut self.notes {
                notes.record_reply(place, &said, Instant::now());
            }
            self.answers.push(RoundAnswer { archive: self.roster.members[place].archive.id, said });
        }
    }
}

fn is_offer(answer: &RoundAnswer) -> bool {
    matches!(answer.said, ArchiveReply::Offered(_))
}

/// Whether the service of an Archive shares the prefix of the requested label (4.4).
fn has_own_prefix(archive: &RegisteredArchive, wanted: &RoundQuery) -> bool {
    wanted.label.shares_prefix(&archive.service) == Some(true)
}

fn expectation<'a>(
    wanted: &'a RoundQuery,
    archive: &'a RegisteredArchive,
    hosts: &'a [String],
) -> AnswerExpectation<'a> {
    AnswerExpectation { label: &wanted.label, verbs: &wanted.verbs, service: &archive.service, hosts }
}

/// Parses an answer and checks whether it counts (4.2 step 2).
fn read_answer(sent: &AnswerBody, member: &RosterMember, wanted: &RoundQuery) -> ArchiveReply {
    let bytes = match sent {
        Ok(bytes) if bytes.is_empty() => return ArchiveReply::Nothing,
        Ok(bytes) => bytes,
        Err(ArchiveTransportError(why)) => return ArchiveReply::Failed(why.clone()),
    };
    let pairs = match Pairs::read(bytes, &PairsLimits::default()) {
        Ok(pairs) => pairs,
        Err(why) => return ArchiveReply::Failed(format!("its answer is no list of pairs: {why}")),
    };
    check(&pairs, &expectation(wanted, &member.archive, &member.hosts)).into()
}
