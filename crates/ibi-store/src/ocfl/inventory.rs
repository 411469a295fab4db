//! The inventory of an object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::strict_json::{StrictObject, digest_bytes, unique_map, unique_objects, version_number};
use crate::digests::sha512;

/// The content of an object, version by version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// `ibi:` and the primary label.
    pub id: String,
    #[serde(rename = "type")]
    kind: String,
    digest_algorithm: String,
    /// The latest version, as `v3`.
    pub head: String,
    /// The content paths for each digest.
    #[serde(deserialize_with = "unique_map")]
    pub manifest: BTreeMap<String, Vec<String>>,
    /// All versions, by name.
    #[serde(deserialize_with = "unique_objects")]
    pub versions: BTreeMap<String, InventoryVersion>,
}

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryVersion {
    /// The time of its creation.
    pub created: String,
    /// The reason.
    pub message: String,
    /// The user who created it.
    pub user: InventoryUser,
    /// The logical paths for each digest.
    #[serde(deserialize_with = "unique_map")]
    pub state: BTreeMap<String, Vec<String>>,
}

/// The user who created a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryUser {
    /// A name.
    pub name: String,
    /// A URI.
    pub address: String,
}

impl Inventory {
    /// The inventory of an object that has no version yet.
    pub fn new(id: String) -> Self {
        Self {
            id,
            kind: "https://ocfl.io/1.1/spec/#inventory".to_owned(),
            digest_algorithm: "sha512".to_owned(),
            head: "v0".to_owned(),
            manifest: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Parses an inventory written by ibi.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let read: Result<StrictObject<Self>, _> = serde_json::from_slice(bytes);
        let inventory = read.map_err(|error| error.to_string())?.0;
        if inventory.digest_algorithm != "sha512" {
            return Err(format!("its digests are {}, not sha512", inventory.digest_algorithm));
        }
        if inventory.head_number() == 0 || !inventory.versions.contains_key(&inventory.head) {
            return Err(format!("its head {} does not exist", inventory.head));
        }
        if inventory.versions.keys().any(|name| version_number(name).is_none()) {
            return Err("a version name is invalid".to_owned());
        }
        let states = inventory.versions.values().flat_map(|version| version.state.keys());
        if inventory.manifest.keys().chain(states).any(|digest| digest_bytes(digest).is_none()) {
            return Err("a digest is not a SHA-512".to_owned());
        }
        Ok(inventory)
    }

    /// Whether another inventory is of the same object and in the same format, whatever versions
    /// each has.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (&self.id, &self.kind, &self.digest_algorithm) == (&other.id, &other.kind, &other.digest_algorithm)
    }

    /// The number of the latest version.
    pub fn head_number(&self) -> u32 {
        version_number(&self.head).unwrap_or(0)
    }

    /// The latest version.
    pub fn head_version(&self) -> Option<&InventoryVersion> {
        self.versions.get(&self.head)
    }

    /// Adds a version. `files` are pairs of logical path and digest. `stored` are, for the files
    /// whose bytes are new, pairs of digest and name on disk below `content/`.
    pub fn add_version(
        &mut self,
        version: InventoryVersion,
        files: impl IntoIterator<Item = (String, String)>,
        stored: impl IntoIterator<Item = (String, String)>,
    ) {
        self.head = format!("v{}", self.head_number() + 1);
        for (digest, name) in stored {
            self.manifest.entry(digest).or_default().push(format!("{}/content/{name}", self.head));
        }
        let mut version = version;
        for (path, digest) in files {
            version.state.entry(digest).or_default().push(path);
        }
        self.versions.insert(self.head.clone(), version);
    }

    /// Serializes it: equal inventories have equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only strings, lists and maps with string keys: serialization to JSON cannot fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The digest of a serialized inventory.
    pub fn digest(bytes: &[u8]) -> String {
        sha512(bytes)
    }

    /// The logical paths of the latest version, each with its digest and content path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        let state = self.head_version().map(|version| &version.state).into_iter().flatten();
        state.flat_map(|(digest, paths)| {
            let content = self.manifest.get(digest).and_then(|paths| paths.first()).map(String::as_str);
            paths.iter().map(move |path| (path.as_str(), digest.as_str(), content))
        })
    }
}
