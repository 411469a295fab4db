//! The resolver of the simulation: its real index, follower, asking and counting. A process of it
//! can be killed; the next one opens what is on the disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ibi_protocol::analysis::ArchiveId;
use ibi_resolver::location_index::usage::UsageCounter;
use ibi_resolver::location_index::{LOCATION_FOLDER_NAME, LocationIndex};
use ibi_resolver::resolve::ResolverIndex;
use ibi_resolver::{
    ArchiveDirectory, ArchivePlatform, RaisedAlert, RegisteredArchive, RegistrationStatus, Resolver,
    ResolverClock,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::host::{ArchiveHost, FIRST_SECOND};
use crate::network::{ResolverLink, SimulatedNetwork};

/// The resolver's registry, in memory: it survives a kill, as the file does.
pub(crate) struct SimulatedDirectory {
    archives: Mutex<Arc<[Arc<RegisteredArchive>]>>,
    /// The labels of alerts, and when they were raised, in microseconds since the start.
    alerts: Mutex<Vec<(u64, String)>>,
    started: Instant,
}

/// A process of the resolver.
pub(crate) struct ResolverProcess {
    pub(crate) resolver: Resolver<ResolverLink, SimulatedDirectory>,
    index: LocationIndex,
    is_alive: Arc<AtomicBool>,
    tasks: JoinHandle<()>,
    folder: PathBuf,
}

/// The machine of the resolver.
pub(crate) struct ResolverMachine {
    pub(crate) directory: Arc<SimulatedDirectory>,
    network: SimulatedNetwork,
    clock_step: Arc<AtomicI64>,
    started: Instant,
    data: PathBuf,
    processes: u64,
    pub(crate) process: ResolverProcess,
}

impl SimulatedDirectory {
    fn new(hosts: &[Arc<ArchiveHost>]) -> Self {
        let archives = hosts.iter().map(|host| {
            Arc::new(RegisteredArchive {
                id: archive_id(host.number),
                service: host.service.parse().unwrap_or_else(|error| unreachable!("{error}")),
                address: Some(host.address()),
                hosts: Vec::new(),
                standing: RegistrationStatus::OnLine,
                registered: 0,
                changed: 0,
                email: None,
                platform: ArchivePlatform::default(),
            })
        });
        let archives = Mutex::new(archives.collect());
        Self { archives, alerts: Mutex::default(), started: Instant::now() }
    }

    /// Changes the entry of an Archive.
    fn change(&self, host: usize, change: impl Fn(&mut RegisteredArchive)) {
        let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
        *archives = archives
            .iter()
            .map(|archive| match archive.id == archive_id(host) {
                true => {
                    let mut changed = RegisteredArchive::clone(archive);
                    change(&mut changed);
                    Arc::new(changed)
                }
                false => Arc::clone(archive),
            })
            .collect();
    }

    /// An Archive said that it goes offline (3.3).
    pub(crate) fn exclude(&self, host: usize) {
        self.change(host, |archive| archive.standing = RegistrationStatus::OffLine);
    }

    pub(crate) fn alerts(&self) -> Vec<(u64, String)> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ArchiveDirectory for SimulatedDirectory {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        Arc::clone(&self.archives.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record_alert(&self, suspected: &RaisedAlert, _now: i64) {
        let at = self.started.elapsed().as_micros() as u64;
        let label = suspected.item.labels().first().map(|label| label.spelling().to_owned());
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner).push((at, label.unwrap_or_default()));
    }
}

/// The number of an Archive in the registry.
pub(crate) fn archive_id(host: usize) -> ArchiveId {
    ArchiveId(host as u64 + 1)
}

impl ResolverMachine {
    pub(crate) fn start(
        network: &SimulatedNetwork,
        hosts: &[Arc<ArchiveHost>],
        data: &Path,
    ) -> Result<Self, String> {
        let directory = Arc::new(SimulatedDirectory::new(hosts));
        let (clock_step, started) = (Arc::new(AtomicI64::new(0)), Instant::now());
        let folder = data.join("resolver-0");
        let clock = clock(&clock_step, started);
        let process = ResolverProcess::start(&directory, network, clock, &folder)?;
        for host in hosts {
            process
                .index
                .set_token(archive_id(host.number), &host.issue_token())
                .map_err(|e| e.to_string())?;
        }
        let (network, data) = (network.clone(), data.to_owned());
        Ok(Self { directory, network, clock_step, started, data, processes: 1, process })
    }

    pub(crate) fn step_clock(&self, seconds: i64) {
        self.clock_step.fetch_add(seconds, Ordering::AcqRel);
    }

    /// An Archive came online and sent its token (3.3).
    pub(crate) fn include(&self, host: &ArchiveHost) -> Result<(), String> {
        let address = host.address();
        self.directory.change(host.number, |archive| {
            archive.standing = RegistrationStatus::OnLine;
            archive.address = Some(address.clone());
        });
        let token = host.issue_token();
        self.process.index.set_token(archive_id(host.number), &token).map_err(|error| error.to_string())
    }

    /// Ends the process, at once or in order, and starts another one.
    pub(crate) async fn restart(&mut self, is_killed: bool) -> Result<(), String> {
        if !is_killed {
            self.process.resolver.close(Duration::from_secs(5)).await;
        }
        self.process.tasks.abort();
        self.process.is_alive.store(false, Ordering::Release);
        // The index of the old process stays mapped while its tasks exist: the next one opens a copy.
        let folder = self.data.join(format!("resolver-{}", self.processes));
        let (from, to) = (self.process.folder.join(LOCATION_FOLDER_NAME), folder.join(LOCATION_FOLDER_NAME));
        std::fs::create_dir_all(&to).map_err(|error| error.to_string())?;
        std::fs::copy(from.join("data.mdb"), to.join("data.mdb")).map_err(|error| error.to_string())?;
        self.processes += 1;
        let clock = clock(&self.clock_step, self.started);
        self.process = ResolverProcess::start(&self.directory, &self.network, clock, &folder)?;
        Ok(())
    }
}

fn clock(step: &Arc<AtomicI64>, started: Instant) -> ResolverClock {
    let step = Arc::clone(step);
    Arc::new(move || FIRST_SECOND + started.elapsed().as_secs() as i64 + step.load(Ordering::Acquire))
}

impl ResolverProcess {
    /// Whether it still runs: readers of one that was killed get nothing.
    pub(crate) fn is_alive(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_alive)
    }

    fn start(
        directory: &Arc<SimulatedDirectory>,
        network: &SimulatedNetwork,
        clock: ResolverClock,
        folder: &Path,
    ) -> Result<Self, String> {
        let index = LocationIndex::open(folder).map_err(|error| error.to_string())?;
        let is_alive = Arc::new(AtomicBool::new(true));
        let link = ResolverLink { network: network.clone(), is_alive: Arc::clone(&is_alive) };
        let usage = Arc::new(UsageCounter::new(index.clone()));
        let parts = ResolverIndex { index: index.clone(), usage };
        let resolver =
            Resolver::with_index(Arc::new(link.clone()), Arc::clone(directory), clock, Some(parts));
        let running = resolver.clone();
        let tasks = tokio::spawn(async move { running.run_index(link).await });
        Ok(Self { resolver, index, is_alive, tasks, folder: folder.to_owned() })
    }
}
