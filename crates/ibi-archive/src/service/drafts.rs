//! Drafts: deposits that arrive over the network, piece by piece, and are published when they are complete. They outlive the
//! server (`docs/formats/service.md`).

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ibi_store::Straight;
use ibi_store::digests::{self, CopyError, Digests};
use ibi_store::journal::State;
use ibi_store::ocfl::logical;
use ibi_store::records::FileRecord;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Holding, Holdings};
use crate::deposit::Upload;
use crate::item::unhex;
use crate::service::Described;
use crate::{ArchiveError, Prepared, deposit};

/// Drafts at a time, in all and of one token: whoever leaves more behind should publish or delete some.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 1_000;

/// Files of one draft.
const MOST_FILES: usize = 100_000;

const FORMAT: u32 = 1;

/// A file of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftFile {
    /// Its path below `doc/`, as the inventory will have it.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-512 in hex.
    pub sha512: String,
    /// BLAKE3 of each block, in hex.
    blocks: String,
    /// The state of SHA-512 on the way, in hex ([`Digests::stations`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stations: String,
    /// Its number in the draft; without one, it is that of the version that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
}

/// A deposit, or an update, that is being put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    format: u32,
    /// Its name.
    pub id: String,
    /// The token that it belongs to.
    pub owner: String,
    /// When it was begun.
    pub created: String,
    /// The item that it updates, and the version that it was begun from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<(String, u32)>,
    /// What is said of the item.
    pub described: Described,
    /// Files of the version that is there and stay as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<String, DraftFile>,
    /// Files that have arrived. Each is described beside itself, so that many do not cost more than few.
    #[serde(skip)]
    arrived: BTreeMap<String, DraftFile>,
    #[serde(skip)]
    next: u64,
    #[serde(skip)]
    publishing: bool,
}

impl Draft {
    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &DraftFile> {
        self.kept.values().chain(self.arrived.values())
    }
}

/// The drafts of an Archive.
#[derive(Debug)]
pub struct Drafts {
    folder: PathBuf,
    /// All that are known; changed under this lock, with what is on disk.
    known: Mutex<HashMap<String, Draft>>,
}

impl Drafts {
    /// Those of a data folder.
    pub fn open(data: &Path) -> Result<Self, ArchiveError> {
        let folder = data.join("service/drafts");
        let mut known = HashMap::new();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => {
                entries.collect::<Result<Vec<_>, _>>().map_err(ArchiveError::io("read", &folder))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(ArchiveError::io("read", &folder)(error)),
        };
        for entry in entries {
            match read(&entry.path()).filter(|draft| *draft.id == *entry.file_name()) {
                Some(draft) => drop(known.insert(draft.id.clone(), draft)),
                None => {
                    tracing::warn!(path = %entry.path().display(), "not a draft of this program: left alone");
                }
            }
        }
        Ok(Self { folder, known: Mutex::new(known) })
    }

