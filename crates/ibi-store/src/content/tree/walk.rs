//! Directory walks.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use sha2::{Digest as _, Sha512};

use crate::StorageError;
use crate::content::OcflObjectDigest;
use crate::ocfl::{INVENTORY_FILE, OBJECT_DECLARATION};

/// The objects of a tree, by path. Keeps one list of names per level in memory.
pub(super) struct OcflTreeWalk {
    /// From the root to the current folder.
    levels: Vec<WalkLevel>,
    /// Buffer for reading an inventory.
    bytes: Vec<u8>,
}

/// A folder that is not an object.
struct WalkLevel {
    path: PathBuf,
    /// The path below the root, with a trailing slash.
    within: String,
    /// Kept open, so that its entries are opened relative to it and not from the root again.
    folder: File,
    /// Subfolders not yet visited, the next one last.
    left: Vec<OsString>,
}

impl WalkLevel {
    fn open(path: PathBuf, within: String) -> Result<Self, StorageError> {
        let folder = File::open(&path).map_err(StorageError::io("read", &path))?;
        let mut left = Vec::new();
        for entry in fs::read_dir(&path).map_err(StorageError::io("read", &path))? {
            let entry = entry.map_err(StorageError::io("read", &path))?;
            if entry.file_type().map_err(StorageError::io("read", &path))?.is_dir() {
                left.push(entry.file_name());
            }
        }
        left.sort_unstable_by(|a, b| b.as_bytes().cmp(a.as_bytes()));
        Ok(Self { path, within, folder, left })
    }

    fn is_object(&self, name: &OsString) -> bool {
        let declaration = Path::new(name).join(OBJECT_DECLARATION.0);
        rustix::fs::statat(&self.folder, declaration, AtFlags::empty()).is_ok()
    }

    /// Reads the inventory of an object in this folder; `None` if there is none.
    fn inventory(&self, name: &OsString, bytes: &mut Vec<u8>) -> Result<Option<usize>, StorageError> {
        let inventory = Path::new(name).join(INVENTORY_FILE);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let failed = || StorageError::io("read", &self.path.join(&inventory));
        let mut file = match rustix::fs::openat(&self.folder, &inventory, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(failed()(error.into())),
        };
        let mut filled = 0;
        loop {
            match file.read(&mut bytes[filled..]) {
                Ok(0) => return Ok(Some(filled)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed()(error)),
            }
            // A read that does not fill the buffer is taken as the end of the file. If there were
            // more, the digest would not match.
            if filled < bytes.len() {
                return Ok(Some(filled));
            }
            bytes.resize(filled * 2, 0);
        }
    }
}

impl OcflTreeWalk {
    pub(super) fn new(root: &Path) -> Result<Self, StorageError> {
        Ok(Self { levels: vec![WalkLevel::open(root.to_owned(), String::new())?], bytes: vec![0; 1 << 14] })
    }

    /// The next object, with the digest of its inventory as found, whatever its sidecar says.
    pub(super) fn next_with_digest(&mut self) -> Option<Result<OcflObjectDigest, StorageError>> {
        let (path, name) = match self.next_object()? {
            Ok(object) => object,
            Err(error) => return Some(Err(error)),
        };
        let level = self.levels.last()?;
        let digest = level.inventory(&name, &mut self.bytes).map(|read| {
            let digest = Sha512::digest(&self.bytes[..read?]);
            digest.first_chunk().copied()
        });
        Some(digest.map(|digest| OcflObjectDigest { path: path.into(), digest }))
    }

    /// The next object, as its path and its name in the last level.
    fn next_object(&mut self) -> Option<Result<(String, OsString), StorageError>> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(name) = level.left.pop() else {
                self.levels.pop();
                continue;
            };
            let within = format!("{}{}", level.within, name.to_string_lossy());
            // A check is cheaper than a listing: most folders at the bottom are objects.
            if level.is_object(&name) {
                return Some(Ok((within, name)));
            }
            match WalkLevel::open(level.path.join(&name), within + "/") {
                Ok(level) => self.levels.push(level),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Iterator for OcflTreeWalk {
    type Item = Result<String, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_object().map(|object| object.map(|(path, _)| path))
    }
}

fn entries(folder: &Path) -> Result<Vec<(PathBuf, fs::FileType)>, StorageError> {
    let failed = || StorageError::io("read", folder);
    fs::read_dir(folder)
        .map_err(failed())?
        .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).map_err(failed()))
        .collect()
}

/// Adds a folder and everything in it.
pub(super) fn collect_paths(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), StorageError> {
    paths.push(folder.to_owned());
    for (path, kind) in entries(folder)? {
        if kind.is_dir() {
            collect_paths(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The files in a folder, as sorted relative paths.
pub(super) fn list_files(folder: &Path) -> Result<Vec<String>, StorageError> {
    let (mut left, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(within) = left.pop() {
        for (path, kind) in entries(&within)? {
            if kind.is_dir() {
                left.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The size in bytes of a file, or of all files in a folder.
pub(super) fn total_bytes(path: &Path) -> Result<u64, StorageError> {
    let metadata = path.symlink_metadata().map_err(StorageError::io("inspect", path))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    entries(path)?.iter().try_fold(0, |sum, (path, _)| Ok(sum + total_bytes(path)?))
}
