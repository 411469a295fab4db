//! Whether there is room for a copy of an Archive, and for what is kept free of the disk, before
//! anything is copied.

use std::fs::{self, Metadata};
use std::path::Path;

use crate::ArchiveError;

/// The unit in which filesystems give room, in bytes.
const FILESYSTEM_BLOCK_BYTES: u64 = 4 << 10;

/// What is copied beside the tree.
const COPIED_STATE_FILES: [&str; 9] = [
    "archive",
    "journal",
    "minter/state",
    "minter/settings",
    "service/state.sqlite",
    "service/tokens.json",
    "service/link-key",
    "service/trusted-archives",
    "service/trusted-givers",
];

/// How much of the disk the index takes that is made anew, for each byte of the journal.
const INDEX_BYTES_PER_JOURNAL_BYTE: u64 = 2;

/// Refuses to begin a backup for which the disk has no room.
pub(super) fn check_backup(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    check_space(out, missing_bytes(data, out)?)
}

/// The same of a restoration, which makes the index, too.
pub(super) fn check_restoration(from: &Path, data: &Path) -> Result<(), ArchiveError> {
    let journal = fs::metadata(from.join("journal")).map_or(0, |file| file.len());
    check_space(data, missing_bytes(from, data)? + INDEX_BYTES_PER_JOURNAL_BYTE * journal)
}

fn check_space(to: &Path, bytes: u64) -> Result<(), ArchiveError> {
    let to = std::path::absolute(to).map_err(ArchiveError::io("find", to))?;
    let there = to.ancestors().find(|above| above.exists()).unwrap_or(&to);
    Ok(ibi_store::check_disk_space(there, bytes)?)
}

/// The room for what a copy lacks. Files beside the tree are written anew, each before the old one
/// goes.
fn missing_bytes(from: &Path, to: &Path) -> Result<u64, ArchiveError> {
    let others = COPIED_STATE_FILES.iter().filter_map(|name| fs::metadata(from.join(name)).ok());
    let others: u64 = others.map(|file| allocated_bytes(&file)).sum();
    Ok(others + missing_bytes_below(&from.join("tree"), &to.join("tree"))?)
}

fn missing_bytes_below(from: &Path, to: &Path) -> Result<u64, ArchiveError> {
    let mut bytes = if to.exists() { 0 } else { FILESYSTEM_BLOCK_BYTES };
    for entry in fs::read_dir(from).map_err(ArchiveError::io("read", from))? {
        let entry = entry.map_err(ArchiveError::io("read", from))?;
        // Gone meanwhile, or not readable: whoever copies it tells of that.
        let Ok(found) = entry.metadata() else { continue };
        let there = to.join(entry.file_name());
        if found.is_dir() {
            bytes += missing_bytes_below(&entry.path(), &there)?;
        } else if fs::metadata(&there).map_or(true, |there| there.len() != found.len()) {
            bytes += allocated_bytes(&found);
        }
    }
    Ok(bytes)
}

fn allocated_bytes(file: &Metadata) -> u64 {
    file.len().next_multiple_of(FILESYSTEM_BLOCK_BYTES)
}
