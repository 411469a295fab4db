//! Drafts: deposits uploaded over the network in parts and published when complete. They survive a
//! restart of the server (`docs/formats/service.md`). Their contents are on disk; memory holds only
//! the summaries in [`draft_index`].

mod draft_index;
mod quota_reader;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use ibi_store::digests::{self, ContentDigests, DigestCopyError};
use ibi_store::index::FileRecord;
use ibi_store::journal::State;
use ibi_store::ocfl::logical_path;
use ibi_store::{DirectWriter, SpaceCheckedWriter};
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, HeldItem, Holdings};
use crate::deposit::UploadedFile;
use crate::item::unhex;
use crate::media_type::{self, MediaTypeReader};
use crate::service::ItemPatch;
use crate::{ArchiveError, PreparedChange, deposit};
use draft_index::{DraftIndex, DraftSummary, MAX_FILES_PER_DRAFT};
use ibi_mint::clock::{MintClock as _, SystemClock};
use quota_reader::DraftQuotaReader;

pub use draft_index::DraftQuota;

const DRAFT_FORMAT: u32 = 1;

/// A file in a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftFile {
    /// Path below `doc/`, as the inventory will list it.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Media type. Absent in old drafts: then derived from the name.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    media: Option<String>,
    /// SHA-512 in hex.
    pub sha512: String,
    /// BLAKE3 of each block, in hex.
    blocks: String,
    /// Intermediate SHA-512 states, in hex ([`ContentDigests::stations`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stations: String,
    /// The number of the uploaded file in the draft; `None` for a file of the current version.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
}

/// A deposit or an update in preparation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftRecord {
    format: u32,
    /// Unique name of the draft.
    pub id: String,
    /// The token that owns it.
    pub owner: String,
    /// Creation time.
    pub created: String,
    /// For an update: the item, and the version that the draft started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<(String, u32)>,
    /// The description of the item.
    pub described: ItemPatch,
    /// Files of the current version that stay unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<String, DraftFile>,
    /// Uploaded files. Each has its own description file, so that the cost of an upload does not
    /// grow with the number of files.
    #[serde(skip)]
    arrived: BTreeMap<String, DraftFile>,
    #[serde(skip)]
    next: u64,
}

impl DraftRecord {
    /// All files: kept and uploaded.
    pub fn files(&self) -> impl Iterator<Item = &DraftFile> {
        self.kept.values().chain(self.arrived.values())
    }
}

/// The drafts of an Archive.
#[derive(Debug)]
pub struct DraftStore {
    folder: PathBuf,
    quota: DraftQuota,
    /// All known drafts. A change updates the index and the disk under this lock.
    known: Mutex<DraftIndex>,
    clock: SystemClock,
}

impl DraftStore {
    /// Opens the drafts of a data folder.
    pub fn open(data: &Path, quota: DraftQuota) -> Result<Self, ArchiveError> {
        let folder = data.join("service/drafts");
        let (mut known, clock) = (DraftIndex::default(), SystemClock::new());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => {
                entries.collect::<Result<Vec<_>, _>>().map_err(ArchiveError::io("read", &folder))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(ArchiveError::io("read", &folder)(error)),
        };
        for entry in entries {
            // One at a time: records are not kept in memory.
            match read(&entry.path(), |_| true).filter(|draft| *draft.id == *entry.file_name()) {
                Some(draft) => {
                    let size = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
                    let touched = fs::metadata(entry.path()).and_then(|folder| folder.modified());
                    let touched = touched.map_or_else(|_| clock.read().wall.seconds(), seconds);
                    known.insert_draft(&draft, size(entry.path().join("draft.json")), touched);
                }
                None => {
                    tracing::warn!(path = %entry.path().display(), "not a draft of this program: left alone");
                }
            }
        }
        Ok(Self { folder, quota, known: Mutex::new(known), clock })
    }

    /// The current time, in seconds since the Unix epoch.
    fn now(&self) -> i64 {
        self.clock.read().wall.seconds()
    }

