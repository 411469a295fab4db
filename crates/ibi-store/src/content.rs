//! Content: the bytes of items, in OCFL objects.
//!
//! A version passes through three steps. Its files are staged one by one and hashed on arrival. The
//! staged version is made durable in place, with its inventory ([`ContentStorage::prepare`]). It is
//! then moved to its final path in one step ([`ContentStorage::publish`]), which is the commit
//! point.

mod memory;
mod tree;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::digests::{self, ContentDigests, DIGEST_BLOCK_BYTES};
use crate::{FileRecord, StorageError};

pub use memory::MemoryContentStorage;
pub use tree::OcflTree;

/// A version that is being staged, in a private folder that no reader sees.
#[derive(Debug, PartialEq, Eq)]
pub struct StagingId(u64);

/// A staged version, ready to be published.
#[derive(Debug, Clone, Copy)]
pub struct StagedVersion<'a> {
    /// The staging that holds its files.
    pub staging: &'a StagingId,
    /// The path of the object.
    pub object: &'a str,
    /// The version number.
    pub version: u32,
    /// The inventory of this version.
    pub inventory: &'a [u8],
    /// The inventories of the earlier versions, in order, if a whole object is published. Staged
    /// files are then named by their paths in the object.
    pub whole: Option<&'a [Vec<u8>]>,
    /// Whether this replaces, and destroys, the existing object.
    pub instead: bool,
}

/// The latest version of an object, according to its inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    /// The inventory.
    pub inventory: Vec<u8>,
    /// Its SHA-512.
    pub digest: String,
}

/// Leftovers of interrupted work, removed from the staging folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClearedStaging {
    /// The number of stagings.
    pub stagings: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An object found by a walk over the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcflObjectDigest {
    /// The path under which it was published.
    pub path: Box<str>,
    /// The leading bytes of the SHA-512 of its inventory, as many as the journal records. `None` if
    /// there is no inventory.
    pub digest: Option<[u8; 16]>,
}

/// The paths under which objects were published.
pub type ObjectPaths<'a> = Box<dyn Iterator<Item = Result<String, StorageError>> + Send + 'a>;

/// A store for content.
pub trait ContentStorage: Send + Sync {
    /// Fails if the disk has no space beyond the reserve for recovery.
    fn check_space(&self) -> Result<(), StorageError>;

    /// Begins staging a version.
    fn begin_staging(&self) -> Result<StagingId, StorageError>;

    /// Stages a file under a name of [`crate::ocfl::ContentNames`], in constant memory.
    fn stage_file(
        &self,
        staging: &StagingId,
        name: &str,
        bytes: &mut dyn Read,
    ) -> Result<ContentDigests, StorageError>;

    /// Stages a local file that was hashed on arrival, without copying it where possible. The
    /// original file stays.
    fn stage_local_file(&self, staging: &StagingId, name: &str, file: &Path) -> Result<(), StorageError>;

    /// Removes a staged file.
    fn unstage_file(&self, staging: &StagingId, name: &str) -> Result<(), StorageError>;