    /// Begins a draft; of an item that is there, with the files that it has.
    pub fn begin(
        &self,
        owner: &str,
        now: &str,
        updates: Option<(&Holdings, &Holding)>,
        described: Described,
    ) -> Result<Draft, ArchiveError> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|error| {
            ArchiveError::io("make a name in", &self.folder)(std::io::Error::other(error))
        })?;
        let mut kept = BTreeMap::new();
        if let Some((holdings, holding)) = updates {
            if holding.state == State::Deleted {
                return Err(ArchiveError::Removed { label: holding.item.labels.primary().to_owned() });
            }
            for file in holdings.files(&holding.path, "", MOST_FILES)? {
                let blocks = digests::hex(&file.blocks);
                let FileRecord { name, size, sha512, .. } = file;
                // The version that they come from has their stations.
                let stations = String::new();
                kept.insert(name.clone(), DraftFile { name, size, sha512, blocks, stations, stored: None });
            }
        }
        let draft = Draft {
            format: FORMAT,
            id: digests::hex(&id),
            owner: owner.to_owned(),
            created: now.to_owned(),
            updates: updates.map(|(_, holding)| (holding.path.clone(), holding.version)),
            described,
            kept,
            arrived: BTreeMap::new(),
            next: 0,
            publishing: false,
        };
        let mut known = self.lock()?;
        let own = known.values().filter(|draft| draft.owner == owner).count();
        if known.len() == MOST || own == MOST_OF_ONE {
            return Err(ArchiveError::Value("there are too many drafts: publish or delete some".to_owned()));
        }
        self.write(&draft)?;
        known.insert(draft.id.clone(), draft.clone());
        Ok(draft)
    }

    /// A draft.
    pub fn get(&self, id: &str) -> Option<Draft> {
        self.lock().ok()?.get(id).cloned()
    }

    /// Whose draft it is, and whether it updates an item.
    pub fn owner(&self, id: &str) -> Option<(String, bool)> {
        self.lock().ok()?.get(id).map(|draft| (draft.owner.clone(), draft.updates.is_some()))
    }

    /// Those of an owner, in order of their names.
    pub fn of(&self, owner: &str) -> Result<Vec<Draft>, ArchiveError> {
        let mut drafts: Vec<Draft> =
            self.lock()?.values().filter(|draft| draft.owner == owner).cloned().collect();
        drafts.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(drafts)
    }

    /// Says more of the item.
    pub fn describe(&self, id: &str, more: Described) -> Result<Draft, ArchiveError> {
        self.alter(id, |draft| {
            draft.described.add(more);
            self.write(draft)?;
            Ok(draft.clone())
        })
    }

    /// Takes a file in as it arrives, in the place of one of the same name. It is durable when this returns.
    pub fn put(&self, id: &str, name: &[u8], bytes: &mut dyn Read) -> Result<DraftFile, ArchiveError> {
        let shown = String::from_utf8_lossy(name).escape_debug().to_string();
        let name = logical(name).map_err(|error| ArchiveError::Name { name: shown, error })?;
        let number = self.alter(id, |draft| {
            if draft.kept.len() + draft.arrived.len() >= MOST_FILES {
                return Err(ArchiveError::Value(format!("a draft has at most {MOST_FILES} files")));
            }
            draft.next += 1;
            Ok(draft.next)
        })?;
        let path = self.place(id, number);
        let described = path.with_extension("json");
        let drop_it = || {
            let _ = fs::remove_file(&described);
            let _ = fs::remove_file(&path);
        };
        let arrived = take_in(&path, bytes).inspect_err(|_| drop_it())?;
        let Digests { size, sha512, blocks, stations } = arrived;
        let (blocks, stations) = (digests::hex(&blocks), digests::hex(&stations));
        let file = DraftFile { name, size, sha512, blocks, stations, stored: Some(number) };
        // Text and numbers: nothing that JSON could refuse.
        let written = serde_json::to_vec(&file).unwrap_or_default();
        ibi_store::service::replace(&described, &written)?;
        let put = self.alter(id, |draft| {
            if draft.kept.remove(&file.name).is_some() {
                self.write(draft)?;
            }
            let old = draft.arrived.insert(file.name.clone(), file.clone());
            self.forget(id, old);
            Ok(file.clone())
        });
        put.inspect_err(|_| drop_it())
    }

    /// Takes a file out; whether there was one of that name.
    pub fn take_out(&self, id: &str, name: &[u8]) -> Result<bool, ArchiveError> {
        let Ok(name) = logical(name) else { return Ok(false) };
        self.alter(id, |draft| {
            let kept = draft.kept.remove(&name).is_some();
            if kept {
                self.write(draft)?;
            }
            let old = draft.arrived.remove(&name);
            let there = kept || old.is_some();
            self.forget(id, old);
            Ok(there)
        })
    }

    /// Throws a draft away.
    pub fn delete(&self, id: &str) -> Result<(), ArchiveError> {
        let mut known = self.lock()?;
        if known.remove(id).is_some() {
            let place = self.folder.join(id);
            fs::remove_dir_all(&place).map_err(ArchiveError::io("remove", &place))?;
        }
        Ok(())
    }

    /// Begins to publish a draft: nobody changes it from now on, and nobody else publishes it.
    pub fn claim(&self, id: &str) -> Result<Draft, ArchiveError> {
        self.alter(id, |draft| {
            draft.publishing = true;
            Ok(draft.clone())
        })
    }

    /// Gives up publishing it.
    pub fn release(&self, id: &str) {
        if let Ok(mut known) = self.lock()
            && let Some(draft) = known.get_mut(id)
        {
            draft.publishing = false;
        }
    }

    /// Makes a draft a change of the Archive.
    pub fn prepare(
        &self,
        archive: &mut Archive,
        draft: Draft,
        by: &str,
        key: Option<String>,
    ) -> Result<Option<Prepared>, ArchiveError> {
        let uploads = draft.files().map(|file| self.upload(&draft.id, file));
        let uploads: Vec<Upload> = uploads.collect::<Option<_>>().ok_or_else(|| {
            ArchiveError::Value(format!("draft {} is damaged on disk: begin another", draft.id))
        })?;
        match draft.updates {
            None => {
                let url = draft.described.url.clone().flatten();
                let title = match (&uploads[..], &url) {
                    ([first, ..], _) => first.name.as_str(),
                    ([], Some(url)) => url.as_str(),
                    ([], None) => "untitled",
                };
                let described = draft.described.draft(by, title)?;
                let staged = archive.stage_uploads(&uploads, None)?;
                archive.prepare_deposit(staged, deposit::Draft { key, ..described }).map(Some)
            }
            Some((path, version)) => {
                if archive.holdings().item(&path)?.version != version {
                    return Err(ArchiveError::Changed { label: path });
                }
                let changes = draft.described.changes()?;
                let prepared = archive.prepare_update_uploaded(&path, &uploads, changes, by)?;
                Ok(prepared.map(|prepared| Prepared { key, ..prepared }))
            }
        }
    }

    fn upload(&self, id: &str, file: &DraftFile) -> Option<Upload> {
        let (blocks, stations) = (unhex(&file.blocks)?, unhex(&file.stations)?);
        let digests = Digests { size: file.size, sha512: file.sha512.clone(), blocks, stations };
        let place = file.stored.map(|number| self.place(id, number));
        Some(Upload { name: file.name.clone(), digests, file: place })
    }

    /// Changes a draft that is not being published.
    fn alter<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Draft) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let mut known = self.lock()?;
        let draft = known.get_mut(id).ok_or(ArchiveError::NoDraft)?;
        if draft.publishing {
            return Err(ArchiveError::Publishing);
        }
        change(draft)
    }

    /// Removes what has arrived and is no longer wanted. Left behind, it goes with the draft.
    fn forget(&self, id: &str, old: Option<DraftFile>) {
        if let Some(number) = old.and_then(|old| old.stored) {
            let path = self.place(id, number);
            let _ = fs::remove_file(path.with_extension("json"));
            let _ = fs::remove_file(path);
        }
    }

    fn write(&self, draft: &Draft) -> Result<(), ArchiveError> {
        // Text and numbers: nothing that JSON could refuse.
        let bytes = serde_json::to_vec(draft).unwrap_or_default();
        Ok(ibi_store::service::replace(&self.folder.join(&draft.id).join("draft.json"), &bytes)?)
    }

    fn place(&self, id: &str, number: u64) -> PathBuf {
        self.folder.join(id).join(number.to_string())
    }

    fn lock(&self) -> Result<std::sync::MutexGuard<'_, HashMap<String, Draft>>, ArchiveError> {
        self.known.lock().map_err(|_| ArchiveError::Stopped)
    }
}