    /// Starts a draft. An update starts with the item's current files.
    pub fn begin(
        &self,
        owner: &str,
        now: &str,
        updates: Option<(&Holdings, &HeldItem)>,
        described: ItemPatch,
    ) -> Result<DraftRecord, ArchiveError> {
        self.check_room()?;
        // Check the quota before reading anything.
        self.lock()?.check_quota(owner, &self.quota, (1, 0, 1))?;
        let mut id = [0; 8];
        getrandom::fill(&mut id)
            .map_err(|error| ArchiveError::io("make a name in", &self.folder)(io::Error::other(error)))?;
        let mut kept = BTreeMap::new();
        if let Some((holdings, holding)) = updates {
            if holding.state == State::Deleted {
                return Err(ArchiveError::Removed { label: holding.item.labels.primary().to_owned() });
            }
            for file in holdings.files(&holding.path, "", MAX_FILES_PER_DRAFT)? {
                let blocks = digests::hex(&file.blocks);
                let FileRecord { name, size, sha512, media, .. } = file;
                // The stations stay in the version that the files come from.
                let stations = String::new();
                let (media, stored) = (Some(media), None);
                kept.insert(name.clone(), DraftFile { name, size, media, sha512, blocks, stations, stored });
            }
        }
        let draft = DraftRecord {
            format: DRAFT_FORMAT,
            id: digests::hex(&id),
            owner: owner.to_owned(),
            created: now.to_owned(),
            updates: updates.map(|(_, holding)| (holding.path.clone(), holding.version)),
            described,
            kept,
            arrived: BTreeMap::new(),
            next: 0,
        };
        let written = serialize_draft(&draft);
        let mut known = self.lock()?;
        known.check_quota(owner, &self.quota, (1, draft.kept.len(), written.len() as u64))?;
        self.write(&draft.id, &written)?;
        known.insert_draft(&draft, written.len() as u64, self.now());
        Ok(draft)
    }

    /// Reads a draft from disk.
    pub fn get(&self, id: &str) -> Option<DraftRecord> {
        let known = self.lock().ok()?;
        let numbers = known.drafts.get(id)?.numbers();
        drop(known);
        self.read(id, &numbers)
    }

    /// Reads a draft with the uploads in `numbers`; the others are incomplete or deleted.
    fn read(&self, id: &str, numbers: &HashSet<u64>) -> Option<DraftRecord> {
        read(&self.folder.join(id), |number| numbers.contains(&number))
    }

    fn read_known(&self, known: &DraftIndex, id: &str) -> Result<DraftRecord, ArchiveError> {
        let numbers = known.drafts.get(id).ok_or(ArchiveError::NoDraft)?.numbers();
        self.read(id, &numbers).ok_or_else(|| damaged_draft_error(id))
    }

    /// The owner of a draft, and whether it updates an item.
    pub fn owner(&self, id: &str) -> Option<(String, bool)> {
        self.lock().ok()?.drafts.get(id).map(|draft| (draft.owner.clone(), draft.is_update))
    }

    /// Memory needed to read a draft in full and serialize it.
    pub fn memory_bytes(&self, id: &str) -> u64 {
        self.lock().ok().and_then(|known| known.drafts.get(id).map(DraftSummary::memory_bytes)).unwrap_or(0)
    }

