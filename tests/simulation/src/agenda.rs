//! Faults, and what is bound to happen later.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use ibi_store::journal::{State, Verb};

use crate::network::ConnectionFaults;
use crate::truth::KnownState;
use crate::world::{HostBackup, SimulatedWorld, locked};
use crate::writes::HeldState;

/// Something that happens at its time.
#[derive(Debug, Clone)]
pub(crate) enum AgendaEvent {
    /// The taker has the Original.
    Accept { item: usize, from: usize, to: usize, drops: bool },
    /// The giver drops its Copy.
    DropGiven { item: usize, host: usize },
    /// A second claim is given up.
    Unclaim { item: usize, host: usize },
    /// The connection is as it should be again.
    RepairConnection { host: usize },
    /// An Archive starts again.
    Start { host: usize, moves: bool },
    /// An Archive tells the resolver that it is online.
    Include { host: usize },
    /// A restored Archive is confirmed.
    Confirm { host: usize },
    /// The Archives write what they have counted.
    FlushCounts,
}

impl SimulatedWorld {
    pub(crate) fn schedule(&mut self, delay: u64, event: AgendaEvent) {
        self.agenda_length += 1;
        self.agenda.insert((self.now() + delay, self.agenda_length), event);
    }

    fn begin_trouble(&mut self, host: usize) {
        self.troubles[host] += 1;
        let now = self.now();
        self.truth().begin_disturbance(now, host);
    }

    fn end_trouble(&mut self, host: usize) {
        self.troubles[host] -= 1;
        if self.troubles[host] == 0 {
            let now = self.now();
            self.truth().end_disturbance(now, host);
        }
    }

    /// Something goes wrong.
    pub(crate) async fn disturb(&mut self) -> Result<(), String> {
        let host = self.numbers.below(self.hosts.len() as u64) as usize;
        match self.numbers.below(12) {
            0..=2 => self.disturb_connection(host, ConnectionFaults { is_cut: true, ..Default::default() }),
            3 => self.disturb_connection(host, ConnectionFaults { lost_questions: 40, ..Default::default() }),
            4 => self.disturb_connection(host, ConnectionFaults { lost_answers: 40, ..Default::default() }),
            5 => self.disturb_connection(host, ConnectionFaults { is_slow: true, ..Default::default() }),
            6 => self.end_archive(host, true),
            7 => self.end_archive(host, false),
            8 => self.restart_resolver().await?,
            9 => self.step_resolver(),
            10 => self.step_archive(host),
            _ => self.restore(host)?,
        }
        Ok(())
    }

    fn disturb_connection(&mut self, host: usize, faults: ConnectionFaults) {
        if self.network.faults(host) != ConnectionFaults::default() {
            return;
        }
        self.trace.count(match faults {
            ConnectionFaults { is_cut: true, .. } => "fault: partition",
            ConnectionFaults { is_slow: true, .. } => "fault: slow connection",
            ConnectionFaults { lost_answers: 1.., .. } => "fault: answers are lost",
            _ => "fault: questions are lost",
        });
        self.trace.line(&format!("Archive {host}: {faults:?}"));
        self.begin_trouble(host);
        self.network.set_faults(host, faults);
        let lasts = self.numbers.range(300_000, 12_000_000);
        self.schedule(lasts, AgendaEvent::RepairConnection { host });
    }

    fn end_archive(&mut self, host: usize, is_killed: bool) {
        if !self.hosts[host].is_up.load(Ordering::Acquire) {
            return;
        }
        self.trace.line(&format!("Archive {host}: {}", if is_killed { "killed" } else { "stopped" }));
        self.begin_trouble(host);
        if is_killed {
            self.trace.count("fault: Archive killed");
            self.hosts[host].kill();
        } else {
            self.trace.count("fault: Archive stopped");
            self.hosts[host].stop();
            if !self.network.faults(host).is_cut {
                self.machine.directory.exclude(host);
            }
        }
        let moves = self.numbers.percent(40);
        let lasts = self.numbers.range(50_000, 6_000_000);
        self.schedule(lasts, AgendaEvent::Start { host, moves });
    }

