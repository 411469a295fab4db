//! One round: a query to all Archives, and their replies until a decision is possible (4.2 steps 2
//! to 6).

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ibi_protocol::analysis::{
    AnswerExpectation, ArchiveReply, RoundAnswer, RoundDecision, RoundPurpose, RoundQuery, check, decide,
};
use ibi_protocol::{Pairs, PairsLimits, UrlRequest, WireRequest};
use tokio::time::{Instant, Sleep, sleep_until};

use super::explanation::RoundNotes;
use super::gather::{FutureSet, PendingFuture};
use super::questions::{AnswerBody, PendingQuestions};
use super::roster::{ArchiveRoster, RosterMember};
use crate::archive::RegisteredArchive;
use crate::location_index::{IndexReply, LocationIndex};
use crate::transport::{ArchiveTransport, ArchiveTransportError};

/// Timeout for the answers to one query.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Grace period for a better answer after the first usable one (4.2 step 4).
pub const BETTER_ANSWER_GRACE: Duration = Duration::from_millis(150);

/// A query and the replies so far.
pub(super) struct ResolutionRound {
    pub(super) wanted: RoundQuery,
    /// In the order of arrival. Archives that do not hold the item are omitted: they change
    /// nothing.
    pub(super) answers: Vec<RoundAnswer>,
    pub(super) roster: Arc<ArchiveRoster>,
    /// The positions of the queried Archives among the members.
    places: Vec<usize>,
    /// How many of them share the label's prefix and have not answered.
    minters_waiting: usize,
    waiting: FutureSet<AnswerBody>,
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    pub(super) notes: Option<RoundNotes>,
}

/// An event in a round.
enum RoundEvent {
    Answered(usize, AnswerBody),
    TimeIsUp,
}

/// What a round is asked with.
pub(super) struct RoundTerms<'a, A> {
    pub(super) ask: &'a A,
    pub(super) pending: &'a PendingQuestions,
    pub(super) index: Option<&'a LocationIndex>,
    pub(super) client: &'a [IpAddr],
    pub(super) deadline: Instant,
    pub(super) explain: bool,
    /// Whether the answer to an equal question that is under way may be used.
    pub(super) shares: bool,
}

/// Queries all online Archives at once.
pub(super) fn ask_all<A: ArchiveTransport>(
    terms: &RoundTerms<'_, A>,
    roster: Arc<ArchiveRoster>,
    wanted: RoundQuery,
) -> ResolutionRound {
    let RoundTerms { ask, pending, index, client, deadline, explain, shares } = *terms;
    // Whoever requires the Original, and disputed claims, are for the Archives themselves (4.4).
    let index = index.filter(|_| !wanted.original && wanted.purpose != RoundPurpose::Recount);
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
    let (mut answers, mut minters_waiting) = (Vec::new(), 0);
    let mut asked: Vec<PendingFuture<AnswerBody>> = Vec::with_capacity(roster.members.len());
    let mut places = Vec::with_capacity(roster.members.len());
    let mut indexed = Vec::new();
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
                Ok(IndexReply::Ask) | Err(_) => None,
            };
            if let Some(reply) = reply {
                indexed.push((place, age, reply));
                continue;
            }
        }
        let failed = match absent {
            Some(why) => {
                let links = found.as_ref().and_then(|(index, found)| {
                    let links = index.last_known_links(found, archive, &wanted).ok()??;
                    check(&links, &expectation(&wanted, archive, hosts)).ok()?
                });
                if let Some(known) = links {
                    answers.push(RoundAnswer { archive: archive.id, said: ArchiveReply::Offered(known) });
                }
                why.clone()
            }
            None => match pending.ask(ask, member, &query, shares) {
                Err(why) => why.to_owned(),
                Ok(answer) => {
                    places.push(place);
                    minters_waiting += usize::from(has_own_prefix(archive, &wanted));
                    asked.push(answer);
                    continue;
                }
            },
        };
        answers.push(RoundAnswer { archive: archive.id, said: ArchiveReply::Failed(failed) });
    }
    let mut notes =
        explain.then(|| RoundNotes::new(&wanted, query.to_string(), began, &roster.members, &answers));
    for (place, age, said) in indexed {
        if let Some(notes) = &mut notes {
            notes.record_indexed(place, &said, age);
        }
        if !matches!(said, ArchiveReply::Nothing) {
            answers.push(RoundAnswer { archive: roster.members[place].archive.id, said });
        }
    }
    let deadline = deadline.min(began + ANSWER_TIMEOUT);
    let (waiting, timer) = (FutureSet::new(asked.into_iter()), Box::pin(sleep_until(deadline)));
    ResolutionRound { wanted, answers, roster, places, minters_waiting, waiting, timer, deadline, notes }
}

impl ResolutionRound {
    /// Receives answers until a decision is possible; never returns [`RoundDecision::Wait`].
    pub(super) async fn await_decision(&mut self) -> RoundDecision {
        let mut in_hand = false;
        // What the index knows may be enough.
        if !self.waiting.is_empty() && self.answers.iter().any(is_offer) {
            match self.decide() {
                RoundDecision::Wait if self.has_usable_answer() => {
                    in_hand = true;
                    let grace = self.deadline.min(Instant::now() + BETTER_ANSWER_GRACE);
                    self.timer.as_mut().reset(grace);
                }
                RoundDecision::Wait => {}
                decision => return decision,
            }
        }
        while !self.waiting.is_empty() {
            match self.next().await {
                RoundEvent::Answered(at, sent) => {
                    let minters_waiting = self.minters_waiting;
                    let offered = self.receive_answer(at, sent);
                    let changes = offered || self.minters_waiting < minters_waiting;
                    // An Archive that offers nothing cannot improve the result, but another's claim
                    // of the Original may have waited for it; and the last answer ends the round.
                    if !changes || self.waiting.is_empty() {
                        continue;
                    }
                    match self.decide() {
                        RoundDecision::Wait if !in_hand && self.has_usable_answer() => {
                            in_hand = true;
                            let grace = self.deadline.min(Instant::now() + BETTER_ANSWER_GRACE);
                            self.timer.as_mut().reset(grace);
                        }
                        RoundDecision::Wait => {}
                        decision => return decision,
                    }
                }
                RoundEvent::TimeIsUp if Instant::now() < self.deadline => {
                    self.wanted.grace_over = true;
                    self.timer.as_mut().reset(self.deadline);
                    match self.decide() {
                        RoundDecision::Wait => {}
                        decision => return decision,
                    }
                }
                RoundEvent::TimeIsUp => self.give_up(),
            }
        }
        self.decide()
    }

    /// Receives all remaining answers, whatever follows.
    pub(super) async fn receive_rest(&mut self) {
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

    /// Whether answers are still pending.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
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

    /// The decision on the answers so far.
    fn decide(&mut self) -> RoundDecision {
        if self.waiting.is_empty() {
            return decide(&self.answers, &self.wanted);
        }
        // One entry stands for all pending Archives.
        let place = self.places.first().copied().unwrap_or_default();
        self.answers.push(RoundAnswer {
            archive: self.roster.members[place].archive.id,
            said: ArchiveReply::Waiting { has_own_prefix: self.minters_waiting > 0 },
        });
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
        let offered = matches!(said, ArchiveReply::Offered(_));
        if !matches!(said, ArchiveReply::Nothing) {
            self.answers.push(RoundAnswer { archive: member.archive.id, said });
        }
        offered
    }

    /// Marks all Archives that have not answered as failed.
    fn give_up(&mut self) {
        for at in self.waiting.give_up() {
            let place = self.places[at];
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
