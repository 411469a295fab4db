//! Where requests come in: a reader for each who asks, one writer for all who change something.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::archive::{self, Archive, Holdings};
use crate::commit::Prepared;
use crate::holders::handing::Handing;
use crate::{ArchiveError, Refusal};

/// Changes that may wait for the writer.
const WAITING: usize = 1024;

/// Changes that are made together.
const TOGETHER: usize = 256;

/// Readers that are kept open.
const READERS: usize = 16;

/// How long a change waits while a command has the Archive.
const PATIENCE: Duration = Duration::from_secs(20);

type Prepare = Box<dyn FnOnce(&mut Archive) -> Result<Option<Prepared>, ArchiveError> + Send>;
type Tell = oneshot::Sender<Result<Option<String>, ArchiveError>>;
type Work = Box<dyn FnOnce(Result<&mut Archive, ArchiveError>) + Send>;

/// What the writer is asked to do.
enum Job {
    /// A change; told is the path of its item, or nothing if nothing was to change.
    Change(Prepare, Tell),
    /// Anything else that needs the Archive.
    Work(Work),
    /// Give the Archive away until it comes back.
    Lend(oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// Where requests come in.
pub struct Desk {
    data: PathBuf,
    /// Readers that wait, each with the generation that it was opened in: a command may put another index in its place.
    readers: Mutex<Vec<(u64, Holdings)>>,
    generation: Arc<AtomicU64>,
    jobs: mpsc::Sender<Job>,
    lent: watch::Receiver<bool>,
}

impl Desk {
    /// Opens an Archive to serve it; `by` is who opens it. It is this process's until the desk is dropped.
    pub fn open(data: &Path, by: &str) -> Result<(Self, archive::FoundOnOpening), ArchiveError> {
        let (archive, found) = archive::open(data, by)?;
        let (jobs, waiting) = mpsc::channel(WAITING);
        let (lent_out, lent) = watch::channel(false);
        let generation = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            data: data.to_owned(),
            by: by.to_owned(),
            archive: Some(archive),
            lent: lent_out,
            generation: Arc::clone(&generation),
        };
        std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(ArchiveError::io("start a thread for", data))?;
        let desk = Self { data: data.to_owned(), readers: Mutex::default(), generation, jobs, lent };
        Ok((desk, found))
    }

    /// A view of what is held just now.
    pub fn read(&self) -> Result<Reader<'_>, ArchiveError> {
        let generation = self.generation.load(Ordering::Acquire);
        let ready = self.readers.lock().ok().and_then(|mut readers| {
            readers.retain(|(opened, _)| *opened == generation);
            readers.pop().map(|(_, holdings)| holdings)
        });
        let holdings = match ready {
            Some(holdings) => holdings,
            None => archive::open_to_read(&self.data)?.0,
        };
        Ok(Reader { desk: self, holdings: Some(holdings), generation })
    }

    /// Makes a change, durably, together with others that wait.
    pub async fn change(
        &self,
        prepare: impl FnOnce(&mut Archive) -> Result<Option<Prepared>, ArchiveError> + Send + 'static,
    ) -> Result<Option<String>, ArchiveError> {
        let (tell, told) = oneshot::channel();
        self.send(Job::Change(Box::new(prepare), tell)).await?;
        told.await.unwrap_or(Err(ArchiveError::Stopped))
    }

    /// Does something that needs the Archive.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Archive) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let (tell, told) = oneshot::channel();
        let work = move |archive: Result<&mut Archive, ArchiveError>| {
            // Whoever asked may have gone.
            let _ = tell.send(archive.and_then(work));
        };
        self.send(Job::Work(Box::new(work))).await?;
        told.await.unwrap_or(Err(ArchiveError::Stopped))
    }

    async fn send(&self, job: Job) -> Result<(), ArchiveError> {
        let busy = || ArchiveError::Held { data: self.data.clone() };
        let mut lent = self.lent.clone();
        let back = tokio::time::timeout(PATIENCE, lent.wait_for(|lent| !lent)).await;
        back.map_err(|_| busy())?.map_err(|_| ArchiveError::Stopped)?;
        self.jobs.try_send(job).map_err(|_| busy())
    }

    /// Gives the Archive away. It is free when this is done, and comes back when what is handed out is dropped.
    pub(super) async fn lend(&self) -> Option<oneshot::Sender<()>> {
        let (grant, granted) = oneshot::channel();
        let (give_back, back) = oneshot::channel();
        self.jobs.send(Job::Lend(grant, back)).await.ok()?;
        granted.await.ok()?;
        Some(give_back)
    }

    /// The operator's word that a restored Archive has its originals still (clause 2.1). Tells whether it was waited for.
    pub async fn confirm(&self) -> Result<bool, ArchiveError> {
        Handing::none_open(&*self.read()?)?;
        let back = self.lend().await.ok_or(ArchiveError::Stopped)?;
        let data = self.data.clone();
        let confirmed = tokio::task::spawn_blocking(move || crate::backup::confirm(&data)).await;
        drop(back);
        confirmed.unwrap_or(Err(ArchiveError::Stopped))
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("data", &self.data).finish_non_exhaustive()
    }
}

