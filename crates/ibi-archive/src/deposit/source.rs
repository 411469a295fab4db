//! Where the files of a deposit come from: a file, a folder, or a bag.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ibi_store::KeepError;
use ibi_store::digests::{self, CopyError, Digests};

use crate::ArchiveError;
use crate::deposit::Progress;
use crate::deposit::bag::{self, Expected, Hash};
use crate::dublin_core::DublinCore;
use crate::item::Item;

/// What a path that was given turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// One file.
    File,
    /// A folder and all within it.
    Folder,
    /// A bag (RFC 8493), whose payload is deposited.
    Bag,
    /// Nothing: an item without files.
    Nothing,
}

/// Files to deposit, listed and not read yet.
#[derive(Debug)]
pub struct Source {
    origin: Origin,
    files: Vec<SourceFile>,
    /// Metadata that a bag brings.
    metadata: Option<DublinCore>,
    /// What a bag of ours says of the item.
    described: Option<Item>,
    empty_folders: usize,
    /// The name of what was given.
    title: String,
    /// Where it lies.
    place: PathBuf,
}

/// A file to deposit.
#[derive(Debug)]
pub struct SourceFile {
    name: Vec<u8>,
    path: PathBuf,
    size: u64,
    expected: Option<Expected>,
}

impl Source {
    /// No files at all.
    pub fn nothing() -> Self {
        Self {
            origin: Origin::Nothing,
            files: Vec::new(),
            metadata: None,
            described: None,
            empty_folders: 0,
            title: String::new(),
            place: PathBuf::from("/nowhere"),
        }
    }

    /// What lies at a path.
    pub fn at(path: &Path) -> Result<Self, ArchiveError> {
        let whole = path.canonicalize().map_err(ArchiveError::io("read", path))?;
        let name = path.file_name().or(whole.file_name()).unwrap_or(path.as_os_str());
        let title = name.to_string_lossy().into_owned();
        Ok(Self { title, place: whole, ..Self::listed(path)? })
    }

    fn listed(path: &Path) -> Result<Self, ArchiveError> {
        // A link that was given by name is meant; those within a folder are told of.
        let metadata = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        if metadata.is_file() {
            let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes().to_vec();
            let files =
                vec![SourceFile { name, path: path.to_owned(), size: metadata.len(), expected: None }];
            return Ok(Self { origin: Origin::File, files, ..Self::nothing() });
        }
        if !metadata.is_dir() {
            return Err(not_a_file(path, metadata.file_type()));
        }
        if path.join("bagit.txt").is_file() {
            return bag::open(path);
        }
        let source = Self::folder(path)?;
        if source.files.is_empty() {
            return Err(ArchiveError::NoFiles { path: path.to_owned() });
        }
        Ok(source)
    }

    /// A folder and all within it, in order of names.
    pub(super) fn folder(path: &Path) -> Result<Self, ArchiveError> {
        let mut source = Self { origin: Origin::Folder, ..Self::nothing() };
        let mut left = vec![(path.to_owned(), Vec::new())];
        while let Some((folder, name)) = left.pop() {
            let mut empty = true;
            for entry in fs::read_dir(&folder).map_err(ArchiveError::io("read", &folder))? {
                empty = false;
                let entry = entry.map_err(ArchiveError::io("read", &folder))?;
                let (path, name) = (entry.path(), joined(&name, &entry.file_name()));
                let metadata = entry.metadata().map_err(ArchiveError::io("read", &path))?;
                if metadata.is_dir() {
                    left.push((path, name));
                } else if metadata.is_file() {
                    source.files.push(SourceFile { name, path, size: metadata.len(), expected: None });
                } else {
                    return Err(not_a_file(&path, metadata.file_type()));
                }
            }
            source.empty_folders += usize::from(empty);
        }
        source.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(source)
    }

    /// A folder whatever it holds, also nothing, and also a bag: its files are what they are.
    pub(crate) fn plain_folder(path: &Path) -> Result<Self, ArchiveError> {
        let place = path.canonicalize().map_err(ArchiveError::io("read", path))?;
        Ok(Self { place, ..Self::folder(path)? })
    }

