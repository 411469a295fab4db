//! The model: what each Archive had, and what was wrong with it, at every moment. It knows nothing
//! of the resolver.

use std::collections::{BTreeMap, BTreeSet};

use ibi_store::journal::State;

use crate::writes::{HeldState, SimulatedItem};

/// What an Archive answers about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownState {
    pub(crate) held: HeldState,
    /// The next edition, if it knows one.
    pub(crate) next: Option<usize>,
}

impl KnownState {
    pub(crate) fn is_live(&self) -> bool {
        self.held.state != State::Deleted
    }

    pub(crate) fn is_original(&self) -> bool {
        self.held.state == State::Original
    }
}

/// A span of time, in microseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Everything that was true.
#[derive(Debug)]
pub(crate) struct SimulationTruth {
    pub(crate) items: Vec<SimulatedItem>,
    hosts: Vec<HostTruth>,
}

#[derive(Debug, Default)]
struct HostTruth {
    held: BTreeMap<usize, Vec<(u64, Option<KnownState>)>>,
    /// Next editions that were accepted, by the older item.
    links: BTreeMap<usize, usize>,
    /// When the resolver could not reach it, or not reliably; the last span may not have ended.
    disturbed: Vec<TimeSpan>,
    /// When it was restored and not confirmed.
    restored: Vec<TimeSpan>,
    /// The addresses that it was registered with.
    addresses: Vec<(u64, String)>,
}

impl SimulationTruth {
    pub(crate) fn new(addresses: Vec<String>) -> Self {
        let hosts = addresses.into_iter();
        let hosts = hosts.map(|address| HostTruth { addresses: vec![(0, address)], ..HostTruth::default() });
        Self { items: Vec::new(), hosts: hosts.collect() }
    }

    pub(crate) fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// What an Archive has now.
    pub(crate) fn now(&self, host: usize, item: usize) -> Option<KnownState> {
        self.hosts[host].held.get(&item)?.last()?.1
    }

    /// The Archives that have an item now.
    pub(crate) fn holders(&self, item: usize) -> Vec<(usize, KnownState)> {
        (0..self.hosts.len()).filter_map(|host| Some((host, self.now(host, item)?))).collect()
    }

    /// The items that an Archive has now.
    pub(crate) fn held_items(&self, host: usize) -> Vec<(usize, KnownState)> {
        let items = self.hosts[host].held.keys();
        items.filter_map(|&item| Some((item, self.now(host, item)?))).collect()
    }

    /// The Archive has an item in this state from now on, or no longer.
    pub(crate) fn set(&mut self, at: u64, host: usize, item: usize, held: Option<HeldState>) {
        let next = self.hosts[host].links.get(&item).copied();
        let known = held.map(|held| KnownState { held, next });
        self.hosts[host].held.entry(item).or_default().push((at, known));
    }

    /// The Archive knows the next edition of an item from now on.
    pub(crate) fn add_link(&mut self, at: u64, host: usize, older: usize, newer: usize) {
        self.hosts[host].links.insert(older, newer);
        if let Some(known) = self.now(host, older) {
            self.set(at, host, older, Some(known.held));
        }
    }

    pub(crate) fn links(&self, host: usize) -> BTreeMap<usize, usize> {
        self.hosts[host].links.clone()
    }

    /// Replaces what an Archive knows of links: it was restored.
    pub(crate) fn set_links(&mut self, host: usize, links: BTreeMap<usize, usize>) {
        self.hosts[host].links = links;
    }

    pub(crate) fn begin_disturbance(&mut self, at: u64, host: usize) {
        if self.hosts[host].disturbed.last().is_none_or(|last| last.to != u64::MAX) {
            self.hosts[host].disturbed.push(TimeSpan { from: at, to: u64::MAX });
        }
    }

    pub(crate) fn end_disturbance(&mut self, at: u64, host: usize) {
        if let Some(last) = self.hosts[host].disturbed.last_mut().filter(|last| last.to == u64::MAX) {
            last.to = at;
        }
    }

    pub(crate) fn is_disturbed(&self, host: usize, span: TimeSpan) -> bool {
        self.hosts[host].disturbed.iter().any(|other| other.from <= span.to && other.to >= span.from)
    }

