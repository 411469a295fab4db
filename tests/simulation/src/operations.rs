//! What depositors and operators of Archives do.

use std::sync::atomic::Ordering;

use ibi_store::journal::{LinkKind, LinkStatement, State, Verb};

use crate::agenda::AgendaEvent;
use crate::host::FIRST_SECOND;
use crate::readers::LANGUAGES;
use crate::world::{HostBackup, SimulatedWorld, locked};
use crate::writes::{HeldState, HostWrite, SimulatedItem, description, link_statement, time_text};

/// Labels that are not new: 2020-01-01.
const OLD_SECOND: i64 = 1_577_836_800;

impl SimulatedWorld {
    /// Does one thing.
    pub(crate) async fn operate(&mut self) -> Result<(), String> {
        match self.numbers.below(100) {
            0..=51 => self.read(),
            52..=58 => self.deposit(None, None)?,
            59..=63 => self.deposit_edition()?,
            64..=67 => self.deposit_translation()?,
            68..=73 => self.update(false)?,
            74..=75 => self.update(true)?,
            76..=80 => self.copy()?,
            81..=84 => self.begin_transfer()?,
            85..=86 => self.drop_copy()?,
            87 => self.remove()?,
            88 => self.claim()?,
            89 => self.back_up(),
            _ => self.disturb().await?,
        }
        Ok(())
    }

    /// An Archive that can be changed now.
    pub(crate) fn some_host(&mut self) -> Option<usize> {
        let can =
            |host: &usize| self.hosts[*host].is_up.load(Ordering::Acquire) && !self.restored.contains(host);
        let hosts: Vec<usize> = (0..self.hosts.len()).filter(can).collect();
        self.numbers.pick(&hosts).copied()
    }

    /// An item in this state at an Archive that can be changed now.
    fn some_held(&mut self, state: State) -> Option<(usize, usize, HeldState)> {
        let host = self.some_host()?;
        let held = self.truth().held_items(host);
        let held: Vec<_> = held
            .into_iter()
            .filter(|(item, known)| known.held.state == state && !self.busy.contains(item))
            .collect();
        self.numbers.pick(&held).map(|(item, known)| (host, *item, known.held))
    }

    /// Writes changes of one item, and what the model knows of it.
    pub(crate) fn write(
        &mut self,
        host: usize,
        item: usize,
        verb: Verb,
        held: HeldState,
        links: Vec<LinkStatement>,
    ) -> Result<(), String> {
        let (now, archive) = (self.now(), &self.hosts[host]);
        let mut truth = self.truth();
        let at = (archive.next_line(), archive.wall());
        let write = HostWrite::of_item(&truth.items, &truth.items[item], verb, held, at, links.clone());
        archive.write(vec![write]).map_err(|error| error.to_string())?;
        let numbers: Vec<(usize, usize)> = editions(&truth.items, &links);
        for (older, newer) in numbers {
            truth.add_link(now, host, older, newer);
        }
        truth.set(now, host, item, (verb != Verb::Drop).then_some(held));
        drop(truth);
        self.trace.line(&format!("Archive {host}: {} of item {item}: {held:?}", verb.name()));
        Ok(())
    }

    /// Seconds for two new labels of an Archive.
    fn mint(&mut self, host: usize, is_old: bool) -> (String, String) {
        let count = self.truth().items.len() as i64;
        let first = match is_old {
            true => OLD_SECOND + 120 * count + 1,
            false => self.hosts[host].wall().max(FIRST_SECOND).max(self.minted[host] + 2),
        };
        if !is_old {
            self.minted[host] = first;
        }
        let label = |second: i64| {
            let text = time_text(second);
            let date = text.get(..10).unwrap_or_default().replace('-', ".");
            let (year, day) = date.split_once('.').unwrap_or_default();
            let time = text.get(11..19).unwrap_or_default().replace(':', ".");
            let label = format!("a{host}.sim.test/archive/{year}/{day}.{time}");
            label.parse::<ibi_id::Label>().map_or(label, |label| label.to_string())
        };
        (label(first), label(first + 1))
    }

