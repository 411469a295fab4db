//! The registry of Archives and their status. It is stored in one file
//! (`docs/formats/registry.md`), which the server and commands may use concurrently.

mod rows;
mod snapshot;
mod text;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ibi_http::pooled_client::ServerAddress;
use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{RegistrationKey, WireRegistration};
use ibi_store::RegistryStorage;
use ibi_store::registry::{AlertClaim, AlertEvidence, AlertRecord, ArchiveRow};
use tokio::time::Instant;

use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::keys;

pub use crate::error::{RegistryImportError, ResolverRegistryError};
pub use rows::ResolverSettings;
pub use snapshot::ProbeTimes;
pub use text::RegistryImportReport;

pub(crate) use snapshot::RegistryEntry;
use snapshot::RegistrySnapshot;

/// The name of the file in the data folder.
pub const REGISTRY_FILE_NAME: &str = "registry.sqlite";

/// Maximum number of additional hosts per Archive.
const MAX_ARCHIVE_HOSTS: usize = 64;

/// The registry of a resolver. Changing it and listing alerts block on the disk: do not call these
/// from an async task.
#[derive(Clone)]
pub struct Registry(Arc<RegistryInner>);

struct RegistryInner {
    settings: ResolverSettings,
    store: Mutex<RegistryStorage>,
    snapshot: RwLock<Arc<RegistrySnapshot>>,
    started: Instant,
    /// When the file was last checked for changes by other processes, in milliseconds since the
    /// start.
    looked: AtomicU64,
}

/// A registered Archive and its new key.
#[derive(Debug, Clone)]
pub struct NewRegistration {
    /// The current entry.
    pub archive: Arc<RegisteredArchive>,
    /// The generated key. Only its digest is stored, so this is the only copy.
    pub made: Option<RegistrationKey>,
}

/// An Archive that announced itself online.
#[derive(Debug, Clone)]
pub struct PendingInclusion {
    /// The current entry.
    pub archive: Arc<RegisteredArchive>,
    /// The turn to pass back with its confirmation.
    pub turn: i64,
}

impl Registry {
    /// Creates a registry in a data folder that has none.
    pub fn create(data: &Path, settings: &ResolverSettings) -> Result<Self, ResolverRegistryError> {
        let store = RegistryStorage::create(&data.join(REGISTRY_FILE_NAME), &settings.to_row()?)?;
        Self::from_store(store)
    }

    /// Opens the registry of a data folder.
    pub fn open(data: &Path) -> Result<Self, ResolverRegistryError> {
        Self::from_store(RegistryStorage::open(&data.join(REGISTRY_FILE_NAME))?)
    }

    fn from_store(store: RegistryStorage) -> Result<Self, ResolverRegistryError> {
        let settings = ResolverSettings::of_row(store.settings()?)?;
        let snapshot = RwLock::new(Arc::new(RegistrySnapshot::read(&store)?));
        let (started, looked) = (Instant::now(), AtomicU64::new(0));
        Ok(Self(Arc::new(RegistryInner { settings, store: Mutex::new(store), snapshot, started, looked })))
    }

    /// The settings chosen when the resolver was created.
    pub fn settings(&self) -> &ResolverSettings {
        &self.0.settings
    }

