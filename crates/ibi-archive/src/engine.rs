//! The engine: one reader per request, one writer for all changes. [`lease`] lets commands work on
//! the folder while the server runs.

mod journal_watch;
pub mod lease;
pub(crate) mod shared_objects;
pub mod write_readiness;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ibi_http::memory::DEFAULT_MEMORY_BYTES;
use ibi_http::{MemoryBudget, MemoryGrant, Problem};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::opening::{self, OpeningReport};
use crate::prepared_change::PreparedChange;
use crate::salvage::is_damaged_journal;

use journal_watch::JournalDamageFlag;
use shared_objects::SharedObjectCache;

pub use journal_watch::watch_journal;

/// Changes that may wait for the writer.
const MAX_QUEUED_JOBS: usize = 1024;

/// Changes committed together.
const MAX_CHANGES_PER_COMMIT: usize = 256;

/// Idle readers kept open.
const MAX_IDLE_READERS: usize = 16;

/// Between two attempts to open the Archive for changes, besides ten times what the last one took:
/// callers whose changes are refused must not keep the disk busy.
const OPENING_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a change waits while a command has leased the Archive.
const LEASE_WAIT_TIMEOUT: Duration = Duration::from_secs(20);

type EnginePrepare = Box<dyn FnOnce(&mut Archive) -> Result<Option<PreparedChange>, ArchiveError> + Send>;
type EngineReplySender = oneshot::Sender<Result<Option<String>, ArchiveError>>;
type EngineTask = Box<dyn FnOnce(Result<&mut Archive, ArchiveError>) + Send>;

/// A job for the writer.
enum EngineJob {
    /// A change. Replies with the path of its item, or `None` if there was nothing to change.
    Change(EnginePrepare, EngineReplySender),
    /// Any other work that needs the Archive.
    Work(EngineTask),
    /// Lease the Archive to a command until it is returned.
    Lend(oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// Entry point for all requests to an Archive.
pub struct ArchiveEngine {
    data: PathBuf,
    /// Idle readers with the generation they were opened in: a command may replace the index.
    readers: Mutex<Vec<(u64, Holdings)>>,
    generation: Arc<AtomicU64>,
    jobs: mpsc::Sender<EngineJob>,
    lent: watch::Receiver<bool>,
    /// Budget for everything whose size depends on requests.
    memory: MemoryBudget,
    /// Large objects are fetched from other Archives one at a time.
    large_objects: Arc<Semaphore>,
    /// Parts of large objects, shared between requests.
    shared: SharedObjectCache,
    journal_damage: Arc<JournalDamageFlag>,
    /// Set while nothing can be written. What is opened then to be read is not kept: it would not
    /// see later changes, and keep SQLite from writing.
    is_read_only: Arc<AtomicBool>,
}

impl ArchiveEngine {
    /// Opens an Archive to serve it; `by` is recorded as the actor. This process holds the Archive
    /// until the engine is dropped. An Archive that can only be read is served as well, and opened
    /// for changes as soon as that is possible.
    pub fn open(data: &Path, by: &str) -> Result<(Self, OpeningReport), ArchiveError> {
        let journal_damage = Arc::new(JournalDamageFlag::default());
        let is_read_only = Arc::new(AtomicBool::new(false));
        let mut failed = None;
        let (archive, found) = match opening::open(data, by) {
            Ok((archive, found)) => {
                journal_damage.report(archive.journal_damage);
                (Some(archive), found)
            }
            Err(error) if leaves_reading(&error) => {
                is_read_only.store(is_unwritable(&error), Ordering::Release);
                let (_, found) = opening::open_to_read(data)?;
                tracing::error!(%error, "writes disabled, reads continue");
                journal_damage.note_failure(&error);
                failed = Some((Arc::new(error), Instant::now()));
                (None, found)
            }
            Err(error) => return Err(error),
        };
        let (jobs, waiting) = mpsc::channel(MAX_QUEUED_JOBS);
        let (lent_out, lent) = watch::channel(false);
        let generation = Arc::new(AtomicU64::new(0));
        let writer = EngineWriter {
            data: data.to_owned(),
            by: by.to_owned(),
            failed,
            archive,
            lent: lent_out,
            generation: Arc::clone(&generation),
            journal_damage: Arc::clone(&journal_damage),
            is_read_only: Arc::clone(&is_read_only),
        };
        std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(ArchiveError::io("start a thread for", data))?;
        let desk = Self {
            data: data.to_owned(),
            readers: Mutex::default(),
            generation,
            jobs,
            lent,
            memory: MemoryBudget::new(DEFAULT_MEMORY_BYTES),
            large_objects: Arc::new(Semaphore::new(1)),
            shared: SharedObjectCache::default(),
            journal_damage,
            is_read_only,
        };
        Ok((desk, found))
    }

    /// Replaces the memory budget.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { memory: MemoryBudget::new(bytes), ..self }
    }

    /// The budget for everything whose size depends on requests.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The permit to fetch a large object from another Archive.
    pub(crate) fn large_objects(&self) -> Arc<Semaphore> {
        Arc::clone(&self.large_objects)
    }

    /// Reserves memory; evicts cached parts to make room.
    pub async fn grant(&self, bytes: u64) -> Result<MemoryGrant, Problem> {
        self.shared.make_room(&self.memory, bytes);
        self.memory.grant(bytes).await
    }

    /// Like [`grant`](Self::grant), but fails instead of waiting.
    pub fn try_grant(&self, bytes: u64) -> Option<MemoryGrant> {
        self.shared.make_room(&self.memory, bytes);
        self.memory.try_grant(bytes)
    }

    /// Increments each time a command returns the Archive, since it may have changed anything.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A snapshot of what is held now.
    pub fn read(&self) -> Result<EngineReader<'_>, ArchiveError> {
        let generation = self.generation.load(Ordering::Acquire);
        let ready = self.readers.lock().ok().and_then(|mut readers| {
            readers.retain(|(opened, _)| *opened == generation);
            readers.pop().map(|(_, holdings)| holdings)
        });
        let holdings = match ready {
            Some(holdings) => holdings,
            None if self.journal_damage.is_set() => opening::open_as_indexed(&self.data)?,
            None => opening::open_to_read(&self.data)?.0,
        };
        Ok(EngineReader { desk: self, holdings: Some(holdings), generation })
    }

