//! Whether inventories from elsewhere form one whole object (`docs/formats/tree.md`), decided without any disk or network: a
//! copy is taken only of what could have been written here.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ibi_store::ocfl::{Inventory, LONGEST_NAME, Version};
use serde::Deserialize;

use crate::item::Spelling;
use crate::object::{DESCRIPTION, DOC, METADATA};

/// Versions that an object has at most.
pub const MOST_VERSIONS: usize = 100_000;

/// Bytes of one inventory.
pub const LONGEST_INVENTORY: usize = 64 << 20;

/// Bytes of all inventories of an object.
pub const LONGEST_INVENTORIES: usize = 512 << 20;

/// Bytes of a path within an object.
const LONGEST_PATH: usize = 4096;

/// Hex digits of a SHA-512.
const DIGITS: usize = 128;

/// What an inventory is called by OCFL 1.1.
const KIND: &str = "https://ocfl.io/1.1/spec/#inventory";

/// Why inventories do not form one whole object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WholeError {
    /// None, or too many.
    #[error("it has {count} versions: from 1 to {MOST_VERSIONS} are taken")]
    Count {
        /// How many.
        count: usize,
    },
    /// Too long.
    #[error("the inventory of v{version} makes them longer than is taken")]
    Long {
        /// Of which version.
        version: usize,
    },
    /// Not an inventory.
    #[error("the inventory of v{version} cannot be understood: {what}")]
    Inventory {
        /// Of which version.
        version: usize,
        /// Why.
        what: String,
    },
    /// Not that of its version.
    #[error("the inventory of v{version} says that the last version is {head}")]
    Head {
        /// Of which version.
        version: usize,
        /// What it says.
        head: String,
    },
    /// Versions are missing, or named in another way.
    #[error("its versions are not v1 to v{count}, each once")]
    Versions {
        /// How many there should be.
        count: usize,
    },
    /// Another item.
    #[error("it is the object {id}, and {asked} was asked for")]
    Other {
        /// What it says.
        id: String,
        /// What was asked for.
        asked: String,
    },
    /// A path that is no place within the object.
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
        /// What stands there.
        digest: String,
    },
    /// A digest without a path, or bytes that no version has.
    #[error("the bytes {digest} have no name, or no place")]
    Empty {
        /// The digest.
        digest: String,
    },
    /// Bytes that the version has and nobody keeps.
    #[error("{version} has the bytes {digest}, which lie nowhere")]
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
        /// What it lacks.
        name: &'static str,
    },
    /// What was once there is never changed (clause 2.2).
    #[error("the inventory of v{version} is not what the last one says of that version")]
    History {
        /// The version.
        version: usize,
    },
}

/// How two objects of one item stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The same.
    Equal,
    /// Theirs has all versions of ours, and more.
    Behind,
    /// Ours has all versions of theirs, and more.
    Ahead,
    /// They are not versions of one another.
    Altered,
}

/// Compares our object with theirs.
pub fn compare(ours: &Inventory, theirs: &Inventory) -> Compared {
    match ours.number().cmp(&theirs.number()) {
        Ordering::Equal if ours == theirs => Compared::Equal,
        Ordering::Less if cut_back(theirs, ours.number()) == *ours => Compared::Behind,
        Ordering::Greater if cut_back(ours, theirs.number()) == *theirs => Compared::Ahead,
        _ => Compared::Altered,
    }
}

/// An inventory as it was when a version was the last.
pub fn cut_back(inventory: &Inventory, version: u32) -> Inventory {
    let is_then = |name: &str| number(name).is_some_and(|number| number <= version);
    let mut then = inventory.clone();
    then.head = format!("v{version}");
    then.versions.retain(|name, _| is_then(name));
    then.manifest.retain(|_, paths| {
        paths.retain(|path| is_then(path.split('/').next().unwrap_or_default()));
        !paths.is_empty()
    });
    then
}

/// Whether an inventory is that of a version of an object, each told with its digest: the last version has the object's own, an
/// earlier one what that tells of it.
pub fn is_version(
    (own, digest): (&Inventory, &str),
    version: &str,
    (then, found): (&Inventory, &str),
) -> bool {
    match version == own.head {
        true => found == digest,
        false => number(version).is_some_and(|number| *then == cut_back(own, number)),
    }
}

/// Checks the inventories of v1 and all that follow, of the item with this label or path; gives the last.
pub fn check(label: &str, inventories: &[Vec<u8>]) -> Result<Inventory, WholeError> {
    let count = inventories.len();
    if count > MOST_VERSIONS {
        return Err(WholeError::Count { count });
    }
    let mut total = 0;
    let mut parsed = Vec::with_capacity(count);
    for (version, bytes) in (1..).zip(inventories) {
        total += bytes.len();
        if bytes.len() > LONGEST_INVENTORY || total > LONGEST_INVENTORIES {
            return Err(WholeError::Long { version });
        }
        let inventory = read(bytes).map_err(|what| WholeError::Inventory { version, what })?;
        if inventory.head != format!("v{version}") {
            return Err(WholeError::Head { version, head: inventory.head });
        }
        parsed.push(inventory);
    }
    let last = parsed.pop().ok_or(WholeError::Count { count })?;
    check_last(label, &last, count)?;
    // At most MOST_VERSIONS: fits.
    for (version, inventory) in (1_u32..).zip(&parsed) {
        if cut_back(&last, version) != *inventory {
            return Err(WholeError::History { version: version as usize });
        }
    }
    Ok(last)
}

