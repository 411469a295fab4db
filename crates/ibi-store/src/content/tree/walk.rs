//! Walks over folders.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use sha2::{Digest as _, Sha512};

use crate::KeepError;
use crate::content::Inventoried;
use crate::ocfl::{INVENTORY, OBJECT_DECLARATION};

/// The objects of a tree, in order of their paths, holding in memory one list of names for each level.
pub(super) struct Walk {
    /// From the root to where it stands.
    levels: Vec<Level>,
    /// An inventory, as it is read.
    bytes: Vec<u8>,
}

/// A folder that is not an object.
struct Level {
    path: PathBuf,
    /// The path below the root, with a slash at its end.
    within: String,
    /// Open, so that what lies in it is found without going all the way from the root again.
    folder: File,
    /// Folders in it that are still to be looked at, the next one last.
    left: Vec<OsString>,
}

impl Level {
    fn open(path: PathBuf, within: String) -> Result<Self, KeepError> {
        let folder = File::open(&path).map_err(KeepError::io("read", &path))?;
        let mut left = Vec::new();
        for entry in fs::read_dir(&path).map_err(KeepError::io("read", &path))? {
            let entry = entry.map_err(KeepError::io("read", &path))?;
            if entry.file_type().map_err(KeepError::io("read", &path))?.is_dir() {
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

    /// Reads the inventory of an object in it; nothing if there is none.
    fn inventory(&self, name: &OsString, bytes: &mut Vec<u8>) -> Result<Option<usize>, KeepError> {
        let inventory = Path::new(name).join(INVENTORY);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let failed = || KeepError::io("read", &self.path.join(&inventory));
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
            // A file that does not fill what is offered has ended; were there more, its digest would be another one.
            if filled < bytes.len() {
                return Ok(Some(filled));
            }
            bytes.resize(filled * 2, 0);
        }
    }
}

impl Walk {
    pub(super) fn new(root: &Path) -> Result<Self, KeepError> {
        Ok(Self { levels: vec![Level::open(root.to_owned(), String::new())?], bytes: vec![0; 1 << 14] })
    }

    /// The next object, with the digest of its inventory as it lies there, whatever its sidecar says.
    pub(super) fn inventoried(&mut self) -> Option<Result<Inventoried, KeepError>> {
        let (path, name) = match self.step()? {
            Ok(object) => object,
            Err(error) => return Some(Err(error)),
        };
        let level = self.levels.last()?;
        let digest = level.inventory(&name, &mut self.bytes).map(|read| {
            let digest = Sha512::digest(&self.bytes[..read?]);
            digest.first_chunk().copied()
        });
        Some(digest.map(|digest| Inventoried { path: path.into(), digest }))
    }

    /// The next object, by its path and its name in the last of the levels.
    fn step(&mut self) -> Option<Result<(String, OsString), KeepError>> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(name) = level.left.pop() else {
                self.levels.pop();
                continue;
            };
            let within = format!("{}{}", level.within, name.to_string_lossy());
            // Asking is cheaper than listing: most folders at the bottom are objects.
            if level.is_object(&name) {
                return Some(Ok((within, name)));
            }
            match Level::open(level.path.join(&name), within + "/") {
                Ok(level) => self.levels.push(level),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Result<String, KeepError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().map(|object| object.map(|(path, _)| path))
    }
}

fn entries(folder: &Path) -> Result<Vec<(PathBuf, fs::FileType)>, KeepError> {
    let failed = || KeepError::io("read", folder);
    fs::read_dir(folder)
        .map_err(failed())?
        .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).map_err(failed()))
        .collect()
}

/// Adds a folder and all within it.
pub(super) fn everything(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), KeepError> {
    paths.push(folder.to_owned());
    for (path, kind) in entries(folder)? {
        if kind.is_dir() {
            everything(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The files within a folder, by their paths in it, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<String>, KeepError> {
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

/// How many bytes a file, or all files in a folder, have.
pub(super) fn bytes(path: &Path) -> Result<u64, KeepError> {
    let metadata = path.symlink_metadata().map_err(KeepError::io("look at", path))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    entries(path)?.iter().try_fold(0, |sum, (path, _)| Ok(sum + bytes(path)?))
}
