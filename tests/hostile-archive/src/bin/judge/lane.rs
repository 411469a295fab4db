//! A resolver in a cgroup, and the behaviours that are run against it one after the other.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::JudgeOptions;
use crate::ask::{ReaderReply, get, now};
use crate::cgroup::ResolverCgroup;
use crate::meters::{forget_peak, peak_resident, processor_time};
use crate::process::{RunningServer, must};
use crate::questions::{ReaderQuestion, questions};
use crate::rules::{JudgedOutcome, ListedBehaviour, is_allowed};
use crate::stalls::StallWatch;
use crate::tally::{BehaviourTally, JudgeTally};
use crate::world::{HONEST_KEY, HonestWorld, address};

/// A resolution's deadline (4.2 step 5), and what a loaded machine adds to it.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10 + 2);
/// For `/livez`, likewise.
const LIFE_DEADLINE: Duration = Duration::from_secs(2);
/// How often a question is asked again because an honest Archive stalled.
const MAX_ASKED_AGAIN: u32 = 6;
const HOSTILE_KEY: &str = "1111111111-2222222222";
const RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

pub struct JudgedLane<'a> {
    options: &'a JudgeOptions,
    number: usize,
    world: &'a HonestWorld,
    stalls: &'a StallWatch,
    resolver: String,
    service: String,
    questions: Vec<ReaderQuestion>,
    /// What was answered before the hostile Archive was registered.
    before: Vec<ReaderReply>,
}

impl<'a> JudgedLane<'a> {
    /// Takes behaviours from the queue until it is empty.
    pub fn run(
        options: &'a JudgeOptions,
        number: usize,
        world: &'a HonestWorld,
        stalls: &'a StallWatch,
        queue: &Mutex<Vec<ListedBehaviour>>,
        tally: &Mutex<JudgeTally>,
    ) -> Result<(), String> {
        let cgroup = ResolverCgroup::new(number)?;
        let mut lane = Self {
            options,
            number,
            world,
            stalls,
            resolver: address(10 + number, 8642),
            service: format!("hostile.test/lane{number}/2020/01.01.00.00"),
            questions: questions(&world.items),
            before: Vec::new(),
        };
        let log = world.home.join(format!("resolver-{number}.log"));
        let data = world.home.join(format!("resolver-{number}"));
        let resolver = |arguments: &[&str]| {
            must(Command::new(&options.ibi).arg("resolver").args(arguments).arg("--data").arg(&data))
        };
        resolver(&["init", "--public-url", &format!("http://{}", lane.resolver)])?;
        for archive in &world.archives {
            resolver(&["register", "--service", &archive.service, "--key", HONEST_KEY])?;
        }
        // In the cgroup from its first byte on.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > {} && exec \"$@\"", cgroup.procs()), "sh", &options.ibi]);
        command.args(["resolver", "serve", "--allow-private", "--listen", &lane.resolver]);
        command.args(["--quota", "unknown-address=off", "--data"]).arg(&data).env("IBI_LOG", "warn");
        let mut server = RunningServer::start(&mut command, &log)?;
        lane.include_honest()?;
        lane.before = lane.ask_before()?;
        let mut register = vec!["register", "--service", &lane.service, "--key", HOSTILE_KEY];
        if options.planted {
            register.extend(["--host", host_of(&world.archives[0].address)]);
        }
        resolver(&register)?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| watch_life(&lane.resolver, &over, stalls, tally));
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(behaviour) = next else { break };
                let mut judged = lane.judge(&behaviour, server.0.id());
                if let Some(how) = server.ended() {
                    judged.wrong.push(format!("{}: the resolver ended: {how}", behaviour.name));
                }
                let has_ended = server.ended().is_some();
                tally.lock().unwrap_or_else(PoisonError::into_inner).behaviours.push(judged);
                if has_ended {
                    break;
                }
            }
            over.store(true, Ordering::SeqCst);
            let _ = watch.join();
        });
        drop(server);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.peak = tally.peak.max(cgroup.peak());
        if cgroup.killed() > 0 {
            tally.wrong.push(format!("lane {number}: killed for memory"));
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        if let Some(panic) = said.lines().find(|line| line.contains("panicked")) {
            tally.wrong.push(format!("lane {number}: {panic}"));
        }
        Ok(())
    }

    /// Says to the resolver that the honest Archives are online, as they would themselves: they
    /// serve several resolvers here.
    fn include_honest(&self) -> Result<(), String> {
        for archive in &self.world.archives {
            let path = format!(
                "/{RESOLVER_SERVICE}?servicesubject=inclusionRequest&archiveaddress={}&archiveserviceibi={}\
                 &archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=ibi\
                 &archiveadmemailaddress=ana@honest.test&registrationkey={HONEST_KEY}",
                archive.address, archive.service
            );
            let (reply, _) = get(&self.resolver, &path, "");
            let said = reply.map_err(|why| format!("an honest Archive is not included: {why}"))?.whole;
            if !said.contains("successful") || said.contains("unsuccessful") {
                return Err(format!("an honest Archive is not included: {said}"));
            }
        }
        Ok(())
    }

    fn ask_before(&self) -> Result<Vec<ReaderReply>, String> {
        let ask = |question: &ReaderQuestion| {
            let (reply, _) = get(&self.resolver, &question.path, question.headers);
            let reply = reply.map_err(|why| format!("{}: {why}", question.path))?;
            use crate::questions::QuestionKind::*;
            let expected = match question.kind {
                Held | OriginalRequired | EditionRequired => 302,
                Removed => 410,
                Unknown | NoTranslation => 404,
            };
            match reply.status == expected {
                true => Ok(reply),
                false => Err(format!("without a hostile Archive, {} is {}", question.path, reply.status)),
            }
        };
        self.questions.iter().map(ask).collect()
    }

    /// Runs one behaviour while readers ask.
    fn judge(&self, behaviour: &ListedBehaviour, resolver: u32) -> BehaviourTally {
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
            let (reply, took) = get(&self.resolver, &question.path, question.headers);
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

fn host_of(address: &str) -> &str {
    address.split(':').next().unwrap_or_default()
}

/// Asks the resolver all the time whether it lives. Where the machine stalls for everybody, it may
/// take as long as a resolution.
fn watch_life(resolver: &str, over: &AtomicBool, stalls: &StallWatch, tally: &Mutex<JudgeTally>) {
    while !over.load(Ordering::SeqCst) {
        let since = now();
        let (reply, took) = get(resolver, "/livez", "");
        let is_soon = took <= LIFE_DEADLINE || took <= ANSWER_DEADLINE && stalls.between(since, now());
        let is_good = reply.as_ref().is_ok_and(|reply| reply.status == 200) && is_soon;
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.lives += 1;
        tally.slowest_life = tally.slowest_life.max(took);
        if !is_good {
            let status = reply.map_or_else(|why| why.to_string(), |reply| reply.status.to_string());
            tally.wrong.push(format!("/livez of {resolver}: {status} after {} ms", took.as_millis()));
        }
        drop(tally);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A port for each behaviour: what is left of one does not meet the next.
fn port_of(name: &str) -> usize {
    name.bytes().fold(7, |all: usize, byte| (all * 31 + usize::from(byte)) % 20_000)
}
