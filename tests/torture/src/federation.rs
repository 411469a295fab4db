//! Ten Archives as real processes that copy, refresh, hand over, update, remove and drop at random,
//! killed and stopped in between: in the end every item has one Original, or tombstones only
//! (clause 2.1). Their items are editions and translations of one another: persistent URLs lead
//! where they should after every operation (clause 2.4).

mod asking;
mod count;
mod family;
mod leads;
mod node;
mod resolver;
mod settle;
mod verify;
mod watch;
mod work;

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use crate::machine::{Chance, Machine};
pub use count::Count;
use count::Wrong;
use family::Kin;
use node::Node;
use resolver::Resolver;

const ARCHIVES: usize = 10;

/// At a time, so that they meet.
const WORKERS: usize = 4;

/// Operations that come one after the other and care for the same item, half of them.
const MEET: usize = 8;

/// No operation begins later.
const LONGEST: Duration = Duration::from_secs(300);

/// For so long, and no longer.
struct Patience(Instant);

impl Patience {
    // Real processes take real time.
    #[allow(clippy::disallowed_methods)]
    fn new(long: Duration) -> Self {
        Self(Instant::now() + long)
    }

    #[allow(clippy::disallowed_methods)]
    fn lasts(&self) -> bool {
        Instant::now() < self.0
    }
}

/// What is known of an item.
struct Known {
    path: String,
    /// The label of its metadata.
    metadata: String,
    /// Updates that were acknowledged: each is a version.
    updates: u64,
    /// Whether somebody tried to remove it, and whether that was acknowledged.
    doomed: bool,
    removed: bool,
}

struct Federation {
    resolver: Resolver,
    nodes: Vec<Node>,
    items: Vec<Mutex<Known>>,
    /// Of each item, which links it has.
    kin: Mutex<Vec<Kin>>,
    count: Mutex<Count>,
    seed: u64,
    rounds: usize,
    /// Operations that were begun.
    begun: AtomicUsize,
    over: AtomicBool,
}

/// Plays so many operations; `planted`: a second Original is declared in the end, which must be
/// found.
pub fn play(mut machine: Machine, rounds: usize, planted: bool) -> Count {
    let federation = Federation::new(&mut machine, rounds);
    // All Archives trust each other, and tell each other of links.
    federation.check_all_leads("at first");
    let time = Patience::new(LONGEST);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| federation.watch());
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| federation.work(&time))).collect();
        let ended: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        federation.over.store(true, std::sync::atomic::Ordering::Relaxed);
        let watched = watcher.join();
        assert!(watched.is_ok() && ended.iter().all(Result::is_ok), "a worker failed");
    });
    federation.settle();
    federation.settle_links();
    federation.check_all_leads("in the end");
    if planted {
        federation.plant_older_edition();
        federation.plant();
    }
    federation.verify();
    let wrongs = federation.with(|count| count.wrongs.len());
    if wrongs > 0 && !planted {
        keep(&machine, federation.seed);
    }
    let Federation { nodes, count, .. } = federation;
    drop(nodes);
    count.into_inner().expect("all workers have ended")
}

impl Federation {
    fn new(machine: &mut Machine, rounds: usize) -> Self {
        // Three operations an item, so that there is something to see of each.
        let items = if rounds < 1000 { 100 } else { 1000 };
        let mut resolver = Resolver::new(machine, &machine.ibi);
        let nodes: Vec<Node> =
            (0..ARCHIVES).map(|number| Node::new(machine, &resolver, number, ARCHIVES)).collect();
        resolver.start();
        // Online before they have links: nobody tells of one to an Archive that cannot be found
        // yet, and waits to try again.
        std::thread::scope(|scope| {
            for node in &nodes {
                let others = nodes.iter().filter(|other| other.service != node.service);
                scope.spawn(|| {
                    others.for_each(|other| drop(node.must(&["archive", "links", "trust", &other.service])));
                    node.start().expect("it comes online");
                });
            }
        });
        let (items, kin) = family::deposit(machine, &nodes, items / ARCHIVES / 10);
        let (items, kin) = (items.into_iter().map(Mutex::new).collect::<Vec<_>>(), Mutex::new(kin));
        let count = Count { archives: nodes.len(), items: items.len(), ..Count::default() };
        let seed = machine.chance.next();
        let (count, begun, over) = (Mutex::new(count), AtomicUsize::new(0), AtomicBool::new(false));
        Self { resolver, nodes, items, kin, count, seed, rounds, begun, over }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Count) -> T) -> T {
        work(&mut self.count.lock().expect("nobody failed"))
    }

    fn wrong(&self, kind: Wrong, what: String) {
        self.with(|count| count.wrong(kind, what));
    }

    fn expect(&self, done: Result<(), String>) {
        if let Err(what) = done {
            self.wrong(Wrong::Broken, what);
        }
    }

    fn path(&self, item: usize) -> String {
        self.items[item].lock().expect("nobody failed").path.clone()
    }

    /// Chance of its own for each operation: what is tried depends on the seed alone, whoever tries
    /// it.
    fn chance(&self, operation: usize) -> Chance {
        Chance(self.seed ^ (operation as u64).wrapping_mul(0x5851_F42D_4C95_7F2D))
    }

    /// The item of an operation. Many care for the same one, so that they meet.
    fn pick(&self, operation: usize, chance: &mut Chance) -> usize {
        let mut shared = self.chance(usize::MAX - operation / MEET);
        let chance = if chance.below(2) == 0 { &mut shared } else { chance };
        chance.below(self.items.len() as u64) as usize
    }
}

/// What went wrong can be looked at.
fn keep(machine: &Machine, seed: u64) {
    let kept = std::env::temp_dir().join(format!("ibi-federation-{}-{seed:x}", std::process::id()));
    if fs::rename(machine.home.join("federation"), &kept).is_ok() {
        eprintln!("torture: the Archives and their logs are kept in {}", kept.display());
    }
}
