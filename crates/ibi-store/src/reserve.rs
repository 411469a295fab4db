//! Disk space reserved for operations that free space.
//!
//! All writers leave a part of the disk free ([`crate::check_disk_space`]), but other programs may
//! fill it. So a data folder has a file that reserves some blocks. Destroying an item releases them
//! first if no other space is left, and the next opening reserves them again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::FallocateFlags;

use crate::disk::{self, StorageFilesystem};
use crate::{StorageError, check_disk_space};

/// The name of the file in a data folder.
const RESERVE_FILE: &str = "reserve";

/// Maximum size of the file: enough for a tombstone, a journal line and the index's write-ahead
/// log.
const MAX_RESERVE_BYTES: u64 = 4 << 20;

/// With less free space than this, an operation that frees space may fail without the reserve.
const MIN_WORKING_BYTES: u64 = 2 << 20;

/// Allocates the reserve of a data folder, if it is missing and there is space for it.
pub fn allocate_reserve(data: &Path) -> Result<(), StorageError> {
    let path = data.join(RESERVE_FILE);
    if path.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let (_, reserve) = StorageFilesystem::at(data)?.free_and_reserved()?;
    let size = (reserve / 2).min(MAX_RESERVE_BYTES);
    if size == 0 || check_disk_space(data, size).is_err() {
        return Ok(());
    }
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let file = opened.map_err(StorageError::io("create", &path))?;
    crate::private_files::chown_to_folder_owner(&file, data)
        .map_err(StorageError::io("change the owner of", &path))?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
        // A filesystem that cannot preallocate blocks has no reserve.
        Err(_) => file.set_len(0).map_err(StorageError::io("write", &path)),
        Ok(()) => file.sync_all().map_err(StorageError::io("sync", &path)),
    }
}

/// Releases the reserve, if there is too little space without it.
pub fn release_if_needed(data: &Path) -> Result<(), StorageError> {
    let path = data.join(RESERVE_FILE);
    let (free, _) = StorageFilesystem::at(data)?.free_and_reserved()?;
    if free >= MIN_WORKING_BYTES || !path.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let file = match OpenOptions::new().write(true).open(&path) {
        Err(error) if disk::is_not_found(&error) => return Ok(()),
        opened => opened.map_err(StorageError::io("open", &path))?,
    };
    file.set_len(0).map_err(StorageError::io("write", &path))?;
    // The blocks become available only once this is durable.
    File::sync_all(&file).map_err(StorageError::io("sync", &path))
}
