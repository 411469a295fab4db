//! Checks that inventories from elsewhere form one complete object (`docs/formats/tree.md`),
//! without disk or network access. Only an object that could have been written here is copied.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ibi_store::ocfl::{Inventory, InventoryVersion, MAX_NAME_BYTES};
use serde::Deserialize;

use crate::item::LabelKey;
use crate::object::{DESCRIPTION_FILE, DOC_FOLDER, METADATA_FILE};

/// Maximum number of versions of an object.
pub const MAX_OBJECT_VERSIONS: usize = 100_000;

/// Maximum size of one inventory.
pub const MAX_PEER_INVENTORY_BYTES: usize = 64 << 20;

/// Maximum size of all inventories of an object: they are in memory together.
pub const MAX_OBJECT_INVENTORIES_BYTES: usize = 128 << 20;

const MAX_OBJECT_PATH_BYTES: usize = 4096;

const SHA512_HEX_DIGITS: usize = 128;

/// The inventory type of OCFL 1.1.
const OCFL_INVENTORY_TYPE: &str = "https://ocfl.io/1.1/spec/#inventory";

/// Why inventories do not form one complete object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectValidationError {
    /// No versions, or too many.
    #[error("it has {count} versions: from 1 to {MAX_OBJECT_VERSIONS} are taken")]
    Count {
        /// The number of versions.
        count: usize,
    },
    /// Too long.
    #[error("the inventory of v{version} makes them longer than is taken")]
    Long {
        /// The version.
        version: usize,
    },
    /// Not an inventory.
    #[error("the inventory of v{version} cannot be understood: {what}")]
    Inventory {
        /// The version.
        version: usize,
        /// Why.
        what: String,
    },
    /// The inventory of another version.
    #[error("the inventory of v{version} says that the last version is {head}")]
    Head {
        /// The version.
        version: usize,
        /// The head it states.
        head: String,
    },
    /// Versions are missing or misnamed.
    #[error("its versions are not v1 to v{count}, each once")]
    Versions {
        /// The expected number.
        count: usize,
    },
    /// The object of another item.
    #[error("it is the object {id}, and {asked} was asked for")]
    Other {
        /// The ID it states.
        id: String,
        /// The requested item.
        asked: String,
    },
    /// An invalid path, or one outside the object.
    #[error("{path}: {why}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Not a digest.
    #[error("{digest} is not a SHA-512 in lower-case hex digits")]
    Digest {
        /// The value found.
        digest: String,
    },
    /// A digest without a path, or bytes that no version uses.
    #[error("digest {digest} has no content path, or no version uses it")]
    Empty {
        /// The digest.
        digest: String,
    },
    /// A version refers to bytes that the manifest lacks.
    #[error("{version} uses digest {digest}, which has no content path")]
    Lacks {
        /// The version.
        version: String,
        /// The digest.
        digest: String,
    },
    /// Every version has a description and metadata (clause 2.2).
    #[error("{version} has no {name}")]
    Without {
        /// The version.
        version: String,
        /// The missing file.
        name: &'static str,
    },
    /// Versions are immutable (clause 2.2).
    #[error("the inventory of v{version} is not what the last one says of that version")]
    History {
        /// The version.
        version: usize,
    },
}

/// How two objects of one item compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryComparison {
    /// They are equal.
    Equal,
    /// Theirs has all our versions, and more.
    Behind,
    /// Ours has all their versions, and more.
    Ahead,
    /// Neither continues the other.
    Altered,
}

/// Compares our object with theirs.
pub fn compare_inventories(ours: &Inventory, theirs: &Inventory) -> HistoryComparison {
    match ours.head_number().cmp(&theirs.head_number()) {
        Ordering::Equal if ours == theirs => HistoryComparison::Equal,
        Ordering::Less if is_inventory_at(theirs, ours.head_number(), ours) => HistoryComparison::Behind,
        Ordering::Greater if is_inventory_at(ours, theirs.head_number(), theirs) => HistoryComparison::Ahead,
        _ => HistoryComparison::Altered,
    }
}

/// The inventory as it was when `version` was the last.
pub fn inventory_at(inventory: &Inventory, version: u32) -> Inventory {
    let is_then = |name: &str| version_number(name).is_some_and(|number| number <= version);
    let mut then = inventory.clone();
    then.head = format!("v{version}");
    then.versions.retain(|name, _| is_then(name));
    then.manifest.retain(|_, paths| {
        paths.retain(|path| is_then(path.split('/').next().unwrap_or_default()));
        !paths.is_empty()
    });
    then
}

