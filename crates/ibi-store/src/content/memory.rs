//! Content in memory, for tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::KeepError;
use crate::content::{Content, Head, Objects, Publication, ReadAt, Staging, Swept};
use crate::digests::Digests;
use crate::ocfl::Inventory;

type Files = BTreeMap<String, Vec<u8>>;

/// A tree in memory, as small as it can be.
#[derive(Debug, Default)]
pub struct MemoryContent(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    staged: HashMap<u64, Files>,
    objects: BTreeMap<String, Object>,
}

#[derive(Debug, Default)]
struct Object {
    files: Files,
    /// The inventory of each version.
    versions: Vec<Vec<u8>>,
}

impl MemoryContent {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content for MemoryContent {
    fn room(&self) -> Result<(), KeepError> {
        Ok(())
    }

    fn stage(&self) -> Result<Staging, KeepError> {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.staged.insert(number, Files::new());
        Ok(Staging(number))
    }

    fn put(&self, staging: &Staging, name: &str, bytes: &mut dyn Read) -> Result<Digests, KeepError> {
        let mut all = Vec::new();
        let read = bytes.read_to_end(&mut all);
        read.map_err(|error| KeepError::Source { name: name.to_owned(), error })?;
        let digests = Digests::of(&all);
        self.state().staged.entry(staging.0).or_default().insert(name.to_owned(), all);
        Ok(digests)
    }

    fn put_file(&self, staging: &Staging, name: &str, file: &Path) -> Result<(), KeepError> {
        let bytes = std::fs::read(file).map_err(KeepError::io("read", file))?;
        self.put(staging, name, &mut &bytes[..]).map(drop)
    }

    fn take_back(&self, staging: &Staging, name: &str) -> Result<(), KeepError> {
        self.state().staged.entry(staging.0).or_default().remove(name);
        Ok(())
    }

    fn secure(&self, _: &[Publication<'_>]) -> Result<(), KeepError> {
        Ok(())
    }

    fn publish(&self, publications: &[Publication<'_>]) -> Result<(), KeepError> {
        for publication in publications {
            let new = publication.version == 1 || publication.whole.is_some();
            if new && !publication.instead && !self.is_free(publication.object)? {
                return Err(KeepError::Occupied { object: publication.object.to_owned() });
            }
            let mut state = self.state();
            let staged = state.staged.remove(&publication.staging.0).unwrap_or_default();
            if publication.instead {
                state.objects.remove(publication.object);
            }
            let object = state.objects.entry(publication.object.to_owned()).or_default();
            object.versions.extend(publication.whole.unwrap_or_default().iter().cloned());
            if object.versions.len() as u64 + 1 != u64::from(publication.version) {
                return Err(KeepError::Occupied { object: publication.object.to_owned() });
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

    fn take_out(&self, _: &Staging, object: &str) -> Result<(), KeepError> {
        self.state().objects.remove(object);
        Ok(())
    }

    fn mend(&self, staging: &Staging, name: &str, object: &str, file: &str) -> Result<(), KeepError> {
        let mut state = self.state();
        let bytes =
            state.staged.get_mut(&staging.0).and_then(|staged| staged.remove(name)).unwrap_or_default();
        state.objects.entry(object.to_owned()).or_default().files.insert(file.to_owned(), bytes);
        Ok(())
    }

    fn discard(&self, staging: &Staging) -> Result<(), KeepError> {
        self.state().staged.remove(&staging.0);
        Ok(())
    }

    fn is_free(&self, object: &str) -> Result<bool, KeepError> {
        let related = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let state = self.state();
        Ok(!state
            .objects
            .keys()
            .any(|known| known == object || related(known, object) || related(object, known)))
    }

    fn exists(&self, object: &str) -> Result<bool, KeepError> {
        Ok(self.state().objects.contains_key(object))
    }

    fn head(&self, object: &str) -> Result<Option<Head>, KeepError> {
        let state = self.state();
        let inventory = state.objects.get(object).and_then(|object| object.versions.last());
        Ok(inventory
            .map(|inventory| Head { inventory: inventory.clone(), digest: Inventory::digest(inventory) }))
    }

    fn version(&self, object: &str, number: u32) -> Result<Option<String>, KeepError> {
        let state = self.state();
        let number = (number as usize).wrapping_sub(1);
        let inventory = state.objects.get(object).and_then(|object| object.versions.get(number));
        Ok(inventory.map(|inventory| Inventory::digest(inventory)))
    }

    fn settle(&self, _: &str, _: &mut BTreeSet<PathBuf>) -> Result<(), KeepError> {
        Ok(())
    }

    fn is_swept(&self) -> Result<bool, KeepError> {
        Ok(self.state().staged.is_empty())
    }

    fn sweep(&self) -> Result<Swept, KeepError> {
        let mut state = self.state();
        let staged = std::mem::take(&mut state.staged);
        let bytes = staged.values().flat_map(|files| files.values()).map(|bytes| bytes.len() as u64).sum();
        Ok(Swept { stagings: staged.len() as u64, bytes })
    }

    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, KeepError> {
        let state = self.state();
        let bytes = state.objects.get(object).and_then(|object| object.files.get(file));
        match bytes {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err(KeepError::MissingFile { path: format!("{object}/{file}").into() }),
        }
    }

    fn objects(&self) -> Result<Objects<'_>, KeepError> {
        let objects: Vec<String> = self.state().objects.keys().cloned().collect();
        Ok(Box::new(objects.into_iter().map(Ok)))
    }

    fn files(&self, object: &str) -> Result<Vec<String>, KeepError> {
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
