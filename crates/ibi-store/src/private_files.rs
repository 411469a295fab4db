//! Folders and files that no other user of the machine can read, lock or write.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The mode of a private folder: access for its owner only.
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// The permissions of group and others.
const OTHERS_PERMISSION_BITS: u32 = 0o077;

/// The lock file in a private folder. A lock on the folder itself could be taken by anyone who can
/// read the folder.
const FOLDER_LOCK_FILE: &str = "lock";

/// Makes all new files and folders of this process private to its user. Does not apply if root
/// works in another user's folder: the owner could not read what root creates there, and the folder
/// itself keeps others out. In that case it returns the owner.
pub fn make_new_files_private(data: &Path) -> Option<u32> {
    let is_root = rustix::process::geteuid().is_root();
    let owner = data.ancestors().find_map(|folder| folder.metadata().ok()).map_or(0, |found| found.uid());
    if is_root && owner != 0 {
        return Some(owner);
    }
    rustix::process::umask(Mode::from_raw_mode(OTHERS_PERMISSION_BITS));
    None
}

/// Creates a folder and its missing ancestors, for their owner only.
pub fn create_private_folders(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER_MODE).create(folder)
}

/// Removes other users' access to a folder, if we may change it. Returns whether they had access.
pub fn restrict_to_owner(folder: &Path) -> io::Result<bool> {
    let metadata = folder.metadata()?;
    let us = rustix::process::geteuid();
    if metadata.mode() & OTHERS_PERMISSION_BITS == 0 || (!us.is_root() && us.as_raw() != metadata.uid()) {
        return Ok(false);
    }
    match fs::set_permissions(
        folder,
        Permissions::from_mode(metadata.mode() & 0o7777 & !OTHERS_PERMISSION_BITS),
    ) {
        // Nobody can change anything there.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(false),
        closed => closed.map(|()| true),
    }
}

/// Locks a private folder with a file inside it; `None` if another process holds the lock.
pub(crate) fn try_lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(FOLDER_LOCK_FILE);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = match open_regular_file(&path, &mut options) {
        Ok(file) => file,
        // Nothing can be changed there, so a reader need not wait for anyone.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ) && !path.exists() =>
        {
            File::open(folder)?
        }
        Err(error) => return Err(error),
    };
    chown_to_folder_owner(&file, folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the lock file from a folder that is about to be deleted.
pub(crate) fn remove_lock_file(folder: &Path) {
    let _ = fs::remove_file(folder.join(FOLDER_LOCK_FILE));
}

/// Files that root creates in a user's folder are given to that user, who could not use them
/// otherwise.
pub(crate) fn chown_to_folder_owner(file: &File, folder: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (owner, ours) = (folder.metadata()?, file.metadata()?);
    if (owner.uid(), owner.gid()) == (ours.uid(), ours.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Opens a regular file only: follows no link, and does not block on a pipe.
pub(crate) fn open_regular_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(safe_open_flags()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    Ok(file)
}

/// The folders are shared: do not follow links, and do not block on a pipe.
fn safe_open_flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_private_once_and_has_one_lock() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        create_private_folders(&folder).unwrap();
        let mode = || folder.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(restrict_to_owner(&folder).unwrap());
        assert!(!restrict_to_owner(&folder).unwrap());
        assert_eq!(mode(), 0o700);
        let held = try_lock_folder(&folder).unwrap();
        assert!(held.is_some());
        assert!(try_lock_folder(&folder).unwrap().is_none());
        assert_eq!(folder.join(FOLDER_LOCK_FILE).metadata().unwrap().mode() & 0o777, 0o600);
        drop(held);
        assert!(try_lock_folder(&folder).unwrap().is_some());
    }
}
