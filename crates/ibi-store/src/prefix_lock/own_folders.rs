//! Folders for claims that no other user can forge or block.
//!
//! `/run/lock` and `/var/tmp` are shared: another user may place a file or a link at the path of a
//! claim. Such a file is not our claim and is ignored. The claim is then placed in a folder of our
//! own beside it, which has an unpredictable name and is found by its owner.
//!
//! Squatting files may come and go while a minter runs. So a claim is locked at its usual path
//! *and* in each of our own folders that has one. A process that had to create one in such a folder
//! checks the usual path again. Of two minters of ours, one therefore always sees the other.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Maximum number of names scanned in a shared folder.
const MAX_SCANNED_NAMES: usize = 100_000;

/// Maximum number of our own folders in one place. Usually there is one, or two if two processes
/// created theirs at once.
const MAX_OWN_FOLDERS: usize = 16;

/// Whether the file belongs to us or to the owner of the data folder.
pub(super) fn is_ours(found: &Metadata, owner: u32) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() || found.uid() == owner
}

/// Whether the file at a path belongs to another user. Such files are ignored.
pub(super) fn is_foreign(path: &Path, owner: u32) -> bool {
    path.symlink_metadata().is_ok_and(|found| !is_ours(&found, owner))
}

/// Our own folders in a shared folder, sorted.
pub(super) fn find(shared_folder: &Path, owner: u32) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(shared_folder)?.take(MAX_SCANNED_NAMES) {
        let entry = entry?;
        let has_own_name = entry.file_name().to_str().is_some_and(|name| name.starts_with("ibi-own-"));
        if has_own_name && found.len() < MAX_OWN_FOLDERS && is_private(&entry.path(), owner) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_private(path: &Path, owner: u32) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && is_ours(&found, owner) && found.mode() & 0o077 == 0)
}

/// Creates a folder of our own, with an unpredictable name.
pub(super) fn make(shared_folder: &Path, data: &Path) -> io::Result<()> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let path = shared_folder.join(format!("ibi-own-{}", crate::text_block::hex(&random)));
    rustix::fs::mkdir(&path, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
    crate::private_files::chown_to_folder_owner(&folder, data)
}