fn read(bytes: &[u8]) -> Result<Inventory, String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let Kind { kind } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kind != KIND {
        return Err(format!("its type is `{}`, and not `{KIND}`", kind.escape_debug()));
    }
    Inventory::parse(bytes)
}

fn check_last(label: &str, last: &Inventory, count: usize) -> Result<(), WholeError> {
    let names_are_right = (1..=count).all(|number| last.versions.contains_key(&format!("v{number}")));
    if last.versions.len() != count || !names_are_right {
        return Err(WholeError::Versions { count });
    }
    let folded = |label: &str| Spelling::parse(label).ok().map(|spelling| spelling.folded);
    let path = last.id.strip_prefix("ibi:").and_then(folded);
    if path.is_none() || path != folded(label) {
        return Err(WholeError::Other { id: shown(&last.id), asked: shown(label) });
    }
    let since = check_manifest(last, count)?;
    let mut used = BTreeSet::new();
    for (name, version) in &last.versions {
        check_version(name, version, &since)?;
        used.extend(version.state.keys().map(String::as_str));
    }
    match last.manifest.keys().find(|digest| !used.contains(digest.as_str())) {
        // Nothing would tell how long they are.
        Some(digest) => Err(WholeError::Empty { digest: digest.clone() }),
        None => Ok(()),
    }
}

/// Checks where bytes lie; tells the version that first had each.
fn check_manifest(last: &Inventory, count: usize) -> Result<BTreeMap<&str, u32>, WholeError> {
    let mut since = BTreeMap::new();
    let mut all = Vec::new();
    for (digest, paths) in &last.manifest {
        check_digest(digest)?;
        let mut first = u32::MAX;
        for path in paths {
            let wrong = |why| WholeError::Path { path: shown(path), why };
            if path.len() > LONGEST_PATH {
                return Err(wrong("the path is longer than 4096 bytes"));
            }
            let (version, rest) =
                path.split_once("/content/").ok_or_else(|| wrong("it lies in no version's content"))?;
            let version = number(version).filter(|number| *number as usize <= count);
            first = first.min(version.ok_or_else(|| wrong("it lies in no version's content"))?);
            check_names(rest).map_err(wrong)?;
            all.push(path.as_str());
        }
        if paths.is_empty() {
            return Err(WholeError::Empty { digest: digest.clone() });
        }
        since.insert(digest.as_str(), first);
    }
    check_apart(all)?;
    Ok(since)
}

fn check_version(name: &str, version: &Version, since: &BTreeMap<&str, u32>) -> Result<(), WholeError> {
    let number = number(name).unwrap_or(0);
    let mut all = Vec::new();
    for (digest, paths) in &version.state {
        check_digest(digest)?;
        if paths.is_empty() {
            return Err(WholeError::Empty { digest: digest.clone() });
        }
        if since.get(digest.as_str()).is_none_or(|since| *since > number) {
            return Err(WholeError::Lacks { version: name.to_owned(), digest: digest.clone() });
        }
        for path in paths {
            let wrong = |why| WholeError::Path { path: shown(path), why };
            if path.len() > LONGEST_PATH {
                return Err(wrong("the path is longer than 4096 bytes"));
            }
            check_names(path).map_err(wrong)?;
            if path != DESCRIPTION && path != METADATA && !path.starts_with(DOC) {
                return Err(wrong(
                    "an item has a description, metadata and files below doc/, and nothing else",
                ));
            }
            all.push(path.as_str());
        }
    }
    for text in [DESCRIPTION, METADATA] {
        if !all.contains(&text) {
            return Err(WholeError::Without { version: name.to_owned(), name: text });
        }
    }
    check_apart(all)
}

fn check_digest(digest: &str) -> Result<(), WholeError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match digest.len() == DIGITS && digest.bytes().all(is_digit) {
        true => Ok(()),
        false => Err(WholeError::Digest { digest: shown(digest) }),
    }
}

/// No name leads out of the object, and every one can be a file's (threat W1).
fn check_names(path: &str) -> Result<(), &'static str> {
    path.split('/').try_for_each(|name| match name {
        "" => Err("a name in the path is empty"),
        "." | ".." => Err("`.` and `..` lead out of the object"),
        _ if name.contains('\0') => Err("it has a NUL byte, which no file name can have"),
        _ if name.len() > LONGEST_NAME => Err("a name is longer than 255 bytes"),
        _ => Ok(()),
    })
}

/// No path twice, and none a folder of another.
fn check_apart(mut paths: Vec<&str>) -> Result<(), WholeError> {
    // Before all other characters, so that what lies in a folder follows it at once.
    let order =
        |path: &str| path.bytes().map(|byte| if byte == b'/' { 0 } else { byte }).collect::<Vec<u8>>();
    paths.sort_by_cached_key(|path| order(path));
    for pair in paths.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        let why = match next.strip_prefix(one) {
            Some("") => "it is there twice",
            Some(rest) if rest.starts_with('/') => "it lies in what is a file",
            _ => continue,
        };
        return Err(WholeError::Path { path: shown(next), why });
    }
    Ok(())
}

/// The number of a version, written in the one way that there is.
fn number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('v')?;
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// A stranger's text, fit to be shown.
fn shown(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
pub(super) mod tests;
