//! What an operator sets of a minter: the file `minter/settings` in the data folder, lines with a
//! checksum (`docs/formats/minter-state.md`). Without the file, everything has its default.

use std::path::{Path, PathBuf};

use ibi_id::Granularity;

use crate::text::{self, BLOCK, Block};
use crate::{KeepError, disk};

const TITLE: &str = "ibi minter settings, format 1";

/// The granularity that labels are minted with when a call names none; nothing if none was set.
pub fn granularity(data: &Path) -> Result<Option<Granularity>, KeepError> {
    let path = place(data);
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let Some(lines) = text::read(&bytes, TITLE) else {
        let newer =
            bytes.starts_with(b"ibi minter settings, format ") && !bytes.starts_with(TITLE.as_bytes());
        return Err(if newer {
            KeepError::NewerFormat { path }
        } else {
            KeepError::DamagedSettings { path }
        });
    };
    match text::value(&lines, "granularity").map(str::parse) {
        None => Ok(None),
        Some(Ok(granularity)) => Ok(Some(granularity)),
        Some(Err(_)) => Err(KeepError::DamagedSettings { path }),
    }
}

/// Sets it, durably.
pub fn set_granularity(data: &Path, granularity: Granularity) -> Result<(), KeepError> {
    let path = place(data);
    let mut block = Block::new(TITLE);
    block.line("granularity", granularity);
    // One short line fits a block.
    let bytes = block.finish(BLOCK).ok_or_else(|| KeepError::DamagedSettings { path: path.clone() })?;
    disk::replace_in(&path, &data.join("minter"), bytes.trim_ascii_end())
}

fn place(data: &Path) -> PathBuf {
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
        let path = place(folder.path());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("granularity 60", "granularity 61")).unwrap();
        assert!(matches!(granularity(folder.path()), Err(KeepError::DamagedSettings { .. })));
        std::fs::write(&path, text.replace("format 1", "format 2")).unwrap();
        assert!(matches!(granularity(folder.path()), Err(KeepError::NewerFormat { .. })));
    }

    /// As `docs/formats/minter-state.md` shows it.
    #[test]
    fn a_frozen_file_is_read_and_written_as_it_was() {
        let frozen = include_str!("../tests/samples/minter-settings-1");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("minter")).unwrap();
        std::fs::write(place(folder.path()), frozen).unwrap();
        let read = granularity(folder.path()).unwrap().unwrap();
        assert_eq!(read, Granularity::SECOND);
        set_granularity(folder.path(), read).unwrap();
        assert_eq!(std::fs::read_to_string(place(folder.path())).unwrap(), frozen);
    }
}
