//! Content: the bytes of items, in OCFL objects.
//!
//! A version goes a straight line: it is staged file by file, hashed as it arrives; made durable where it lies, with its
//! inventory ([`Content::secure`]); and put in its place in one step ([`Content::publish`]), which is the commit point.

mod memory;
mod tree;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::digests::{self, BLOCK, Digests};
use crate::{FileRecord, KeepError};

pub use memory::MemoryContent;
pub use tree::Tree;

/// A version that is being staged: a place of its own, that nobody sees.
#[derive(Debug, PartialEq, Eq)]
pub struct Staging(u64);

/// A staged version, ready for its place.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    /// What was staged.
    pub staging: &'a Staging,
    /// The path of the object.
    pub object: &'a str,
    /// The number of the version.
    pub version: u32,
    /// The inventory of this version.
    pub inventory: &'a [u8],
    /// The inventories of the versions before, in order, if a whole object is put in its place: then what was staged is named by
    /// its path in the object.
    pub whole: Option<&'a [Vec<u8>]>,
    /// Whether all that is there is destroyed and this put in its place.
    pub instead: bool,
}

/// The last version of an object, as its inventory tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The inventory.
    pub inventory: Vec<u8>,
    /// Its SHA-512.
    pub digest: String,
}

/// What interrupted work had left in the staging place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many stagings.
    pub stagings: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An object as a walk over the tree finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventoried {
    /// The path it was published under.
    pub path: Box<str>,
    /// The first bytes of the SHA-512 of its inventory: as many as the journal has of it. Nothing if there is no inventory.
    pub digest: Option<[u8; 16]>,
}

/// Objects by the paths they were published under.
pub type Objects<'a> = Box<dyn Iterator<Item = Result<String, KeepError>> + Send + 'a>;

/// A store of content.
pub trait Content: Send + Sync {
    /// Whether there is room for more than what sets things right.
    fn room(&self) -> Result<(), KeepError>;

    /// Begins to stage a version.
    fn stage(&self) -> Result<Staging, KeepError>;

    /// Stages a file under a name of [`crate::ocfl::ContentNames`], in constant memory.
    fn put(&self, staging: &Staging, name: &str, bytes: &mut dyn Read) -> Result<Digests, KeepError>;

    /// Stages a file that lies on this machine and was hashed when it came: without copying it, where that can be. The file
    /// stays where it is.
    fn put_file(&self, staging: &Staging, name: &str, file: &Path) -> Result<(), KeepError>;

    /// Takes a staged file back.
    fn take_back(&self, staging: &Staging, name: &str) -> Result<(), KeepError>;

    /// Makes staged versions durable where they lie, with their inventories: one sync for all, where that can be.
    fn secure(&self, publications: &[Publication<'_>]) -> Result<(), KeepError>;

    /// Puts versions that were secured in their places. When this returns without error, no crash and no power cut
    /// undoes it; cut off, each version is there whole or not at all.
    fn publish(&self, publications: &[Publication<'_>]) -> Result<(), KeepError>;

    /// Takes an object out of the tree, into a staging of its own: when that is discarded, its bytes are gone.
    fn take_out(&self, staging: &Staging, object: &str) -> Result<(), KeepError>;

    /// Puts staged bytes in the place of a file of an object that is damaged or missing.
    fn mend(&self, staging: &Staging, name: &str, object: &str, file: &str) -> Result<(), KeepError>;

    /// Throws away what was staged, and what it was put in the place of.
    fn discard(&self, staging: &Staging) -> Result<(), KeepError>;

    /// Whether an object may be put there: nothing is there, above or below.
    fn is_free(&self, object: &str) -> Result<bool, KeepError>;

    /// Whether there is an object.
    fn exists(&self, object: &str) -> Result<bool, KeepError>;

    /// The last version; nothing if there is no such object. An inventory that its sidecar does not vouch for is damage.
    fn head(&self, object: &str) -> Result<Option<Head>, KeepError>;

    /// The digest of the inventory of a version; nothing if there is no such version. One that is there and cannot be trusted
    /// is damage.
    fn version(&self, object: &str, number: u32) -> Result<Option<String>, KeepError>;

    /// Finishes what a crash cut off at this object: its root inventory becomes that of its last version, and folders
    /// that were made for nothing go. Folders above it are made durable unless they are among `durable`, where they are put.
    fn settle(&self, object: &str, durable: &mut BTreeSet<PathBuf>) -> Result<(), KeepError>;

    /// Whether nothing is staged, by anybody.
    fn is_swept(&self) -> Result<bool, KeepError>;

    /// Throws away what interrupted work left; finishes a replacement that was cut off.
    fn sweep(&self) -> Result<Swept, KeepError>;

    /// A file of an object, by its path in the manifest.
    fn open(&self, object: &str, file: &str) -> Result<Box<dyn ReadAt>, KeepError>;

    /// All objects, in order of their paths.
    fn objects(&self) -> Result<Objects<'_>, KeepError>;

    /// All files of an object, by their paths in it.
    fn files(&self, object: &str) -> Result<Vec<String>, KeepError>;
}

/// Bytes that can be read at any place.
pub trait ReadAt: Send + Sync {
    /// Fills a buffer from a place, or as much of it as there are bytes.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// A file that gives out blocks which were checked, and no others.
pub struct Checked {
    bytes: Box<dyn ReadAt>,
    name: String,
    size: u64,
    blocks: Vec<u8>,
}

impl Checked {
    /// Opens a file of an object.
    pub fn open(content: &dyn Content, object: &str, file: &FileRecord) -> Result<Self, KeepError> {
        Ok(Self {
            bytes: content.open(object, &file.content)?,
            name: format!("{object}/{}", file.content),
            size: file.size,
            blocks: file.blocks.clone(),
        })
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.size.div_ceil(BLOCK as u64)
    }

    /// Reads a block, and gives it only if it is what was deposited.
    pub fn block(&self, number: u64, buffer: &mut Vec<u8>) -> Result<(), KeepError> {
        let start = number * BLOCK as u64;
        // At most a block: fits.
        let length = self.size.saturating_sub(start).min(BLOCK as u64) as usize;
        buffer.resize(length, 0);
        let mut filled = 0;
        while filled < length {
            let read = self.bytes.read_at(&mut buffer[filled..], start + filled as u64);
            match read.map_err(KeepError::io("read", self.name.as_ref()))? {
                0 => break,
                read => filled += read,
            }
        }
        if filled < length || !digests::is_block(buffer, &self.blocks, number) {
            buffer.clear();
            return Err(KeepError::DamagedBlock { file: self.name.clone(), block: number });
        }
        Ok(())
    }

    /// Copies the whole, block by block.
    pub fn copy_to(&self, writer: &mut dyn Write) -> Result<(), CopyOut> {
        let mut buffer = Vec::new();
        for number in 0..self.blocks() {
            self.block(number, &mut buffer).map_err(CopyOut::Kept)?;
            writer.write_all(&buffer).map_err(CopyOut::Write)?;
        }
        Ok(())
    }
}

/// Which side of a copy out of the store failed.
#[derive(Debug)]
pub enum CopyOut {
    /// What is kept could not be read, or is damaged.
    Kept(KeepError),
    /// The copy could not be written.
    Write(io::Error),
}
