//! Cache of object parts, shared by concurrent and subsequent requests: one request reads a part,
//! the others wait for it. All of it is counted against the memory budget.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use ibi_http::{MemoryBudget, MemoryGrant, Problem};
use ibi_store::index::FileRecord;
use ibi_store::ocfl::INVENTORY_FILE;
use tokio::sync::OnceCell;

use super::ArchiveEngine;
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::object::listing::{RootInventory, VersionListing};
use crate::replica::object_description::embedded_files;
use crate::replica::object_reader::ObjectReader;

/// The cache may use this fraction of the memory budget: 1/n.
const CACHE_BUDGET_DIVISOR: u64 = 2;

/// How long a request waits for another that reads the same part.
const SHARED_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum number of cells whose read was started and never completed.
const MAX_ABANDONED_CELLS: usize = 1000;

/// Maximum size of an inventory to read, unless a quarter of the memory budget is more.
pub(crate) const MAX_INVENTORY_BYTES: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct SharedObjectCache {
    state: Mutex<SharedCacheState>,
}

#[derive(Debug, Default)]
struct SharedCacheState {
    /// Cells of parts that are being read or were read.
    cells: HashMap<SharedCacheKey, Arc<SharedCacheCell>>,
    /// Cached parts with their sizes, least recently used first.
    kept: VecDeque<(SharedCacheKey, u64)>,
    kept_bytes: u64,
}

type SharedCacheCell = OnceCell<SharedCacheEntry>;

/// A [`SharedObjectPart`] of any type.
type SharedCacheEntry = Arc<dyn Any + Send + Sync>;

/// A value with its memory grant, released when the last user drops it.
#[derive(Debug)]
pub(crate) struct SharedObjectPart<T> {
    value: T,
    _grant: MemoryGrant,
}

impl<T> Deref for SharedObjectPart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Identifies a part in the state it had on disk when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SharedCacheKey {
    path: String,
    generation: u64,
    /// Inode, size and mtime of the root inventory: every change to the object changes these.
    stamp: (u64, u64, i64, i64),
    part: ObjectPart,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ObjectPart {
    Inventory,
    Listing(u32),
    SmallFiles { open: bool },
    File(String),
}

/// The small files of an object, as JSON, shared by all responses that send them.
#[derive(Debug)]
struct SmallFilesJson(Bytes);

/// Why a part could not be read.
#[derive(Debug)]
pub(crate) enum SharedReadError {
    /// An error of the Archive.
    Archive(ArchiveError),
    /// Too large for this server, or no memory at the moment.
    Refused(Problem),
}

impl From<ArchiveError> for SharedReadError {
    fn from(error: ArchiveError) -> Self {
        SharedReadError::Archive(error)
    }
}

/// A value, its size in memory, and whether to cache it.
struct LoadedObjectPart<T> {
    value: T,
    bytes: u64,
    is_kept: bool,
}

/// The inventory of the object at a path; `None` if there is none.
pub(crate) async fn inventory(
    desk: &Arc<ArchiveEngine>,
    path: &str,
) -> Result<Option<Arc<SharedObjectPart<RootInventory>>>, SharedReadError> {
    let size = inventory_size(desk, path)?;
    let asked = path.to_owned();
    get_or_read(desk, path, ObjectPart::Inventory, 2 * size, move |holdings| {
        let read = RootInventory::read(&*holdings.content, &asked)?;
        Ok(read.map(|value| LoadedObjectPart { bytes: value.memory_bytes(), value, is_kept: true }))
    })
    .await
}

/// The files of a version of the object at a path; `None` if there is no such version.
pub(crate) async fn listing(
    desk: &Arc<ArchiveEngine>,
    path: &str,
    version: u32,
) -> Result<Option<Arc<SharedObjectPart<VersionListing>>>, SharedReadError> {
    let Some(inventory) = inventory(desk, path).await? else { return Ok(None) };
    let (asked, size) = (path.to_owned(), inventory_size(desk, path)?);
    get_or_read(desk, path, ObjectPart::Listing(version), 2 * size, move |holdings| {
        let read = VersionListing::read(&*holdings.content, &asked, &inventory.compact, version)?;
        Ok(read.map(|value| LoadedObjectPart { bytes: value.memory_bytes(), value, is_kept: true }))
    })
    .await
}

/// The small files of an object as JSON; those in `doc/` only if `open`. Not cached: other Archives
/// fetch them to check fixity.
pub(crate) async fn small_files_json(
    desk: &Arc<ArchiveEngine>,
    path: &str,
    inventory: &Arc<SharedObjectPart<RootInventory>>,
    open: bool,
) -> Result<Bytes, SharedReadError> {
    /// Base64, the map and the text for at most 1 MiB of files.
    const SMALL_FILES_JSON_BYTES: u64 = 5 << 20;
    let (asked, inventory) = (path.to_owned(), Arc::clone(inventory));
    let weight = inventory_size(desk, path)? + SMALL_FILES_JSON_BYTES;
    let made = get_or_read(desk, path, ObjectPart::SmallFiles { open }, weight, move |holdings| {
        let files = embedded_files(&ObjectReader::for_object(holdings, &asked, &inventory), open);
        // Strings only: serialization cannot fail.
        let text = serde_json::to_vec(&files).unwrap_or_default();
        let bytes = text.len() as u64;
        Ok(Some(LoadedObjectPart { value: SmallFilesJson(text.into()), bytes, is_kept: false }))
    });
    Ok(made.await?.map(|files| Bytes::from_owner(SharedBytes(files))).unwrap_or_default())
}

/// Keeps the bytes and their memory grant alive until they are sent.
struct SharedBytes(Arc<SharedObjectPart<SmallFilesJson>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0.value.0
    }
}

