//! The one way to change a small file (tokens, settings, trusted Archives, notes). Under an
//! exclusive lock, the file is read, changed, written to a temporary file, synced and renamed, and
//! its folder is synced. No update is lost, and a reader finds either the old file or the new one,
//! complete.

use std::convert::Infallible;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::{StorageError, disk};

/// The lock file for changes to the small files of a folder. It is private, so that no other user
/// of the machine can take the lock. It is never removed, because waiting processes have it open.
const LOCK_FILE: &str = ".small-files.lock";

/// Retries of a held lock, and the delay between them: half a minute in all. A change takes a few
/// milliseconds.
const MAX_LOCK_TRIES: u32 = 6_000;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(5);

/// Changes a file, readable by its owner only. `change` receives the current content and returns
/// the new one. If it returns an error, nothing changes and the error is passed on. Creates missing
/// folders.
pub fn change<E>(
    path: &Path,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>, E>,
) -> Result<Result<(), E>, StorageError> {
    change_below(path.parent().unwrap_or(path), path, change)
}

/// Changes a file under the lock of a folder above it, where readers would take a lock file in the
/// file's own folder for a note.
fn change_below<E>(
    lock_folder: &Path,
    path: &Path,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>, E>,
) -> Result<Result<(), E>, StorageError> {
    let folder = path.parent().unwrap_or(path);
    let mut renamed = Vec::new();
    disk::make_folders(folder, &mut renamed)?;
    renamed.iter().try_for_each(|above| disk::sync(above))?;
    let _lock = lock(lock_folder)?;
    match change(disk::read(path)?) {
        Ok(bytes) => write(path, folder, &bytes).map(Ok),
        Err(refused) => Ok(Err(refused)),
    }
}

/// Replaces a file, whatever its content.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let Ok(()) = change(path, |_| Ok::<_, Infallible>(bytes.to_vec()))?;
    Ok(())
}

/// Replaces a file under the lock of a folder above it.
pub fn replace_below(lock_folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let Ok(()) = change_below(lock_folder, path, |_| Ok::<_, Infallible>(bytes.to_vec()))?;
    Ok(())
}

fn lock(folder: &Path) -> Result<File, StorageError> {
    let path = folder.join(LOCK_FILE);
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = opened.map_err(StorageError::io("open", &path))?;
    for _ in 0..MAX_LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_DELAY),
            Err(TryLockError::Error(error)) => return Err(StorageError::io("lock", &path)(error)),
        }
    }
    let held = std::io::Error::new(std::io::ErrorKind::TimedOut, "another process holds it");
    Err(StorageError::io("lock", &path)(held))
}

fn write(path: &Path, folder: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let fresh = path.with_extension("new");
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let mut file = opened.map_err(StorageError::io("write", &fresh))?;
    file.write_all(bytes).map_err(StorageError::io("write", &fresh))?;
    file.sync_all().map_err(StorageError::not_durable(&fresh))?;
    disk::rename(&fresh, path)?;
    disk::sync(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Concurrent changes are all kept.
    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/list");
        std::thread::scope(|scope| {
            for worker in 0..8_u32 {
                let path = &path;
                scope.spawn(move || {
                    for line in 0..20_u32 {
                        let changed = change(path, |before| {
                            let mut text = before.unwrap_or_default();
                            text.extend(format!("{worker} {line}\n").bytes());
                            Ok::<_, Infallible>(text)
                        });
                        changed.unwrap().unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().collect::<std::collections::BTreeSet<_>>().len(), 160);
        assert_eq!(text.lines().count(), 160);
    }

    #[test]
    fn a_refused_change_has_no_effect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        replace(&path, b"one").unwrap();
        let refused = change(&path, |before| {
            assert_eq!(before.as_deref(), Some(&b"one"[..]));
            Err("no")
        });
        assert_eq!(refused.unwrap(), Err("no"));
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn the_file_and_its_lock_are_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        replace(&path, b"one").unwrap();
        for file in [path, folder.path().join(LOCK_FILE)] {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
