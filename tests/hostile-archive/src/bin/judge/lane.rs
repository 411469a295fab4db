//! A resolver in a cgroup, and the behaviours that are run against it one after the other.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ask::{ReaderReply, get, now};
use crate::cgroup::ResolverCgroup;
use crate::process::{RunningServer, must};
use crate::questions::{QuestionKind, ReaderQuestion, questions};
use crate::rules::ListedBehaviour;
use crate::stalls::StallWatch;
use crate::tally::JudgeTally;
use crate::world::{HONEST_KEY, HonestArchive, HonestWorld, address};
use crate::{JudgeOptions, PlantedFault};

/// A resolution's deadline (4.2 step 5), and what a loaded machine adds to it.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10 + 2);
/// For `/livez`, likewise.
const LIFE_DEADLINE: Duration = Duration::from_secs(2);
/// How long a resolver may take to fill its index with what the honest Archives have.
const INDEX_DEADLINE: Duration = Duration::from_secs(20);
/// How old an answer of the index may be (4.4): then a silent Archive counts as one.
const INDEX_AGE: Duration = Duration::from_secs(3);
/// Open alerts at most: one for each item, however many Archives claim it and however often.
const MAX_OPEN_ALERTS: u64 = 9;
pub const HOSTILE_KEY: &str = "1111111111-2222222222";
const RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// How the resolver of a lane knows what honest Archives have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneMode {
    /// It asks them.
    Asked,
    /// It follows their feeds, and has known their items for an hour.
    Followed,
}

pub struct JudgedLane<'a> {
    pub options: &'a JudgeOptions,
    pub number: usize,
    mode: LaneMode,
    pub world: &'a HonestWorld,
    pub stalls: &'a StallWatch,
    pub resolver: String,
    /// The service of the hostile Archive: each with a feed has one of its own.
    pub service: String,
    pub questions: Vec<ReaderQuestion>,
    /// What was answered before the hostile Archive was registered.
    pub before: Vec<ReaderReply>,
}

