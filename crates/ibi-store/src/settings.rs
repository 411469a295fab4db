//! The identity of an Archive: the file `archive` in the data folder, lines with a checksum. It
//! also has the format of the whole folder (`docs/formats/data-folder.md`).

use std::path::Path;

use crate::text_block::{self, ChecksummedBlock, TEXT_BLOCK_BYTES};
use crate::{StorageError, disk, small_file};

const ARCHIVE_SETTINGS_TITLE: &str = "ibi archive, format 1";

/// The lines of the file; `None` if it is missing.
pub fn read(data: &Path) -> Result<Option<Vec<(String, String)>>, StorageError> {
    let path = data.join("archive");
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let Some(lines) = text_block::parse_block(&bytes, ARCHIVE_SETTINGS_TITLE) else {
        let newer = bytes.starts_with(b"ibi archive, format ")
            && !bytes.starts_with(ARCHIVE_SETTINGS_TITLE.as_bytes());
        return Err(if newer {
            StorageError::NewerFormat { path }
        } else {
            StorageError::DamagedSettings { path }
        });
    };
    Ok(Some(lines.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

/// Durably writes the file.
pub fn write(data: &Path, lines: &[(String, String)]) -> Result<(), StorageError> {
    let mut block = ChecksummedBlock::new(ARCHIVE_SETTINGS_TITLE);
    for (name, value) in lines {
        block.line(name, value);
    }
    let path = data.join("archive");
    // Four labels fit into a block.
    let bytes =
        block.finish(TEXT_BLOCK_BYTES).ok_or_else(|| StorageError::DamagedSettings { path: path.clone() })?;
    small_file::replace(&path, bytes.trim_ascii_end())
}
