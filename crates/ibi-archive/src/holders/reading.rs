//! The files of an object, read as another Archive may have them: only what the inventory names, and nothing unchecked.

use std::collections::BTreeMap;

use ibi_store::content::Head;
use ibi_store::digests::Digests;
use ibi_store::ocfl::{INVENTORY, Inventory};
use ibi_store::records::FileRecord;
use ibi_store::{Content, KeepError};

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::object::{self, DOC};

/// An inventory, a description or metadata that is read whole, at most.
const LONGEST: usize = 256 << 20;

/// What a file of an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An inventory.
    Inventory,
    /// A description or metadata of some version.
    Text,
    /// A file of the item.
    Doc,
}

/// An object whose root inventory is vouched for.
pub(crate) struct Reading<'a> {
    content: &'a dyn Content,
    path: &'a str,
    pub(crate) inventory: Inventory,
    /// The inventory as it was written, and its digest.
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: String,
}

impl<'a> Reading<'a> {
    /// The object at a path; nothing if there is none.
    pub(crate) fn of(holdings: &'a Holdings, path: &'a str) -> Result<Option<Self>, ArchiveError> {
        let content = &*holdings.content;
        let Some(Head { inventory: bytes, digest }) = content.head(path)? else { return Ok(None) };
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let inventory = Inventory::parse(&bytes).map_err(damaged)?;
        Ok(Some(Self { content, path, inventory, bytes, digest }))
    }

    /// All files of the manifest with their digests, in order of their paths.
    pub(crate) fn manifest(&self) -> BTreeMap<&str, (Kind, &str)> {
        let docs = self.docs();
        let files = self.inventory.manifest.iter().flat_map(|(digest, paths)| {
            let kind = if docs.contains_key(digest.as_str()) { Kind::Doc } else { Kind::Text };
            paths.iter().map(move |path| (path.as_str(), (kind, digest.as_str())))
        });
        files.collect()
    }

    /// A file by its path in the object: what it is, and what it is checked by. Nothing if the inventory does not name it.
    pub(crate) fn file(&self, path: &str) -> Result<Option<(Kind, FileRecord)>, ArchiveError> {
        if let Some(digest) = self.inventory_digest(path)? {
            // The root inventory gives way to the next one; that of the version stays.
            let last = format!("{}/{INVENTORY}", self.inventory.head);
            let place = match path == INVENTORY && self.inventory_digest(&last)?.as_ref() == Some(&digest) {
                true => &last,
                false => path,
            };
            return Ok(Some((Kind::Inventory, self.whole(place, path, &digest)?)));
        }
        let Some(digest) = self.manifest_digest(path) else { return Ok(None) };
        let Some((version, name)) = self.docs().get(digest).copied() else {
            return Ok(Some((Kind::Text, self.whole(path, path, digest)?)));
        };
        let found = object::file_of_version(self.content, self.path, version, name)?;
        let found = found.ok_or_else(|| self.damaged(format!("v{version} does not describe {name}")))?;
        Ok(Some((Kind::Doc, FileRecord { content: path.to_owned(), ..found })))
    }

    /// The bytes of a file, checked; nothing if there are more than wanted.
    pub(crate) fn small(
        &self,
        path: &str,
        digest: &str,
        longest: usize,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(bytes) = self.read(path, longest)? else { return Ok(None) };
        match ibi_store::digests::sha512(&bytes) == digest {
            true => Ok(Some(bytes)),
            false => Err(self.damaged(format!("{path} is not what its digest says"))),
        }
    }

    /// The digest that a sidecar vouches for, of the inventory at a path.
    pub(crate) fn inventory_digest(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        if path == INVENTORY {
            return Ok(Some(self.digest.clone()));
        }
        let version = path.strip_suffix(INVENTORY).and_then(|version| version.strip_suffix('/'));
        let Some(version) = version.filter(|version| self.inventory.versions.contains_key(*version)) else {
            return Ok(None);
        };
        let number = version.strip_prefix('v').and_then(|number| number.parse().ok());
        let Some(number) = number else { return Ok(None) };
        Ok(self.content.version(self.path, number)?)
    }

    fn manifest_digest(&self, path: &str) -> Option<&str> {
        let mut manifest = self.inventory.manifest.iter();
        let found = manifest.find(|(_, paths)| paths.iter().any(|known| known == path));
        found.map(|(digest, _)| digest.as_str())
    }

    /// The digests of files of the item, each with a version that has it and its name there. What is also a description or
    /// metadata is read as such.
    fn docs(&self) -> BTreeMap<&str, (u32, &str)> {
        let mut docs = BTreeMap::new();
        for (version, state) in &self.inventory.versions {
            let number = version.strip_prefix('v').and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
            for (digest, paths) in &state.state {
                if let Some(name) = paths.iter().find_map(|path| path.strip_prefix(DOC)) {
                    docs.insert(digest.as_str(), (number, name));
                }
            }
        }
        let states = self.inventory.versions.values().flat_map(|version| &version.state);
        let texts = states.filter(|(_, paths)| paths.iter().any(|path| !path.starts_with(DOC)));
        for (digest, _) in texts {
            docs.remove(digest.as_str());
        }
        docs
    }

    /// A file that has no digests of its blocks: read whole and checked, it gets them.
    fn whole(&self, place: &str, name: &str, digest: &str) -> Result<FileRecord, ArchiveError> {
        let bytes = self.read(place, LONGEST)?.ok_or_else(|| self.damaged(format!("{place} is too long")))?;
        let Digests { size, sha512, blocks, .. } = Digests::of(&bytes);
        if sha512 != digest {
            return Err(self.damaged(format!("{place} is not what its digest says")));
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

    /// The bytes of a file; nothing if there are more than wanted.
    fn read(&self, path: &str, longest: usize) -> Result<Option<Vec<u8>>, ArchiveError> {
        let file = self.content.open(self.path, path)?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 14];
        loop {
            let read = file.read_at(&mut buffer, bytes.len() as u64);
            match read.map_err(KeepError::io("read", format!("{}/{path}", self.path).as_ref()))? {
                0 => return Ok(Some(bytes)),
                read if bytes.len() + read > longest => return Ok(None),
                read => bytes.extend_from_slice(&buffer[..read]),
            }
        }
    }

    fn damaged(&self, what: String) -> ArchiveError {
        ArchiveError::DamagedObject { path: self.path.to_owned(), what }
    }
}
