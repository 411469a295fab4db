//! Where the files of a deposit come from: a file, a folder, or a bag.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ibi_store::StorageError;
use ibi_store::digests::{self, ContentDigests, DigestCopyError};

use crate::ArchiveError;
use crate::deposit::ByteProgress;
use crate::deposit::bag::{self, BagChecksum, BagHasher};
use crate::dublin_core::DublinCore;
use crate::item::ItemDescription;

/// What a path that was given turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
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
pub struct DepositSource {
    origin: SourceKind,
    files: Vec<SourceFile>,
    /// Metadata that a bag brings.
    metadata: Option<DublinCore>,
    /// What a bag of ours says of the item.
    described: Option<ItemDescription>,
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
    expected: Option<BagChecksum>,
}

impl DepositSource {
    /// No files at all.
    pub fn empty() -> Self {
        Self {
            origin: SourceKind::Nothing,
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
        Ok(Self { title, place: whole, ..Self::list_source(path)? })
    }

    fn list_source(path: &Path) -> Result<Self, ArchiveError> {
        // A link named explicitly is followed; links inside a folder are refused.
        let metadata = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        if metadata.is_file() {
            let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes().to_vec();
            let files =
                vec![SourceFile { name, path: path.to_owned(), size: metadata.len(), expected: None }];
            return Ok(Self { origin: SourceKind::File, files, ..Self::empty() });
        }
        if !metadata.is_dir() {
            return Err(not_a_file(path, metadata.file_type()));
        }
        if path.join("bagit.txt").is_file() {
            return bag::open_bag(path);
        }
        let source = Self::folder(path)?;
        if source.files.is_empty() {
            return Err(ArchiveError::NoFiles { path: path.to_owned() });
        }
        Ok(source)
    }

    /// A folder and all within it, in order of names.
    pub(super) fn folder(path: &Path) -> Result<Self, ArchiveError> {
        let mut source = Self { origin: SourceKind::Folder, ..Self::empty() };
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

    /// A folder as it is, even if it is empty or a bag.
    pub(crate) fn plain_folder(path: &Path) -> Result<Self, ArchiveError> {
        let place = path.canonicalize().map_err(ArchiveError::io("read", path))?;
        Ok(Self { place, ..Self::folder(path)? })
    }

    pub(super) fn into_bag(
        mut self,
        metadata: Option<DublinCore>,
        described: Option<ItemDescription>,
    ) -> Self {
        self.origin = SourceKind::Bag;
        self.metadata = metadata;
        self.described = described;
        self
    }

    /// Whether it is, or is within, or has within it, this folder.
    pub(crate) fn overlaps(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else { return false };
        self.place.starts_with(&folder) || folder.starts_with(&self.place)
    }

    /// What was given.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// What it is.
    pub fn origin(&self) -> SourceKind {
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
    pub(crate) fn bag_description(&self) -> Option<&ItemDescription> {
        self.described.as_ref()
    }

    /// A title, where nobody gives one: the name of the file or folder.
    pub(crate) fn default_metadata(&self) -> Result<DublinCore, ArchiveError> {
        crate::deposit::title_only_metadata(&self.title)
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

    pub(super) fn expect_checksum(&mut self, expected: BagChecksum) {
        self.expected = Some(expected);
    }

    pub(super) fn has_expected_checksum(&self) -> bool {
        self.expected.is_some()
    }

    pub(crate) fn open<'a>(&self, progress: ByteProgress<'a>) -> Result<SourceReader<'a>, ArchiveError> {
        let file = File::open(&self.path).map_err(ArchiveError::io("read", &self.path))?;
        let hash = self.expected.as_ref().and_then(BagChecksum::new_hasher);
        Ok(SourceReader { file, progress, hash })
    }

    /// Whether it can be read, and is what a bag says.
    pub(crate) fn verify_readable(&self) -> Result<(), ArchiveError> {
        let mut reading = self.open(&|_| ())?;
        if self.expected.is_none() {
            return Ok(());
        }
        match digests::copy_and_digest(&mut reading, &mut io::sink()) {
            Ok(digests) => self.check(&digests, reading),
            Err(DigestCopyError::Read(error) | DigestCopyError::Write(error)) => {
                Err(ArchiveError::io("read", &self.path)(error))
            }
        }
    }

    /// An error of reading, told with the path that was given.
    pub(crate) fn source_error(&self, error: StorageError) -> ArchiveError {
        match error {
            StorageError::Source { error, .. } => ArchiveError::io("read", &self.path)(error),
            error => error.into(),
        }
    }

    /// Whether what was read is what was listed.
    pub(crate) fn check(
        &self,
        digests: &ContentDigests,
        reading: SourceReader<'_>,
    ) -> Result<(), ArchiveError> {
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
pub(crate) struct SourceReader<'a> {
    file: File,
    progress: ByteProgress<'a>,
    hash: Option<BagHasher>,
}

impl Read for SourceReader<'_> {
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