/// A view of what is held, for one request.
pub struct Reader<'a> {
    desk: &'a Desk,
    holdings: Option<Holdings>,
    generation: u64,
}

impl Deref for Reader<'_> {
    type Target = Holdings;

    fn deref(&self) -> &Holdings {
        // Taken out only when it is dropped.
        #[allow(clippy::expect_used)]
        self.holdings.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let Ok(mut readers) = self.desk.readers.lock() else { return };
        if readers.len() < READERS {
            readers.extend(self.holdings.take().map(|holdings| (self.generation, holdings)));
        }
    }
}

/// Has the Archive, and does one thing after the other.
struct Writer {
    data: PathBuf,
    by: String,
    archive: Option<Archive>,
    lent: watch::Sender<bool>,
    generation: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut held_over = None;
        while let Some(job) = held_over.take().or_else(|| jobs.blocking_recv()) {
            match job {
                Job::Change(prepare, tell) => {
                    let mut together = vec![(prepare, tell)];
                    while together.len() < TOGETHER {
                        match jobs.try_recv() {
                            Ok(Job::Change(prepare, tell)) => together.push((prepare, tell)),
                            Ok(other) => {
                                held_over = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.make(together);
                }
                Job::Work(work) => match self.open() {
                    Ok(archive) => work(Ok(archive)),
                    Err(error) => work(Err(error)),
                },
                Job::Lend(grant, back) => self.lend(grant, back),
            }
            // After an error that leaves the disk in doubt, opening anew clears it up.
            if self.archive.as_ref().is_some_and(|archive| archive.stopped) {
                self.archive = None;
            }
        }
    }

    fn open(&mut self) -> Result<&mut Archive, ArchiveError> {
        if self.archive.is_none() {
            let (archive, found) = archive::open(&self.data, &self.by)?;
            if found != archive::FoundOnOpening::default() {
                tracing::warn!(?found, "opened the Archive anew");
            }
            self.archive = Some(archive);
        }
        self.archive.as_mut().ok_or(ArchiveError::Stopped)
    }

    fn make(&mut self, jobs: Vec<(Prepare, Tell)>) {
        let archive = match self.open() {
            Ok(archive) => archive,
            Err(error) => {
                let error = Arc::new(error);
                for (_, tell) in jobs {
                    let _ = tell.send(Err(ArchiveError::Together(Arc::clone(&error))));
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
                // Whoever asked may have gone.
                Ok(None) => drop(tell.send(Ok(None))),
                Err(error) => drop(tell.send(Err(error))),
            }
        }
        for (result, tell) in archive.commit(changes).into_iter().zip(telling) {
            let _ = tell.send(result.map(Some));
        }
    }

    fn lend(&mut self, grant: oneshot::Sender<()>, back: oneshot::Receiver<()>) {
        self.archive = None;
        self.lent.send_replace(true);
        if grant.send(()).is_ok() {
            // Dropped is given back too.
            let _ = back.blocking_recv();
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.lent.send_replace(false);
        if let Err(error) = self.open() {
            tracing::error!(%error, "cannot open the Archive that a command gave back; tried again when it is needed");
        }
    }
}

/// Whether a refusal is the Archive's, who may be asked again, and not the request's.
pub(crate) fn is_temporary(error: &ArchiveError) -> bool {
    match error {
        ArchiveError::Held { .. } | ArchiveError::Stopped => true,
        ArchiveError::Together(error) => is_temporary(error),
        ArchiveError::Mint(Refusal::WouldWait { .. } | Refusal::Stopped(_)) => true,
        _ => false,
    }
}
