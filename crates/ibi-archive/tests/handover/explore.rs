//! Every state that can be reached, breadth first, and what must be true in each.

use std::collections::{HashMap, HashSet};

use ibi_store::journal::State;

use crate::model::{Archive, Bounds, Fault, Message, Rules, World};
use crate::steps::Step;

/// What must never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    TwoOriginals,
    /// Nobody has the bytes of the newest version.
    Lost,
    /// The giver has not been answered, and has no longer what it granted.
    Fewer,
    Fault(Fault),
    /// However long one waits, there will not be one Original and nothing open.
    Stuck,
}

pub(crate) struct Explored {
    pub(crate) states: usize,
    /// The shortest way to what was looked for, step by step.
    pub(crate) found: Option<(Broken, Vec<Step>)>,
}

/// Goes everywhere, until something is broken that is looked for.
pub(crate) fn explore(rules: &Rules, bounds: &Bounds, looked_for: impl Fn(&Broken) -> bool) -> Explored {
    let start = World::new(bounds);
    let mut known = HashSet::from([start]);
    let mut queue = vec![(start, 0, None)];
    let mut calm = HashMap::new();
    let mut next = 0;
    while let Some(&(world, ..)) = queue.get(next) {
        let mut broken = broken(&world).into_iter().chain(stuck(world, rules, bounds, &mut calm));
        if let Some(broken) = broken.find(&looked_for) {
            let mut way: Vec<Step> = Vec::new();
            let mut at = next;
            while let (_, from, Some(step)) = queue[at] {
                way.push(step);
                at = from;
            }
            way.reverse();
            return Explored { states: queue.len(), found: Some((broken, way)) };
        }
        for step in world.steps() {
            if let Some(after) = world.after(step, rules, bounds)
                && known.insert(after)
            {
                queue.push((after, next, Some(step)));
            }
        }
        next += 1;
    }
    Explored { states: queue.len(), found: None }
}

fn broken(world: &World) -> Vec<Broken> {
    let [a, b] = &world.archives;
    let mut broken = Vec::new();
    if a.answers_original() && b.answers_original() {
        broken.push(Broken::TwoOriginals);
    }
    broken.extend(world.fault.map(Broken::Fault));
    // What is removed need not be anywhere; a disk that is lost is no matter of the hand-over.
    if [a, b].iter().any(|x| x.state == Some(State::Deleted) || x.restored) {
        return broken;
    }
    let keeps = |x: &&Archive| x.granted == 0 || x.has(world.offered[usize::from(x.granted)].version);
    if !keeps(&a) || !keeps(&b) {
        broken.push(Broken::Fewer);
    }
    if !a.has(world.newest) && !b.has(world.newest) {
        broken.push(Broken::Lost);
    }
    broken
}

/// Whether it never ends well, though all messages so far are lost, both start again, and from then
/// on all goes well.
fn stuck(world: World, rules: &Rules, bounds: &Bounds, calm: &mut HashMap<World, bool>) -> Option<Broken> {
    // A restored one does nothing before somebody confirms it.
    if world.archives.iter().any(|x| x.restored) {
        return None;
    }
    let start = world.calmed();
    let well = *calm.entry(start).or_insert_with(|| ends_well(start, rules, bounds));
    (!well).then_some(Broken::Stuck)
}

fn ends_well(mut world: World, rules: &Rules, bounds: &Bounds) -> bool {
    for giver in [0, 1, 0, 1] {
        let granted = world.archives[usize::from(giver)].granted;
        let [grant, accepted] = [Message::Grant, Message::Accepted].map(|said| Step::Arrive(said, granted));
        let fetch = Step::Fetch(1 - giver);
        let course = [Step::Repeat(giver), grant, fetch, grant, Step::Say(1 - giver), accepted];
        for step in course.into_iter().filter(|_| granted > 0) {
            world = world.after(step, rules, bounds).unwrap_or(world);
        }
    }
    let ends = |x: &&Archive| matches!(x.state, Some(State::Original | State::Deleted));
    world.archives.iter().all(|x| x.granted == 0) && world.archives.iter().filter(ends).count() == 1
}
