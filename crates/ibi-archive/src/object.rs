//! An item's object, read back from the tree: what opening and rebuilding record is exactly what depositing did.

use ibi_store::content::Head;
use ibi_store::digests::sha512;
use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;
use ibi_store::records::{FileRecord, Full, Record};
use ibi_store::{Content, KeepError};

use crate::ArchiveError;
use crate::dublin_core::DublinCore;
use crate::item::Item;

/// The item's description, its metadata and where its files begin, as logical paths.
pub(crate) const DESCRIPTION: &str = "item.json";
pub(crate) const METADATA: &str = "metadata/oai_dc.xml";
pub(crate) const DOC: &str = "doc/";

/// How much of an inventory's digest names it elsewhere.
const SHORT: usize = 32;

/// The first digits of an inventory's digest.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}

/// An object as its last version tells.
pub(crate) struct Object {
    pub(crate) inventory: Inventory,
    pub(crate) digest: String,
    pub(crate) item: Item,
    pub(crate) metadata: DublinCore,
}

impl Object {
    /// Reads an object; nothing if there is none.
    pub(crate) fn read(content: &dyn Content, path: &str) -> Result<Option<Self>, ArchiveError> {
        let Some(Head { inventory, digest }) = content.head(path)? else { return Ok(None) };
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let inventory = Inventory::parse(&inventory).map_err(damaged)?;
        let description = small_file(content, path, &inventory, DESCRIPTION)?;
        let item = Item::parse(&description).map_err(|error| damaged(format!("{DESCRIPTION}: {error}")))?;
        // A copy that somebody laid elsewhere would lead its labels to two items.
        if item.object_path().ok().as_deref() != Some(path) {
            return Err(damaged(format!(
                "it is the object of {}, and does not belong here",
                item.labels.primary()
            )));
        }
        let metadata = small_file(content, path, &inventory, METADATA)?;
        let metadata = String::from_utf8(metadata)
            .map_err(|error| error.to_string())
            .and_then(|xml| DublinCore::from_xml(&xml).map_err(|error| error.to_string()))
            .map_err(|error| damaged(format!("{METADATA}: {error}")))?;
        Ok(Some(Self { inventory, digest, item, metadata }))
    }

    /// What is recorded of it.
    pub(crate) fn full(
        &self,
        path: &str,
        change: u64,
        state: State,
        epoch: u64,
    ) -> Result<Full, ArchiveError> {
        let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
        let mut places: Vec<(&str, &str, &str)> = Vec::new();
        for (logical, digest, content) in self.inventory.files() {
            if let Some(name) = logical.strip_prefix(DOC) {
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
        let bare = Item { files: Vec::new(), ..self.item.clone() };
        let text =
            |value: Result<String, serde_json::Error>| value.map_err(|error| damaged(error.to_string()));
        Ok(Full {
            record: Record {
                path: path.to_owned(),
                change,
                version: self.inventory.number(),
                inventory: short(&self.digest).to_owned(),
                state,
                epoch,
                properties: text(serde_json::to_string(&bare))?,
                metadata: text(serde_json::to_string(&self.metadata))?,
            },
            labels: self.item.label_records(),
            links: self.item.link_records(),
            files,
        })
    }
}

/// What an older version said of an item; nothing if there is no such version.
pub(crate) fn item_of_version(
    content: &dyn Content,
    path: &str,
    version: u32,
) -> Result<Option<Item>, ArchiveError> {
    Ok(older_version(content, path, version)?.map(|(_, item)| item))
}

/// The inventory cut back to an older version, and what that version said of the item.
fn older_version(
    content: &dyn Content,
    path: &str,
    version: u32,
) -> Result<Option<(Inventory, Item)>, ArchiveError> {
    let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
    let Some(Head { inventory, .. }) = content.head(path)? else { return Ok(None) };
    let mut inventory = Inventory::parse(&inventory).map_err(damaged)?;
    inventory.head = format!("v{version}");
    if inventory.last().is_none() {
        return Ok(None);
    }
    let description = small_file(content, path, &inventory, DESCRIPTION)?;
    let item = Item::parse(&description).map_err(|error| damaged(format!("{DESCRIPTION}: {error}")))?;
    Ok(Some((inventory, item)))
}

/// A file of an item as an older version had it; nothing if that version had none of this name.
pub(crate) fn file_of_version(
    content: &dyn Content,
    path: &str,
    version: u32,
    name: &str,
) -> Result<Option<FileRecord>, ArchiveError> {
    let Some((inventory, item)) = older_version(content, path, version)? else { return Ok(None) };
    let logical = format!("{DOC}{name}");
    let place = inventory.files().find(|(path, ..)| *path == logical);
    let Some((_, digest, Some(place))) = place else { return Ok(None) };
    let file = item.files.iter().find(|file| file.path == name);
    Ok(file.and_then(|file| file.record(digest, place)))
}

/// A file of the last version that is read whole, checked against its digest.
fn small_file(
    content: &dyn Content,
    path: &str,
    inventory: &Inventory,
    logical: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let damaged = |what: String| ArchiveError::DamagedObject { path: path.to_owned(), what };
    let found = inventory.files().find(|(name, ..)| *name == logical);
    let (digest, place) = found
        .and_then(|(_, digest, place)| Some((digest, place?)))
        .ok_or_else(|| damaged(format!("it has no {logical}")))?;
    let file = content.open(path, place)?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        let read = file.read_at(&mut buffer, bytes.len() as u64);
        match read.map_err(KeepError::io("read", format!("{path}/{place}").as_ref()))? {
            0 => break,
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    if sha512(&bytes) != digest {
        return Err(damaged(format!("{place} is not what its digest says")));
    }
    Ok(bytes)
}
