//! A read-only inventory with a small memory footprint. Objects with many files are requested by
//! many clients, and the text of their inventories is several times larger.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::inventory::InventoryUser;
use super::strict_json::{DIGEST_BYTES, digest_bytes, version_number};
use crate::digests::hex;

/// The members of an inventory, each required once.
const INVENTORY_MEMBERS: [&str; 6] = ["id", "type", "digestAlgorithm", "head", "manifest", "versions"];

/// The members of a version, likewise.
const VERSION_MEMBERS: [&str; 4] = ["created", "message", "user", "state"];

/// An inventory for lookups.
#[derive(Debug, Default)]
pub struct CompactInventory {
    head: u32,
    /// All paths, concatenated.
    text: String,
    /// The digests in manifest order, each with the index of its first path in `manifest`.
    digests: Vec<([u8; DIGEST_BYTES], u32)>,
    /// Indices into `digests`, sorted by digest.
    order: Vec<u32>,
    manifest: Vec<CompactPath>,
    versions: BTreeMap<u32, Vec<CompactPath>>,
}

/// A path and the index of its digest; [`NO_DIGEST`] if the manifest does not have the digest.
#[derive(Debug, Clone, Copy)]
struct CompactPath {
    digest: u32,
    start: u32,
    end: u32,
}

const NO_DIGEST: u32 = u32::MAX;

/// A digest of an inventory, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DigestId(u32);

impl CompactInventory {
    /// Parses an inventory written by ibi.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut inventory = Self::default();
        // Versions refer to digests of the manifest, which may come later in the text.
        inventory.parse_pass(bytes, InventoryPass::Manifest)?;
        let mut order: Vec<u32> = (0..).take(inventory.digests.len()).collect();
        order.sort_unstable_by_key(|index| inventory.digests[*index as usize].0);
        let is_duplicate =
            |pair: &[u32]| inventory.digests[pair[0] as usize].0 == inventory.digests[pair[1] as usize].0;
        if order.windows(2).any(is_duplicate) {
            return Err("a digest occurs twice".to_owned());
        }
        inventory.order = order;
        inventory.parse_pass(bytes, InventoryPass::Versions)?;
        if inventory.head == 0 || !inventory.versions.contains_key(&inventory.head) {
            return Err(format!("its head v{} does not exist", inventory.head));
        }
        inventory.text.shrink_to_fit();
        Ok(inventory)
    }

    fn parse_pass(&mut self, bytes: &[u8], pass: InventoryPass) -> Result<(), String> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let read = InventorySeed { inventory: self, pass }.deserialize(&mut reader);
        read.and_then(|()| reader.end()).map_err(|error| error.to_string())
    }

    /// The number of the latest version.
    pub fn head_version_number(&self) -> u32 {
        self.head
    }

    /// Whether there is a version with this number.
    pub fn has_version(&self, number: u32) -> bool {
        self.versions.contains_key(&number)
    }

    /// The numbers of all versions, in order.
    pub fn versions(&self) -> impl Iterator<Item = u32> {
        self.versions.keys().copied()
    }

    /// All content paths, with their digests.
    pub fn manifest(&self) -> impl Iterator<Item = (&str, DigestId)> {
        self.manifest.iter().map(|path| (self.path(path), DigestId(path.digest)))
    }

    /// The logical paths of a version with their digests; `None` for a digest that the manifest
    /// lacks.
    pub fn state(&self, version: u32) -> impl Iterator<Item = (&str, Option<DigestId>)> {
        self.versions.get(&version).into_iter().flatten().map(|path| {
            (self.path(path), Some(path.digest).filter(|digest| *digest != NO_DIGEST).map(DigestId))
        })
    }

    /// A digest in hex.
    pub fn digest(&self, id: DigestId) -> String {
        self.digests.get(id.0 as usize).map(|(digest, _)| hex(digest)).unwrap_or_default()
    }

    /// The content path for a digest; the first, if there are several.
    pub fn content_path(&self, id: DigestId) -> Option<&str> {
        let (_, first) = self.digests.get(id.0 as usize)?;
        self.manifest.get(*first as usize).filter(|path| path.digest == id.0).map(|path| self.path(path))
    }

    /// The number of digests. All their ids are below it.
    pub fn digest_count(&self) -> usize {
        self.digests.len()
    }

    /// The index of a digest, from 0.
    pub fn index(id: DigestId) -> usize {
        id.0 as usize
    }

    /// Its memory usage in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let path = self.manifest.capacity() + self.versions.values().map(Vec::capacity).sum::<usize>();
        let digests = self.digests.capacity() * (DIGEST_BYTES + 4) + self.order.capacity() * 4;
        (self.text.capacity() + path * size_of::<CompactPath>() + digests) as u64
    }

    fn path(&self, path: &CompactPath) -> &str {
        self.text.get(path.start as usize..path.end as usize).unwrap_or_default()
    }

    fn find(&self, digest: &[u8; DIGEST_BYTES]) -> Option<u32> {
        let found = self.order.binary_search_by(|index| self.digests[*index as usize].0.cmp(digest));
        found.ok().map(|index| self.order[index])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InventoryPass {
    Manifest,
    Versions,
}

/// Reads a whole inventory, one half per pass.
struct InventorySeed<'a> {
    inventory: &'a mut CompactInventory,
    pass: InventoryPass,
}