    /// Sorted draft ids after `after`, of one owner or of all.
    pub fn list_draft_ids(&self, owner: Option<&str>, after: &str) -> Result<Vec<String>, ArchiveError> {
        let known = self.lock()?;
        let wanted = |draft: &DraftSummary| owner.is_none_or(|owner| draft.owner == owner);
        let names = known.drafts.iter().filter(|(id, draft)| id.as_str() > after && wanted(draft));
        let mut names: Vec<String> = names.map(|(id, _)| id.clone()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Merges a patch into the description of the item.
    pub fn patch_draft(&self, id: &str, more: ItemPatch) -> Result<DraftRecord, ArchiveError> {
        self.check_room()?;
        let mut known = self.lock_for_change(id)?;
        let mut draft = self.read_known(&known, id)?;
        draft.described.merge_patch(more);
        let written = serialize_draft(&draft);
        let was = known.drafts.get(id).map_or(0, |draft| draft.description_bytes);
        let grows = (written.len() as u64).saturating_sub(was);
        known.check_quota(&draft.owner, &self.quota, (0, 0, grows))?;
        self.write(id, &written)?;
        if let Some(known) = known.drafts.get_mut(id) {
            known.description_bytes = written.len() as u64;
        }
        Ok(draft)
    }

    /// Stores an upload, replacing a file of the same name. The file is durable on return.
    pub fn put(&self, id: &str, name: &[u8], bytes: &mut dyn Read) -> Result<DraftFile, ArchiveError> {
        let shown = String::from_utf8_lossy(name).escape_debug().to_string();
        let name = logical_path(name).map_err(|error| ArchiveError::Name { name: shown, error })?;
        let number = {
            let mut known = self.lock_for_change(id)?;
            let draft = known.drafts.get(id).ok_or(ArchiveError::NoDraft)?;
            if draft.file_count() >= MAX_FILES_PER_DRAFT {
                return Err(ArchiveError::Value(format!("a draft has at most {MAX_FILES_PER_DRAFT} files")));
            }
            known.check_quota(&draft.owner, &self.quota, (0, 1, 1))?;
            let draft = known.drafts.get_mut(id).ok_or(ArchiveError::NoDraft)?;
            draft.next += 1;
            draft.next
        };
        let path = self.draft_file_path(id, number);
        let described = path.with_extension("json");
        let mut within = DraftQuotaReader { drafts: self, id, bytes, taken: 0, reserved: 0, refused: None };
        let mut bytes = MediaTypeReader::new(&name, &mut within);
        let arrived = write_upload(&path, self.data(), &mut bytes);
        let (_, media) = bytes.finish();
        let (reserved, refused) = (within.reserved, within.refused.take());
        let put = match refused {
            Some(refused) => Err(refused),
            None => {
                arrived.and_then(|arrived| self.put_arrived(id, (name, number), (media, arrived), &described))
            }
        };
        if put.is_err() {
            let _ = fs::remove_file(&described);
            let _ = fs::remove_file(&path);
        }
        // Replace the quota reserved during the upload with the actual size.
        if let Ok(mut known) = self.lock()
            && let Some(draft) = known.drafts.get_mut(id)
        {
            let size = put.as_ref().map_or(0, |file| file.size);
            draft.file_bytes = (draft.file_bytes + size).saturating_sub(reserved);
        }
        put
    }

    /// Adds an uploaded file to the draft.
    fn put_arrived(
        &self,
        id: &str,
        (name, number): (String, u64),
        (media, arrived): (String, ContentDigests),
        described: &Path,
    ) -> Result<DraftFile, ArchiveError> {
        let ContentDigests { size, sha512, blocks, stations } = arrived;
        let (blocks, stations) = (digests::hex(&blocks), digests::hex(&stations));
        let (media, stored) = (Some(media), Some(number));
        let file = DraftFile { name, size, media, sha512, blocks, stations, stored };
        // Text and numbers only: serialization cannot fail.
        ibi_store::small_file::replace(described, &serde_json::to_vec(&file).unwrap_or_default())?;
        let mut known = self.lock_for_change(id)?;
        self.remove_known_file(&mut known, id, &file.name)?;
        let hash = known.hash(&file.name);
        let draft = known.drafts.get_mut(id).ok_or(ArchiveError::NoDraft)?;
        draft.arrived.entry(hash).or_default().push(number);
        Ok(file)
    }

    /// Removes a file; returns whether it existed.
    pub fn remove_draft_file(&self, id: &str, name: &[u8]) -> Result<bool, ArchiveError> {
        let Ok(name) = logical_path(name) else { return Ok(false) };
        let mut known = self.lock_for_change(id)?;
        self.remove_known_file(&mut known, id, &name)
    }

    /// Removes every file with this name.
    fn remove_known_file(&self, known: &mut DraftIndex, id: &str, name: &str) -> Result<bool, ArchiveError> {
        let hash = known.hash(name);
        let draft = known.drafts.get_mut(id).ok_or(ArchiveError::NoDraft)?;
        let mut was_there = false;
        if draft.kept.contains(&hash) {
            // No uploads are needed: only files of the current version.
            let mut whole = self.read(id, &HashSet::new()).ok_or_else(|| damaged_draft_error(id))?;
            if whole.kept.remove(name).is_some() {
                let written = serialize_draft(&whole);
                self.write(id, &written)?;
                draft.description_bytes = written.len() as u64;
                draft.kept.remove(&hash);
                was_there = true;
            }
        }
        for number in draft.arrived.remove(&hash).unwrap_or_default() {
            let place = self.draft_file_path(id, number);
            match read_file(&place.with_extension("json")).filter(|file| file.name == name) {
                Some(file) => {
                    let _ = fs::remove_file(place.with_extension("json"));
                    let _ = fs::remove_file(place);
                    draft.file_bytes = draft.file_bytes.saturating_sub(file.size);
                    was_there = true;
                }
                // Hash collision: keep the file with another name.
                None => draft.arrived.entry(hash).or_default().push(number),
            }
        }
        Ok(was_there)
    }

    /// Deletes a draft.
    pub fn delete(&self, id: &str) -> Result<(), ArchiveError> {
        let mut known = self.lock()?;
        if known.drafts.remove(id).is_some() {
            let place = self.folder.join(id);
            fs::remove_dir_all(&place).map_err(ArchiveError::io("remove", &place))?;
        }
        Ok(())
    }

    /// Deletes drafts unchanged for longer than the quota allows; `now` is in seconds since the
    /// Unix epoch.
    pub fn expire(&self, now: i64) {
        let is_old = |draft: &DraftSummary| {
            !draft.publishing && now.saturating_sub(draft.touched) > self.quota.untouched_seconds
        };
        let old: Vec<String> = match self.lock() {
            Ok(known) => {
                known.drafts.iter().filter(|(_, draft)| is_old(draft)).map(|(id, _)| id.clone()).collect()
            }
            Err(_) => return,
        };
        for id in old {
            match self.delete(&id) {
                Ok(()) => tracing::info!(draft = %id, "deleted an expired draft"),
                Err(error) => tracing::warn!(draft = %id, %error, "cannot delete an expired draft"),
            }
        }
    }

    /// Starts publishing a draft: from now on it cannot be changed or published by another request.
    pub fn claim(&self, id: &str) -> Result<DraftRecord, ArchiveError> {
        let mut known = self.lock_for_change(id)?;
        let draft = self.read_known(&known, id)?;
        known.drafts.get_mut(id).ok_or(ArchiveError::NoDraft)?.publishing = true;
        Ok(draft)
    }

    /// Cancels publishing.
    pub fn release(&self, id: &str) {
        if let Ok(mut known) = self.lock()
            && let Some(draft) = known.drafts.get_mut(id)
        {
            draft.publishing = false;
        }
    }

    /// Turns a draft into a prepared change of the Archive.
    pub fn prepare(
        &self,
        archive: &mut Archive,
        draft: DraftRecord,
        by: &str,
        key: Option<String>,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        let uploads = draft.files().map(|file| self.upload(&draft.id, file));
        let uploads: Vec<UploadedFile> =
            uploads.collect::<Option<_>>().ok_or_else(|| damaged_draft_error(&draft.id))?;
        match draft.updates {
            None => {
                let url = draft.described.url.clone().flatten();
                let title = match (&uploads[..], &url) {
                    ([first, ..], _) => first.name.as_str(),
                    ([], Some(url)) => url.as_str(),
                    ([], None) => "untitled",
                };
                let described = draft.described.into_deposit_draft(by, title)?;
                let staged = archive.stage_uploads(&uploads, None)?;
                archive.prepare_deposit(staged, deposit::DepositRequest { key, ..described }).map(Some)
            }
            Some((path, version)) => {
                if archive.holdings().item(&path)?.version != version {
                    return Err(ArchiveError::Changed { label: path });
                }
                let changes = draft.described.into_changes()?;
                let prepared = archive.prepare_update_uploaded(&path, &uploads, changes, by)?;
                Ok(prepared.map(|prepared| PreparedChange { key, ..prepared }))
            }
        }
    }

    fn upload(&self, id: &str, file: &DraftFile) -> Option<UploadedFile> {
        let (blocks, stations) = (unhex(&file.blocks)?, unhex(&file.stations)?);
        let digests = ContentDigests { size: file.size, sha512: file.sha512.clone(), blocks, stations };
        let place = file.stored.map(|number| self.draft_file_path(id, number));
        let media = file.media.clone().unwrap_or_else(|| media_type::of_name(&file.name));
        Some(UploadedFile { name: file.name.clone(), media, digests, file: place })
    }

    /// Locks the index to change a draft; fails if the draft is being published.
    fn lock_for_change(&self, id: &str) -> Result<MutexGuard<'_, DraftIndex>, ArchiveError> {
        let mut known = self.lock()?;
        let draft = known.drafts.get_mut(id).ok_or(ArchiveError::NoDraft)?;
        if draft.publishing {
            return Err(ArchiveError::Publishing);
        }
        draft.touched = self.now();
        Ok(known)
    }

    fn write(&self, id: &str, written: &[u8]) -> Result<(), ArchiveError> {
        Ok(ibi_store::small_file::replace(&self.folder.join(id).join("draft.json"), written)?)
    }

    /// The data folder, two levels up.
    fn data(&self) -> &Path {
        self.folder.ancestors().nth(2).unwrap_or(&self.folder)
    }

    /// Fails if the disk's reserve leaves no room to write.
    fn check_room(&self) -> Result<(), ArchiveError> {
        Ok(ibi_store::check_disk_space(self.data(), 0)?)
    }

    fn draft_file_path(&self, id: &str, number: u64) -> PathBuf {
        self.folder.join(id).join(number.to_string())
    }

    fn lock(&self) -> Result<MutexGuard<'_, DraftIndex>, ArchiveError> {
        self.known.lock().map_err(|_| ArchiveError::Stopped)
    }
}