impl<'a> JudgedLane<'a> {
    /// Takes behaviours from the queue until it is empty.
    pub fn run(
        options: &'a JudgeOptions,
        number: usize,
        mode: LaneMode,
        world: &'a HonestWorld,
        stalls: &'a StallWatch,
        queue: &Mutex<Vec<ListedBehaviour>>,
        tally: &Mutex<JudgeTally>,
    ) -> Result<(), String> {
        let cgroup = ResolverCgroup::new(number)?;
        let mut lane = Self {
            options,
            number,
            mode,
            world,
            stalls,
            resolver: address(10 + number, 8642),
            service: format!("hostile.test/lane{number}/2020/01.01.00.00"),
            questions: questions(&world.items, mode),
            before: Vec::new(),
        };
        let name = format!("resolver-{mode:?}-{number}");
        let (log, data) = (world.home.join(format!("{name}.log")), world.home.join(name));
        let resolver = |arguments: &[&str]| {
            must(Command::new(&options.ibi).arg("resolver").args(arguments).arg("--data").arg(&data))
        };
        resolver(&["init", "--public-url", &format!("http://{}", lane.resolver)])?;
        for archive in &world.archives {
            resolver(&["register", "--service", &archive.service, "--key", HONEST_KEY])?;
        }
        if mode == LaneMode::Followed {
            lane.fill_index(&data, &log)?;
        }
        // In the cgroup from its first byte on.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > {} && exec \"$@\"", cgroup.procs()), "sh", &options.ibi]);
        command.args(["resolver", "serve", "--allow-private", "--listen", &lane.resolver]);
        command.args(["--quota", "unknown-address=off", "--data"]).arg(&data).env("IBI_LOG", "warn");
        let mut server = RunningServer::start(&mut command, &log)?;
        match mode {
            LaneMode::Asked => lane.include_honest()?,
            LaneMode::Followed => lane.await_index()?,
        }
        lane.before = lane.ask_before()?;
        if options.planted == Some(PlantedFault::Retired) {
            resolver(&["retire", "--service", &world.archives[1].service])?;
        }
        let over = AtomicBool::new(false);
        let watched = lane.resolver.clone();
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| watch_life(&watched, &over, stalls, tally));
            for turn in 0.. {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(behaviour) = next else { break };
                if let Err(why) = lane.register_hostile(turn, &resolver) {
                    tally.lock().unwrap_or_else(PoisonError::into_inner).wrong.push(why);
                    break;
                }
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
        let wrong = if mode == LaneMode::Followed { lane.judge_after() } else { Vec::new() };
        drop(server);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.peak = tally.peak.max(cgroup.peak());
        tally.wrong.extend(wrong);
        if cgroup.killed() > 0 {
            tally.wrong.push(format!("lane {number}: killed for memory"));
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        if let Some(panic) = said.lines().find(|line| line.contains("panicked")) {
            tally.wrong.push(format!("lane {number}: {panic}"));
        }
        Ok(())
    }

    /// Registers the hostile Archive: one with a feed has no history with the resolver.
    fn register_hostile(
        &mut self,
        turn: usize,
        resolver: &impl Fn(&[&str]) -> Result<String, String>,
    ) -> Result<(), String> {
        if self.mode == LaneMode::Followed {
            if turn > 0 {
                resolver(&["retire", "--service", &self.service])?;
            }
            self.service = format!("hostile.test/lane{}feed{turn}/2020/01.01.00.00", self.number);
        } else if turn > 0 {
            return Ok(());
        }
        let mut register = vec!["register", "--service", &self.service, "--key", HOSTILE_KEY];
        if self.options.planted == Some(PlantedFault::Host) {
            register.extend(["--host", host_of(&self.world.archives[0].address)]);
        }
        resolver(&register).map(drop)
    }

    /// Lets a resolver whose clock is an hour behind follow the honest Archives, so that it has
    /// known for an hour what they have when the hostile Archive comes.
    fn fill_index(&self, data: &Path, log: &Path) -> Result<(), String> {
        // faketime itself stays as the parent of what it starts, and does not end it.
        let printed = must(Command::new("faketime").args(["-f", "-1h", "env"]))?;
        let variables = printed.lines().filter_map(|line| line.split_once('='));
        let behind = variables.filter(|(name, _)| matches!(*name, "LD_PRELOAD" | "FAKETIME"));
        let mut command = Command::new(&self.options.ibi);
        command.args(["resolver", "serve", "--allow-private", "--listen", &self.resolver, "--data"]);
        command.arg(data).env("IBI_LOG", "warn").envs(behind);
        let server = RunningServer::start(&mut command, log)?;
        self.include_honest()?;
        self.await_index()?;
        drop(server);
        Ok(())
    }

    /// Waits until the index answers for the honest Archives.
    fn await_index(&self) -> Result<(), String> {
        let since = now();
        while since.elapsed() < INDEX_DEADLINE {
            let (reply, _) = get(&self.resolver, "/metrics", "");
            let said = reply.map_err(|why| format!("/metrics: {why}"))?.whole;
            let is_followed = |archive: &HonestArchive| {
                let line = format!("ibi_index_age_seconds{{archive=\"{}\"}} ", archive.service);
                let age = said.lines().find_map(|found| found.strip_prefix(&line));
                age.is_some_and(|age| age.parse::<f64>().is_ok_and(f64::is_finite))
            };
            if self.world.archives.iter().all(is_followed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the index does not come to follow the honest Archives".to_owned())
    }

    /// After the last behaviour: who claimed things is silent for longer than the index may be old.
    fn judge_after(&self) -> Vec<String> {
        std::thread::sleep(INDEX_AGE + Duration::from_secs(1));
        let mut wrong = Vec::new();
        for (question, before) in self.questions.iter().zip(&self.before) {
            let (reply, took) = get(&self.resolver, &question.path, &question.headers);
            let got = reply
                .map_or_else(|why| why.to_string(), |reply| format!("{} {}", reply.status, reply.location));
            let expected = match question.kind {
                QuestionKind::Held | QuestionKind::Removed => {
                    format!("{} {}", before.status, before.location)
                }
                QuestionKind::Unknown => "503 ".to_owned(),
                _ => continue,
            };
            if got != expected || took > ANSWER_DEADLINE {
                let millis = took.as_millis();
                wrong.push(format!(
                    "afterwards: {}: {got} after {millis} ms instead of {expected}",
                    question.path
                ));
            }
        }
        let (reply, _) = get(&self.resolver, "/metrics", "");
        let said = reply.map(|reply| reply.whole).unwrap_or_default();
        let open = said.lines().find_map(|line| line.strip_prefix("ibi_alerts_open ")?.parse::<u64>().ok());
        if open.is_none_or(|open| open > MAX_OPEN_ALERTS) {
            wrong.push(format!("lane {}: {open:?} open alerts", self.number));
        }
        wrong
    }

    /// Says to the resolver that the honest Archives are online, as they would themselves: they
    /// serve several resolvers here.
    fn include_honest(&self) -> Result<(), String> {
        for archive in &self.world.archives {
            let token = match self.mode {
                LaneMode::Asked => String::new(),
                LaneMode::Followed => {
                    format!("ibi-follow-token: {}\r\n", self.world.tokens.of(&archive.service)?)
                }
            };
            let path = format!(
                "/{RESOLVER_SERVICE}?servicesubject=inclusionRequest&archiveaddress={}&archiveserviceibi={}\
                 &archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=ibi\
                 &archiveadmemailaddress=ana@honest.test&registrationkey={HONEST_KEY}",
                archive.address, archive.service
            );
            let (reply, _) = get(&self.resolver, &path, &token);
            let said = reply.map_err(|why| format!("an honest Archive is not included: {why}"))?.whole;
            if !said.contains("successful") || said.contains("unsuccessful") {
                return Err(format!("an honest Archive is not included: {said}"));
            }
        }
        Ok(())
    }

    fn ask_before(&self) -> Result<Vec<ReaderReply>, String> {
        let ask = |question: &ReaderQuestion| {
            let (reply, _) = get(&self.resolver, &question.path, &question.headers);
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
}

pub fn host_of(address: &str) -> &str {
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