impl<'de> DeserializeSeed<'de> for InventorySeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InventorySeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an inventory")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { inventory, pass } = self;
        let mut algorithm = None;
        let mut members = UniqueMembers::new(&INVENTORY_MEMBERS);
        while let Some(key) = map.next_key::<String>()? {
            members.add::<A::Error>(&key)?;
            match (key.as_str(), pass) {
                ("id" | "type", _) => drop(map.next_value::<String>()?),
                ("digestAlgorithm", _) => algorithm = Some(map.next_value::<String>()?),
                ("head", InventoryPass::Versions) => {
                    inventory.head = version_number(&map.next_value::<String>()?).unwrap_or(0);
                }
                ("manifest", InventoryPass::Manifest) => {
                    map.next_value_seed(StateSeed { inventory, version: None })?;
                }
                ("versions", InventoryPass::Versions) => map.next_value_seed(VersionsSeed { inventory })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        members.check_all()?;
        match algorithm.as_deref() {
            Some("sha512") => Ok(()),
            other => Err(A::Error::custom(format!("its digests are {other:?}, not sha512"))),
        }
    }
}

struct VersionsSeed<'a> {
    inventory: &'a mut CompactInventory,
}

impl<'de> DeserializeSeed<'de> for VersionsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for VersionsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("versions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let version = version_number(&name)
                .filter(|version| !self.inventory.versions.contains_key(version))
                .ok_or_else(|| A::Error::custom("a version name is invalid or occurs twice"))?;
            map.next_value_seed(VersionSeed { inventory: &mut *self.inventory, version })?;
        }
        Ok(())
    }
}

/// Reads one version, of which only the state is used.
struct VersionSeed<'a> {
    inventory: &'a mut CompactInventory,
    version: u32,
}

impl<'de> DeserializeSeed<'de> for VersionSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for VersionSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a version")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members = UniqueMembers::new(&VERSION_MEMBERS);
        while let Some(key) = map.next_key::<String>()? {
            members.add::<A::Error>(&key)?;
            match key.as_str() {
                "created" | "message" => drop(map.next_value::<String>()?),
                "user" => drop(map.next_value::<InventoryUser>()?),
                "state" => {
                    let inventory = &mut *self.inventory;
                    map.next_value_seed(StateSeed { inventory, version: Some(self.version) })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        members.check_all()
    }
}

/// The members of a JSON object seen so far.
struct UniqueMembers {
    names: &'static [&'static str],
    seen: u32,
}

impl UniqueMembers {
    fn new(names: &'static [&'static str]) -> Self {
        Self { names, seen: 0 }
    }

    fn add<E: serde::de::Error>(&mut self, key: &str) -> Result<(), E> {
        let Some(index) = self.names.iter().position(|name| *name == key) else { return Ok(()) };
        let is_duplicate = self.seen & 1 << index != 0;
        self.seen |= 1 << index;
        if is_duplicate { Err(E::custom(format_args!("{key} occurs twice"))) } else { Ok(()) }
    }

    fn check_all<E: serde::de::Error>(&self) -> Result<(), E> {
        let missing = self.names.iter().enumerate().find(|(index, _)| self.seen & 1 << index == 0);
        missing.map_or(Ok(()), |(_, name)| Err(E::custom(format_args!("it has no {name}"))))
    }
}

/// Reads digests with their paths: the state of a version, or the manifest.
struct StateSeed<'a> {
    inventory: &'a mut CompactInventory,
    version: Option<u32>,
}

impl<'de> DeserializeSeed<'de> for StateSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for StateSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("paths by their digests")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { inventory, version } = self;
        let mut paths = Vec::new();
        // Duplicates in the manifest are detected after it is complete.
        let mut in_state = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let bytes = digest_bytes(&key).ok_or_else(|| A::Error::custom("a digest is not a SHA-512"))?;
            if version.is_some() && !in_state.insert(bytes) {
                return Err(A::Error::custom("a digest occurs twice"));
            }
            let digest = match version {
                // At most as many as the text has bytes, so the cast is lossless.
                None => {
                    inventory.digests.push((bytes, paths.len() as u32));
                    inventory.digests.len() as u32 - 1
                }
                Some(_) => inventory.find(&bytes).unwrap_or(NO_DIGEST),
            };
            map.next_value_seed(PathsSeed { text: &mut inventory.text, digest, paths: &mut paths })?;
        }
        paths.shrink_to_fit();
        match version {
            None => inventory.manifest = paths,
            Some(version) => drop(inventory.versions.insert(version, paths)),
        }
        Ok(())
    }
}

/// Reads a list of paths.
struct PathsSeed<'a> {
    text: &'a mut String,
    digest: u32,
    paths: &'a mut Vec<CompactPath>,
}

