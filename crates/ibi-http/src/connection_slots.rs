//! Connection slots, and which connection is evicted when a new client needs one.
//!
//! When all slots are taken, a new client evicts an idle connection of the network that holds the
//! most. If that network has no idle connection, its latest transfer is evicted. Clients with few
//! connections are served; clients with many make room. A request that is being handled is never
//! cut off.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ServerLimits;

/// Maximum number of evicted connections that are not closed yet.
const MAX_PENDING_EVICTIONS: usize = 32;

/// How long a new client waits for evicted connections to close.
const EVICTION_TIMEOUT: Duration = Duration::from_millis(50);

/// A connection used within this many milliseconds is not evicted from a network that holds no more
/// connections than the new client's.
const MIN_IDLE_MILLIS: u64 = 2000;

/// Idle connections closed at a time when the process runs out of descriptors.
const DESCRIPTOR_EVICTION_BATCH: usize = 16;

/// The phase of a connection's request/response exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum ConnectionPhase {
    /// No complete request head has arrived: the connection is idle, or slow.
    Waiting,
    /// The request body is arriving.
    Receiving,
    /// The request is being handled.
    Handling,
    /// A long response is being sent.
    Sending,
}

use ConnectionPhase::{Handling, Receiving, Sending, Waiting};

impl ConnectionPhase {
    fn of(number: u8) -> Self {
        [Waiting, Receiving, Handling, Sending]
            .into_iter()
            .find(|phase| *phase as u8 == number)
            .unwrap_or(Handling)
    }
}

/// A connection that occupies a slot.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    network: IpAddr,
    phase: AtomicU8,
    /// When this phase began, in milliseconds since the table was created.
    since: AtomicU64,
    began: Instant,
    is_evicted: AtomicBool,
    evicted: Notify,
}

impl HeldConnection {
    fn set(&self, phase: ConnectionPhase) {
        if phase != Handling {
            self.since.store(elapsed_millis(self.began), Ordering::Relaxed);
        }
        self.phase.store(phase as u8, Ordering::Release);
    }

    fn phase(&self) -> ConnectionPhase {
        ConnectionPhase::of(self.phase.load(Ordering::Acquire))
    }

    fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// A request head has arrived; `has_body` tells whether a body follows.
    pub(crate) fn set_receiving(&self, has_body: bool) {
        self.set(if has_body { Receiving } else { Handling });
    }

    /// The whole request has arrived.
    pub(crate) fn set_handling(&self) {
        self.set(Handling);
    }

    /// The request was answered; a long response is still being sent.
    pub(crate) fn set_answered(&self, is_long: bool) {
        self.set(if is_long { Sending } else { Waiting });
    }

    /// A long response was sent completely, or aborted.
    pub(crate) fn set_idle(&self) {
        self.set(Waiting);
    }

    /// Whether to close the connection after its response.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Acquire)
    }
}

#[derive(Debug, Default)]
struct ConnectionTable {
    held: usize,
    evicted: usize,
    networks: HashMap<IpAddr, Vec<Arc<HeldConnection>>>,
}

/// Connection slots, limited in total and per client network.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlots {
    limit: usize,
    limit_of_one: usize,
    began: Instant,
    table: Arc<Mutex<ConnectionTable>>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: ConnectionSlots,
    connection: Arc<HeldConnection>,
}

impl ConnectionSlots {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        let (limit, limit_of_one) = (limits.connections, limits.connections_of_one);
        Self { limit, limit_of_one, began: Instant::now(), table: Arc::default() }
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for a connection from this address, evicting another connection if necessary.
    pub(crate) fn take_slot(&self, ip: IpAddr) -> Option<ConnectionSlot> {
        let network = client_network(ip);
        let mut table = self.table();
        let own = table.networks.get(&network).map_or(0, Vec::len);
        if own >= self.limit_of_one {
            // Evict the network's own longest-idle connection.
            let oldest = table.longest_idle(|of, _| of == network)?;
            table.evict(&oldest)?;
        } else if table.held >= self.limit {
            let victim = table.choose_victim(network, own, elapsed_millis(self.began))?;
            table.evict(&victim)?;
        }
        let connection = Arc::new(HeldConnection {
            network,
            phase: AtomicU8::new(Waiting as u8),
            since: AtomicU64::new(elapsed_millis(self.began)),
            began: self.began,
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        });
        table.held += 1;
        table.networks.entry(network).or_default().push(Arc::clone(&connection));
        drop(table);
        metrics::gauge!("ibi_connections").increment(1);
        Some(ConnectionSlot { slots: self.clone(), connection })
    }

