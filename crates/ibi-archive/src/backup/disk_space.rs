//! Checks the free disk space, including the reserve, before an Archive is copied.

use std::fs::{self, Metadata};
use std::path::Path;

use crate::ArchiveError;

/// The allocation unit of filesystems, in bytes.
const FILESYSTEM_BLOCK_BYTES: u64 = 4 << 10;

/// Files copied in addition to the tree.
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

/// Estimated bytes of a rebuilt index for each byte of the journal.
const INDEX_BYTES_PER_JOURNAL_BYTE: u64 = 2;

/// Fails if the disk has no space for a backup.
pub(super) fn check_backup(data: &Path, out: &Path) -> Result<(), ArchiveError> {
    check_space(out, missing_bytes(data, out)?)
}

/// Fails if the disk has no space for a restored Archive and its index.
pub(super) fn check_restoration(from: &Path, data: &Path) -> Result<(), ArchiveError> {
    let journal = fs::metadata(from.join("journal")).map_or(0, |file| file.len());
    check_space(data, missing_bytes(from, data)? + INDEX_BYTES_PER_JOURNAL_BYTE * journal)
}

fn check_space(to: &Path, bytes: u64) -> Result<(), ArchiveError> {
    let to = std::path::absolute(to).map_err(ArchiveError::io("find", to))?;
    let there = to.ancestors().find(|above| above.exists()).unwrap_or(&to);
    Ok(ibi_store::check_disk_space(there, bytes)?)
}

/// The space for what a copy lacks. Files outside the tree are replaced: the new one is written
/// before the old one is removed.
fn missing_bytes(from: &Path, to: &Path) -> Result<u64, ArchiveError> {
    let others = COPIED_STATE_FILES.iter().filter_map(|name| fs::metadata(from.join(name)).ok());
    let others: u64 = others.map(|file| allocated_bytes(&file)).sum();
    Ok(others + missing_bytes_below(&from.join("tree"), &to.join("tree"))?)
}

fn missing_bytes_below(from: &Path, to: &Path) -> Result<u64, ArchiveError> {
    let mut bytes = if to.exists() { 0 } else { FILESYSTEM_BLOCK_BYTES };
    for entry in fs::read_dir(from).map_err(ArchiveError::io("read", from))? {
        let entry = entry.map_err(ArchiveError::io("read", from))?;
        // Removed meanwhile, or unreadable: copying it reports that.
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