    /// Makes staged versions durable in place, with their inventories, with a single sync where
    /// possible.
    fn prepare(&self, publications: &[StagedVersion<'_>]) -> Result<(), StorageError>;

    /// Moves prepared versions to their final paths. Once this returns without error, the result
    /// survives a crash and a power cut. If interrupted, each version is published completely or
    /// not at all.
    fn publish(&self, publications: &[StagedVersion<'_>]) -> Result<(), StorageError>;

    /// Moves an object out of the tree into a staging. Discarding that staging deletes its bytes.
    fn move_to_staging(&self, staging: &StagingId, object: &str) -> Result<(), StorageError>;

    /// Replaces a damaged or missing file of an object with staged bytes.
    fn replace_file(
        &self,
        staging: &StagingId,
        name: &str,
        object: &str,
        file: &str,
    ) -> Result<(), StorageError>;

    /// Deletes a staging, and whatever its publication replaced.
    fn discard(&self, staging: &StagingId) -> Result<(), StorageError>;

    /// Whether an object may be published there: nothing exists at the path, above it or below it.
    fn is_free(&self, object: &str) -> Result<bool, StorageError>;

    /// Whether the object exists.
    fn exists(&self, object: &str) -> Result<bool, StorageError>;

    /// The latest version; `None` if there is no such object. An inventory that does not match its
    /// sidecar is an error.
    fn head(&self, object: &str) -> Result<Option<ObjectHead>, StorageError>;

    /// The digest of a version's inventory; `None` if there is no such version. An inventory that
    /// cannot be trusted is an error.
    fn version_digest(&self, object: &str, number: u32) -> Result<Option<String>, StorageError>;

    /// Completes what a crash interrupted at this object: the root inventory becomes that of the
    /// latest version, and unused folders are removed. Syncs the folders above the object that are
    /// not yet in `durable`, and adds them to it.
    fn recover_object(&self, object: &str, durable: &mut BTreeSet<PathBuf>) -> Result<(), StorageError>;

    /// Whether the staging folder is empty, across all processes.
    fn is_staging_empty(&self) -> Result<bool, StorageError>;

    /// Removes leftovers of interrupted work, and completes an interrupted replacement.
    fn clear_staging(&self) -> Result<ClearedStaging, StorageError>;

    /// Opens a file of an object, by its path in the manifest.
    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, StorageError>;

    /// All objects, by path.
    fn objects(&self) -> Result<ObjectPaths<'_>, StorageError>;

    /// All files of an object, by their paths in it.
    fn files(&self, object: &str) -> Result<Vec<String>, StorageError>;
}

/// Random-access reads.
pub trait ReadAt: Send + Sync {
    /// Fills the buffer from an offset, or as much of it as there are bytes.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Closes the descriptor until the next read.
    fn release(&self) {}
}

/// A file that returns only blocks that match their checksums.
pub struct VerifiedFile {
    bytes: Box<dyn ReadAt>,
    name: String,
    size: u64,
    blocks: Vec<u8>,
}

impl VerifiedFile {
    /// Opens a file of an object.
    pub fn open(content: &dyn ContentStorage, object: &str, file: &FileRecord) -> Result<Self, StorageError> {
        Ok(Self {
            bytes: content.open(object, &file.content)?,
            name: format!("{object}/{}", file.content),
            size: file.size,
            blocks: file.blocks.clone(),
        })
    }

    /// Closes the file's descriptor until the next block is read.
    pub fn release(&self) {
        self.bytes.release();
    }

    /// The number of blocks.
    pub fn block_count(&self) -> u64 {
        self.size.div_ceil(DIGEST_BLOCK_BYTES as u64)
    }

    /// Reads a block, and fails if it does not match its checksum.
    pub fn read_block(&self, number: u64, buffer: &mut Vec<u8>) -> Result<(), StorageError> {
        let start = number * DIGEST_BLOCK_BYTES as u64;
        // At most one block, so the cast is lossless.
        let length = self.size.saturating_sub(start).min(DIGEST_BLOCK_BYTES as u64) as usize;
        buffer.resize(length, 0);
        let mut filled = 0;
        while filled < length {
            let read = self.bytes.read_at(&mut buffer[filled..], start + filled as u64);
            match read.map_err(StorageError::io("read", self.name.as_ref()))? {
                0 => break,
                read => filled += read,
            }
        }
        if filled < length || !digests::matches_block_digest(buffer, &self.blocks, number) {
            buffer.clear();
            return Err(StorageError::DamagedBlock { file: self.name.clone(), block: number });
        }
        Ok(())
    }

    /// Copies the whole file, block by block.
    pub fn copy_to(&self, writer: &mut dyn Write) -> Result<(), VerifiedCopyError> {
        let mut buffer = Vec::new();
        for number in 0..self.block_count() {
            self.read_block(number, &mut buffer).map_err(VerifiedCopyError::Kept)?;
            writer.write_all(&buffer).map_err(VerifiedCopyError::Write)?;
        }
        Ok(())
    }
}

/// Which side failed in a copy out of the store.
#[derive(Debug)]
pub enum VerifiedCopyError {
    /// The stored file is unreadable or damaged.
    Kept(StorageError),
    /// The copy could not be written.
    Write(io::Error),
}
