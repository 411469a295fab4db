//! One hand-over with trouble at one call, from the beginning to its end.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::address::Answer;
use super::ending;
use super::figures::Figures;
use super::pair::Pair;
use super::side::Side;
use super::trap::Trouble;
use super::watch::Watch;
use crate::machine::{Machine, stopwatch};

/// After both are up again.
const PATIENCE: Duration = Duration::from_secs(60);
/// For which one stays down, while the other goes on.
const DOWN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Giver,
    Taker,
    Command,
}

#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub who: Who,
    /// The number of the call; 0: no trouble.
    pub at: u64,
    pub trouble: Trouble,
    /// Whether a Copy stays.
    pub keep: bool,
    /// Whether who was killed stays down for a while.
    pub down: bool,
    /// The number of the call at which it is killed once more, counted from when it is started
    /// again; 0: it is not.
    pub twice: u64,
}

/// Plays it: the figures, and what the trouble was.
pub fn play(machine: &Machine, pair: &mut Pair, plan: &Plan) -> (Figures, String) {
    let mut figures = Figures::default();
    if let Err(said) = pair.begin(machine) {
        figures.wrong(said);
        return (figures, format!("{plan:?}"));
    }
    let (giver, taker) = (pair.giver.address.clone(), pair.taker.address.clone());
    let (files, family) = (pair.files.clone(), pair.family.clone());
    let watch = Watch { giver, taker, files: &files, keep: plan.keep, family: &family };
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch.run(&stop));
        hand_over(machine, pair, plan, &mut figures);
        settle(machine, pair, plan, &mut figures);
        stop.store(true, Ordering::Relaxed);
        watching.join().expect("it watches")
    });
    let trap = pair.traps()[plan.who as usize];
    let about = format!("{plan:?} ({})", trap.about());
    match (plan.trouble, plan.who) {
        (Trouble::Cut(_), _) => figures.cuts += usize::from(trap.has_fired()),
        (Trouble::Kill, Who::Command) => figures.kills[2] += usize::from(trap.has_fired()),
        // Those of servers were counted when they were started again.
        (Trouble::Kill, _) => {}
    }
    let hung = figures.stuck > 0;
    figures.asks = seen.asks;
    figures.two_originals += seen.two_originals;
    figures.fewer_places += seen.fewer_places;
    figures.leads += seen.leads;
    figures.misled += seen.misled;
    figures.wrongs.extend(seen.wrongs);
    if !hung {
        ending::check(machine, pair, plan.keep, &mut figures);
    }
    (figures, about)
}

fn hand_over(machine: &Machine, pair: &mut Pair, plan: &Plan, figures: &mut Figures) {
    for (who, trap) in pair.traps().into_iter().enumerate() {
        trap.arm(if who == plan.who as usize { plan.at } else { 0 }, plan.trouble);
    }
    let mut command = pair.transfer(machine, plan.keep);
    let mut up = stopwatch();
    loop {
        for who in [Who::Giver, Who::Taker] {
            match revive(machine, pair, who, plan, figures) {
                Ok(false) => {}
                Ok(true) => up = stopwatch(),
                Err(said) => {
                    figures.stuck(said);
                    return end(&mut command);
                }
            }
        }
        let ended = command.try_wait().expect("our child");
        if !pair.is_handing() && pair.giver.address.has("given") {
            // Nobody waits for longer than it takes.
            if ended.is_some() {
                return;
            }
        } else if let Some(status) = ended.filter(|_| !pair.is_handing()) {
            // It was killed before it noted anything, or found nobody online: the operator tries
            // again.
            let refused = status.code() == Some(4) && !pair.has_begun();
            if status.code().is_some() && !refused {
                return figures.stuck(format!("it was given up: {status} {}", pair.said()));
            }
            figures.again += 1;
            command = pair.transfer(machine, plan.keep);
        }
        if up.elapsed() > PATIENCE {
            let (giver, taker) = (pair.giver.said(), pair.taker.said());
            figures.stuck(format!("giver: {giver}; taker: {taker}; command: {}", pair.said()));
            return end(&mut command);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// No more trouble; who was killed after the hand-over was over is started, too.
fn settle(machine: &Machine, pair: &mut Pair, plan: &Plan, figures: &mut Figures) {
    pair.traps().iter().for_each(|trap| trap.disarm());
    std::thread::sleep(Duration::from_millis(20));
    let plan = Plan { down: false, twice: 0, ..*plan };
    for who in [Who::Giver, Who::Taker] {
        if let Err(said) = revive(machine, pair, who, &plan, figures) {
            figures.stuck(said);
        }
    }
}

fn end(command: &mut Child) {
    let _ = command.kill();
    let _ = command.wait();
}

/// Starts who was killed; whether it was. While it is down, it is what it durably is.
fn revive(
    machine: &Machine,
    pair: &mut Pair,
    who: Who,
    plan: &Plan,
    figures: &mut Figures,
) -> Result<bool, String> {
    let Pair { giver, taker, .. } = pair;
    let (dead, other): (&mut Side, &Side) = match who {
        Who::Giver => (giver, taker),
        _ => (taker, giver),
    };
    if !dead.is_dead() {
        return Ok(false);
    }
    if plan.who != who || !dead.trap.has_fired() {
        return Err(format!("the {who:?} ended by itself: {}", dead.said()));
    }
    figures.kills[who as usize] += 1;
    let durable = dead.durable(machine);
    let begun = stopwatch();
    loop {
        if durable == Answer::Original && other.address.ask() == Answer::Original {
            figures.two_originals(format!("the {who:?}, which is down, and the other"));
            break;
        }
        if !plan.down || begun.elapsed() > DOWN {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Also while what was cut off is finished or undone.
    let once_more = plan.twice > 0 && figures.kills[who as usize] == 1;
    match once_more {
        true => dead.trap.arm(plan.twice, Trouble::Kill),
        false => dead.trap.disarm(),
    }
    match dead.start(machine) {
        Err(_) if once_more && dead.trap.has_fired() => Ok(true),
        started => started.map(|()| true),
    }
}
