//! Walks over folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::KeepError;
use crate::ocfl::OBJECT_DECLARATION;

/// The objects of a tree, in order of their paths, holding in memory one list of names for each level.
pub(super) struct Walk {
    root: PathBuf,
    /// Folders that are still to be looked at, the next one last.
    left: Vec<PathBuf>,
}

impl Walk {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), left: vec![root.to_owned()] }
    }

    fn step(&mut self, folder: &Path) -> Result<Option<String>, KeepError> {
        // Asking is cheaper than listing: most folders at the bottom are objects.
        if folder != self.root && folder.join(OBJECT_DECLARATION.0).exists() {
            let path = folder.strip_prefix(&self.root).unwrap_or(folder);
            return Ok(Some(path.to_string_lossy().into_owned()));
        }
        let mut within = entries(folder)?;
        within.retain(|(_, kind)| kind.is_dir());
        within.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        self.left.extend(within.into_iter().map(|(path, _)| path));
        Ok(None)
    }
}

impl Iterator for Walk {
    type Item = Result<String, KeepError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(folder) = self.left.pop() {
            match self.step(&folder) {
                Ok(None) => {}
                Ok(Some(object)) => return Some(Ok(object)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
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
