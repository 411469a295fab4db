//! The registry: which Archives there are, and how they stand. It is kept in one file (`docs/formats/registry.md`), which the
//! server and commands may use at once.

mod error;
mod rows;
mod snapshot;
mod text;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ibi_http::asking::Address;
use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{Key, Registration};
use ibi_store::RegistryStore;
use ibi_store::registry::{AlertRecord, ArchiveRow, Claim, Evidence};
use tokio::time::Instant;

use crate::archive::{Archive, Standing};
use crate::keys;

pub use error::{ImportError, RegistryError};
pub use rows::Settings;
pub use snapshot::Times;
pub use text::Report;

pub(crate) use snapshot::Entry;
use snapshot::Snapshot;

/// The name of the file in the data folder.
pub const FILE: &str = "registry.sqlite";

/// The most further hosts of an Archive.
const MOST_HOSTS: usize = 64;

/// The registry of a resolver. Whatever changes or lists alerts waits for the disk: not to be called from a task.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    settings: Settings,
    store: Mutex<RegistryStore>,
    snapshot: RwLock<Arc<Snapshot>>,
    started: Instant,
    /// When was looked for changes by others, in milliseconds since the start.
    looked: AtomicU64,
}

/// An Archive that was registered.
#[derive(Debug, Clone)]
pub struct Registered {
    /// As it is now.
    pub archive: Arc<Archive>,
    /// The key that was made for it. It is nowhere else: only its digest is kept.
    pub made: Option<Key>,
}

/// An Archive that came on line.
#[derive(Debug, Clone)]
pub struct Included {
    /// As it is now.
    pub archive: Arc<Archive>,
    /// To be given back with its confirmation.
    pub turn: i64,
}

impl Registry {
    /// Makes a registry in a data folder that has none.
    pub fn create(data: &Path, settings: &Settings) -> Result<Self, RegistryError> {
        let store = RegistryStore::create(&data.join(FILE), &settings.to_row()?)?;
        Self::over(store)
    }

    /// Opens the registry of a data folder.
    pub fn open(data: &Path) -> Result<Self, RegistryError> {
        Self::over(RegistryStore::open(&data.join(FILE))?)
    }

    fn over(store: RegistryStore) -> Result<Self, RegistryError> {
        let settings = Settings::of_row(store.settings()?)?;
        let snapshot = RwLock::new(Arc::new(Snapshot::read(&store)?));
        let (started, looked) = (Instant::now(), AtomicU64::new(0));
        Ok(Self(Arc::new(Inner { settings, store: Mutex::new(store), snapshot, started, looked })))
    }

    /// What the operator said when the resolver was made.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// All Archives, by number. What others change is seen a moment later; as a rule this costs nothing.
    pub fn archives(&self) -> Arc<[Arc<Archive>]> {
        self.snapshot().archives.clone()
    }

    /// The Archive of this number.
    pub fn archive(&self, id: ArchiveId) -> Option<Arc<Archive>> {
        self.entry(id).map(|entry| entry.archive)
    }

    /// The Archive whose service has this label, in whatever spelling (1.3).
    pub fn find(&self, service: &Label) -> Option<Arc<Archive>> {
        self.snapshot().archives.iter().find(|archive| archive.service == *service).cloned()
    }

    /// When an Archive was asked whether it is there.
    pub fn times(&self, id: ArchiveId) -> Option<Times> {
        self.entry(id).map(|entry| entry.times)
    }

    /// Registers an Archive (3.2), with a key that is made here if none is given. Registering it again replaces key and hosts,
    /// and brings one back that was retired.
    pub fn register(
        &self,
        service: Label,
        key: Option<Key>,
        hosts: Vec<String>,
        now: i64,
    ) -> Result<Registered, RegistryError> {
        check_hosts(&hosts)?;
        let (key, is_made) = match key {
            Some(key) => (key, false),
            None => (keys::random()?, true),
        };
        let key_hash = keys::hash(&key)?;
        let row = self.update(&service, |there| {
            let row = match there {
                None => rows::new(&service, now),
                Some(row) if row.standing == Standing::Retired.as_str() => {
                    ArchiveRow { standing: Standing::New.as_str().to_owned(), ..row.clone() }
                }
                Some(row) => row.clone(),
            };
            Ok(Some(ArchiveRow { key_hash: key_hash.clone(), hosts: hosts.clone(), changed: now, ..row }))
        })?;
        Ok(Registered { archive: Arc::new(rows::archive(&row)?), made: is_made.then_some(key) })
    }

    /// Says on which further hosts the URLs of an Archive may be (4.2 step 2).
    pub fn set_hosts(
        &self,
        service: &Label,
        hosts: Vec<String>,
        now: i64,
    ) -> Result<Arc<Archive>, RegistryError> {
        check_hosts(&hosts)?;
        let row = self.update(service, |there| {
            Ok(there.map(|row| ArchiveRow { hosts: hosts.clone(), changed: now, ..row.clone() }))
        })?;
        Ok(Arc::new(rows::archive(&row)?))
    }

    /// Retires an Archive that is gone for good (4.3).
    pub fn retire(&self, service: &Label, now: i64) -> Result<Arc<Archive>, RegistryError> {
        self.stand(service, Standing::Retired, now)
    }