    /// Waits briefly while too many evicted connections are still closing.
    pub(crate) async fn wait_for_evictions(&self) {
        let end = Instant::now() + EVICTION_TIMEOUT;
        while self.table().evicted >= MAX_PENDING_EVICTIONS && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Closes some idle connections to free descriptors.
    pub(crate) fn evict_idle(&self) {
        let mut table = self.table();
        for _ in 0..DESCRIPTOR_EVICTION_BATCH {
            let oldest = table.longest_idle(|_, _| true);
            if oldest.and_then(|oldest| table.evict(&oldest)).is_none() {
                break;
            }
        }
    }
}

impl ConnectionTable {
    /// The connection that `choose` selects in the largest matching network that has one.
    fn choose_in_largest<'a>(
        &'a self,
        network: impl Fn(IpAddr, usize) -> bool,
        choose: impl Fn(&'a [Arc<HeldConnection>]) -> Option<&'a Arc<HeldConnection>>,
    ) -> Option<Arc<HeldConnection>> {
        let fitting = self.networks.iter().filter(|(of, held)| network(**of, held.len()));
        let chosen = fitting.filter_map(|(_, held)| Some((held.len(), choose(held)?)));
        chosen.max_by_key(|(held, _)| *held).map(|(_, chosen)| Arc::clone(chosen))
    }

    fn longest_idle(&self, network: impl Fn(IpAddr, usize) -> bool) -> Option<Arc<HeldConnection>> {
        self.choose_in_largest(network, |held| {
            held.iter().filter(|one| one.phase() == Waiting).min_by_key(|one| one.since())
        })
    }

    /// The transfer that loses the least when it is cut off.
    fn latest_transfer(&self, network: impl Fn(IpAddr, usize) -> bool) -> Option<Arc<HeldConnection>> {
        self.choose_in_largest(network, |held| {
            let transfers = held.iter().filter(|one| matches!(one.phase(), Receiving | Sending));
            transfers.max_by_key(|one| one.since())
        })
    }

    /// Chooses the connection to evict for a newcomer whose network already holds `own`
    /// connections: first from networks that hold more than the newcomer's will; then an idle
    /// connection of its own network; then, among networks with no fewer connections, one that has
    /// been idle for a while, or any idle one if the newcomer's network has none yet.
    fn choose_victim(&self, network: IpAddr, own: usize, now: u64) -> Option<Arc<HeldConnection>> {
        let has_more = |_: IpAddr, held: usize| held > own + 1;
        let rests =
            |one: &Arc<HeldConnection>| own == 0 || now.saturating_sub(one.since()) >= MIN_IDLE_MILLIS;
        self.longest_idle(has_more)
            .or_else(|| self.latest_transfer(has_more))
            .or_else(|| self.longest_idle(|of, _| of == network))
            .or_else(|| self.longest_idle(|_, held| held >= own).filter(rests))
    }

    /// Evicts a connection. Returns `None` if too many evictions are pending already.
    fn evict(&mut self, connection: &Arc<HeldConnection>) -> Option<()> {
        if self.evicted >= MAX_PENDING_EVICTIONS || !self.remove(connection) {
            return None;
        }
        self.evicted += 1;
        connection.is_evicted.store(true, Ordering::Release);
        connection.evicted.notify_one();
        metrics::counter!("ibi_connections_evicted_total").increment(1);
        Some(())
    }

    fn remove(&mut self, connection: &Arc<HeldConnection>) -> bool {
        let Some(held) = self.networks.get_mut(&connection.network) else { return false };
        let Some(at) = held.iter().position(|one| Arc::ptr_eq(one, connection)) else { return false };
        held.swap_remove(at);
        if held.is_empty() {
            self.networks.remove(&connection.network);
        }
        self.held -= 1;
        true
    }
}

impl ConnectionSlot {
    pub(crate) fn connection(&self) -> &Arc<HeldConnection> {
        &self.connection
    }

