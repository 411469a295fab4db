//! The data folder: its lock, its index, and which journal lines its tree has.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ibi_mint::clock::MintClock;
use ibi_store::journal::{Journal, JournalEntry, JournalReadSummary, Verb};
use ibi_store::{ContentStorage, DataFolderLock, StorageError};

use super::current_second;
use crate::ArchiveError;
use crate::object::short_digest;

/// Retries for the lock: other commands finish soon.
const MAX_LOCK_ATTEMPTS: u32 = 100;
const LOCK_RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// The index of a data folder.
pub(crate) fn index_path(data: &Path) -> PathBuf {
    data.join("index.sqlite")
}

/// Locks a data folder, waiting for other commands to finish.
pub(crate) fn lock_data_folder(data: &Path) -> Result<DataFolderLock, ArchiveError> {
    for _ in 0..MAX_LOCK_ATTEMPTS {
        if let Some(lock) = DataFolderLock::try_lock(data)? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
    Err(ArchiveError::Held { data: data.to_owned() })
}

/// The folder of an item's partial fetch. The slash is the only character of a label that is
/// invalid in a file name.
pub(crate) fn partial_fetch_folder(data: &Path, path: &str) -> PathBuf {
    data.join("service/copies").join(path.replace('/', "+"))
}

pub(crate) fn remove_if_exists(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ArchiveError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Finds the lines of the last batch whose changes were not made, and appends voids for them to the
/// journal.
pub(crate) fn void_unapplied_lines(
    content: &dyn ContentStorage,
    journal: &mut Journal,
    reading: &JournalReadSummary,
    clock: &dyn MintClock,
) -> Result<BTreeSet<u64>, ArchiveError> {
    let (mut void, mut durable) = (BTreeSet::new(), BTreeSet::new());
    for entry in &reading.last_batch {
        let alone = entry.depends_on.is_some_and(|line| void.contains(&line));
        if alone || !is_applied(content, entry, &mut durable)? {
            void.insert(entry.change);
        }
    }
    if !void.is_empty() {
        journal.void(&current_second(clock).to_string(), &void)?;
    }
    Ok(void)
}

/// Whether the tree has the change of a line. Damage does not count as missing: the line would be
/// voided for good.
pub(crate) fn is_applied(
    content: &dyn ContentStorage,
    entry: &JournalEntry,
    durable: &mut BTreeSet<PathBuf>,
) -> Result<bool, ArchiveError> {
    let settled = content.recover_object(&entry.path, durable);
    if entry.verb == Verb::Drop {
        return Ok(!content.exists(&entry.path)?);
    }
    let is_it = |digest: &str| short_digest(digest) == entry.inventory;
    let found = settled.and_then(|()| content.version_digest(&entry.path, entry.version));
    match found {
        Ok(Some(digest)) if is_it(&digest) => Ok(true),
        // A damaged version inventory does not invalidate the root inventory of the object.
        Ok(_) => Ok(content.head(&entry.path)?.is_some_and(|head| is_it(&head.digest))),
        Err(StorageError::DamagedInventory { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