    /// An Archive says that it is on line (3.3): its address is followed at once. It is not asked there until it has confirmed
    /// it (D21), unless it is where it was. Who asks has seen its key.
    pub fn include(&self, registration: &Registration, now: i64) -> Result<Included, RegistryError> {
        let service: Label = registration.service.parse().map_err(|_| RegistryError::Label)?;
        Address::parse(&registration.address)?;
        let row = self.update(&service, |there| {
            let row = there.filter(|row| row.standing != Standing::Retired.as_str());
            Ok(row.map(|row| {
                let address = Some(registration.address.clone());
                let stays = row.standing == Standing::OnLine.as_str() && row.address == address;
                let standing = if stays { Standing::OnLine } else { Standing::Unconfirmed };
                ArchiveRow {
                    service: service.spelling().to_owned(),
                    address,
                    standing: standing.as_str().to_owned(),
                    email: Some(registration.email.clone()),
                    ip: Some(registration.ip.to_string()),
                    protocol: Some(registration.protocol.as_str().to_owned()),
                    platform: Some(registration.platform_version.clone()),
                    changed: now,
                    ..row.clone()
                }
            }))
        })?;
        let archive = Arc::new(rows::archive(&row)?);
        if archive.standing == Standing::Retired {
            return Err(RegistryError::Unknown { service: row.canonical });
        }
        Ok(Included { archive, turn: row.turn })
    }

    /// An Archive goes off line (3.3). Who asks has seen its key.
    pub fn exclude(&self, service: &Label, now: i64) -> Result<Arc<Archive>, RegistryError> {
        self.stand(service, Standing::OffLine, now)
    }

    /// Notes whether an Archive confirmed that it is on line. It counts only if nothing else has changed since `turn`: an
    /// Archive that went off line meanwhile stays off line. Gives whether it counted.
    pub fn confirmed(&self, id: ArchiveId, turn: i64, yes: bool, now: i64) -> Result<bool, RegistryError> {
        let standing = if yes { Standing::OnLine } else { Standing::Unconfirmed };
        let mut store = self.store();
        let counted = store.confirmed(id.0, turn, standing.as_str(), yes, now)?;
        self.reread(&store)?;
        Ok(counted)
    }

    /// The registry as plain text, digests of keys included, so that another resolver can go on from it.
    pub fn export(&self) -> Result<String, RegistryError> {
        Ok(text::write(&self.store().archives()?))
    }

    /// Takes Archives from such a text, all or nothing. Of one that is here already, the later change counts: what was imported
    /// is not imported again.
    pub fn import(&self, text: &str) -> Result<Report, RegistryError> {
        let rows = text::read(text)?;
        let labels: Vec<&str> = rows.iter().map(|row| row.canonical.as_str()).collect();
        let mut report = Report::default();
        let mut store = self.store();
        store.update(&labels, |index, there| {
            Ok::<_, RegistryError>(match there {
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
        self.reread(&store)?;
        Ok(report)
    }

    /// The open alert for an item, if there is one.
    pub fn open_alert(&self, item: &str) -> Result<Option<AlertRecord>, RegistryError> {
        Ok(self.store().open_alert(item)?)
    }

    /// Adds what Archives tell of the item of an open alert.
    pub fn add_evidence(&self, item: &str, told: &[(String, Evidence)]) -> Result<(), RegistryError> {
        Ok(self.store().add_evidence(item, told)?)
    }

    /// Raises an alert, or brings the one that is open for this item up to date.
    pub fn raise(&self, item: &str, claims: &[Claim], now: i64) -> Result<AlertRecord, RegistryError> {
        Ok(self.store().raise(item, claims, now)?)
    }

    /// The alerts, the newest first.
    pub fn alerts(&self, include_resolved: bool) -> Result<Vec<AlertRecord>, RegistryError> {
        Ok(self.store().alerts(include_resolved)?)
    }

    /// How many alerts are open.
    pub fn open_alerts(&self) -> Result<u64, RegistryError> {
        Ok(self.store().open_alerts()?)
    }

    /// The alert of this number.
    pub fn alert(&self, id: u64) -> Result<Option<AlertRecord>, RegistryError> {
        Ok(self.store().alert(id)?)
    }

    /// Puts an end to an alert; nothing if there is none of this number.
    pub fn resolve_alert(
        &self,
        id: u64,
        by: &str,
        note: &str,
        now: i64,
    ) -> Result<Option<AlertRecord>, RegistryError> {
        Ok(self.store().resolve_alert(id, by, note, now)?)
    }

    fn stand(&self, service: &Label, standing: Standing, now: i64) -> Result<Arc<Archive>, RegistryError> {
        let row = self.update(service, |there| {
            let standing = standing.as_str().to_owned();
            Ok(there.map(|row| ArchiveRow { standing, changed: now, ..row.clone() }))
        })?;
        Ok(Arc::new(rows::archive(&row)?))
    }

    /// Changes one Archive. Nothing means that there is none, or that it stays as it is.
    fn update(
        &self,
        service: &Label,
        change: impl FnOnce(Option<&ArchiveRow>) -> Result<Option<ArchiveRow>, RegistryError>,
    ) -> Result<ArchiveRow, RegistryError> {
        let canonical = service.to_string();
        let mut change = Some(change);
        let mut store = self.store();
        let rows = store.update(&[&canonical], |_, there| match change.take() {
            Some(change) => change(there),
            None => Ok(None),
        })?;
        self.reread(&store)?;
        rows.into_iter().flatten().next().ok_or(RegistryError::Unknown { service: canonical })
    }

    fn store(&self) -> MutexGuard<'_, RegistryStore> {
        self.0.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_hosts(hosts: &[String]) -> Result<(), RegistryError> {
    if hosts.len() > MOST_HOSTS {
        return Err(RegistryError::ManyHosts { most: MOST_HOSTS });
    }
    hosts.iter().try_for_each(|host| match Address::parse(host) {
        Ok(_) => Ok(()),
        Err(_) => Err(RegistryError::Host { given: ibi_protocol::shown::shown(host) }),
    })
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({} Archives)", self.archives().len())
    }
}

#[cfg(test)]
mod tests;