    /// Serves the connection until it ends or is evicted.
    pub(crate) async fn run(self, serving: impl Future<Output = ()>) {
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            // Flush pending output first.
            biased;
            () = &mut serving => {}
            () = self.connection.evicted.notified() => {
                // A request arrived in the meantime: answer it, then close the connection.
                if self.connection.phase() == Handling {
                    serving.await;
                }
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        metrics::gauge!("ibi_connections").decrement(1);
        let mut table = self.slots.table();
        if !table.remove(&self.connection) {
            table.evicted = table.evicted.saturating_sub(1);
        }
    }
}

fn elapsed_millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Groups addresses into one client: an IPv4 address, or an IPv6 network of the size assigned to
/// one customer.
pub fn client_network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(connections: usize) -> ConnectionSlots {
        ConnectionSlots::new(&ServerLimits {
            connections,
            connections_of_one: connections,
            ..ServerLimits::default()
        })
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.connection.is_evicted()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_largest_network_is_evicted() {
        let slots = slots(3);
        let mut held = Vec::new();
        for last in [1, 2, 2] {
            held.push(slots.take_slot(ip(last)).unwrap());
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        let _new = slots.take_slot(ip(3)).unwrap();
        assert_eq!(held.iter().map(is_evicted).collect::<Vec<_>>(), [false, true, false]);
        // A network with no more connections than the newcomer would have keeps its busy ones.
        held.iter().for_each(|slot| slot.connection.set_handling());
        _new.connection.set_handling();
        assert!(slots.take_slot(ip(4)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn networks_of_equal_size_keep_connections_in_use() {
        let slots = slots(4);
        let held: Vec<_> = [1, 1, 2, 2].map(|last| slots.take_slot(ip(last)).unwrap()).into();
        // Idle only briefly: the newcomer replaces its own.
        tokio::time::advance(Duration::from_millis(10)).await;
        let _new = slots.take_slot(ip(2)).unwrap();
        assert_eq!(held.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true, false]);
        // If all its own connections are busy, it evicts one that has been idle for long.
        held[3].connection.set_handling();
        _new.connection.set_handling();
        assert!(slots.take_slot(ip(2)).is_none());
        tokio::time::advance(Duration::from_millis(MIN_IDLE_MILLIS)).await;
        assert!(slots.take_slot(ip(2)).is_some());
        assert!(is_evicted(&held[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_being_handled_is_never_evicted() {
        let slots = slots(4);
        let held: Vec<_> = (0..4).map(|_| slots.take_slot(ip(1)).unwrap()).collect();
        held.iter().for_each(|slot| slot.connection.set_handling());
        assert!(slots.take_slot(ip(2)).is_none());
        // A connection whose request is still arriving can be evicted: the latest one.
        held[1].connection.set_answered(true);
        tokio::time::advance(Duration::from_millis(10)).await;
        held[2].connection.set_receiving(true);
        assert!(slots.take_slot(ip(2)).is_some());
        assert_eq!(held.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_released_however_they_were_lost() {
        let slots = slots(8);
        for round in 0..100_u8 {
            let held: Vec<_> = (0..12).filter_map(|last| slots.take_slot(ip(last % 5))).collect();
            held.iter().skip(usize::from(round % 7)).for_each(|slot| slot.connection.set_handling());
            drop(held);
            let table = slots.table();
            assert_eq!((table.held, table.evicted, table.networks.len()), (0, 0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_has_its_share_and_evicts_its_own() {
        let limits = ServerLimits { connections: 10, connections_of_one: 2, ..ServerLimits::default() };
        let slots = ConnectionSlots::new(&limits);
        let first = slots.take_slot("2001:db8::1".parse().unwrap()).unwrap();
        let _second = slots.take_slot("2001:db8::2".parse().unwrap()).unwrap();
        first.connection.set_handling();
        _second.connection.set_handling();
        assert!(slots.take_slot("2001:db8::3".parse().unwrap()).is_none(), "one /64 is one client");
        first.connection.set_idle();
        assert!(slots.take_slot("2001:db8::3".parse().unwrap()).is_some());
        assert!(is_evicted(&first));
    }
}