    async fn restart_resolver(&mut self) -> Result<(), String> {
        let is_killed = self.numbers.percent(60);
        self.trace.count(if is_killed { "fault: resolver killed" } else { "fault: resolver restarted" });
        self.trace.line(&format!("the resolver is {}", if is_killed { "killed" } else { "restarted" }));
        if is_killed {
            let now = self.now();
            locked(&self.log).kills.push(now);
        }
        self.machine.restart(is_killed).await
    }

    fn clock_step(&mut self) -> i64 {
        let seconds = self.numbers.pick(&[1, 5, 90, 700, 3600, 86_400]).copied().unwrap_or(1);
        if self.numbers.percent(50) { seconds } else { -seconds }
    }

    fn step_resolver(&mut self) {
        let seconds = self.clock_step();
        self.trace.count(if seconds > 0 {
            "fault: resolver's clock forward"
        } else {
            "fault: resolver's clock back"
        });
        self.trace.line(&format!("the resolver's clock: {seconds} s"));
        self.machine.step_clock(seconds);
    }

    fn step_archive(&mut self, host: usize) {
        let seconds = self.clock_step();
        self.trace.count(if seconds > 0 {
            "fault: Archive's clock forward"
        } else {
            "fault: Archive's clock back"
        });
        self.trace.line(&format!("Archive {host}: its clock: {seconds} s"));
        self.hosts[host].step_clock(seconds);
        let now = self.now();
        locked(&self.log).steps.push((now, host));
    }

    /// An Archive is lost, and its backup restored: its feed goes back to an earlier position.
    fn restore(&mut self, host: usize) -> Result<(), String> {
        let is_usable = self.hosts[host].is_up.load(Ordering::Acquire) && !self.restored.contains(&host);
        let held = self.truth().held_items(host);
        if !is_usable || held.iter().any(|(item, _)| self.busy.contains(item)) {
            return Ok(());
        }
        let Some(HostBackup { length, held: backup, links }) = self.backups.remove(&host) else {
            return Ok(());
        };
        self.trace.count("fault: Archive restored from a backup");
        self.trace.line(&format!("Archive {host}: restored from a backup"));
        self.begin_trouble(host);
        self.hosts[host].kill();
        self.hosts[host].restore(length).map_err(|error| error.to_string())?;
        let now = self.now();
        let mut truth = self.truth();
        truth.begin_restored(now, host);
        truth.set_links(host, links);
        let items: BTreeSet<usize> =
            held.iter().map(|(item, _)| *item).chain(backup.keys().copied()).collect();
        for item in items {
            locked(&self.log).left.push((host, item));
            let known = backup.get(&item).map(|held| match held.state {
                // Another Archive may have it by now (2.1).
                State::Original => HeldState { state: State::Copy, ..*held },
                _ => *held,
            });
            truth.set(now, host, item, known);
        }
        drop(truth);
        self.restored.insert(host);
        let delay = self.numbers.range(50_000, 1_000_000);
        self.schedule(delay, AgendaEvent::Start { host, moves: false });
        let delay = self.numbers.range(1_100_000, 8_000_000);
        self.schedule(delay, AgendaEvent::Confirm { host });
        Ok(())
    }

    pub(crate) fn happen(&mut self, event: AgendaEvent) -> Result<(), String> {
        match event {
            AgendaEvent::Accept { item, from, to, drops } => self.accept(item, from, to, drops),
            AgendaEvent::DropGiven { item, host } => self.drop_given(item, host),
            AgendaEvent::Unclaim { item, host } => self.unclaim(item, host),
            AgendaEvent::RepairConnection { host } => {
                self.trace.line(&format!("Archive {host}: its connection is repaired"));
                self.network.set_faults(host, ConnectionFaults::default());
                self.end_trouble(host);
                Ok(())
            }
            AgendaEvent::Start { host, moves } => {
                let address = moves.then(|| format!("m{}.a{host}.sim.test", self.moves));
                self.moves += u64::from(moves);
                self.trace.line(&format!("Archive {host}: started at {address:?}"));
                if moves {
                    self.trace.count("fault: Archive moved");
                }
                self.hosts[host].start(address).map_err(|error| error.to_string())?;
                let delay = self.numbers.range(20_000, 500_000);
                self.schedule(delay, AgendaEvent::Include { host });
                Ok(())
            }
            AgendaEvent::Include { host } => self.include(host),
            AgendaEvent::Confirm { host } => self.confirm(host),
            AgendaEvent::FlushCounts => {
                let is_up =
                    |host: &&std::sync::Arc<crate::host::ArchiveHost>| host.is_up.load(Ordering::Acquire);
                self.hosts.iter().filter(is_up).for_each(|host| host.flush_counts());
                self.schedule(5_000_000, AgendaEvent::FlushCounts);
                Ok(())
            }
        }
    }

