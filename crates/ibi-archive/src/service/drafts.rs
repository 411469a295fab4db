//! Drafts: deposits that arrive over the network, piece by piece, and are published when they are complete. They outlive the
//! server (`docs/formats/service.md`).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ibi_protocol::Language;
use ibi_store::digests::{self, CopyError, Digests};
use ibi_store::ocfl::logical;
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::Access;
use crate::archive::{Archive, Holding, Holdings};
use crate::deposit::Upload;
use crate::dublin_core::DublinCore;
use crate::{ArchiveError, Changes, Prepared, deposit};

/// Drafts at a time: whoever leaves more behind should publish or delete some.
const MOST: usize = 10_000;

/// Files of one draft.
const MOST_FILES: usize = 100_000;

const FORMAT: u32 = 1;

/// What is said of an item. What is left out stays as it is; `null` takes it away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// Its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<DublinCore>,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub language: Option<Option<Language>>,
    /// What it is a translation of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub translation_of: Option<Option<String>>,
    /// What it is the next edition of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub next_edition_of: Option<Option<String>>,
    /// The file that its persistent URL opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Who may read its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Labels that it has already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// With a label from elsewhere: this is the Original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub original: bool,
    /// Other labels that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether the Original may be handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transferable: Option<bool>,
}

