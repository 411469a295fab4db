//! One behaviour of the hostile Archive while readers ask.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ask::{ReaderReply, get, now};
use crate::lane::{ANSWER_DEADLINE, HOSTILE_KEY, JudgedLane, host_of};
use crate::meters::{forget_peak, peak_resident, processor_time};
use crate::questions::{ReaderQuestion, asked_labels};
use crate::rules::{JudgedOutcome, ListedBehaviour, is_allowed};
use crate::tally::BehaviourTally;
use crate::world::address;

/// How often a question is asked again because an honest Archive stalled.
const MAX_ASKED_AGAIN: u32 = 6;
/// How long a resolver may take to read a feed that has claims.
const FEED_DEADLINE: Duration = Duration::from_secs(15);
/// How long a feed that has none is given.
const FEED_PAUSE: Duration = Duration::from_millis(600);

impl JudgedLane<'_> {
    /// Runs one behaviour while readers ask.
    pub fn judge(&self, behaviour: &ListedBehaviour, resolver: u32) -> BehaviourTally {
        let mut tally = BehaviourTally { name: behaviour.name.clone(), ..BehaviourTally::default() };
        forget_peak(resolver);
        let at = address(100 + self.number, 9000 + port_of(&behaviour.name));
        let (mut hostile, said) = match self.start(behaviour, &at) {
            Ok(started) => started,
            Err(why) => {
                tally.wrong.push(format!("{}: {why}", behaviour.name));
                return tally;
            }
        };
        let is_included = said.contains("confirmation successful");
        if is_included == behaviour.is_refused() {
            tally.wrong.push(format!("{}: the resolver answered its inclusion so: {said}", behaviour.name));
        }
        let used = processor_time(resolver);
        let host = host_of(&at);
        if behaviour.has_feed()
            && let Err(why) = self.await_feed(behaviour, host)
        {
            tally.wrong.push(why);
        }
        let shared = Mutex::new(&mut tally);
        std::thread::scope(|scope| {
            for (question, before) in self.questions.iter().zip(&self.before) {
                let shared = &shared;
                scope.spawn(move || {
                    for _ in 0..self.options.times {
                        self.judge_question(question, before, behaviour, host, shared);
                    }
                });
            }
        });
        tally.resident = peak_resident(resolver);
        tally.processor = processor_time(resolver).saturating_sub(used);
        tally.misbehaved = end(&mut hostile);
        if tally.misbehaved == 0 {
            tally.wrong.push(format!("{}: it never misbehaved", behaviour.name));
        }
        tally
    }

    /// Waits until the resolver has read what the hostile Archive's feed claims.
    fn await_feed(&self, behaviour: &ListedBehaviour, host: &str) -> Result<(), String> {
        if behaviour.effect != "feed" {
            std::thread::sleep(FEED_PAUSE);
            return Ok(());
        }
        let prefix: Vec<&str> = self.service.split('/').take(2).collect();
        let (own, since) = (format!("/{}/2020/01.01.00.01", prefix.join("/")), now());
        while since.elapsed() < FEED_DEADLINE {
            if let (Ok(reply), _) = get(&self.resolver, &own, "")
                && JudgedOutcome::of(&reply, &self.before[0], host) == JudgedOutcome::Own
            {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("{}: its feed was not read", behaviour.name))
    }

    fn judge_question(
        &self,
        question: &ReaderQuestion,
        before: &ReaderReply,
        behaviour: &ListedBehaviour,
        host: &str,
        tally: &Mutex<&mut BehaviourTally>,
    ) {
        for again in 0..=MAX_ASKED_AGAIN {
            let since = now();
            let (reply, took) = get(&self.resolver, &question.path, &question.headers);
            let outcome =
                reply.as_ref().map_or(JudgedOutcome::Wrong, |reply| self.outcome(reply, before, host));
            let is_good = is_allowed(outcome, question.kind, &behaviour.effect, before.status)
                && took <= ANSWER_DEADLINE;
            if !is_good && again < MAX_ASKED_AGAIN && self.stalls.between(since, now()) {
                tally.lock().unwrap_or_else(PoisonError::into_inner).asked_again += 1;
                continue;
            }
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            *tally.outcomes.entry(outcome).or_default() += 1;
            tally.slowest = tally.slowest.max(took);
            if !is_good {
                let got = match reply {
                    Ok(reply) => format!("{} {}", reply.status, reply.location),
                    Err(why) => why.to_string(),
                };
                tally.wrong.push(format!(
                    "{}: {}: {got} after {} ms; without it {} {}",
                    behaviour.name,
                    question.path,
                    took.as_millis(),
                    before.status,
                    before.location
                ));
            }
            return;
        }
    }

    fn outcome(&self, reply: &ReaderReply, before: &ReaderReply, host: &str) -> JudgedOutcome {
        let outcome = JudgedOutcome::of(reply, before, host);
        let is_honest = || {
            let named = self.questions.iter().position(|question| question.path == self.named_path());
            named.is_some_and(|at| self.before[at].location == reply.location)
        };
        if outcome == JudgedOutcome::Wrong && reply.status == 302 && is_honest() {
            return JudgedOutcome::Named;
        }
        outcome
    }

    /// What readers ask for the honest item that the hostile Archive may name.
    fn named_path(&self) -> String {
        format!("/{}!", self.world.items.second_edition)
    }

    /// Starts the hostile Archive; what the resolver answered to its inclusion.
    fn start(&self, behaviour: &ListedBehaviour, at: &str) -> Result<(Child, String), String> {
        let victim = &self.world.archives[0];
        // It shares the machine with the resolver, as it would not elsewhere.
        let mut command = Command::new("nice");
        command.args([
            "-n",
            "10",
            &self.options.hostile,
            "--behaviour",
            &behaviour.name,
            "--listen",
            at,
            "--service",
            &self.service,
        ]);
        command.args(["--key", HOSTILE_KEY, "--resolver", &self.resolver, "--victim", &victim.address]);
        command.args([
            "--victim-service",
            &victim.service,
            "--victim-label",
            &self.world.items.second_edition,
            "--labels",
            &asked_labels(&self.world.items),
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|why| format!("the hostile Archive does not start: {why}"))?;
        let mut said = String::new();
        if let Some(stdout) = &mut child.stdout {
            // Byte by byte, so that nothing of the next line is taken.
            let mut stdout = BufReader::with_capacity(1, stdout);
            let _ = stdout.read_line(&mut said);
        }
        Ok((child, said))
    }
}

/// Ends the hostile Archive: how often it misbehaved.
fn end(hostile: &mut Child) -> u64 {
    drop(hostile.stdin.take());
    let mut said = String::new();
    if let Some(stdout) = &mut hostile.stdout {
        let _ = stdout.read_to_string(&mut said);
    }
    let _ = hostile.wait();
    said.trim().strip_prefix("misbehaved ").and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A port for each behaviour: what is left of one does not meet the next.
fn port_of(name: &str) -> usize {
    name.bytes().fold(7, |all: usize, byte| (all * 31 + usize::from(byte)) % 20_000)
}
