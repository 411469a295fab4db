//! Rate limit for wrong keys: five failures in a quarter of an hour, per client and per Archive;
//! then the delay doubles with each failure (threat K2).
//!
//! An attacker must not be able to lock out an Archive by guessing in its name. So failures of
//! others in the name of an Archive count only for clients that failed themselves and never
//! succeeded: a client that comes for the first time gets one try.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Number of failures without a delay.
const FREE_KEY_FAILURES: u32 = 5;

/// The initial and the maximum delay. The latter is also how long failures are remembered.
const MIN_KEY_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_KEY_RETRY_DELAY: Duration = Duration::from_secs(15 * 60);

/// Maximum number of clients, and of Archives, whose failures are remembered: the latest ones. An
/// attacker with more addresses is slowed down by the digests alone.
const MAX_REMEMBERED_FAILURES: usize = 10_000;

/// Maximum number of clients per Archive that are remembered as having succeeded.
const MAX_TRUSTED_CLIENTS: usize = 8;

#[derive(Default)]
pub(super) struct KeyAttemptLimits {
    clients: FailureTable<ClientNetwork>,
    archives: FailureTable<String>,
    right: HashMap<String, VecDeque<ClientNetwork>>,
}

/// An IPv4 address, or an IPv6 /64, the network of a single client.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ClientNetwork(IpAddr);

impl ClientNetwork {
    fn new(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
            v4 => v4,
        })
    }
}

impl KeyAttemptLimits {
    /// How long a client must wait before it may try a key of this Archive.
    pub(super) fn wait(&self, service: &str, client: IpAddr, now: Instant) -> Option<Duration> {
        let client = ClientNetwork::new(client);
        let own = self.clients.wait(&client, now);
        let was_right = self.right.get(service).is_some_and(|right| right.contains(&client));
        if was_right || !self.clients.failed_recently(&client, now) {
            return own;
        }
        own.max(self.archives.wait(service, now))
    }

    pub(super) fn failed(&mut self, service: &str, client: IpAddr, now: Instant) {
        self.clients.add(ClientNetwork::new(client), now);
        self.archives.add(service.to_owned(), now);
    }

    /// Failures are kept: otherwise the owner of one key could guess another without end. Only
    /// called for registered Archives.
    pub(super) fn succeeded(&mut self, service: &str, client: IpAddr) {
        let client = ClientNetwork::new(client);
        let right = self.right.entry(service.to_owned()).or_default();
        right.retain(|other| *other != client);
        right.push_back(client);
        if right.len() > MAX_TRUSTED_CLIENTS {
            right.pop_front();
        }
    }
}

struct FailureTable<K>(HashMap<K, FailureEntry>);

struct FailureEntry {
    times: u32,
    last: Instant,
    until: Instant,
}

impl<K> Default for FailureTable<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> FailureTable<K> {
    fn wait<Q: Hash + Eq + ?Sized>(&self, who: &Q, now: Instant) -> Option<Duration>
    where
        K: std::borrow::Borrow<Q>,
    {
        let until = self.0.get(who)?.until;
        Some(until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    fn failed_recently(&self, who: &K, now: Instant) -> bool {
        self.0.get(who).is_some_and(|failed| !failed.is_over(now))
    }

    fn add(&mut self, who: K, now: Instant) {
        if self.0.len() >= MAX_REMEMBERED_FAILURES && !self.0.contains_key(&who) {
            self.evict_old(now);
        }
        let failed = self.0.entry(who).or_insert(FailureEntry { times: 0, last: now, until: now });
        let times = if failed.is_over(now) { 1 } else { failed.times.saturating_add(1) };
        let wait = match times.checked_sub(FREE_KEY_FAILURES) {
            None => Duration::ZERO,
            Some(more) => {
                MIN_KEY_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(more)).min(MAX_KEY_RETRY_DELAY)
            }
        };
        *failed = FailureEntry { times, last: now, until: now + wait };
    }

    /// Removes expired entries, and the oldest tenth.
    fn evict_old(&mut self, now: Instant) {
        let mut times: Vec<Instant> = self.0.values().map(|failed| failed.last).collect();
        let (_, &mut tenth, _) = times.select_nth_unstable(MAX_REMEMBERED_FAILURES / 10);
        self.0.retain(|_, failed| !failed.is_over(now) && failed.last > tenth);
    }
}

impl FailureEntry {
    /// Whether the failure is old enough to be forgotten.
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.until.max(self.last)) >= MAX_KEY_RETRY_DELAY
    }
}

#[cfg(test)]
impl KeyAttemptLimits {
    /// The number of clients and Archives whose failures are remembered.
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.clients.0.len(), self.archives.0.len())
    }
}
