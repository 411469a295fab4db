//! The object of an item as another Archive is told of it: `docs/formats/holders.md`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ibi_store::journal::{LinkStatement, State};
use ibi_store::ocfl::INVENTORY;
use serde::{Deserialize, Serialize};

use crate::archive::{Holding, Holdings};
use crate::holders::messages::LAST_EPOCH;
use crate::holders::reading::{Kind, Reading};
use crate::holders::whole::MOST_VERSIONS;
use crate::item::Spelling;
use crate::{ArchiveError, told};

/// The format of this document.
pub const FORMAT: u32 = 1;

/// Bytes of a file that comes with the document, of all of them, and how many are looked at.
const LONGEST: usize = 64 << 10;
const LONGEST_OF_ALL: usize = 1 << 20;
const MOST: usize = 1000;

/// An object, with the small files of it. Later Archives may say more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The format of this document.
    pub format: u32,
    /// The service label of the Archive that tells.
    pub archive: String,
    /// The primary label of the item.
    pub item: String,
    /// The path of the object.
    pub path: String,
    /// What it is there.
    #[serde(with = "state")]
    pub state: State,
    /// How often its original was handed over.
    pub epoch: u64,
    /// Its version.
    pub version: u32,
    /// The SHA-512 of its last inventory.
    pub inventory: String,
    /// What happened to it there.
    #[serde(default)]
    pub history: Vec<told::Event>,
    /// What is known there of its links to other items (clause 2.4), proposals left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatement>,
    /// Small files in base64, by their paths in the object; the others are fetched each by itself.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Held {
    /// The object of an item; nothing if it is not there. Files of `doc/` come only with `open`.
    pub fn of(holdings: &Holdings, holding: &Holding, open: bool) -> Result<Option<Self>, ArchiveError> {
        let Some(reading) = Reading::of(holdings, &holding.path)? else { return Ok(None) };
        Ok(Some(Self {
            format: FORMAT,
            archive: holdings.settings().service.primary().to_owned(),
            item: holding.item.labels.primary().to_owned(),
            path: holding.path.clone(),
            state: holding.state,
            epoch: holding.epoch,
            version: reading.inventory.number(),
            inventory: reading.digest.clone(),
            history: holdings.told_history(&holding.path)?,
            links: holdings.link_list(&holding.item, false)?,
            files: small_files(&reading, open),
        }))
    }

    /// Whether it is a document of this format.
    pub fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!(
                "the format of its answer is {}, and this program knows {FORMAT}",
                self.format
            ));
        }
        if self.version == 0 || self.version as usize > MOST_VERSIONS {
            return Err(format!("it tells of {} versions", self.version));
        }
        if !(1..=LAST_EPOCH).contains(&self.epoch) {
            return Err(format!("it tells of an epoch {}, which cannot be", self.epoch));
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.inventory.len() != 128 || !self.inventory.bytes().all(is_digit) {
            return Err("it tells no digest of the inventory".to_owned());
        }
        if Spelling::parse(&self.item).ok().is_none_or(|spelling| spelling.folded != self.path) {
            return Err("the path that it tells is not that of the item".to_owned());
        }
        Ok(())
    }

    /// A file that came with the document.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(path).and_then(|text| STANDARD.decode(text).ok())
    }
}

/// Inventories first: nothing can be done without them. Then descriptions and metadata, then what is left. What is damaged is
/// left out: who asks for it by itself is told so.
fn small_files(reading: &Reading<'_>, open: bool) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut left = LONGEST_OF_ALL;
    let mut put = |path: &str, bytes: Vec<u8>| {
        left -= bytes.len();
        files.insert(path.to_owned(), STANDARD.encode(bytes));
        LONGEST.min(left)
    };
    let mut fits = LONGEST;
    if reading.bytes.len() <= fits {
        fits = put(INVENTORY, reading.bytes.clone());
    }
    // That of the last version is the one of the root.
    let older = (1..reading.inventory.number()).map(|number| format!("v{number}/{INVENTORY}"));
    for path in older.take(MOST) {
        let digest = reading.inventory_digest(&path).ok().flatten();
        let bytes = digest.and_then(|digest| reading.small(&path, &digest, fits).ok().flatten());
        // They grow: after one that does not fit, none will.
        let Some(bytes) = bytes else { break };
        fits = put(&path, bytes);
    }
    let manifest = reading.manifest();
    let of = |wanted: Kind| manifest.iter().filter(move |(_, (kind, _))| *kind == wanted);
    let docs = of(Kind::Doc).filter(|_| open);
    // Each costs a look at the disk, also one that does not fit.
    for (path, (_, digest)) in of(Kind::Text).chain(docs).take(MOST) {
        if let Ok(Some(bytes)) = reading.small(path, digest, fits) {
            fits = put(path, bytes);
        }
    }
    files
}

/// What an item is, by its name.
pub(super) mod state {
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