/// A file without block digests, identified by its name, path and digest in the inventory.
pub(crate) async fn whole_file(
    desk: &Arc<ArchiveEngine>,
    path: &str,
    inventory: &Arc<SharedObjectPart<RootInventory>>,
    (name, place, digest): (&str, &str, &str),
) -> Result<Arc<SharedObjectPart<FileRecord>>, SharedReadError> {
    let (asked, inventory) = (path.to_owned(), Arc::clone(inventory));
    let key = ObjectPart::File(name.to_owned());
    let (name, place, digest) = (name.to_owned(), place.to_owned(), digest.to_owned());
    let size = fs::metadata(desk.data().join("tree").join(path).join(&place)).map_or(0, |file| file.len());
    let made = get_or_read(desk, path, key, 2 * size, move |holdings| {
        let value =
            ObjectReader::for_object(holdings, &asked, &inventory).read_whole_file(&place, &name, &digest)?;
        let bytes = (value.blocks.len() + value.name.len() + value.content.len() + 1024) as u64;
        Ok(Some(LoadedObjectPart { value, bytes, is_kept: true }))
    });
    let missing = || ArchiveError::Lost { label: path.to_owned() };
    Ok(made.await?.ok_or_else(missing)?)
}

/// The size of the root inventory; fails if it is too large to read here.
fn inventory_size(desk: &ArchiveEngine, path: &str) -> Result<u64, SharedReadError> {
    let size = inventory_stamp(desk, path).1;
    let most = MAX_INVENTORY_BYTES.max(desk.memory().bytes() / 4);
    if size > most {
        let detail = format!(
            "the inventory of this item has {size} bytes, and this server reads at most {most}: its operator can give it more memory"
        );
        let status = StatusCode::INSUFFICIENT_STORAGE;
        return Err(SharedReadError::Refused(Problem::new(
            status,
            "too-large-here",
            "Too large here",
            detail,
        )));
    }
    Ok(size)
}

/// The size of the root inventory of the object at a path; 0 if there is none.
pub(crate) fn inventory_bytes(desk: &ArchiveEngine, path: &str) -> u64 {
    inventory_stamp(desk, path).1
}

