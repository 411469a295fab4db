//! One round: a question to all Archives, and what they say until something can be decided (4.2 steps 2 to 6).

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use ibi_protocol::analysis::{Answer, Asked, Decision, Said, Wanted, check, decide};
use ibi_protocol::{Limits, Pairs, Request, UrlRequest};
use tokio::time::{Instant, Sleep, sleep_until};

use super::gather::{Awaited, Gather};
use super::roster::{Member, Roster};
use crate::ask::{Ask, AskFailed};
use crate::explain::Notes;

/// How long Archives may take to answer one question.
pub const ANSWER_TIME: Duration = Duration::from_secs(2);
/// How long a better answer is waited for after the first that will do (4.2 step 4).
pub const GRACE: Duration = Duration::from_millis(150);

/// What an Archive sent.
type Sent = Result<Bytes, AskFailed>;

/// A question, and what was said to it so far.
pub(super) struct Round {
    pub(super) wanted: Wanted,
    /// In the order in which they came. Those who said nothing are left out: it changes nothing.
    pub(super) answers: Vec<Answer>,
    pub(super) roster: Arc<Roster>,
    /// Where those who were asked stand among the members.
    places: Vec<usize>,
    waiting: Gather<Sent>,
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    pub(super) notes: Option<Notes>,
}

/// Something happened.
enum Event {
    Came(usize, Sent),
    TimeIsUp,
}

/// Asks all Archives that are on line, at once.
pub(super) fn begin<A: Ask>(
    ask: &A,
    roster: Arc<Roster>,
    wanted: Wanted,
    client: &[IpAddr],
    deadline: Instant,
    explain: bool,
) -> Round {
    let query = Request::Url(UrlRequest {
        client: client.to_vec(),
        ibi: wanted.label.spelling().to_owned(),
        file: wanted.file.clone(),
        verbs: wanted.verbs.clone(),
        wants_all: false,
    })
    .to_query();
    let began = Instant::now();
    let mut answers = Vec::new();
    let mut asked: Vec<Awaited<Sent>> = Vec::with_capacity(roster.members.len());
    let mut places = Vec::with_capacity(roster.members.len());
    for (place, Member { archive, absent, load, .. }) in roster.members.iter().enumerate() {
        let failed = match absent {
            Some(why) => why.clone(),
            None => match load.slot(began) {
                None => "busy with earlier questions".to_owned(),
                Some(slot) => {
                    let answer = ask.ask(archive, &query);
                    places.push(place);
                    asked.push(Box::pin(async move {
                        let answer = answer.await;
                        slot.answered();
                        answer
                    }));
                    continue;
                }
            },
        };
        answers.push(Answer { archive: archive.id, said: Said::Failed(failed) });
    }
    let notes = explain.then(|| Notes::new(&wanted, query, began, &roster.members, &answers));
    let deadline = deadline.min(began + ANSWER_TIME);
    let (waiting, timer) = (Gather::new(asked.into_iter()), Box::pin(sleep_until(deadline)));
    Round { wanted, answers, roster, places, waiting, timer, deadline, notes }
}

impl Round {
    /// Listens until it is clear what follows: that is never [`Decision::Wait`].
    pub(super) async fn listen(&mut self) -> Decision {
        let mut in_hand = false;
        while !self.waiting.is_empty() {
            match self.next().await {
                Event::Came(at, sent) => {
                    let offered = self.hear(at, sent);
                    // Who has nothing to offer makes nothing better; the last one ends it.
                    if !offered || self.waiting.is_empty() {
                        continue;
                    }
                    match self.decide() {
                        Decision::Wait if !in_hand && self.would_do() => {
                            in_hand = true;
                            let grace = self.deadline.min(Instant::now() + GRACE);
                            self.timer.as_mut().reset(grace);
                        }
                        Decision::Wait => {}
                        decision => return decision,
                    }
                }
                Event::TimeIsUp if Instant::now() < self.deadline => {
                    self.wanted.grace_over = true;
                    self.timer.as_mut().reset(self.deadline);
                    match self.decide() {
                        Decision::Wait => {}
                        decision => return decision,
                    }
                }
                Event::TimeIsUp => self.give_up(),
            }
        }
        self.decide()
    }

    /// Hears all that are still to come, whatever follows.
    pub(super) async fn hear_rest(&mut self) {
        self.timer.as_mut().reset(self.deadline);
        while !self.waiting.is_empty() {
            match self.next().await {
                Event::Came(at, sent) => {
                    self.hear(at, sent);
                }
                Event::TimeIsUp => self.give_up(),
            }
        }
    }

    /// Whether somebody may still answer.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    async fn next(&mut self) -> Event {
        poll_fn(|cx| {
            if let Poll::Ready(Some((at, sent))) = self.waiting.poll_next(cx) {
                return Poll::Ready(Event::Came(at, sent));
            }
            self.timer.as_mut().poll(cx).map(|()| Event::TimeIsUp)
        })
        .await
    }

    /// What follows from what is there.
    fn decide(&mut self) -> Decision {
        if self.waiting.is_empty() {
            return decide(&self.answers, &self.wanted);
        }
        // One stands for all that are waited for.
        let place = self.places.first().copied().unwrap_or_default();
        self.answers.push(Answer { archive: self.roster.members[place].archive.id, said: Said::Waiting });
        let decision = decide(&self.answers, &self.wanted);
        self.answers.pop();
        decision
    }

    /// Whether there is something that will do, should nothing better come.
    fn would_do(&mut self) -> bool {
        self.wanted.grace_over = true;
        let decision = self.decide();
        self.wanted.grace_over = false;
        !matches!(decision, Decision::Wait)
    }

    /// Takes down what an Archive sent; says whether it has something to offer.
    fn hear(&mut self, at: usize, sent: Sent) -> bool {
        let place = self.places[at];
        let member = &self.roster.members[place];
        let said = read(&sent, member, &self.wanted);
        if let Some(notes) = &mut self.notes {
            notes.heard(place, &said, Instant::now());
        }
        let offered = matches!(said, Said::Offered(_));
        if !matches!(said, Said::Nothing) {
            self.answers.push(Answer { archive: member.archive.id, said });
        }
        offered
    }

    /// Who has not answered by now has failed.
    fn give_up(&mut self) {
        for at in self.waiting.give_up() {
            let place = self.places[at];
            let said = Said::Failed("no answer in time".to_owned());
            if let Some(notes) = &mut self.notes {
                notes.heard(place, &said, Instant::now());
            }
            self.answers.push(Answer { archive: self.roster.members[place].archive.id, said });
        }
    }
}

/// What the sent means, if it counts (4.2 step 2).
fn read(sent: &Sent, member: &Member, wanted: &Wanted) -> Said {
    let bytes = match sent {
        Ok(bytes) if bytes.is_empty() => return Said::Nothing,
        Ok(bytes) => bytes,
        Err(AskFailed(why)) => return Said::Failed(why.clone()),
    };
    let pairs = match Pairs::read(bytes, &Limits::default()) {
        Ok(pairs) => pairs,
        Err(why) => return Said::Failed(format!("its answer is no list of pairs: {why}")),
    };
    let asked = Asked {
        label: &wanted.label,
        verbs: &wanted.verbs,
        service: &member.archive.service,
        hosts: &member.hosts,
    };
    check(&pairs, &asked).into()
}
