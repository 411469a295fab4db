//! What an Archive is: the file `archive` in the data folder, lines with a checksum, which also tells the format of the
//! whole folder (`docs/formats/data-folder.md`).

use std::path::Path;

use crate::text::{self, BLOCK, Block};
use crate::{KeepError, disk};

const TITLE: &str = "ibi archive, format 1";

/// The lines of the file; nothing if there is none.
pub fn read(data: &Path) -> Result<Option<Vec<(String, String)>>, KeepError> {
    let path = data.join("archive");
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let Some(lines) = text::read(&bytes, TITLE) else {
        let newer = bytes.starts_with(b"ibi archive, format ") && !bytes.starts_with(TITLE.as_bytes());
        return Err(if newer {
            KeepError::NewerFormat { path }
        } else {
            KeepError::DamagedSettings { path }
        });
    };
    Ok(Some(lines.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

/// Writes the file, durably.
pub fn write(data: &Path, lines: &[(String, String)]) -> Result<(), KeepError> {
    let mut block = Block::new(TITLE);
    for (name, value) in lines {
        block.line(name, value);
    }
    let path = data.join("archive");
    // Four labels fit a block.
    let bytes = block.finish(BLOCK).ok_or_else(|| KeepError::DamagedSettings { path: path.clone() })?;
    disk::replace_in(&path, &data.join("staging"), bytes.trim_ascii_end())
}
