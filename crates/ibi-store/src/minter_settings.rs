//! The operator's settings of a minter: the file `minter/settings` in the data folder, lines with a
//! checksum (`docs/formats/minter-state.md`). Without the file, the defaults apply.

use std::path::{Path, PathBuf};

use ibi_id::Granularity;

use crate::text_block::{self, ChecksummedBlock, TEXT_BLOCK_BYTES};
use crate::{StorageError, disk, small_file};

const MINTER_SETTINGS_TITLE: &str = "ibi minter settings, format 1";

/// The default granularity of new labels, for requests that name none; `None` if not set.
pub fn granularity(data: &Path) -> Result<Option<Granularity>, StorageError> {
    let path = settings_path(data);
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let Some(lines) = text_block::parse_block(&bytes, MINTER_SETTINGS_TITLE) else {
        let newer = bytes.starts_with(b"ibi minter settings, format ")
            && !bytes.starts_with(MINTER_SETTINGS_TITLE.as_bytes());
        return Err(if newer {
            StorageError::NewerFormat { path }
        } else {
            StorageError::DamagedSettings { path }
        });
    };
    match text_block::single_value(&lines, "granularity").map(str::parse) {
        None => Ok(None),
        Some(Ok(granularity)) => Ok(Some(granularity)),
        Some(Err(_)) => Err(StorageError::DamagedSettings { path }),
    }
}

/// Durably sets the default granularity.
pub fn set_granularity(data: &Path, granularity: Granularity) -> Result<(), StorageError> {
    let path = settings_path(data);
    let mut block = ChecksummedBlock::new(MINTER_SETTINGS_TITLE);
    block.line("granularity", granularity);
    // One short line fits into a block.
    let bytes =
        block.finish(TEXT_BLOCK_BYTES).ok_or_else(|| StorageError::DamagedSettings { path: path.clone() })?;
    small_file::replace(&path, bytes.trim_ascii_end())
}

fn settings_path(data: &Path) -> PathBuf {
    data.join("minter/settings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d37_the_setting_is_kept_and_a_damaged_one_is_no_default() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("minter")).unwrap();
        assert_eq!(granularity(folder.path()).unwrap(), None);
        set_granularity(folder.path(), Granularity::SECOND).unwrap();
        set_granularity(folder.path(), Granularity::MINUTE).unwrap();
        assert_eq!(granularity(folder.path()).unwrap(), Some(Granularity::MINUTE));
        let path = settings_path(folder.path());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("granularity 60", "granularity 61")).unwrap();
        assert!(matches!(granularity(folder.path()), Err(StorageError::DamagedSettings { .. })));
        std::fs::write(&path, text.replace("format 1", "format 2")).unwrap();
        assert!(matches!(granularity(folder.path()), Err(StorageError::NewerFormat { .. })));
    }

    /// As shown in `docs/formats/minter-state.md`.
    #[test]
    fn a_frozen_file_is_read_and_written_as_it_was() {
        let frozen = include_str!("../tests/samples/minter-settings-1");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("minter")).unwrap();
        std::fs::write(settings_path(folder.path()), frozen).unwrap();
        let read = granularity(folder.path()).unwrap().unwrap();
        assert_eq!(read, Granularity::SECOND);
        set_granularity(folder.path(), read).unwrap();
        assert_eq!(std::fs::read_to_string(settings_path(folder.path())).unwrap(), frozen);
    }
}