    /// Makes a change durably, in one commit with other queued changes.
    pub async fn change(
        &self,
        prepare: impl FnOnce(&mut Archive) -> Result<Option<PreparedChange>, ArchiveError> + Send + 'static,
    ) -> Result<Option<String>, ArchiveError> {
        let (tell, told) = oneshot::channel();
        self.send(EngineJob::Change(Box::new(prepare), tell)).await?;
        told.await.unwrap_or(Err(ArchiveError::Stopped))
    }

    /// Runs `work` on the writer thread with the Archive.
    pub async fn with_archive<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Archive) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let (tell, told) = oneshot::channel();
        let work = move |archive: Result<&mut Archive, ArchiveError>| {
            // The client may have disconnected.
            let _ = tell.send(archive.and_then(work));
        };
        self.send(EngineJob::Work(Box::new(work))).await?;
        told.await.unwrap_or(Err(ArchiveError::Stopped))
    }

    async fn send(&self, job: EngineJob) -> Result<(), ArchiveError> {
        let busy = || ArchiveError::Held { data: self.data.clone() };
        let mut lent = self.lent.clone();
        let back = tokio::time::timeout(LEASE_WAIT_TIMEOUT, lent.wait_for(|lent| !lent)).await;
        back.map_err(|_| busy())?.map_err(|_| ArchiveError::Stopped)?;
        self.jobs.try_send(job).map_err(|_| busy())
    }

    /// Leases the Archive. It is released when this returns `Some`, and reopened when the returned
    /// sender is dropped.
    pub(crate) async fn lease_archive(&self) -> Option<oneshot::Sender<()>> {
        let (grant, granted) = oneshot::channel();
        let (give_back, back) = oneshot::channel();
        self.jobs.send(EngineJob::Lend(grant, back)).await.ok()?;
        granted.await.ok()?;
        Some(give_back)
    }

    /// Reopens the Archive, to apply changes that an operator made in its files.
    pub async fn reopen(&self) {
        drop(self.lease_archive().await);
    }

    /// Whether a command has leased the Archive.
    pub(crate) fn is_leased(&self) -> bool {
        *self.lent.borrow()
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

impl std::fmt::Debug for ArchiveEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveEngine").field("data", &self.data).finish_non_exhaustive()
    }
}

/// A snapshot of what is held, for one request.
pub struct EngineReader<'a> {
    desk: &'a ArchiveEngine,
    holdings: Option<Holdings>,
    generation: u64,
}

impl Deref for EngineReader<'_> {
    type Target = Holdings;

    fn deref(&self) -> &Holdings {
        // Taken out only in `drop`.
        #[allow(clippy::expect_used)]
        self.holdings.as_ref().expect("there until it is dropped")
    }
}

impl Drop for EngineReader<'_> {
    fn drop(&mut self) {
        let Ok(mut readers) = self.desk.readers.lock() else { return };
        if self.desk.is_read_only.load(Ordering::Acquire) {
            readers.clear();
        } else if readers.len() < MAX_IDLE_READERS {
            readers.extend(self.holdings.take().map(|holdings| (self.generation, holdings)));
        }
    }
}

