//! An item's object, read back from the tree: what opening and rebuilding record is exactly what
//! depositing did.

#[cfg(feature = "web")]
pub(crate) mod listing;

use ibi_store::content::ObjectHead;
use ibi_store::digests::sha512;
use ibi_store::index::{IndexRecord, IndexedItem, MAX_INLINE_METADATA_BYTES};
use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;
use ibi_store::{ContentStorage, StorageError};

use crate::ArchiveError;
use crate::dublin_core::{DublinCore, languages_of};
use crate::item::{IndexedProperties, ItemDescription, LongMetadataNote};

/// The item's description, its metadata and where its files begin, as logical paths.
pub(crate) const DESCRIPTION_FILE: &str = "item.json";
pub(crate) const METADATA_FILE: &str = "metadata/oai_dc.xml";
pub(crate) const DOC_FOLDER: &str = "doc/";

/// Length of the abbreviated digest of an inventory.
const SHORT_DIGEST_DIGITS: usize = 32;

/// The first digits of an inventory's digest.
pub(crate) fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT_DIGEST_DIGITS).unwrap_or(digest)
}

/// An object, by its last version.
pub(crate) struct StoredObject {
    pub(crate) inventory: Inventory,
    pub(crate) digest: String,
    pub(crate) item: ItemDescription,
    pub(crate) metadata: DublinCore,
}

impl StoredObject {
    /// Reads an object; nothing if there is none.
    pub(crate) fn read(content: &dyn ContentStorage, path: &str) -> Result<Option<Self>, ArchiveError> {
        let Some(ObjectHead { inventory, digest }) = content.head(path)? else { return Ok(None) };
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let inventory = Inventory::parse(&inventory).map_err(damaged)?;
        let description = read_logical_file(content, path, &inventory, DESCRIPTION_FILE)?;
        let item = ItemDescription::parse(&description)
            .map_err(|error| damaged(format!("{DESCRIPTION_FILE}: {error}")))?;
        // A copy at another path would give its labels two items.
        if item.object_path().ok().as_deref() != Some(path) {
            return Err(damaged(format!(
                "it is the object of {}, and does not belong here",
                item.labels.primary()
            )));
        }
        let metadata = read_logical_file(content, path, &inventory, METADATA_FILE)?;
        let metadata = String::from_utf8(metadata)
            .map_err(|error| error.to_string())
            .and_then(|xml| DublinCore::from_xml(&xml).map_err(|error| error.to_string()))
            .map_err(|error| damaged(format!("{METADATA_FILE}: {error}")))?;
        Ok(Some(Self { inventory, digest, item, metadata }))
    }

    /// Its record in the index.
    pub(crate) fn to_indexed_item(
        &self,
        path: &str,
        change: u64,
        state: State,
        epoch: u64,
    ) -> Result<IndexedItem, ArchiveError> {
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let mut places: Vec<(&str, &str, &str)> = Vec::new();
        for (logical, digest, content) in self.inventory.files() {
            if let Some(name) = logical.strip_prefix(DOC_FOLDER) {
                let content = content.ok_or_else(|| damaged(format!("the manifest lacks {logical}")))?;
                places.push((name, digest, content));
            }
        }
        places.sort_unstable();
        let mut files = Vec::with_capacity(self.item.files.len());
        for file in &self.item.files {
            let at = places.binary_search_by(|(name, ..)| (*name).cmp(&file.path));
            let place = at.ok().and_then(|at| places.get(at));
            let record = place.and_then(|(_, digest, content)| file.record(digest, content));
            files.push(record.ok_or_else(|| damaged(format!("the description of {} is wrong", file.path)))?);
        }
        if files.len() != places.len() {
            return Err(damaged("the description and the inventory list different files".to_owned()));
        }
        let bare = ItemDescription { files: Vec::new(), ..self.item.clone() };
        let text =
            |value: Result<String, serde_json::Error>| value.map_err(|error| damaged(error.to_string()));
        let metadata = text(serde_json::to_string(&self.metadata))?;
        let metadata_languages = match metadata.len() > MAX_INLINE_METADATA_BYTES {
            true => languages_of(&self.metadata),
            false => Vec::new(),
        };
        let note = LongMetadataNote { metadata_languages };
        Ok(IndexedItem {
            record: IndexRecord {
                path: path.to_owned(),
                change,
                version: self.inventory.head_number(),
                inventory: short_digest(&self.digest).to_owned(),
                state,
                epoch,
                properties: text(serde_json::to_string(&IndexedProperties { item: &bare, note }))?,
                metadata,
            },
            labels: self.item.label_records(),
            links: self.item.link_records(),
            files,
        })
    }
}

/// A file of the last version that is read whole, checked against its digest.
fn read_logical_file(
    content: &dyn ContentStorage,
    path: &str,
    inventory: &Inventory,
    logical: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
    let found = inventory.files().find(|(name, ..)| *name == logical);
    let (digest, place) = found
        .and_then(|(_, digest, place)| Some((digest, place?)))
        .ok_or_else(|| damaged(format!("it has no {logical}")))?;
    read_checked(content, path, place, digest)
}

/// A file of an object that is read whole, checked against its digest.
pub(crate) fn read_checked(
    content: &dyn ContentStorage,
    path: &str,
    place: &str,
    digest: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let file = content.open(path, place)?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        let read = file.read_at(&mut buffer, bytes.len() as u64);
        match read.map_err(StorageError::io("read", format!("{path}/{place}").as_ref()))? {
            0 => break,
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    if sha512(&bytes) != digest {
        let what = format!("digest mismatch in {place}");
        return Err(ArchiveError::DamagedObject { path: path.to_owned(), what });
    }
    Ok(bytes)
}
