//! What is known of the registry without asking the disk, and how changes by others are noticed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_store::RegistryStore;
use ibi_store::registry::Version;

use super::{Registry, RegistryError, rows};
use crate::archive::Archive;

/// How often is looked whether others changed something.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// What was read at one moment.
pub(crate) struct Snapshot {
    version: Version,
    pub(crate) archives: Arc<[Arc<Archive>]>,
    pub(crate) entries: Box<[Entry]>,
}

/// What stands behind an [`Archive`].
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) archive: Arc<Archive>,
    pub(crate) key_hash: Arc<str>,
    /// Goes up with every change by operator or Archive.
    pub(crate) turn: i64,
    pub(super) times: Times,
}

/// When an Archive was asked whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// When it was asked the last time.
    pub asked: Option<i64>,
    /// When it said yes the last time.
    pub confirmed: Option<i64>,
}

impl Registry {
    pub(crate) fn entry(&self, id: ArchiveId) -> Option<Entry> {
        let snapshot = self.snapshot();
        let at = snapshot.entries.binary_search_by_key(&id, |entry| entry.archive.id).ok()?;
        Some(snapshot.entries[at].clone())
    }

    /// What stands behind the Archive of this label, as it is on the disk now.
    pub(crate) fn known(&self, service: &Label) -> Result<Option<Entry>, RegistryError> {
        self.look(&self.store())?;
        let snapshot = self.read_snapshot();
        Ok(snapshot.entries.iter().find(|entry| entry.archive.service == *service).cloned())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let now = self.0.started.elapsed().as_millis() as u64;
        let looked = self.0.looked.load(Ordering::Relaxed);
        let is_time = now >= looked + LOOK.as_millis() as u64;
        if is_time
            && self.0.looked.compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Who changes something at this moment will read it anew in any case.
            let looked = match self.0.store.try_lock() {
                Ok(store) => self.look(&store),
                Err(TryLockError::Poisoned(store)) => self.look(&store.into_inner()),
                Err(TryLockError::WouldBlock) => Ok(()),
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "the registry cannot be read: what was read before is used");
            }
        }
        self.read_snapshot()
    }

    fn look(&self, store: &RegistryStore) -> Result<(), RegistryError> {
        if store.version()? == self.read_snapshot().version { Ok(()) } else { self.reread(store) }
    }

    /// Called with the store locked, so that an older state never follows a newer one.
    pub(super) fn reread(&self, store: &RegistryStore) -> Result<(), RegistryError> {
        let snapshot = Arc::new(Snapshot::read(store)?);
        *self.0.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        Ok(())
    }

    fn read_snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    pub(super) fn read(store: &RegistryStore) -> Result<Self, RegistryError> {
        // The version first: what changes in between is read again.
        let version = store.version()?;
        let entries: Box<[Entry]> =
            store.archives()?.into_iter().map(rows::entry).collect::<Result<_, _>>()?;
        Ok(Self { version, archives: entries.iter().map(|entry| entry.archive.clone()).collect(), entries })
    }
}