    /// The items that are there before anything happens.
    pub(crate) fn deposit_first(&mut self, host: usize) -> Result<(), String> {
        self.deposit_at(host, true, None, None)
    }

    fn deposit(&mut self, edition_of: Option<usize>, translation_of: Option<usize>) -> Result<(), String> {
        let Some(host) = self.some_host() else { return Ok(()) };
        let is_old = self.numbers.percent(30);
        self.trace.count("operation: deposit");
        self.deposit_at(host, is_old, edition_of, translation_of)
    }

    fn deposit_at(
        &mut self,
        host: usize,
        is_old: bool,
        edition_of: Option<usize>,
        translation_of: Option<usize>,
    ) -> Result<(), String> {
        let (label, metadata) = self.mint(host, is_old);
        let language = match translation_of {
            None => self.numbers.pick(&LANGUAGES).copied(),
            Some(root) => {
                let truth = self.truth();
                let taken: Vec<&str> =
                    truth.group(root).iter().map(|&member| truth.items[member].language).collect();
                LANGUAGES.into_iter().find(|language| !taken.contains(language))
            }
        };
        let Some(language) = language else { return Ok(()) };
        let created = time_text(self.hosts[host].wall());
        let number = self.truth().items.len();
        let item = SimulatedItem { number, label, metadata, language, edition_of, translation_of, created };
        self.truth().items.push(item);
        let is_closed = self.numbers.percent(10);
        let held = HeldState { state: State::Original, version: 1, epoch: 1, is_closed };
        self.write(host, number, Verb::Deposit, held, Vec::new())?;
        for (kind, older) in [(LinkKind::Edition, edition_of), (LinkKind::Translation, translation_of)] {
            let Some(older) = older else { continue };
            self.link(host, kind, older, number)?;
        }
        Ok(())
    }

    /// The Archive of the older item accepts a link.
    fn link(&mut self, host: usize, kind: LinkKind, older: usize, newer: usize) -> Result<(), String> {
        let (now, archive) = (self.now(), &self.hosts[host]);
        let mut truth = self.truth();
        let Some(known) = truth.now(host, older) else { return Ok(()) };
        let link = link_statement(kind, &truth.items[older], &truth.items[newer]);
        let at = (archive.next_line(), archive.wall());
        let write = HostWrite::of_link(&truth.items[older], known.held, at, link);
        archive.write(vec![write]).map_err(|error| error.to_string())?;
        if kind == LinkKind::Edition {
            truth.add_link(now, host, older, newer);
        }
        Ok(())
    }

    fn deposit_edition(&mut self) -> Result<(), String> {
        let Some((host, item, _)) = self.some_held(State::Original) else { return Ok(()) };
        let has_next = self.truth().items.iter().any(|other| other.edition_of == Some(item));
        if has_next {
            return Ok(());
        }
        self.trace.count("operation: next edition");
        let is_old = self.numbers.percent(30);
        self.deposit_at(host, is_old, Some(item), None)
    }

    fn deposit_translation(&mut self) -> Result<(), String> {
        let Some((host, item, _)) = self.some_held(State::Original) else { return Ok(()) };
        if self.truth().items[item].translation_of.is_some() {
            return Ok(());
        }
        self.trace.count("operation: translation");
        let is_old = self.numbers.percent(30);
        self.deposit_at(host, is_old, None, Some(item))
    }

    fn update(&mut self, changes_access: bool) -> Result<(), String> {
        let Some((host, item, held)) = self.some_held(State::Original) else { return Ok(()) };
        self.trace.count(if changes_access { "operation: access" } else { "operation: update" });
        let is_closed = held.is_closed ^ changes_access;
        self.write(
            host,
            item,
            Verb::Update,
            HeldState { version: held.version + 1, is_closed, ..held },
            Vec::new(),
        )
    }

    /// Copies an item, or brings a Copy up to date.
    fn copy(&mut self) -> Result<(), String> {
        let Some((from, item, held)) = self.some_held(State::Original) else { return Ok(()) };
        let Some(to) = self.some_host().filter(|to| *to != from) else { return Ok(()) };
        let known = self.truth().now(to, item);
        if known.is_some_and(|known| known.is_original()) {
            return Ok(());
        }
        self.trace.count(if known.is_some() { "operation: refresh" } else { "operation: copy" });
        let verb = if known.is_some() { Verb::Refresh } else { Verb::Copy };
        let links = self.links_of(from, item)?;
        self.write(to, item, verb, HeldState { state: State::Copy, ..held }, links)
    }