/// Reads a draft from its folder, with what has arrived.
fn read(folder: &Path) -> Option<Draft> {
    let mut draft: Draft = serde_json::from_slice(&fs::read(folder.join("draft.json")).ok()?).ok()?;
    if draft.format != FORMAT {
        return None;
    }
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let Some(number) =
            entry.file_name().to_str().and_then(|name| name.split('.').next()?.parse::<u64>().ok())
        else {
            continue;
        };
        draft.next = draft.next.max(number);
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        let file = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<DraftFile>(&bytes).ok());
        // Of two of one name the one that came later stands.
        if let Some(file) = file.filter(|file| file.stored == Some(number)) {
            draft.kept.remove(&file.name);
            let newer = draft.arrived.get(&file.name).is_none_or(|other| other.stored < file.stored);
            if newer {
                draft.arrived.insert(file.name.clone(), file);
            }
        }
    }
    Some(draft)
}

/// Writes what arrives, durably.
fn take_in(path: &Path, bytes: &mut dyn Read) -> Result<Digests, ArchiveError> {
    let file = File::create_new(path).and_then(Straight::new);
    let mut file = file.map_err(ArchiveError::io("write", path))?;
    let digests = digests::copy(bytes, &mut file).map_err(|error| match error {
        CopyError::Read(error) => ArchiveError::Arriving(error),
        CopyError::Write(error) => ArchiveError::io("write", path)(error),
    })?;
    let synced = file.into_file().and_then(|file| file.sync_all());
    synced.map_err(ArchiveError::io("sync", path))?;
    Ok(digests)
}
