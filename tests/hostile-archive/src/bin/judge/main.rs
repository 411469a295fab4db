//! Runs every behaviour of the hostile Archive against a resolver that also knows two honest
//! Archives, and judges what readers are told meanwhile (clauses 4.2 and 4.3).
//!
//!     judge IBI HOSTILE-ARCHIVE [--lanes N] [--times N] [--only NAME,NAME…] \
//!         [--planted host|retired]

mod ask;
mod cgroup;
mod judging;
mod lane;
mod meters;
mod process;
mod questions;
mod rules;
mod stalls;
mod tally;
mod tokens;
mod world;

use std::process::{Command, ExitCode};
use std::sync::Mutex;

use lane::{JudgedLane, LaneMode};
use rules::ListedBehaviour;
use stalls::StallWatch;
use tally::JudgeTally;
use world::HonestWorld;

/// What is run, and how much of it.
struct JudgeOptions {
    ibi: String,
    hostile: String,
    lanes: usize,
    /// How often each question is asked.
    times: usize,
    only: Vec<String>,
    planted: Option<PlantedFault>,
}

/// What the operator of a resolver is made to do wrong: that must be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFault {
    /// The host of an honest Archive is accepted in URLs of the hostile one, as by a resolver that
    /// does not compare them.
    Host,
    /// An honest Archive is retired: who claims its items in a feed gets the readers, as from a
    /// resolver that does not know who holds them.
    Retired,
}

fn main() -> ExitCode {
    let Some(options) = read_options() else {
        eprintln!(
            "usage: judge IBI HOSTILE-ARCHIVE [--lanes N] [--times N] [--only NAME,NAME…] [--planted host|retired]"
        );
        return ExitCode::from(2);
    };
    match judge(&options) {
        Ok(tally) => {
            println!("{tally}");
            if tally.is_good(options.only.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("judge: {why}");
            ExitCode::from(2)
        }
    }
}

fn judge(options: &JudgeOptions) -> Result<JudgeTally, String> {
    let listed = list(&options.hostile)?;
    let is_meant = |one: &ListedBehaviour| options.only.is_empty() || options.only.contains(&one.name);
    // From the end of the list, so the first comes last.
    let queue: Vec<ListedBehaviour> = listed.into_iter().filter(is_meant).rev().collect();
    let world = HonestWorld::prepare(&options.ibi)?;
    let stalls = StallWatch::begin(&world);
    let (feeds, others): (Vec<_>, Vec<_>) = queue.into_iter().partition(ListedBehaviour::has_feed);
    let tally = Mutex::new(JudgeTally::default());
    for (queue, mode) in [(feeds, LaneMode::Followed), (others, LaneMode::Asked)] {
        let lanes = options.lanes.min(queue.len());
        let queue = Mutex::new(queue);
        let lanes = std::thread::scope(|scope| {
            let (world, stalls, queue, tally) = (&world, &stalls, &queue, &tally);
            let run = move |number| JudgedLane::run(options, number, mode, world, stalls, queue, tally);
            let lanes: Vec<_> = (0..lanes).map(|number| scope.spawn(move || run(number))).collect();
            let ended: Vec<Result<(), String>> = lanes
                .into_iter()
                .map(|lane| lane.join().unwrap_or_else(|_| Err("a lane panicked".to_owned())))
                .collect();
            ended
        });
        lanes.into_iter().collect::<Result<Vec<()>, String>>()?;
    }
    let mut tally = tally.into_inner().map_err(|_| "a lane panicked")?;
    tally.stalls = stalls.count();
    Ok(tally)
}

fn list(hostile: &str) -> Result<Vec<ListedBehaviour>, String> {
    let said = Command::new(hostile).arg("--list").output().map_err(|why| format!("{hostile}: {why}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let listed: Option<Vec<ListedBehaviour>> = said.lines().map(ListedBehaviour::read).collect();
    listed.ok_or_else(|| format!("{hostile} --list prints no list"))
}

fn read_options() -> Option<JudgeOptions> {
    let mut rest = std::env::args().skip(1);
    let (ibi, hostile) = (rest.next()?, rest.next()?);
    let mut options = JudgeOptions { ibi, hostile, lanes: 4, times: 1, only: Vec::new(), planted: None };
    while let Some(name) = rest.next() {
        let value = rest.next()?;
        match name.as_str() {
            "--lanes" => options.lanes = value.parse().ok()?,
            "--times" => options.times = value.parse().ok()?,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--planted" => {
                options.planted = Some(match value.as_str() {
                    "host" => PlantedFault::Host,
                    "retired" => PlantedFault::Retired,
                    _ => return None,
                });
            }
            _ => return None,
        }
    }
    Some(options)
}
