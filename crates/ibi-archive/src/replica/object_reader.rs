//! Reads the files of an object for another Archive: only what the inventory names, and only
//! verified.

use ibi_store::digests::ContentDigests;
use ibi_store::index::FileRecord;
use ibi_store::ocfl::{CompactInventory, DigestId, INVENTORY_FILE};
use ibi_store::{ContentStorage, StorageError};

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::object::DOC_FOLDER;
use crate::object::listing::RootInventory;

/// Maximum size of an inventory, description or metadata file that is read into memory.
const MAX_WHOLE_FILE_BYTES: usize = 256 << 20;

/// The kind of a file in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFileKind {
    /// An inventory.
    Inventory,
    /// A description or metadata of some version.
    Text,
    /// A file of the item.
    Doc,
}

/// How a file of an object is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectFile {
    /// By the digest of the whole file, which has no description.
    Whole {
        /// An inventory or a text.
        kind: ObjectFileKind,
        /// Its path in the object.
        place: String,
        /// Its SHA-512.
        digest: String,
    },
    /// By the description of a version, under a name.
    Described {
        /// The version.
        version: u32,
        /// The name, below `doc/`.
        name: String,
    },
}

/// An object whose root inventory is verified.
pub(crate) struct ObjectReader<'a> {
    content: &'a dyn ContentStorage,
    path: &'a str,
    pub(crate) inventory: &'a RootInventory,
}

impl<'a> ObjectReader<'a> {
    /// The object at a path with this inventory.
    pub(crate) fn for_object(holdings: &'a Holdings, path: &'a str, inventory: &'a RootInventory) -> Self {
        Self { content: &*holdings.content, path, inventory }
    }

    /// All files of the manifest with their digests, in order of their paths.
    pub(crate) fn manifest(&self) -> Vec<(&str, ObjectFileKind, DigestId)> {
        let is_doc = self.doc_digests();
        let kind = |digest| {
            if is_doc[CompactInventory::index(digest)] { ObjectFileKind::Doc } else { ObjectFileKind::Text }
        };
        let compact = &self.inventory.compact;
        let mut files: Vec<_> =
            compact.manifest().map(|(path, digest)| (path, kind(digest), digest)).collect();
        files.sort_unstable_by_key(|(path, ..)| *path);
        files
    }

    /// A file by its path in the object; `None` if the inventory does not name it.
    pub(crate) fn file(&self, path: &str) -> Result<Option<ObjectFile>, ArchiveError> {
        let compact = &self.inventory.compact;
        if let Some(digest) = self.inventory_digest(path)? {
            // The root inventory gets replaced by the next one; the version's own stays.
            let last = format!("v{}/{INVENTORY_FILE}", compact.head_version_number());
            let place =
                match path == INVENTORY_FILE && self.inventory_digest(&last)?.as_ref() == Some(&digest) {
                    true => last,
                    false => path.to_owned(),
                };
            return Ok(Some(ObjectFile::Whole { kind: ObjectFileKind::Inventory, place, digest }));
        }
        let Some((_, digest)) = compact.manifest().find(|(known, _)| *known == path) else { return Ok(None) };
        let text = || ObjectFile::Whole {
            kind: ObjectFileKind::Text,
            place: path.to_owned(),
            digest: compact.digest(digest),
        };
        // Bytes that are also a description or metadata are read as such. Of the versions that have
        // a file, use the last, so that few descriptions are read.
        let mut described = None;
        for version in compact.versions() {
            for (name, _) in compact.state(version).filter(|(_, found)| *found == Some(digest)) {
                let Some(name) = name.strip_prefix(DOC_FOLDER) else { return Ok(Some(text())) };
                described = Some((version, name));
            }
        }
        Ok(Some(
            described.map_or_else(text, |(version, name)| ObjectFile::Described {
                version,
                name: name.to_owned(),
            }),
        ))
    }

    /// The verified bytes of a file; `None` if longer than the limit.
    pub(crate) fn read_small_file(
        &self,
        path: &str,
        digest: &str,
        longest: usize,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(bytes) = self.read(path, longest)? else { return Ok(None) };
        match ibi_store::digests::sha512(&bytes) == digest {
            true => Ok(Some(bytes)),
            false => Err(self.damaged_object_error(format!("digest mismatch in {path}"))),
        }
    }

    /// The digest in the sidecar of the inventory at a path.
    pub(crate) fn inventory_digest(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        if path == INVENTORY_FILE {
            return Ok(Some(self.inventory.digest.clone()));
        }
        let version = path.strip_suffix(INVENTORY_FILE).and_then(|version| version.strip_suffix('/'));
        let digits = version.and_then(|version| version.strip_prefix('v'));
        let number =
            digits.filter(|digits| !digits.starts_with(['0', '+'])).and_then(|digits| digits.parse().ok());
        let Some(number) = number.filter(|number| self.inventory.compact.has_version(*number)) else {
            return Ok(None);
        };
        Ok(self.content.version_digest(self.path, number)?)
    }

    /// For each digest, whether only files of the item have it.
    fn doc_digests(&self) -> Vec<bool> {
        let compact = &self.inventory.compact;
        let (mut docs, mut texts) =
            (vec![false; compact.digest_count()], vec![false; compact.digest_count()]);
        for version in compact.versions() {
            for (name, digest) in compact.state(version) {
                let Some(digest) = digest else { continue };
                let found = if name.starts_with(DOC_FOLDER) { &mut docs } else { &mut texts };
                found[CompactInventory::index(digest)] = true;
            }
        }
        docs.iter().zip(&texts).map(|(doc, text)| *doc && !*text).collect()
    }

    /// Reads and verifies a file without block digests, and computes them.
    pub(crate) fn read_whole_file(
        &self,
        place: &str,
        name: &str,
        digest: &str,
    ) -> Result<FileRecord, ArchiveError> {
        let bytes = self
            .read(place, MAX_WHOLE_FILE_BYTES)?
            .ok_or_else(|| self.damaged_object_error(format!("{place} is too long")))?;
        let ContentDigests { size, sha512, blocks, .. } = ContentDigests::of(&bytes);
        if sha512 != digest {
            return Err(self.damaged_object_error(format!("digest mismatch in {place}")));
        }
        Ok(FileRecord {
            name: name.to_owned(),
            content: place.to_owned(),
            size,
            sha512,
            media: String::new(),
            blocks,
        })
    }

    /// The bytes of a file; `None` if longer than the limit.
    fn read(&self, path: &str, longest: usize) -> Result<Option<Vec<u8>>, ArchiveError> {
        let file = self.content.open(self.path, path)?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 14];
        loop {
            let read = file.read_at(&mut buffer, bytes.len() as u64);
            match read.map_err(StorageError::io("read", format!("{}/{path}", self.path).as_ref()))? {
                0 => return Ok(Some(bytes)),
                read if bytes.len() + read > longest => return Ok(None),
                read => bytes.extend_from_slice(&buffer[..read]),
            }
        }
    }

    pub(crate) fn damaged_object_error(&self, what: String) -> ArchiveError {
        ArchiveError::DamagedObject { path: self.path.to_owned(), what }
    }
}
