//! One seed: a resolver, its Archives, and what is done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::agenda::AgendaEvent;
use crate::host::{ArchiveHost, HostFolders};
use crate::network::SimulatedNetwork;
use crate::node::ResolverMachine;
use crate::random::SeededNumbers;
use crate::readers::ReaderLog;
use crate::trace::{SeedReport, SimulationTrace};
use crate::truth::SimulationTruth;
use crate::writes::HeldState;

/// Operations per seed.
pub(crate) const OPERATIONS: usize = 200;

/// How long everything is left in peace in the end: a follower waits up to a minute before it tries
/// a feed again that failed, and a report up to half a minute for its answer.
const FINAL_PEACE: Duration = Duration::from_secs(75);

/// How long the last acknowledgments, reports and alerts take at most.
const LAST_REPORTS: Duration = Duration::from_secs(14);

/// What an Archive had when it was backed up.
#[derive(Debug, Clone)]
pub(crate) struct HostBackup {
    pub(crate) length: usize,
    pub(crate) held: BTreeMap<usize, HeldState>,
    pub(crate) links: BTreeMap<usize, usize>,
}

/// The world of one seed.
pub(crate) struct SimulatedWorld {
    pub(crate) numbers: SeededNumbers,
    pub(crate) trace: SimulationTrace,
    pub(crate) hosts: Vec<Arc<ArchiveHost>>,
    pub(crate) network: SimulatedNetwork,
    pub(crate) machine: ResolverMachine,
    pub(crate) truth: Arc<Mutex<SimulationTruth>>,
    pub(crate) log: Arc<Mutex<ReaderLog>>,
    pub(crate) readers: Vec<JoinHandle<()>>,
    pub(crate) agenda: BTreeMap<(u64, u64), AgendaEvent>,
    pub(crate) agenda_length: u64,
    /// The number of faults that each Archive suffers from.
    pub(crate) troubles: Vec<u32>,
    /// Items that are handed over or claimed twice at the moment.
    pub(crate) busy: BTreeSet<usize>,
    pub(crate) backups: BTreeMap<usize, HostBackup>,
    pub(crate) restored: BTreeSet<usize>,
    pub(crate) minted: Vec<i64>,
    pub(crate) moves: u64,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimulatedWorld {
    fn new(seed: u64, folders: &HostFolders, data: &Path, trace: SimulationTrace) -> Result<Self, String> {
        let mut numbers = SeededNumbers::new(seed);
        let count = numbers.range(5, 6) as usize;
        let hosts: Result<Vec<_>, _> =
            (0..count).map(|number| ArchiveHost::new(number, folders, data).map(Arc::new)).collect();
        let hosts = hosts.map_err(|error| error.to_string())?;
        let network = SimulatedNetwork::new(hosts.clone(), seed ^ 0x00ff_00ff, trace.clone());
        let machine = ResolverMachine::start(&network, &hosts, data)?;
        let addresses = hosts.iter().map(|host| host.address()).collect();
        Ok(Self {
            numbers,
            trace,
            network,
            machine,
            truth: Arc::new(Mutex::new(SimulationTruth::new(addresses))),
            log: Arc::default(),
            readers: Vec::new(),
            agenda: BTreeMap::new(),
            agenda_length: 0,
            troubles: vec![0; hosts.len()],
            busy: BTreeSet::new(),
            backups: BTreeMap::new(),
            restored: BTreeSet::new(),
            minted: vec![0; hosts.len()],
            moves: 0,
            hosts,
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.trace.now()
    }

    pub(crate) fn truth(&self) -> MutexGuard<'_, SimulationTruth> {
        locked(&self.truth)
    }

    async fn run(&mut self) -> Result<(), String> {
        for host in 0..self.hosts.len() {
            for _ in 0..2 {
                self.deposit_first(host)?;
            }
        }
        self.schedule(5_000_000, AgendaEvent::FlushCounts);
        for operation in 1..=OPERATIONS {
            if self.trace.is_violated() {
                return Ok(());
            }
            self.trace.begin_operation(operation);
            let gap = match self.numbers.below(10) {
                0..=5 => self.numbers.below(50_000),
                6..=8 => self.numbers.range(50_000, 400_000),
                _ => self.numbers.range(400_000, 3_000_000),
            };
            self.wait_until(self.now() + gap).await?;
            self.operate().await?;
        }
        self.end().await
    }

    /// Lets time pass, with whatever is on the agenda.
    pub(crate) async fn wait_until(&mut self, until: u64) -> Result<(), String> {
        while let Some((&key, _)) = self.agenda.first_key_value().filter(|((at, _), _)| *at <= until) {
            sleep(Duration::from_micros(key.0.saturating_sub(self.now()))).await;
            if let Some(event) = self.agenda.remove(&key) {
                self.happen(event)?;
            }
        }
        sleep(Duration::from_micros(until.saturating_sub(self.now()))).await;
        Ok(())
    }

    /// Ends all faults, reads everything once more, and counts.
    async fn end(&mut self) -> Result<(), String> {
        self.trace.line("everything is repaired");
        self.heal()?;
        self.wait_until(self.now() + FINAL_PEACE.as_micros() as u64).await?;
        let items = self.truth().items.len();
        for item in 0..items {
            self.read_finally(item);
        }
        self.wait_until(self.now() + LAST_REPORTS.as_micros() as u64).await?;
        for reader in std::mem::take(&mut self.readers) {
            let _ = reader.await;
        }
        if !self.trace.is_violated() {
            self.check_alerts();
            self.check_counts();
        }
        Ok(())
    }
}

/// Runs one seed.
pub(crate) async fn run_seed(seed: u64, folders: &HostFolders, data: &Path, is_shown: bool) -> SeedReport {
    let trace = SimulationTrace::new(is_shown);
    let done = match SimulatedWorld::new(seed, folders, data, trace.clone()) {
        Ok(mut world) => world.run().await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        trace.violation(&format!("the simulation failed: {error}"));
    }
    trace.report()
}