    fn accept(&mut self, item: usize, from: usize, to: usize, drops: bool) -> Result<(), String> {
        if !self.hosts[to].is_up.load(Ordering::Acquire) {
            // The grant is repeated until it is answered.
            self.schedule(200_000, AgendaEvent::Accept { item, from, to, drops });
            return Ok(());
        }
        let known = self.truth().now(to, item);
        let Some(known) = known else { return Ok(()) };
        let epoch = known.held.epoch + 1;
        self.write(
            to,
            item,
            Verb::Accept,
            HeldState { state: State::Original, epoch, ..known.held },
            Vec::new(),
        )?;
        if drops {
            let delay = self.numbers.range(1_000, 1_500_000);
            self.schedule(delay, AgendaEvent::DropGiven { item, host: from });
        } else {
            self.busy.remove(&item);
        }
        Ok(())
    }

    fn drop_given(&mut self, item: usize, host: usize) -> Result<(), String> {
        self.busy.remove(&item);
        let held = self.truth().now(host, item).map(|known| known.held);
        let Some(held) = held.filter(|held| held.state == State::Copy) else { return Ok(()) };
        self.trace.count("operation: drop after a transfer");
        self.drop_at(host, item, held)
    }

    fn unclaim(&mut self, item: usize, host: usize) -> Result<(), String> {
        if !self.hosts[host].is_up.load(Ordering::Acquire) {
            self.schedule(200_000, AgendaEvent::Unclaim { item, host });
            return Ok(());
        }
        let known = self.truth().now(host, item);
        self.busy.remove(&item);
        match known {
            Some(known) if known.is_original() => self.write(
                host,
                item,
                Verb::Declare,
                HeldState { state: State::Copy, ..known.held },
                Vec::new(),
            ),
            _ => Ok(()),
        }
    }

    /// The Archive repeats this until the resolver hears it.
    fn include(&mut self, host: usize) -> Result<(), String> {
        if self.network.faults(host).is_cut {
            self.schedule(500_000, AgendaEvent::Include { host });
            return Ok(());
        }
        let address = self.hosts[host].address();
        self.trace.line(&format!("Archive {host}: online at {address}"));
        self.machine.include(&self.hosts[host])?;
        let now = self.now();
        self.truth().register_address(now, host, address);
        self.end_trouble(host);
        Ok(())
    }

    fn confirm(&mut self, host: usize) -> Result<(), String> {
        if !self.hosts[host].is_up.load(Ordering::Acquire) {
            self.schedule(300_000, AgendaEvent::Confirm { host });
            return Ok(());
        }
        self.trace.line(&format!("Archive {host}: confirmed"));
        // What it has in its index as Original, and another Archive has by now, is a Copy.
        for label in self.hosts[host].recorded_originals() {
            let truth = self.truth();
            let item = truth.items.iter().find(|item| item.label == label).map(|item| item.number);
            let Some(item) = item else { continue };
            let Some(KnownState { held, .. }) = truth.now(host, item) else { continue };
            let is_elsewhere = self.busy.contains(&item)
                || truth.holders(item).iter().any(|(other, known)| {
                    *other != host
                        && (known.is_original() || known.held.epoch > held.epoch || !known.is_live())
                });
            drop(truth);
            let state = if is_elsewhere { State::Copy } else { State::Original };
            self.write(host, item, Verb::Declare, HeldState { state, ..held }, Vec::new())?;
        }
        self.hosts[host].confirm().map_err(|error| error.to_string())?;
        self.restored.remove(&host);
        let now = self.now();
        self.truth().end_restored(now, host);
        Ok(())
    }

    /// Everything that is wrong ends soon.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        for host in 0..self.hosts.len() {
            if self.network.faults(host) != ConnectionFaults::default() {
                self.network.set_faults(host, ConnectionFaults::default());
                self.end_trouble(host);
            }
        }
        self.agenda.retain(|_, event| !matches!(event, AgendaEvent::RepairConnection { .. }));
        Ok(())
    }
}