impl<'de> DeserializeSeed<'de> for PathsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PathsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("paths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let too_long = || A::Error::custom("its paths are too long");
        loop {
            let start = u32::try_from(self.text.len()).map_err(|_| too_long())?;
            let Some(()) = list.next_element_seed(PathSeed { text: &mut *self.text })? else { return Ok(()) };
            let end = u32::try_from(self.text.len()).map_err(|_| too_long())?;
            self.paths.push(CompactPath { digest: self.digest, start, end });
        }
    }
}

/// Reads one path and appends it to `text`.
struct PathSeed<'a> {
    text: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for PathSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PathSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_str<E>(self, path: &str) -> Result<(), E> {
        self.text.push_str(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::sha512;
    use crate::ocfl::{Inventory, InventoryUser, InventoryVersion};

    fn version(message: &str) -> InventoryVersion {
        let user = InventoryUser { name: "Ana".to_owned(), address: "urn:ana".to_owned() };
        InventoryVersion {
            created: "2026-11-17T00:00:00Z".to_owned(),
            message: message.to_owned(),
            user,
            state: BTreeMap::new(),
        }
    }

    /// Two versions. One path has characters that JSON escapes, and one content has two paths.
    fn sample() -> Inventory {
        let mut inventory = Inventory::new("ibi:x/y".to_owned());
        let digest = |text: &str| sha512(text.as_bytes());
        let path = |name: &str, text: &str| (name.to_owned(), digest(text));
        let stored = |text: &str, name: &str| (digest(text), name.to_owned());
        inventory.add_version(
            version("first"),
            [path("item.json", "i1"), path("doc/a\"\u{e9}\n", "a"), path("doc/b", "b")],
            [stored("i1", "item.json"), stored("a", "doc/a"), stored("b", "doc/b"), stored("b", "doc/b2")],
        );
        inventory.add_version(
            version("second"),
            [path("item.json", "i2"), path("doc/b", "b")],
            [stored("i2", "item.json")],
        );
        inventory
    }

    #[test]
    fn it_agrees_with_the_full_inventory() {
        let inventory = sample();
        let compact = CompactInventory::parse(&inventory.to_bytes()).unwrap();
        assert_eq!(compact.head_version_number(), inventory.head_number());
        assert!(compact.has_version(1) && compact.has_version(2) && !compact.has_version(3));
        assert_eq!(compact.digest_count(), inventory.manifest.len());
        let manifest: BTreeMap<&str, String> =
            compact.manifest().map(|(path, digest)| (path, compact.digest(digest))).collect();
        let expected: BTreeMap<&str, String> = inventory
            .manifest
            .iter()
            .flat_map(|(digest, paths)| paths.iter().map(move |path| (path.as_str(), digest.clone())))
            .collect();
        assert_eq!(manifest, expected);
        for number in [1, 2] {
            let mut cut = inventory.clone();
            cut.head = format!("v{number}");
            let expected: BTreeMap<&str, (String, Option<&str>)> =
                cut.files().map(|(path, digest, place)| (path, (digest.to_owned(), place))).collect();
            let found: BTreeMap<&str, (String, Option<&str>)> = compact
                .state(number)
                .map(|(path, digest)| {
                    let digest = digest.unwrap();
                    (path, (compact.digest(digest), compact.content_path(digest)))
                })
                .collect();
            assert_eq!(found, expected, "v{number}");
        }
        assert_eq!(compact.state(3).count(), 0);
    }

    #[test]
    fn members_may_be_in_any_order_and_unstored_content_has_no_digest() {
        let digest = "ab".repeat(64);
        let text = format!(
            "{{\"id\": \"x\", \"versions\": {{\"v1\": {{\"created\": \"\", \"message\": \"\", \
             \"user\": {{\"name\": \"\", \"address\": \"\"}}, \"state\": {{\"{digest}\": [\"doc/x\"], \"{}\": [\"doc/y\"]}}}}}}, \
             \"type\": \"\", \"head\": \"v1\", \"manifest\": {{\"{digest}\": [\"v1/content/doc/x\"]}}, \"digestAlgorithm\": \"sha512\"}}",
            "cd".repeat(64)
        );
        let compact = CompactInventory::parse(text.as_bytes()).unwrap();
        let state: Vec<_> = compact
            .state(1)
            .map(|(path, digest)| (path, digest.and_then(|id| compact.content_path(id))))
            .collect();
        assert_eq!(state, [("doc/x", Some("v1/content/doc/x")), ("doc/y", None)]);
    }

    #[test]
    fn invalid_inventories_are_refused() {
        let good = String::from_utf8(sample().to_bytes()).unwrap();
        for bad in [
            good.replace("sha512\"", "sha256\""),
            good.replace("\"head\": \"v2\"", "\"head\": \"v3\""),
            good.replace(&sha512(b"a"), "abc"),
            good.replace("[", "{"),
            format!("{good}x"),
            String::new(),
        ] {
            assert!(CompactInventory::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