    /// All Archives, by number. Changes by other processes become visible shortly after; usually
    /// this costs nothing.
    pub fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        self.snapshot().archives.clone()
    }

    /// The Archive with this number.
    pub fn archive(&self, id: ArchiveId) -> Option<Arc<RegisteredArchive>> {
        self.entry(id).map(|entry| entry.archive)
    }

    /// The Archive whose service has this label, in whatever spelling (1.3).
    pub fn find(&self, service: &Label) -> Option<Arc<RegisteredArchive>> {
        self.snapshot().archives.iter().find(|archive| archive.service == *service).cloned()
    }

    /// When an Archive was last probed.
    pub fn times(&self, id: ArchiveId) -> Option<ProbeTimes> {
        self.entry(id).map(|entry| entry.times)
    }

    /// Why an Archive did not confirm the last time, for the operator.
    pub fn problem(&self, id: ArchiveId) -> Option<Arc<str>> {
        self.entry(id).and_then(|entry| entry.problem)
    }

    /// Registers an Archive (3.2) and generates a key if none is given. Registering it again
    /// replaces its key and hosts, and reactivates a retired one.
    pub fn register(
        &self,
        service: Label,
        key: Option<RegistrationKey>,
        hosts: Vec<String>,
        now: i64,
    ) -> Result<NewRegistration, ResolverRegistryError> {
        check_hosts(&hosts)?;
        let (key, is_made) = match key {
            Some(key) => (key, false),
            None => (keys::random()?, true),
        };
        let key_hash = keys::hash(&key)?;
        let row = self.update(&service, |there| {
            let row = match there {
                None => rows::new_row(&service, now),
                Some(row) if row.standing == RegistrationStatus::Retired.as_str() => {
                    ArchiveRow { standing: RegistrationStatus::New.as_str().to_owned(), ..row.clone() }
                }
                Some(row) => row.clone(),
            };
            Ok(Some(ArchiveRow { key_hash: key_hash.clone(), hosts: hosts.clone(), changed: now, ..row }))
        })?;
        Ok(NewRegistration { archive: Arc::new(rows::archive_from_row(&row)?), made: is_made.then_some(key) })
    }

    /// Sets the additional hosts of an Archive's URLs (4.2 step 2).
    pub fn set_hosts(
        &self,
        service: &Label,
        hosts: Vec<String>,
        now: i64,
    ) -> Result<Arc<RegisteredArchive>, ResolverRegistryError> {
        check_hosts(&hosts)?;
        let row = self.update(service, |there| {
            Ok(there.map(|row| ArchiveRow { hosts: hosts.clone(), changed: now, ..row.clone() }))
        })?;
        Ok(Arc::new(rows::archive_from_row(&row)?))
    }

    /// Retires an Archive that is permanently gone (4.3).
    pub fn retire(&self, service: &Label, now: i64) -> Result<Arc<RegisteredArchive>, ResolverRegistryError> {
        self.set_status(service, RegistrationStatus::Retired, now)
    }

    /// Records that an Archive announces itself online (3.3); its new address applies at once. It
    /// receives no requests there until it has confirmed (D21), unless it is asked as before.
    /// The caller has verified its key.
    pub fn include(
        &self,
        registration: &WireRegistration,
        now: i64,
    ) -> Result<PendingInclusion, ResolverRegistryError> {
        let service: Label = registration.service.parse().map_err(|_| ResolverRegistryError::Label)?;
        ServerAddress::parse(&registration.address)?;
        let row = self.update(&service, |there| {
            let row = there.filter(|row| row.standing != RegistrationStatus::Retired.as_str());
            Ok(row.map(|row| {
                let address = Some(registration.address.clone());
                let protocol = registration.protocol.as_str();
                let stays = row.standing == RegistrationStatus::OnLine.as_str()
                    && row.address == address
                    && row.protocol.as_deref().unwrap_or("HTTP") == protocol;
                let standing =
                    if stays { RegistrationStatus::OnLine } else { RegistrationStatus::Unconfirmed };
                ArchiveRow {
                    service: service.spelling().to_owned(),
                    address,
                    standing: standing.as_str().to_owned(),
                    email: Some(registration.email.clone()),
                    ip: Some(registration.ip.to_string()),
                    protocol: Some(protocol.to_owned()),
                    platform: Some(registration.platform_version.clone()),
                    problem: None,
                    changed: now,
                    ..row.clone()
                }
            }))
        })?;
        let archive = Arc::new(rows::archive_from_row(&row)?);
        if archive.standing == RegistrationStatus::Retired {
            return Err(ResolverRegistryError::Unknown { service: row.canonical });
        }
        Ok(PendingInclusion { archive, turn: row.turn })
    }

    /// Records that an Archive goes offline (3.3). The caller has verified its key.
    pub fn exclude(
        &self,
        service: &Label,
        now: i64,
    ) -> Result<Arc<RegisteredArchive>, ResolverRegistryError> {
        self.set_status(service, RegistrationStatus::OffLine, now)
    }

    /// Records whether an Archive confirmed that it is online, or why not. Ignored if anything else
    /// has changed since `turn`: an Archive that went offline in the meantime stays offline.
    /// Returns whether it was applied.
    pub fn record_confirmation(
        &self,
        id: ArchiveId,
        turn: i64,
        result: Result<(), &str>,
        now: i64,
    ) -> Result<bool, ResolverRegistryError> {
        let standing =
            if result.is_ok() { RegistrationStatus::OnLine } else { RegistrationStatus::Unconfirmed };
        let mut store = self.store();
        let counted = store.record_probe(id.0, turn, standing.as_str(), result, now)?;
        self.reload_snapshot(&store)?;
        Ok(counted)
    }

    /// Exports the registry as plain text, including key digests, so that another resolver can take
    /// over.
    pub fn export(&self) -> Result<String, ResolverRegistryError> {
        Ok(text::write(&self.store().archives()?))
    }

    /// Imports such a text, all or nothing. For an Archive that exists already, the later change
    /// wins, so importing the same text twice changes nothing.
    pub fn import(&self, text: &str) -> Result<RegistryImportReport, ResolverRegistryError> {
        let rows = text::read(text)?;
        let labels: Vec<&str> = rows.iter().map(|row| row.canonical.as_str()).collect();
        let mut report = RegistryImportReport::default();
        let mut store = self.store();
        store.update_archives(&labels, |index, there| {
            Ok::<_, ResolverRegistryError>(match there {
                Some(there) if there.changed >= rows[index].changed => {
                    report.kept += 1;
                    None
                }
                Some(_) => {
                    report.replaced += 1;
                    Some(rows[index].clone())
                }
                None => {
                    report.added += 1;
                    Some(rows[index].clone())
                }
            })
        })?;
        self.reload_snapshot(&store)?;
        Ok(report)
    }

    /// The open alert for an item.
    pub fn open_alert(&self, item: &str) -> Result<Option<AlertRecord>, ResolverRegistryError> {
        Ok(self.store().open_alert(item)?)
    }

    /// Adds evidence to an open alert.
    pub fn add_evidence(
        &self,
        item: &str,
        told: &[(String, AlertEvidence)],
    ) -> Result<(), ResolverRegistryError> {
        Ok(self.store().add_evidence(item, told)?)
    }

    /// Raises an alert, or updates the open alert for the item.
    pub fn raise_alert(
        &self,
        item: &str,
        claims: &[AlertClaim],
        now: i64,
    ) -> Result<AlertRecord, ResolverRegistryError> {
        Ok(self.store().raise_alert(item, claims, now)?)
    }

    /// The alerts, newest first.
    pub fn alerts(&self, include_resolved: bool) -> Result<Vec<AlertRecord>, ResolverRegistryError> {
        Ok(self.store().alerts(include_resolved)?)
    }

    /// The number of open alerts.
    pub fn open_alerts(&self) -> Result<u64, ResolverRegistryError> {
        Ok(self.store().open_alert_count()?)
    }

    /// The alert with this number.
    pub fn alert(&self, id: u64) -> Result<Option<AlertRecord>, ResolverRegistryError> {
        Ok(self.store().alert(id)?)
    }

    /// Resolves an alert; `None` if there is none with this number.
    pub fn resolve_alert(
        &self,
        id: u64,
        by: &str,
        note: &str,
        now: i64,
    ) -> Result<Option<AlertRecord>, ResolverRegistryError> {
        Ok(self.store().resolve_alert(id, by, note, now)?)
    }

    fn set_status(
        &self,
        service: &Label,
        standing: RegistrationStatus,
        now: i64,
    ) -> Result<Arc<RegisteredArchive>, ResolverRegistryError> {
        let row = self.update(service, |there| {
            let standing = standing.as_str().to_owned();
            Ok(there.map(|row| ArchiveRow { standing, changed: now, problem: None, ..row.clone() }))
        })?;
        Ok(Arc::new(rows::archive_from_row(&row)?))
    }

    /// Changes one Archive. `None` means that it does not exist or stays unchanged.
    fn update(
        &self,
        service: &Label,
        change: impl FnOnce(Option<&ArchiveRow>) -> Result<Option<ArchiveRow>, ResolverRegistryError>,
    ) -> Result<ArchiveRow, ResolverRegistryError> {
        let canonical = service.to_string();
        let mut change = Some(change);
        let mut store = self.store();
        let rows = store.update_archives(&[&canonical], |_, there| match change.take() {
            Some(change) => change(there),
            None => Ok(None),
        })?;
        self.reload_snapshot(&store)?;
        rows.into_iter().flatten().next().ok_or(ResolverRegistryError::Unknown { service: canonical })
    }

    fn store(&self) -> MutexGuard<'_, RegistryStorage> {
        self.0.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_hosts(hosts: &[String]) -> Result<(), ResolverRegistryError> {
    if hosts.len() > MAX_ARCHIVE_HOSTS {
        return Err(ResolverRegistryError::ManyHosts { most: MAX_ARCHIVE_HOSTS });
    }
    hosts.iter().try_for_each(|host| match ServerAddress::parse(host) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(ResolverRegistryError::Host { given: ibi_protocol::untrusted_text::quote_untrusted(host) })
        }
    })
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({} Archives)", self.archives().len())
    }
}

#[cfg(test)]
mod tests;
