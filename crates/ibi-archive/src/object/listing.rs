//! What is read of large objects, in little memory: their inventories, and the files of a version.

use std::borrow::Cow;

use ibi_store::ContentStorage;
use ibi_store::content::ObjectHead;
use ibi_store::digests::hex;
use ibi_store::index::FileRecord;
use ibi_store::ocfl::{CompactInventory, DigestId};
use serde::Deserialize;

use crate::ArchiveError;
use crate::item::{ItemDescription, unhex};
use crate::object::{DESCRIPTION_FILE, DOC_FOLDER, read_checked};
use crate::target_url::TargetUrl;

/// An inventory up to this size is kept in memory as written, so that requests for it are answered
/// at once.
const MAX_CACHED_INVENTORY_BYTES: usize = 64 << 10;

/// The root inventory of an object, vouched for by its sidecar.
#[derive(Debug)]
pub(crate) struct RootInventory {
    pub(crate) compact: CompactInventory,
    /// Its SHA-512.
    pub(crate) digest: String,
    /// As it was written, if it is small.
    pub(crate) text: Option<Vec<u8>>,
}

impl RootInventory {
    /// That of the object at a path; nothing if there is none.
    pub(crate) fn read(content: &dyn ContentStorage, path: &str) -> Result<Option<Self>, ArchiveError> {
        let Some(ObjectHead { inventory: bytes, digest }) = content.head(path)? else { return Ok(None) };
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let compact = CompactInventory::parse(&bytes).map_err(damaged)?;
        let text = (bytes.len() <= MAX_CACHED_INVENTORY_BYTES).then_some(bytes);
        Ok(Some(Self { compact, digest, text }))
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.compact.memory_bytes() + self.text.as_ref().map_or(0, |text| text.capacity() as u64) + 1024
    }
}

/// The files of one version of an item, and what it opened.
#[derive(Debug)]
pub(crate) struct VersionListing {
    /// The file that its persistent URL opened.
    pub(crate) target: Option<String>,
    /// The URL that it led to instead.
    pub(crate) url: Option<TargetUrl>,
    /// In order of their names.
    files: Vec<ListedFile>,
    /// Media types: there are few different ones.
    media: Vec<String>,
}

/// A file of a version.
#[derive(Debug)]
struct ListedFile {
    name: Box<str>,
    content: Box<str>,
    size: u64,
    sha512: [u8; 64],
    media: usize,
    blocks: Box<[u8]>,
}

/// What of `item.json` is read, most of it where it lies.
#[derive(Deserialize)]
struct ItemJsonListing<'a> {
    target: Option<String>,
    url: Option<TargetUrl>,
    #[serde(borrow, default)]
    files: Vec<ItemJsonFile<'a>>,
}

#[derive(Deserialize)]
struct ItemJsonFile<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    size: u64,
    #[serde(rename = "type", borrow)]
    media: Cow<'a, str>,
    #[serde(borrow)]
    blocks: Cow<'a, str>,
}

impl VersionListing {
    /// The files of a version of the object at a path; nothing if there is no such version.
    pub(crate) fn read(
        content: &dyn ContentStorage,
        path: &str,
        inventory: &CompactInventory,
        version: u32,
    ) -> Result<Option<Self>, ArchiveError> {
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        if !inventory.has_version(version) {
            return Ok(None);
        }
        let description = inventory.state(version).find(|(name, _)| *name == DESCRIPTION_FILE);
        let (digest, place) = description
            .and_then(|(_, digest)| Some((digest?, inventory.content_path(digest?)?)))
            .ok_or_else(|| damaged(format!("it has no {DESCRIPTION_FILE}")))?;
        let bytes = read_checked(content, path, place, &inventory.digest(digest))?;
        ItemDescription::check_format(&bytes)
            .map_err(|error| damaged(format!("{DESCRIPTION_FILE}: {error}")))?;
        let written: ItemJsonListing<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("{DESCRIPTION_FILE}: {error}")))?;
        let mut places: Vec<(&str, DigestId)> = inventory
            .state(version)
            .filter_map(|(name, digest)| Some((name.strip_prefix(DOC_FOLDER)?, digest?)))
            .collect();
        places.sort_unstable_by_key(|(name, _)| *name);
        let mut listing =
            Self { target: written.target, url: written.url, files: Vec::new(), media: Vec::new() };
        for file in &written.files {
            let found = places.binary_search_by(|(name, _)| (*name).cmp(&file.path)).ok();
            let digest = found.and_then(|at| places.get(at)).map(|(_, digest)| *digest);
            if let Some(digest) = digest {
                listing.files.extend(to_listed_file(inventory, digest, file, &mut listing.media));
            }
        }
        listing.files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        listing.files.shrink_to_fit();
        Ok(Some(listing))
    }

    /// A file by its name, below `doc/`.
    pub(crate) fn file(&self, name: &str) -> Option<FileRecord> {
        let at = self.files.binary_search_by(|file| (*file.name).cmp(name)).ok()?;
        let file = self.files.get(at)?;
        Some(FileRecord {
            name: file.name.to_string(),
            content: file.content.to_string(),
            size: file.size,
            sha512: hex(&file.sha512),
            media: self.media.get(file.media).cloned().unwrap_or_default(),
            blocks: file.blocks.to_vec(),
        })
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let texts = |file: &ListedFile| file.name.len() + file.content.len() + file.blocks.len() + 3 * 16;
        let files: usize = self.files.iter().map(texts).sum();
        (files + self.files.capacity() * size_of::<ListedFile>() + 1024) as u64
    }
}

/// A file with where its bytes lie; nothing if the inventory or the description is wrong about it.
fn to_listed_file(
    inventory: &CompactInventory,
    digest: DigestId,
    file: &ItemJsonFile<'_>,
    media: &mut Vec<String>,
) -> Option<ListedFile> {
    let known = media.iter().position(|known| *known == file.media);
    let kind = known.unwrap_or_else(|| {
        media.push(file.media.clone().into_owned());
        media.len() - 1
    });
    Some(ListedFile {
        name: file.path.as_ref().into(),
        content: inventory.content_path(digest)?.into(),
        size: file.size,
        sha512: unhex(&inventory.digest(digest))?.try_into().ok()?,
        media: kind,
        blocks: unhex(&file.blocks)?.into(),
    })
}
