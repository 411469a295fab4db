//! An Original handed over between two Archives, one of which is killed, or loses its network, at
//! any call: never two Originals, never bytes in fewer places, and it ends by itself.

mod address;
mod ending;
mod figures;
mod links;
mod pair;
mod round;
mod side;
pub mod trap;
mod watch;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use figures::Figures;
use pair::Pair;
use round::{Plan, Who, play};
use trap::Trouble;

use crate::archive::jobs;
use crate::machine::{Chance, Machine};

/// Hand-overs at a time, each between Archives of its own: most of the time they wait.
const TOGETHER: usize = 3;
/// A network is cut for so many milliseconds.
const CUT: u64 = 700;

/// Trouble at so many calls of the giver, of the taker and of the command, or at all of them.
pub fn kill(machine: &Machine, number: usize) -> Figures {
    let hasty = std::env::var_os("TORTURE_HASTY").is_some();
    let mut pairs = pairs(machine);
    let mut figures = Figures::default();
    let mut plans = Vec::new();
    for (keep, pair) in [false, true].into_iter().zip(&mut pairs) {
        let calm = Plan { who: Who::Giver, at: 0, trouble: Trouble::Kill, keep, down: false, twice: 0 };
        figures.add(play(machine, pair, &calm).0, "no trouble");
        let counts = pair.traps().map(|trap| trap.counts());
        figures.calls = [0, 1, 2].map(|who| figures.calls[who].max(counts[who][0]));
        plans.extend(planned(counts, keep, number));
    }
    if !figures.wrongs.is_empty() {
        return figures;
    }
    if hasty {
        // All over the place, so that something is found soon; and first where what counts becomes
        // durable.
        plans = spread(plans.len(), plans.len()).into_iter().map(|index| plans[index]).collect();
        let calls = figures.calls;
        let is_late = |plan: &Plan| plan.at * 4 > calls[plan.who as usize] * 3 && plan.who != Who::Command;
        plans.sort_by_key(|plan| !is_late(plan) || plan.trouble != Trouble::Kill || plan.twice > 0);
    }
    let (next, all) = (AtomicUsize::new(0), Mutex::new(figures));
    std::thread::scope(|scope| {
        for pair in &mut pairs {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (figures, about) = play(machine, pair, plan);
                    let mut all = all.lock().expect("nobody panics");
                    figures.wrongs.iter().for_each(|wrong| eprintln!("{about}: {wrong}"));
                    all.add(figures, &about);
                    if number > 100 && all.rounds % 50 == 0 {
                        eprintln!("{} of {} hand-overs", all.rounds, plans.len());
                    }
                    if hasty && !all.wrongs.is_empty() {
                        return;
                    }
                }
            });
        }
    });
    all.into_inner().expect("nobody panics")
}

fn pairs(machine: &Machine) -> Vec<Pair> {
    let mut chance = Chance(u64::from(std::process::id()));
    let sources = ["one", "two"].map(|version| machine.home.join("sources").join(version));
    for source in &sources {
        jobs::source(source, "handed over", &mut chance);
    }
    let port = |pair: usize| 10_000 + (chance_port() + pair * 100) as u16;
    (0..TOGETHER)
        .map(|pair| Pair::new(machine, &machine.home.join(pair.to_string()), &sources, port(pair)))
        .collect()
}

/// Others may torture on the same machine.
fn chance_port() -> usize {
    std::process::id() as usize * 300 % 20_000
}

/// So many calls of each, spread over all of a hand-over; or all of them, and some more, because no
/// hand-over is just like another. At a third as many, the network is cut, or who was killed is
/// killed again.
fn planned(counts: [[u64; 2]; 3], keep: bool, number: usize) -> Vec<Plan> {
    let some = |calls: u64, number: usize| match number < calls as usize {
        true => spread(calls as usize, number),
        false => (0..calls as usize + calls as usize / 20 + 2).collect(),
    };
    let mut plans = Vec::new();
    let mut plan = |who, trouble, twice: usize, numbers: Vec<usize>| {
        for (place, at) in numbers.into_iter().enumerate() {
            // What stays and who is down for long go through all combinations.
            let down = (place % 2 == 0) == keep;
            // After that, most of what is done is to open the Archive.
            let twice = (twice * (1 + place * 7 % 40)) as u64;
            plans.push(Plan { who, at: at as u64 + 1, trouble, keep, down, twice });
        }
    };
    let third = number.div_ceil(3);
    for (who, [calls, messages]) in [Who::Giver, Who::Taker].into_iter().zip(counts) {
        plan(who, Trouble::Kill, 0, some(calls, number));
        plan(who, Trouble::Cut(CUT), 0, some(messages, third));
        plan(who, Trouble::Kill, 1, spread(calls as usize, third.min(calls as usize / 3)));
    }
    plan(Who::Command, Trouble::Kill, 0, some(counts[2][0], third));
    plans
}

/// So many numbers below a limit, each far from those before.
fn spread(limit: usize, number: usize) -> Vec<usize> {
    let divisor = |a: usize, b: usize| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // As `archive/calls.rs` does it.
    let step = (limit * 618 / 1000..).find(|step| divisor(*step, limit) <= 1).unwrap_or(1);
    (0..number.min(limit)).map(|index| (limit / 3 + index * step) % limit).collect()
}