/// Whether `then` is the inventory of a version of an object. Each inventory comes with its digest.
/// The last version must have the object's own inventory; an earlier one must match what that
/// states of it.
pub fn is_version_inventory(
    (own, digest): (&Inventory, &str),
    version: &str,
    (then, found): (&Inventory, &str),
) -> bool {
    match version == own.head {
        true => found == digest,
        false => version_number(version).is_some_and(|number| is_inventory_at(own, number, then)),
    }
}

/// Checks the inventories from v1 on, for the item with this label or path. Returns the last.
pub fn validate_object(label: &str, inventories: &[Vec<u8>]) -> Result<Inventory, ObjectValidationError> {
    let count = inventories.len();
    if count > MAX_OBJECT_VERSIONS {
        return Err(ObjectValidationError::Count { count });
    }
    let mut total = 0;
    for (version, bytes) in (1..).zip(inventories) {
        total += bytes.len();
        if bytes.len() > MAX_PEER_INVENTORY_BYTES || total > MAX_OBJECT_INVENTORIES_BYTES {
            return Err(ObjectValidationError::Long { version });
        }
    }
    let (last, older) = inventories.split_last().ok_or(ObjectValidationError::Count { count })?;
    let last = read_version(count, last)?;
    check_last(label, &last, count)?;
    // One after the other: parsed, each is several times as large. At most MAX_OBJECT_VERSIONS:
    // fits.
    for (version, bytes) in (1_u32..).zip(older) {
        let inventory = read_version(version as usize, bytes)?;
        if !is_inventory_at(&last, version, &inventory) {
            return Err(ObjectValidationError::History { version: version as usize });
        }
    }
    Ok(last)
}

fn read_version(version: usize, bytes: &[u8]) -> Result<Inventory, ObjectValidationError> {
    let inventory =
        parse_inventory(bytes).map_err(|what| ObjectValidationError::Inventory { version, what })?;
    match inventory.head == format!("v{version}") {
        true => Ok(inventory),
        false => Err(ObjectValidationError::Head { version, head: inventory.head }),
    }
}

/// Whether `then` equals [`inventory_at`], without building that.
fn is_inventory_at(inventory: &Inventory, version: u32, then: &Inventory) -> bool {
    let is_then = |name: &str| version_number(name).is_some_and(|number| number <= version);
    let lay_then = |paths: &[String]| -> Vec<String> {
        paths.iter().filter(|path| is_then(path.split('/').next().unwrap_or_default())).cloned().collect()
    };
    if then.head != format!("v{version}") || !then.is_same_object(inventory) {
        return false;
    }
    let versions = inventory.versions.iter().filter(|(name, _)| is_then(name));
    let manifest = inventory.manifest.iter().map(|(digest, paths)| (digest, lay_then(paths)));
    let manifest = manifest.filter(|(_, paths)| !paths.is_empty());
    versions.eq(then.versions.iter())
        && manifest
            .map(|(digest, paths)| (digest.as_str(), paths))
            .eq(then.manifest.iter().map(|(digest, paths)| (digest.as_str(), paths.clone())))
}

fn parse_inventory(bytes: &[u8]) -> Result<Inventory, String> {
    #[derive(Deserialize)]
    struct InventoryType {
        #[serde(rename = "type")]
        kind: String,
    }
    let InventoryType { kind } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kind != OCFL_INVENTORY_TYPE {
        return Err(format!("its type is `{}`, and not `{OCFL_INVENTORY_TYPE}`", kind.escape_debug()));
    }
    Inventory::parse(bytes)
}

fn check_last(label: &str, last: &Inventory, count: usize) -> Result<(), ObjectValidationError> {
    let names_are_right = (1..=count).all(|number| last.versions.contains_key(&format!("v{number}")));
    if last.versions.len() != count || !names_are_right {
        return Err(ObjectValidationError::Versions { count });
    }
    let folded = |label: &str| LabelKey::parse(label).ok().map(|spelling| spelling.folded);
    let path = last.id.strip_prefix("ibi:").and_then(folded);
    if path.is_none() || path != folded(label) {
        return Err(ObjectValidationError::Other {
            id: escape_untrusted(&last.id),
            asked: escape_untrusted(label),
        });
    }
    let since = check_manifest(last, count)?;
    let mut used = BTreeSet::new();
    for (name, version) in &last.versions {
        check_version(name, version, &since)?;
        used.extend(version.state.keys().map(String::as_str));
    }
    match last.manifest.keys().find(|digest| !used.contains(digest.as_str())) {
        // No description would state their length.
        Some(digest) => Err(ObjectValidationError::Empty { digest: digest.clone() }),
        None => Ok(()),
    }
}

