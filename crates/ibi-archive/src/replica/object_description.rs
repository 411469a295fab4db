//! The description of an item's object for another Archive (`docs/formats/holders.md`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ibi_store::journal::{LinkStatement, State};
use ibi_store::ocfl::INVENTORY_FILE;
use serde::{Deserialize, Serialize};

use crate::archive::{HeldItem, Holdings};
use crate::item::LabelKey;
use crate::object::listing::RootInventory;
use crate::replica::object_reader::{ObjectFileKind, ObjectReader};
use crate::replica::object_validation::MAX_OBJECT_VERSIONS;
use crate::transfer_protocol::MAX_EPOCH;
use crate::{ArchiveError, item_view};

/// The format of this document.
pub const OBJECT_DESCRIPTION_FORMAT: u32 = 1;

/// Limits for embedded files: bytes of one, bytes of all, and number of candidates.
const MAX_EMBEDDED_FILE_BYTES: usize = 64 << 10;
const MAX_EMBEDDED_TOTAL_BYTES: usize = 1 << 20;
const MAX_EMBEDDED_CANDIDATES: usize = 1000;

/// An object with its small files. Later versions may add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDescription {
    /// The format of this document.
    pub format: u32,
    /// The service label of the reporting Archive.
    pub archive: String,
    /// The primary label of the item.
    pub item: String,
    /// The path of the object.
    pub path: String,
    /// Its state there.
    #[serde(with = "state")]
    pub state: State,
    /// How often its Original was handed over.
    pub epoch: u64,
    /// Its version.
    pub version: u32,
    /// The SHA-512 of its last inventory.
    pub inventory: String,
    /// Its history there.
    #[serde(default)]
    pub history: Vec<item_view::ItemEvent>,
    /// The link statements known there (clause 2.4), without proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatement>,
    /// Small files in base64, by their paths in the object; others are fetched one by one.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl ObjectDescription {
    /// The object of an item with this inventory, without its files.
    pub(crate) fn without_files(
        holdings: &Holdings,
        holding: &HeldItem,
        inventory: &RootInventory,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            format: OBJECT_DESCRIPTION_FORMAT,
            archive: holdings.settings().service.primary().to_owned(),
            item: holding.item.labels.primary().to_owned(),
            path: holding.path.clone(),
            state: holding.state,
            epoch: holding.epoch,
            version: inventory.compact.head_version_number(),
            inventory: inventory.digest.clone(),
            history: holdings.history_for_peers(&holding.path)?,
            links: holdings.link_list(&holding.item, false)?,
            files: BTreeMap::new(),
        })
    }

    /// The description as JSON up to the content of `files`, the last member; and the text that
    /// follows.
    pub(crate) fn to_json_around_files(&self) -> Option<(String, &'static str)> {
        let mut text = serde_json::to_string(self).ok()?;
        let end = "{}}";
        let before = text.strip_suffix(end)?.len();
        text.truncate(before);
        Some((text, "}"))
    }

    /// Whether the document is valid in this format.
    pub fn check(&self) -> Result<(), String> {
        if self.format != OBJECT_DESCRIPTION_FORMAT {
            return Err(format!(
                "the format of its answer is {}, and this program knows {OBJECT_DESCRIPTION_FORMAT}",
                self.format
            ));
        }
        if self.version == 0 || self.version as usize > MAX_OBJECT_VERSIONS {
            return Err(format!("it reports {} versions", self.version));
        }
        if !(1..=MAX_EPOCH).contains(&self.epoch) {
            return Err(format!("epoch {} out of range", self.epoch));
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.inventory.len() != 128 || !self.inventory.bytes().all(is_digit) {
            return Err("inventory digest missing".to_owned());
        }
        if LabelKey::parse(&self.item).ok().is_none_or(|spelling| spelling.folded != self.path) {
            return Err("wrong object path".to_owned());
        }
        Ok(())
    }

    /// An embedded file.
    pub fn embedded_file(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(path).and_then(|text| STANDARD.decode(text).ok())
    }
}

/// The files to embed: inventories first, since nothing works without them, then descriptions and
/// metadata, then the rest. Damaged files are left out; a request for one reports the damage. Files
/// of `doc/` are included only with `open`.
pub(crate) fn embedded_files(reading: &ObjectReader<'_>, open: bool) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut left = MAX_EMBEDDED_TOTAL_BYTES;
    let mut put = |path: &str, bytes: Vec<u8>| {
        left -= bytes.len();
        files.insert(path.to_owned(), STANDARD.encode(bytes));
        MAX_EMBEDDED_FILE_BYTES.min(left)
    };
    let mut fits = MAX_EMBEDDED_FILE_BYTES;
    if let Some(text) = reading.inventory.text.as_ref().filter(|text| text.len() <= fits) {
        fits = put(INVENTORY_FILE, text.clone());
    }
    // The last version's inventory is the root inventory.
    let older = (1..reading.inventory.compact.head_version_number())
        .map(|number| format!("v{number}/{INVENTORY_FILE}"));
    for path in older.take(MAX_EMBEDDED_CANDIDATES) {
        let digest = reading.inventory_digest(&path);
        let bytes = digest.and_then(|digest| match digest {
            Some(digest) => reading.read_small_file(&path, &digest, fits),
            None => Ok(None),
        });
        // Inventories grow: after one that does not fit, none will.
        let Ok(Some(bytes)) = bytes else { break };
        fits = put(&path, bytes);
    }
    let manifest = reading.manifest();
    let of = |wanted: ObjectFileKind| manifest.iter().filter(move |(_, kind, _)| *kind == wanted);
    let docs = of(ObjectFileKind::Doc).filter(|_| open);
    // Each costs a disk access, even if it does not fit.
    for (path, _, digest) in of(ObjectFileKind::Text).chain(docs).take(MAX_EMBEDDED_CANDIDATES) {
        if let Ok(Some(bytes)) =
            reading.read_small_file(path, &reading.inventory.compact.digest(*digest), fits)
        {
            fits = put(path, bytes);
        }
    }
    files
}

/// Serializes a state by its name.
pub(crate) mod state {
    use ibi_store::journal::State;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(state.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<State, D::Error> {
        let name = String::deserialize(deserializer)?;
        State::parse(&name).ok_or_else(|| D::Error::custom("an item is Original, Copy or Deleted"))
    }
}