/// What is there was said, also `null`.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Described {
    /// Says more, in the place of what was said before.
    pub fn add(&mut self, more: Self) {
        fn put<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        put(&mut self.metadata, more.metadata);
        put(&mut self.language, more.language);
        put(&mut self.translation_of, more.translation_of);
        put(&mut self.next_edition_of, more.next_edition_of);
        put(&mut self.target, more.target);
        put(&mut self.access, more.access);
        put(&mut self.transferable, more.transferable);
        self.original |= more.original;
        for (old, new) in [(&mut self.labels, more.labels), (&mut self.aliases, more.aliases)] {
            if !new.is_empty() {
                *old = new;
            }
        }
    }

    /// Of a new item.
    fn draft(self, by: &str, title: &str) -> Result<deposit::Draft, ArchiveError> {
        let draft = deposit::Draft::new(by);
        let metadata = self.metadata.filter(|metadata| !metadata.statements().is_empty());
        Ok(deposit::Draft {
            metadata: metadata.map_or_else(|| deposit::titled(title), Ok)?,
            language: self.language.flatten(),
            translation_of: self.translation_of.flatten(),
            next_edition_of: self.next_edition_of.flatten(),
            target: self.target,
            access: self.access.unwrap_or_default(),
            labels: self.labels,
            original: self.original,
            aliases: self.aliases,
            transferable: self.transferable.unwrap_or(true),
            ..draft
        })
    }

    /// Of an item that is there.
    pub fn changes(self) -> Result<Changes, ArchiveError> {
        let refused = |what: &str| {
            Err(ArchiveError::Value(format!("{what} of an item that is there stay as they are")))
        };
        if !self.labels.is_empty() {
            return refused("labels");
        }
        if self.original || self.transferable == Some(true) {
            return refused("its state and whether it may be handed over");
        }
        Ok(Changes {
            record: self.metadata,
            statements: Vec::new(),
            language: self.language,
            translation_of: self.translation_of,
            next_edition_of: self.next_edition_of,
            target: self.target,
            access: self.access,
            aliases: self.aliases,
            non_transferable: self.transferable == Some(false),
        })
    }
}

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
    /// Its files.
    pub files: Vec<DraftFile>,
    next: u64,
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
            let draft = fs::read(entry.path().join("draft.json")).ok();
            let draft = draft.and_then(|bytes| serde_json::from_slice::<Draft>(&bytes).ok());
            match draft.filter(|draft| draft.format == FORMAT && *draft.id == *entry.file_name()) {
                Some(draft) => drop(known.insert(draft.id.clone(), draft)),
                None => {
                    tracing::warn!(path = %entry.path().display(), "not a draft of this program: left alone")
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
        let mut files = Vec::new();
        if let Some((holdings, holding)) = updates {
            let kept = holdings.files(&holding.path, "", MOST_FILES)?;
            files.extend(kept.into_iter().map(|file| DraftFile {
                name: file.name,
                size: file.size,
                sha512: file.sha512,
                blocks: digests::hex(&file.blocks),
                stored: None,
            }));
        }
        let draft = Draft {
            format: FORMAT,
            id: digests::hex(&id),
            owner: owner.to_owned(),
            created: now.to_owned(),
            updates: updates.map(|(_, holding)| (holding.path.clone(), holding.version)),
            described,
            files,
            next: 0,
        };
        let mut known = self.lock()?;
        if known.len() == MOST {
            return Err(ArchiveError::Value(format!("there are {MOST} drafts: publish or delete some")));
        }
        self.write(&draft)?;
        known.insert(draft.id.clone(), draft.clone());
        Ok(draft)
    }

    /// A draft.
    pub fn get(&self, id: &str) -> Option<Draft> {
        self.lock().ok()?.get(id).cloned()
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
            Ok(None)
        })
    }

    /// Takes a file in as it arrives, in the place of one of the same name. It is durable when this returns.
    pub fn put(&self, id: &str, name: &[u8], bytes: &mut dyn Read) -> Result<Draft, ArchiveError> {
        let shown = String::from_utf8_lossy(name).escape_debug().to_string();
        let name = logical(name).map_err(|error| ArchiveError::Name { name: shown, error })?;
        let number = {
            let mut number = 0;
            self.alter(id, |draft| {
                let there = draft.files.iter().any(|file| file.name == name);
                if draft.files.len() >= MOST_FILES && !there {
                    return Err(ArchiveError::Value(format!("a draft has at most {MOST_FILES} files")));
                }
                number = draft.next;
                draft.next += 1;
                Ok(None)
            })?;
            number
        };
        let path = self.place(id, number);
        let arrived = take_in(&path, bytes).inspect_err(|_| drop(fs::remove_file(&path)))?;
        self.alter(id, |draft| {
            let old = draft.files.iter().position(|file| file.name == name).map(|at| draft.files.remove(at));
            draft.files.push(DraftFile {
                name: name.clone(),
                size: arrived.size,
                sha512: arrived.sha512.clone(),
                blocks: digests::hex(&arrived.blocks),
                stored: Some(number),
            });
            draft.files.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(old)
        })
    }

    /// Takes a file out; nothing if there is none of that name.
    pub fn take_out(&self, id: &str, name: &[u8]) -> Result<Option<Draft>, ArchiveError> {
        let Ok(name) = logical(name) else { return Ok(None) };
        let mut found = false;
        let draft = self.alter(id, |draft| {
            let old = draft.files.iter().position(|file| file.name == name).map(|at| draft.files.remove(at));
            found = old.is_some();
            Ok(old)
        })?;
        Ok(found.then_some(draft))
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

    /// Makes a draft a change of the Archive.
    pub fn prepare(
        &self,
        archive: &mut Archive,
        draft: Draft,
        by: &str,
        key: Option<String>,
    ) -> Result<Option<Prepared>, ArchiveError> {
        let uploads = draft.files.iter().map(|file| self.upload(&draft.id, file));
        let uploads: Vec<Upload> = uploads.collect::<Option<_>>().ok_or_else(|| {
            ArchiveError::Value(format!("draft {} is damaged on disk: begin another", draft.id))
        })?;
        match draft.updates {
            None => {
                let title = draft.files.first().map_or("untitled", |file| &file.name);
                let described = draft.described.draft(by, title)?;
                let staged = archive.stage_uploads(&uploads, None)?;
                archive.prepare_deposit(staged, deposit::Draft { key, ..described }).map(Some)
            }
            Some((path, version)) => {
                if archive.holdings().item(&path)?.version != version {
                    return Err(ArchiveError::Changed { label: path });
                }
                archive.prepare_update_uploaded(&path, &uploads, draft.described.changes()?, by)
            }
        }
    }

    fn upload(&self, id: &str, file: &DraftFile) -> Option<Upload> {
        let blocks = crate::item::unhex(&file.blocks)?;
        let digests = Digests { size: file.size, sha512: file.sha512.clone(), blocks };
        let place = file.stored.map(|number| self.place(id, number));
        Some(Upload { name: file.name.clone(), digests, file: place })
    }

    /// Changes a draft, in memory and on disk; the file that it no longer has is removed.
    fn alter(
        &self,
        id: &str,
        change: impl FnOnce(&mut Draft) -> Result<Option<DraftFile>, ArchiveError>,
    ) -> Result<Draft, ArchiveError> {
        let mut known = self.lock()?;
        let unknown = || ArchiveError::Unknown { label: format!("draft {id}") };
        let mut draft = known.get(id).cloned().ok_or_else(unknown)?;
        let old = change(&mut draft)?;
        self.write(&draft)?;
        known.insert(id.to_owned(), draft.clone());
        if let Some(number) = old.and_then(|old| old.stored) {
            // Left behind, it goes with the draft.
            let _ = fs::remove_file(self.place(id, number));
        }
        Ok(draft)
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

/// Writes what arrives, durably.
fn take_in(path: &Path, bytes: &mut dyn Read) -> Result<Digests, ArchiveError> {
    let mut file = File::create_new(path).map_err(ArchiveError::io("write", path))?;
    let digests = digests::copy(bytes, &mut file).map_err(|error| match error {
        CopyError::Read(error) => ArchiveError::Arriving(error),
        CopyError::Write(error) => ArchiveError::io("write", path)(error),
    })?;
    file.sync_all().map_err(ArchiveError::io("sync", path))?;
    Ok(digests)
}
