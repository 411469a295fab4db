//! How often a key may be wrong: five times in a quarter of an hour, for a client and for an Archive; then one has to wait, each
//! time twice as long (threat K2).
//!
//! An attacker must not keep an Archive out by guessing in its name. So what others did wrong in the name of an Archive counts
//! only for clients that did something wrong themselves and were never right: one that comes for the first time has a try.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// So often, before one has to wait.
const FREE: u32 = 5;

/// How long one has to wait at first and at most. So long are failures remembered, too.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(15 * 60);

/// The most clients and the most Archives of which failures are remembered: those who failed last. An attacker with more
/// addresses than these is slowed down by the digests alone.
const REMEMBERED: usize = 10_000;

/// The most clients of an Archive of which is remembered that they were right.
const RIGHT: usize = 8;

#[derive(Default)]
pub(super) struct Limits {
    clients: Failures<Client>,
    archives: Failures<String>,
    right: HashMap<String, VecDeque<Client>>,
}

/// An IPv4 address, or the network that a single client has of IPv6 (/64).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Client(IpAddr);

impl Client {
    fn new(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
            v4 => v4,
        })
    }
}

impl Limits {
    /// How long a client has to wait before it may try a key of this Archive.
    pub(super) fn wait(&self, service: &str, client: IpAddr, now: Instant) -> Option<Duration> {
        let client = Client::new(client);
        let own = self.clients.wait(&client, now);
        let was_right = self.right.get(service).is_some_and(|right| right.contains(&client));
        if was_right || !self.clients.failed_of_late(&client, now) {
            return own;
        }
        own.max(self.archives.wait(service, now))
    }

    pub(super) fn failed(&mut self, service: &str, client: IpAddr, now: Instant) {
        self.clients.add(Client::new(client), now);
        self.archives.add(service.to_owned(), now);
    }

    /// Failures stay: who has one key could otherwise guess another without end. Only registered Archives come here.
    pub(super) fn succeeded(&mut self, service: &str, client: IpAddr) {
        let client = Client::new(client);
        let right = self.right.entry(service.to_owned()).or_default();
        right.retain(|other| *other != client);
        right.push_back(client);
        if right.len() > RIGHT {
            right.pop_front();
        }
    }
}

struct Failures<K>(HashMap<K, Failed>);

struct Failed {
    times: u32,
    last: Instant,
    until: Instant,
}

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Failures<K> {
    fn wait<Q: Hash + Eq + ?Sized>(&self, who: &Q, now: Instant) -> Option<Duration>
    where
        K: std::borrow::Borrow<Q>,
    {
        let until = self.0.get(who)?.until;
        Some(until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    fn failed_of_late(&self, who: &K, now: Instant) -> bool {
        self.0.get(who).is_some_and(|failed| !failed.is_over(now))
    }

    fn add(&mut self, who: K, now: Instant) {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&who) {
            self.forget(now);
        }
        let failed = self.0.entry(who).or_insert(Failed { times: 0, last: now, until: now });
        let times = if failed.is_over(now) { 1 } else { failed.times.saturating_add(1) };
        let wait = match times.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(more) => FIRST.saturating_mul(2_u32.saturating_pow(more)).min(MOST),
        };
        *failed = Failed { times, last: now, until: now + wait };
    }

    /// Forgets what is over, and the oldest tenth.
    fn forget(&mut self, now: Instant) {
        let mut times: Vec<Instant> = self.0.values().map(|failed| failed.last).collect();
        let (_, &mut tenth, _) = times.select_nth_unstable(REMEMBERED / 10);
        self.0.retain(|_, failed| !failed.is_over(now) && failed.last > tenth);
    }
}

impl Failed {
    /// Whether it is so long ago that it does not count any more.
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.until.max(self.last)) >= MOST
    }
}

#[cfg(test)]
impl Limits {
    /// Of how many clients and Archives failures are remembered.
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.clients.0.len(), self.archives.0.len())
    }
}
