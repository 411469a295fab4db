//! The in-memory snapshot of the registry, and how changes by other processes are detected.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_store::RegistryStorage;
use ibi_store::registry::RegistryVersion;

use super::{Registry, ResolverRegistryError, rows};
use crate::archive::RegisteredArchive;

/// How often to check for changes by other processes.
pub(super) const SNAPSHOT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The registry at one moment.
pub(crate) struct RegistrySnapshot {
    version: RegistryVersion,
    pub(crate) archives: Arc<[Arc<RegisteredArchive>]>,
    pub(crate) entries: Box<[RegistryEntry]>,
}

/// A registry entry with its [`RegisteredArchive`].
#[derive(Clone)]
pub(crate) struct RegistryEntry {
    pub(crate) archive: Arc<RegisteredArchive>,
    pub(crate) key_hash: Arc<str>,
    /// Incremented by every change by the operator or the Archive.
    pub(crate) turn: i64,
    pub(super) times: ProbeTimes,
    /// Why it did not confirm the last time.
    pub(super) problem: Option<Arc<str>>,
}

/// When an Archive was probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeTimes {
    /// The last probe.
    pub asked: Option<i64>,
    /// The last positive confirmation.
    pub confirmed: Option<i64>,
}

impl Registry {
    pub(crate) fn entry(&self, id: ArchiveId) -> Option<RegistryEntry> {
        let snapshot = self.snapshot();
        let at = snapshot.entries.binary_search_by_key(&id, |entry| entry.archive.id).ok()?;
        Some(snapshot.entries[at].clone())
    }

    /// The entry of the Archive with this label, read from the disk.
    pub(crate) fn fresh_entry(
        &self,
        service: &Label,
    ) -> Result<Option<RegistryEntry>, ResolverRegistryError> {
        self.refresh_if_changed(&self.store())?;
        let snapshot = self.read_snapshot();
        Ok(snapshot.entries.iter().find(|entry| entry.archive.service == *service).cloned())
    }

    pub(crate) fn snapshot(&self) -> Arc<RegistrySnapshot> {
        let now = self.0.started.elapsed().as_millis() as u64;
        let looked = self.0.looked.load(Ordering::Relaxed);
        let is_time = now >= looked + SNAPSHOT_CHECK_INTERVAL.as_millis() as u64;
        if is_time
            && self.0.looked.compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // If the store is locked, its writer will reload the snapshot anyway.
            let looked = match self.0.store.try_lock() {
                Ok(store) => self.refresh_if_changed(&store),
                Err(TryLockError::Poisoned(store)) => self.refresh_if_changed(&store.into_inner()),
                Err(TryLockError::WouldBlock) => Ok(()),
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "the registry cannot be read: what was read before is used");
            }
        }
        self.read_snapshot()
    }

    fn refresh_if_changed(&self, store: &RegistryStorage) -> Result<(), ResolverRegistryError> {
        if store.version()? == self.read_snapshot().version { Ok(()) } else { self.reload_snapshot(store) }
    }

    /// Call with the store locked, so that an older state never replaces a newer one.
    pub(super) fn reload_snapshot(&self, store: &RegistryStorage) -> Result<(), ResolverRegistryError> {
        let snapshot = Arc::new(RegistrySnapshot::read(store)?);
        *self.0.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        Ok(())
    }

    fn read_snapshot(&self) -> Arc<RegistrySnapshot> {
        self.0.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RegistrySnapshot {
    pub(super) fn read(store: &RegistryStorage) -> Result<Self, ResolverRegistryError> {
        // Read the version first: what changes in between is read again.
        let version = store.version()?;
        let entries: Box<[RegistryEntry]> =
            store.archives()?.into_iter().map(rows::entry_from_row).collect::<Result<_, _>>()?;
        Ok(Self { version, archives: entries.iter().map(|entry| entry.archive.clone()).collect(), entries })
    }
}