/// Owns the Archive and runs jobs one at a time.
struct EngineWriter {
    data: PathBuf,
    by: String,
    archive: Option<Archive>,
    /// Why the last attempt to open it failed, and when the next one is due.
    failed: Option<(Arc<ArchiveError>, Instant)>,
    lent: watch::Sender<bool>,
    generation: Arc<AtomicU64>,
    journal_damage: Arc<JournalDamageFlag>,
    is_read_only: Arc<AtomicBool>,
}

impl EngineWriter {
    fn run(mut self, mut jobs: mpsc::Receiver<EngineJob>) {
        let mut held_over = None;
        while let Some(job) = held_over.take().or_else(|| jobs.blocking_recv()) {
            match job {
                EngineJob::Change(prepare, tell) => {
                    let mut together = vec![(prepare, tell)];
                    while together.len() < MAX_CHANGES_PER_COMMIT {
                        match jobs.try_recv() {
                            Ok(EngineJob::Change(prepare, tell)) => together.push((prepare, tell)),
                            Ok(other) => {
                                held_over = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.commit_changes(together);
                }
                EngineJob::Work(work) => match self.open() {
                    Ok(archive) => work(Ok(archive)),
                    Err(error) => work(Err(error)),
                },
                EngineJob::Lend(grant, back) => self.release_until_returned(grant, back),
            }
            // After an error that leaves the state on disk uncertain, reopening recovers.
            if self.archive.as_ref().is_some_and(|archive| archive.stopped) {
                self.archive = None;
            }
        }
    }

    fn open(&mut self) -> Result<&mut Archive, ArchiveError> {
        if self.archive.is_none() {
            if let Some((error, _)) = self.failed.as_ref().filter(|(_, next)| Instant::now() < *next) {
                return Err(ArchiveError::Batch(Arc::clone(error)));
            }
            let begun = Instant::now();
            let (archive, found) = match opening::open(&self.data, &self.by) {
                Ok(opened) => opened,
                Err(error) => {
                    self.journal_damage.note_failure(&error);
                    self.is_read_only.store(is_unwritable(&error), Ordering::Release);
                    let error = Arc::new(error);
                    let next = Instant::now() + OPENING_RETRY_INTERVAL + 10 * begun.elapsed();
                    self.failed = Some((Arc::clone(&error), next));
                    return Err(ArchiveError::Batch(error));
                }
            };
            self.is_read_only.store(false, Ordering::Release);
            // Readers that were opened while nothing could be written do not see changes.
            if self.failed.take().is_some() {
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
            if found != OpeningReport::default() {
                tracing::warn!(?found, "reopened the Archive");
            }
            self.journal_damage.report(archive.journal_damage);
            self.archive = Some(archive);
        }
        self.archive.as_mut().ok_or(ArchiveError::Stopped)
    }

    fn commit_changes(&mut self, jobs: Vec<(EnginePrepare, EngineReplySender)>) {
        let archive = match self.open() {
            Ok(archive) => archive,
            Err(error) => {
                let error = Arc::new(error);
                for (_, tell) in jobs {
                    let _ = tell.send(Err(ArchiveError::Batch(Arc::clone(&error))));
                }
                return;
            }
        };
        let (mut changes, mut telling) = (Vec::new(), Vec::new());
        for (prepare, tell) in jobs {
            match prepare(archive) {
                Ok(Some(change)) => {
                    changes.push(change);
                    telling.push(tell);
                }
                // The client may have disconnected.
                Ok(None) => drop(tell.send(Ok(None))),
                Err(error) => drop(tell.send(Err(error))),
            }
        }
        for (result, tell) in archive.commit(changes).into_iter().zip(telling) {
            if let Err(error) = &result {
                self.journal_damage.note_failure(error);
            }
            let _ = tell.send(result.map(Some));
        }
    }

    fn release_until_returned(&mut self, grant: oneshot::Sender<()>, back: oneshot::Receiver<()>) {
        self.archive = None;
        self.lent.send_replace(true);
        if grant.send(()).is_ok() {
            // A dropped sender also returns the lease.
            let _ = back.blocking_recv();
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.lent.send_replace(false);
        if let Some((_, next)) = &mut self.failed {
            // The command may have removed the cause.
            *next = Instant::now();
        }
        if let Err(error) = self.open() {
            tracing::error!(%error, "cannot reopen the Archive after a lease; retried on the next write");
        }
    }
}

/// Whether an Archive that cannot be opened for changes because of this error can still be read.
fn leaves_reading(error: &ArchiveError) -> bool {
    is_unwritable(error) || is_damaged_journal(error)
}

fn is_unwritable(error: &ArchiveError) -> bool {
    matches!(error, ArchiveError::Storage(error) if error.is_unwritable())
}