/// Checks the paths of the manifest; returns the version that first had each digest.
fn check_manifest(last: &Inventory, count: usize) -> Result<BTreeMap<&str, u32>, ObjectValidationError> {
    let mut since = BTreeMap::new();
    let mut all = Vec::new();
    for (digest, paths) in &last.manifest {
        check_digest(digest)?;
        let mut first = u32::MAX;
        for path in paths {
            let wrong = |why| ObjectValidationError::Path { path: escape_untrusted(path), why };
            if path.len() > MAX_OBJECT_PATH_BYTES {
                return Err(wrong("the path is longer than 4096 bytes"));
            }
            let (version, rest) =
                path.split_once("/content/").ok_or_else(|| wrong("path outside version content"))?;
            let version = version_number(version).filter(|number| *number as usize <= count);
            first = first.min(version.ok_or_else(|| wrong("path outside version content"))?);
            check_names(rest).map_err(wrong)?;
            all.push(path.as_str());
        }
        if paths.is_empty() {
            return Err(ObjectValidationError::Empty { digest: digest.clone() });
        }
        since.insert(digest.as_str(), first);
    }
    check_disjoint_paths(all)?;
    Ok(since)
}

fn check_version(
    name: &str,
    version: &InventoryVersion,
    since: &BTreeMap<&str, u32>,
) -> Result<(), ObjectValidationError> {
    let number = version_number(name).unwrap_or(0);
    let mut all = Vec::new();
    for (digest, paths) in &version.state {
        check_digest(digest)?;
        if paths.is_empty() {
            return Err(ObjectValidationError::Empty { digest: digest.clone() });
        }
        if since.get(digest.as_str()).is_none_or(|since| *since > number) {
            return Err(ObjectValidationError::Lacks { version: name.to_owned(), digest: digest.clone() });
        }
        for path in paths {
            let wrong = |why| ObjectValidationError::Path { path: escape_untrusted(path), why };
            if path.len() > MAX_OBJECT_PATH_BYTES {
                return Err(wrong("the path is longer than 4096 bytes"));
            }
            check_names(path).map_err(wrong)?;
            if path != DESCRIPTION_FILE && path != METADATA_FILE && !path.starts_with(DOC_FOLDER) {
                return Err(wrong(
                    "an item has a description, metadata and files below doc/, and nothing else",
                ));
            }
            all.push(path.as_str());
        }
    }
    for text in [DESCRIPTION_FILE, METADATA_FILE] {
        if !all.contains(&text) {
            return Err(ObjectValidationError::Without { version: name.to_owned(), name: text });
        }
    }
    check_disjoint_paths(all)
}

fn check_digest(digest: &str) -> Result<(), ObjectValidationError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match digest.len() == SHA512_HEX_DIGITS && digest.bytes().all(is_digit) {
        true => Ok(()),
        false => Err(ObjectValidationError::Digest { digest: escape_untrusted(digest) }),
    }
}

/// No path component leaves the object, and each is a valid file name (threat W1).
fn check_names(path: &str) -> Result<(), &'static str> {
    path.split('/').try_for_each(|name| match name {
        "" => Err("a name in the path is empty"),
        "." | ".." => Err("`.` and `..` lead out of the object"),
        _ if name.contains('\0') => Err("it has a NUL byte, which no file name can have"),
        _ if name.len() > MAX_NAME_BYTES => Err("a name is longer than 255 bytes"),
        _ => Ok(()),
    })
}

/// Rejects duplicate paths, and a path that is the folder of another.
fn check_disjoint_paths(mut paths: Vec<&str>) -> Result<(), ObjectValidationError> {
    // `/` sorts before all other bytes, so the content of a folder follows it directly.
    let order =
        |path: &str| path.bytes().map(|byte| if byte == b'/' { 0 } else { byte }).collect::<Vec<u8>>();
    paths.sort_by_cached_key(|path| order(path));
    for pair in paths.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        let why = match next.strip_prefix(one) {
            Some("") => "duplicate path",
            Some(rest) if rest.starts_with('/') => "its parent is a file",
            _ => continue,
        };
        return Err(ObjectValidationError::Path { path: escape_untrusted(next), why });
    }
    Ok(())
}

/// The number of a version in its only valid spelling.
fn version_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('v')?;
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// Untrusted text, truncated and escaped for display.
fn escape_untrusted(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
pub(super) mod tests;