fn inventory_stamp(desk: &ArchiveEngine, path: &str) -> (u64, u64, i64, i64) {
    let inventory = desk.data().join("tree").join(path).join(INVENTORY_FILE);
    fs::metadata(inventory)
        .map_or((0, 0, 0, 0), |file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

/// Returns a part from the cache, or reads it within `weight` bytes of memory.
async fn get_or_read<T: Send + Sync + 'static>(
    desk: &Arc<ArchiveEngine>,
    path: &str,
    part: ObjectPart,
    weight: u64,
    read: impl FnOnce(&Holdings) -> Result<Option<LoadedObjectPart<T>>, ArchiveError> + Send + 'static,
) -> Result<Option<Arc<SharedObjectPart<T>>>, SharedReadError> {
    let key = SharedCacheKey {
        path: path.to_owned(),
        generation: desk.generation(),
        stamp: inventory_stamp(desk, path),
        part,
    };
    let cell = desk.shared.cell(&key);
    let made = async {
        let grant =
            desk.grant(weight + 4096).await.map_err(|problem| Some(SharedReadError::Refused(problem)))?;
        let reader = Arc::clone(desk);
        let run = desk.memory().run(grant, move || reader.read().and_then(|holdings| read(&holdings)));
        let (made, grant) = run.await.map_err(|problem| Some(SharedReadError::Refused(problem)))?;
        let Some(LoadedObjectPart { value, bytes, is_kept }) = made.map_err(|error| Some(error.into()))?
        else {
            return Err(None);
        };
        let grant = grant.shrink_to(bytes);
        // A value that is not cached belongs to one client, which may be slow to receive it.
        let grant = if is_kept { grant.count_as_shared() } else { grant };
        let entry: SharedCacheEntry = Arc::new(SharedObjectPart { value, _grant: grant });
        match is_kept {
            true => desk.shared.keep(&key, bytes, desk.memory()),
            // Current waiters get it; later requests read again.
            false => desk.shared.forget(&key, &cell),
        }
        Ok(entry)
    };
    let found = tokio::time::timeout(SHARED_READ_TIMEOUT, cell.get_or_try_init(|| made)).await;
    let entry = match found {
        Ok(Ok(entry)) => entry.clone(),
        Ok(Err(Some(error))) => {
            desk.shared.forget(&key, &cell);
            return Err(error);
        }
        Ok(Err(None)) => {
            desk.shared.forget(&key, &cell);
            return Ok(None);
        }
        Err(_) => {
            let detail = "too many large responses in progress; retry";
            return Err(SharedReadError::Refused(Problem::unavailable(detail)));
        }
    };
    desk.shared.mark_used(&key);
    // A key always has the same type, so the downcast succeeds.
    Ok(entry.downcast().ok())
}

impl SharedObjectCache {
    fn cell(&self, key: &SharedCacheKey) -> Arc<SharedCacheCell> {
        let mut state = self.lock();
        // The clients may have disconnected before the read completed.
        if state.cells.len() > state.kept.len() + MAX_ABANDONED_CELLS {
            state.cells.retain(|_, cell| cell.initialized() || Arc::strong_count(cell) > 1);
        }
        Arc::clone(state.cells.entry(key.clone()).or_default())
    }

    /// Caches a value and evicts the least recently used ones beyond the limit.
    fn keep(&self, key: &SharedCacheKey, bytes: u64, memory: &MemoryBudget) {
        let mut state = self.lock();
        state.kept.push_back((key.clone(), bytes));
        state.kept_bytes += bytes;
        while state.kept_bytes > memory.bytes() / CACHE_BUDGET_DIVISOR && state.drop_oldest() {}
    }

    /// Evicts cached parts until `bytes` are free.
    pub(super) fn make_room(&self, memory: &MemoryBudget, bytes: u64) {
        let wanted = bytes.min(memory.bytes());
        while memory.free_bytes() < wanted && self.lock().drop_oldest() {}
    }

    fn mark_used(&self, key: &SharedCacheKey) {
        let mut state = self.lock();
        if let Some(at) = state.kept.iter().position(|(kept, _)| kept == key)
            && let Some(kept) = state.kept.remove(at)
        {
            state.kept.push_back(kept);
        }
    }

    /// Removes an uninitialized cell, unless another has replaced it.
    fn forget(&self, key: &SharedCacheKey, cell: &Arc<SharedCacheCell>) {
        let mut state = self.lock();
        if !cell.initialized() && state.cells.get(key).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            state.cells.remove(key);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SharedCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedCacheState {
    fn drop_oldest(&mut self) -> bool {
        let Some((key, bytes)) = self.kept.pop_front() else { return false };
        self.kept_bytes -= bytes;
        self.cells.remove(&key);
        true
    }
}