fn damaged_draft_error(id: &str) -> ArchiveError {
    ArchiveError::Value(format!("draft {id} is damaged on disk: begin another"))
}

fn serialize_draft(draft: &DraftRecord) -> Vec<u8> {
    // Text and numbers only: serialization cannot fail.
    serde_json::to_vec(draft).unwrap_or_default()
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn read_file(path: &Path) -> Option<DraftFile> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Reads a draft from its folder, with the uploads whose numbers `has_arrived` accepts.
fn read(folder: &Path, has_arrived: impl Fn(u64) -> bool) -> Option<DraftRecord> {
    let mut draft: DraftRecord = serde_json::from_slice(&fs::read(folder.join("draft.json")).ok()?).ok()?;
    if draft.format != DRAFT_FORMAT {
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
        if path.extension().is_none_or(|kind| kind != "json") || !has_arrived(number) {
            continue;
        }
        // Of two uploads with the same name, the later one wins.
        if let Some(file) = read_file(&path).filter(|file| file.stored == Some(number)) {
            draft.kept.remove(&file.name);
            let newer = draft.arrived.get(&file.name).is_none_or(|other| other.stored < file.stored);
            if newer {
                draft.arrived.insert(file.name.clone(), file);
            }
        }
    }
    Some(draft)
}

/// Writes an upload durably, within the disk's reserve.
fn write_upload(path: &Path, data: &Path, bytes: &mut dyn Read) -> Result<ContentDigests, ArchiveError> {
    ibi_store::check_disk_space(data, 0)?;
    let file = File::create_new(path).and_then(DirectWriter::new);
    let mut file = SpaceCheckedWriter::new(file.map_err(ArchiveError::io("write", path))?, data)?;
    let digests = digests::copy_and_digest(bytes, &mut file).map_err(|error| {
        match (error, file.take_space_error()) {
            (_, Some(full)) => full.into(),
            (DigestCopyError::Read(error), _) => ArchiveError::UploadInterrupted(error),
            (DigestCopyError::Write(error), _) => ArchiveError::io("write", path)(error),
        }
    })?;
    let synced = file.into_inner().into_file().and_then(|file| file.sync_all());
    synced.map_err(ArchiveError::io("sync", path))?;
    Ok(digests)
}