    pub(crate) fn is_any_disturbed(&self, span: TimeSpan) -> bool {
        (0..self.hosts.len()).any(|host| self.is_disturbed(host, span))
    }

    pub(crate) fn begin_restored(&mut self, at: u64, host: usize) {
        self.hosts[host].restored.push(TimeSpan { from: at, to: u64::MAX });
    }

    pub(crate) fn end_restored(&mut self, at: u64, host: usize) {
        self.hosts[host].restored.last_mut().into_iter().for_each(|span| span.to = at);
    }

    /// Whether an Archive was restored and not confirmed at some time in a span.
    pub(crate) fn is_any_restored(&self, span: TimeSpan) -> bool {
        let mut spans = self.hosts.iter().flat_map(|host| &host.restored);
        spans.any(|other| other.from <= span.to && other.to >= span.from)
    }

    pub(crate) fn register_address(&mut self, at: u64, host: usize, address: String) {
        self.hosts[host].addresses.push((at, address));
    }

    /// The addresses that an Archive was registered with in a span.
    pub(crate) fn addresses(&self, host: usize, span: TimeSpan) -> BTreeSet<String> {
        in_span(&self.hosts[host].addresses, span).cloned().collect()
    }

    /// What an Archive had in a span: each state once, and nothing.
    pub(crate) fn values(&self, host: usize, item: usize, span: TimeSpan) -> Vec<Option<KnownState>> {
        let Some(history) = self.hosts[host].held.get(&item) else { return vec![None] };
        let mut values: Vec<Option<KnownState>> = in_span(history, span).copied().collect();
        if history.first().is_some_and(|(at, _)| *at > span.from) {
            values.push(None);
        }
        values
    }

    /// Whether an Archive had something of this kind all the time.
    pub(crate) fn is_throughout(
        &self,
        host: usize,
        item: usize,
        span: TimeSpan,
        is_so: impl Fn(&KnownState) -> bool,
    ) -> bool {
        self.values(host, item, span).iter().all(|value| value.as_ref().is_some_and(&is_so))
    }

    /// Whether an Archive had something of this kind at some time.
    pub(crate) fn is_ever(
        &self,
        host: usize,
        item: usize,
        span: TimeSpan,
        is_so: impl Fn(&KnownState) -> bool,
    ) -> bool {
        self.values(host, item, span).iter().any(|value| value.as_ref().is_some_and(&is_so))
    }

    /// Whether at each moment of a span some Archive had the item.
    pub(crate) fn is_always_somewhere(&self, item: usize, span: TimeSpan) -> bool {
        let mut moments: BTreeSet<u64> = BTreeSet::from([span.from]);
        for host in &self.hosts {
            let times = host.held.get(&item).into_iter().flatten().map(|(at, _)| *at);
            moments.extend(times.filter(|at| (span.from..=span.to).contains(at)));
        }
        moments.into_iter().all(|at| {
            let moment = TimeSpan { from: at, to: at };
            (0..self.hosts.len()).any(|host| self.is_throughout(host, item, moment, KnownState::is_live))
        })
    }

    /// The Archives that claimed the Original at some time in a span.
    pub(crate) fn claimants(&self, item: usize, span: TimeSpan) -> Vec<usize> {
        let claims = |host: &usize| self.is_ever(*host, item, span, KnownState::is_original);
        (0..self.hosts.len()).filter(claims).collect()
    }

    /// The group of translations of an item.
    pub(crate) fn group(&self, item: usize) -> Vec<usize> {
        let root = self.items[item].translation_of.unwrap_or(item);
        let members = self.items.iter().filter(|other| other.translation_of == Some(root));
        [root].into_iter().chain(members.map(|member| member.number)).collect()
    }
}

/// The values in effect at some time in a span: the last one before it, and those set in it.
fn in_span<T>(history: &[(u64, T)], span: TimeSpan) -> impl Iterator<Item = &T> {
    let first = history.iter().rposition(|(at, _)| *at <= span.from).unwrap_or(0);
    history[first..].iter().filter(move |(at, _)| *at <= span.to).map(|(_, value)| value)
}
