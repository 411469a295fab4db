//! The inventory of an object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digests::sha512;

/// What lies in an object, version by version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// `ibi:` and the primary label.
    pub id: String,
    #[serde(rename = "type")]
    kind: String,
    digest_algorithm: String,
    /// The last version, as `v3`.
    pub head: String,
    /// Where the bytes with each digest lie.
    pub manifest: BTreeMap<String, Vec<String>>,
    /// Each version.
    pub versions: BTreeMap<String, Version>,
}

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// When it was made.
    pub created: String,
    /// Why.
    pub message: String,
    /// By whom.
    pub user: User,
    /// The logical paths of the bytes with each digest.
    pub state: BTreeMap<String, Vec<String>>,
}

/// Who made a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
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

    /// Reads an inventory of ours.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let inventory: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if inventory.digest_algorithm != "sha512" {
            return Err(format!("its digests are {}, not sha512", inventory.digest_algorithm));
        }
        if inventory.number() == 0 || !inventory.versions.contains_key(&inventory.head) {
            return Err(format!("its head is {}, which it does not have", inventory.head));
        }
        Ok(inventory)
    }

    /// The number of the last version.
    pub fn number(&self) -> u32 {
        self.head.strip_prefix('v').and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The last version.
    pub fn last(&self) -> Option<&Version> {
        self.versions.get(&self.head)
    }

    /// Adds a version. `files` are logical path and digest; `stored`, of those whose bytes came with it, digest and name
    /// on disk below `content/`.
    pub fn add(
        &mut self,
        version: Version,
        files: impl IntoIterator<Item = (String, String)>,
        stored: impl IntoIterator<Item = (String, String)>,
    ) {
        self.head = format!("v{}", self.number() + 1);
        for (digest, name) in stored {
            self.manifest.entry(digest).or_default().push(format!("{}/content/{name}", self.head));
        }
        let mut version = version;
        for (path, digest) in files {
            version.state.entry(digest).or_default().push(path);
        }
        self.versions.insert(self.head.clone(), version);
    }

    /// As it is written: the same bytes for the same inventory.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Maps with keys of text, text and lists: nothing that JSON could refuse.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The digest of its bytes.
    pub fn digest(bytes: &[u8]) -> String {
        sha512(bytes)
    }

    /// Where the bytes of a logical path of the last version lie, with their digest.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        let state = self.last().map(|version| &version.state).into_iter().flatten();
        state.flat_map(|(digest, paths)| {
            let content = self.manifest.get(digest).and_then(|paths| paths.first()).map(String::as_str);
            paths.iter().map(move |path| (path.as_str(), digest.as_str(), content))
        })
    }
}
