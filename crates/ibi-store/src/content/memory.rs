//! Content in memory, for tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::StorageError;
use crate::content::{
    ClearedStaging, ContentStorage, ObjectHead, ObjectPaths, ReadAt, StagedVersion, StagingId,
};
use crate::digests::ContentDigests;
use crate::ocfl::Inventory;

type MemoryFiles = BTreeMap<String, Vec<u8>>;

/// A minimal tree in memory.
#[derive(Debug, Default)]
pub struct MemoryContentStorage(Mutex<MemoryContentState>);

#[derive(Debug, Default)]
struct MemoryContentState {
    next: u64,
    staged: HashMap<u64, MemoryFiles>,
    objects: BTreeMap<String, MemoryObject>,
}

#[derive(Debug, Default)]
struct MemoryObject {
    files: MemoryFiles,
    /// The inventory of each version.
    versions: Vec<Vec<u8>>,
}

impl MemoryContentStorage {
    fn state(&self) -> MutexGuard<'_, MemoryContentState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContentStorage for MemoryContentStorage {
    fn check_space(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn begin_staging(&self) -> Result<StagingId, StorageError> {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.staged.insert(number, MemoryFiles::new());
        Ok(StagingId(number))
    }

    fn stage_file(
        &self,
        staging: &StagingId,
        name: &str,
        bytes: &mut dyn Read,
    ) -> Result<ContentDigests, StorageError> {
        let mut all = Vec::new();
        let read = bytes.read_to_end(&mut all);
        read.map_err(|error| StorageError::Source { name: name.to_owned(), error })?;
        let digests = ContentDigests::of(&all);
        self.state().staged.entry(staging.0).or_default().insert(name.to_owned(), all);
        Ok(digests)
    }

    fn stage_local_file(&self, staging: &StagingId, name: &str, file: &Path) -> Result<(), StorageError> {
        let bytes = std::fs::read(file).map_err(StorageError::io("read", file))?;
        self.stage_file(staging, name, &mut &bytes[..]).map(drop)
    }

    fn unstage_file(&self, staging: &StagingId, name: &str) -> Result<(), StorageError> {
        self.state().staged.entry(staging.0).or_default().remove(name);
        Ok(())
    }

    fn prepare(&self, _: &[StagedVersion<'_>]) -> Result<(), StorageError> {
        Ok(())
    }

    fn publish(&self, publications: &[StagedVersion<'_>]) -> Result<(), StorageError> {
        for publication in publications {
            let new = publication.version == 1 || publication.whole.is_some();
            if new && !publication.instead && !self.is_free(publication.object)? {
                return Err(StorageError::Occupied { object: publication.object.to_owned() });
            }
            let mut state = self.state();
            let staged = state.staged.remove(&publication.staging.0).unwrap_or_default();
            if publication.instead {
                state.objects.remove(publication.object);
            }
            let object = state.objects.entry(publication.object.to_owned()).or_default();
            object.versions.extend(publication.whole.unwrap_or_default().iter().cloned());
            if object.versions.len() as u64 + 1 != u64::from(publication.version) {
                return Err(StorageError::Occupied { object: publication.object.to_owned() });
            }
            let content = match publication.whole {
                Some(_) => String::new(),
                None => format!("v{}/content/", publication.version),
            };
            object.files.extend(staged.into_iter().map(|(name, bytes)| (content.clone() + &name, bytes)));
            object.versions.push(publication.inventory.to_vec());
        }
        Ok(())
    }

    fn move_to_staging(&self, _: &StagingId, object: &str) -> Result<(), StorageError> {
        self.state().objects.remove(object);
        Ok(())
    }

    fn replace_file(
        &self,
        staging: &StagingId,
        name: &str,
        object: &str,
        file: &str,
    ) -> Result<(), StorageError> {
        let mut state = self.state();
        let bytes =
            state.staged.get_mut(&staging.0).and_then(|staged| staged.remove(name)).unwrap_or_default();
        state.objects.entry(object.to_owned()).or_default().files.insert(file.to_owned(), bytes);
        Ok(())
    }

    fn discard(&self, staging: &StagingId) -> Result<(), StorageError> {
        self.state().staged.remove(&staging.0);
        Ok(())
    }

    fn is_free(&self, object: &str) -> Result<bool, StorageError> {
        let related = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let state = self.state();
        Ok(!state
            .objects
            .keys()
            .any(|known| known == object || related(known, object) || related(object, known)))
    }

    fn exists(&self, object: &str) -> Result<bool, StorageError> {
        Ok(self.state().objects.contains_key(object))
    }

    fn head(&self, object: &str) -> Result<Option<ObjectHead>, StorageError> {
        let state = self.state();
        let inventory = state.objects.get(object).and_then(|object| object.versions.last());
        Ok(inventory.map(|inventory| ObjectHead {
            inventory: inventory.clone(),
            digest: Inventory::digest(inventory),
        }))
    }

    fn version_digest(&self, object: &str, number: u32) -> Result<Option<String>, StorageError> {
        let state = self.state();
        let number = (number as usize).wrapping_sub(1);
        let inventory = state.objects.get(object).and_then(|object| object.versions.get(number));
        Ok(inventory.map(|inventory| Inventory::digest(inventory)))
    }

    fn recover_object(&self, _: &str, _: &mut BTreeSet<PathBuf>) -> Result<(), StorageError> {
        Ok(())
    }

    fn is_staging_empty(&self) -> Result<bool, StorageError> {
        Ok(self.state().staged.is_empty())
    }

    fn clear_staging(&self) -> Result<ClearedStaging, StorageError> {
        let mut state = self.state();
        let staged = std::mem::take(&mut state.staged);
        let bytes = staged.values().flat_map(|files| files.values()).map(|bytes| bytes.len() as u64).sum();
        Ok(ClearedStaging { stagings: staged.len() as u64, bytes })
    }

    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, StorageError> {
        let state = self.state();
        let bytes = state.objects.get(object).and_then(|object| object.files.get(file));
        match bytes {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err(StorageError::MissingFile { path: format!("{object}/{file}").into() }),
        }
    }

    fn objects(&self) -> Result<ObjectPaths<'_>, StorageError> {
        let objects: Vec<String> = self.state().objects.keys().cloned().collect();
        Ok(Box::new(objects.into_iter().map(Ok)))
    }

    fn files(&self, object: &str) -> Result<Vec<String>, StorageError> {
        let state = self.state();
        Ok(state.objects.get(object).map(|object| object.files.keys().cloned().collect()).unwrap_or_default())
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}