    pub(super) fn of_bag(mut self, metadata: Option<DublinCore>, described: Option<Item>) -> Self {
        self.origin = Origin::Bag;
        self.metadata = metadata;
        self.described = described;
        self
    }

    /// Whether it is, or is within, or has within it, this folder.
    pub(crate) fn meets(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else { return false };
        self.place.starts_with(&folder) || folder.starts_with(&self.place)
    }

    /// What was given.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// What it is.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its files.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    pub(super) fn files_mut(&mut self) -> &mut [SourceFile] {
        &mut self.files
    }

    /// All bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Metadata that it brings with it.
    pub fn metadata(&self) -> Option<&DublinCore> {
        self.metadata.as_ref()
    }

    /// What a bag of ours says of the item.
    pub(crate) fn described(&self) -> Option<&Item> {
        self.described.as_ref()
    }

    /// A title, where nobody gives one: the name of the file or folder.
    pub(crate) fn default_metadata(&self) -> Result<DublinCore, ArchiveError> {
        crate::deposit::titled(&self.title)
    }

    /// Folders without anything in them: those are not kept.
    pub fn empty_folders(&self) -> usize {
        self.empty_folders
    }
}

impl SourceFile {
    /// Its path, in the bytes that the system has for it.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// When it was last changed, in whole seconds since the Unix epoch.
    pub(crate) fn modified(&self) -> Option<i64> {
        use std::os::unix::fs::MetadataExt as _;
        fs::symlink_metadata(&self.path).ok().map(|metadata| metadata.mtime())
    }

    pub(super) fn rename(&mut self, name: Vec<u8>) {
        self.name = name;
    }

    pub(super) fn expect(&mut self, expected: Expected) {
        self.expected = Some(expected);
    }

    pub(super) fn is_expected(&self) -> bool {
        self.expected.is_some()
    }

    pub(crate) fn open<'a>(&self, progress: Progress<'a>) -> Result<Reading<'a>, ArchiveError> {
        let file = File::open(&self.path).map_err(ArchiveError::io("read", &self.path))?;
        let hash = self.expected.as_ref().and_then(Expected::hash);
        Ok(Reading { file, progress, hash })
    }

    /// Whether it can be read, and is what a bag says.
    pub(crate) fn try_it(&self) -> Result<(), ArchiveError> {
        let mut reading = self.open(&|_| ())?;
        if self.expected.is_none() {
            return Ok(());
        }
        match digests::copy(&mut reading, &mut io::sink()) {
            Ok(digests) => self.check(&digests, reading),
            Err(CopyError::Read(error) | CopyError::Write(error)) => {
                Err(ArchiveError::io("read", &self.path)(error))
            }
        }
    }

    /// An error of reading, told with the path that was given.
    pub(crate) fn put_error(&self, error: KeepError) -> ArchiveError {
        match error {
            KeepError::Source { error, .. } => ArchiveError::io("read", &self.path)(error),
            error => error.into(),
        }
    }

    /// Whether what was read is what was listed.
    pub(crate) fn check(&self, digests: &Digests, reading: Reading<'_>) -> Result<(), ArchiveError> {
        if digests.size != self.size {
            return Err(ArchiveError::SourceChanged { path: self.path.clone() });
        }
        let Some(expected) = &self.expected else { return Ok(()) };
        expected
            .check(digests, reading.hash)
            .map_err(|what| ArchiveError::Bag { path: self.path.clone(), what })
    }
}

/// A file that is being read.
pub(crate) struct Reading<'a> {
    file: File,
    progress: Progress<'a>,
    hash: Option<Hash>,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..read]);
        }
        (self.progress)(read as u64);
        Ok(read)
    }
}

fn joined(folder: &[u8], name: &OsStr) -> Vec<u8> {
    if folder.is_empty() { name.as_bytes().to_vec() } else { [folder, b"/", name.as_bytes()].concat() }
}

fn not_a_file(path: &Path, kind: fs::FileType) -> ArchiveError {
    use std::os::unix::fs::FileTypeExt as _;
    let what = match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    ArchiveError::NotAFile { path: path.to_owned(), what }
}