    /// The links that go with a copy.
    fn links_of(&self, from: usize, item: usize) -> Result<Vec<LinkStatement>, String> {
        let truth = self.truth();
        let Some(known) = truth.now(from, item) else { return Ok(Vec::new()) };
        let described = description(&truth.items, &truth.items[item], known.held, "");
        self.hosts[from].holdings().link_list(&described, false).map_err(|error| error.to_string())
    }

    /// Hands an Original over to an Archive that has a current Copy: first the giver has a Copy,
    /// then the taker the Original.
    fn begin_transfer(&mut self) -> Result<(), String> {
        let Some((from, item, held)) = self.some_held(State::Original) else { return Ok(()) };
        let Some(to) = self.some_host().filter(|to| *to != from) else { return Ok(()) };
        if self.truth().now(to, item).is_some_and(|known| known.is_original()) {
            return Ok(());
        }
        self.trace.count("operation: transfer");
        let links = self.links_of(from, item)?;
        let given = HeldState { state: State::Copy, epoch: held.epoch + 1, ..held };
        self.write(to, item, Verb::Copy, HeldState { state: State::Copy, ..held }, links)?;
        self.write(from, item, Verb::Grant, given, Vec::new())?;
        self.busy.insert(item);
        let delay = self.numbers.range(10_000, 1_500_000);
        let drops = self.numbers.percent(40);
        self.schedule(delay, AgendaEvent::Accept { item, from, to, drops });
        Ok(())
    }

    fn drop_copy(&mut self) -> Result<(), String> {
        let Some((host, item, held)) = self.some_held(State::Copy) else { return Ok(()) };
        self.trace.count("operation: drop");
        self.drop_at(host, item, held)
    }

    pub(crate) fn drop_at(&mut self, host: usize, item: usize, held: HeldState) -> Result<(), String> {
        locked(&self.log).left.push((host, item));
        self.write(host, item, Verb::Drop, held, Vec::new())
    }

    fn remove(&mut self) -> Result<(), String> {
        let Some((host, item, held)) = self.some_held(State::Original) else { return Ok(()) };
        self.trace.count("operation: remove");
        let removed = HeldState { state: State::Deleted, version: held.version + 1, ..held };
        self.write(host, item, Verb::Remove, removed, Vec::new())
    }

    /// An Archive with a Copy claims the Original, which another one has.
    fn claim(&mut self) -> Result<(), String> {
        let Some((host, item, held)) = self.some_held(State::Copy) else { return Ok(()) };
        let holders = self.truth().holders(item);
        if !holders.iter().any(|(_, known)| known.is_original()) {
            return Ok(());
        }
        self.trace.count("operation: second claim of an Original");
        self.write(host, item, Verb::Declare, HeldState { state: State::Original, ..held }, Vec::new())?;
        self.busy.insert(item);
        if self.numbers.percent(50) {
            let delay = self.numbers.range(100_000, 20_000_000);
            self.schedule(delay, AgendaEvent::Unclaim { item, host });
        }
        Ok(())
    }

    fn back_up(&mut self) {
        let Some(host) = self.some_host() else { return };
        self.trace.count("operation: backup");
        let truth = self.truth();
        let held = truth.held_items(host).into_iter().map(|(item, known)| (item, known.held)).collect();
        let links = truth.links(host);
        drop(truth);
        let length = self.hosts[host].log_length();
        self.backups.insert(host, HostBackup { length, held, links });
    }
}

/// The editions that statements tell of.
fn editions(items: &[SimulatedItem], links: &[LinkStatement]) -> Vec<(usize, usize)> {
    let number = |key: &str| items.iter().find(|item| item.label == key).map(|item| item.number);
    let links = links.iter().filter(|link| link.kind == LinkKind::Edition);
    links.filter_map(|link| Some((number(&link.older)?, number(&link.newer)?))).collect()
}
