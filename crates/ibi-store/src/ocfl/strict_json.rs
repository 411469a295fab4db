//! The rules that both inventory parsers share: objects only where objects belong, each key once,
//! one spelling for names and digests.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

/// Size of a SHA-512.
pub(super) const DIGEST_BYTES: usize = 64;

/// The number of a version from its name as ibi writes it: `v1` and up, without leading zeros.
pub(super) fn version_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('v')?;
    let number = digits.parse().ok().filter(|number| *number > 0)?;
    (digits.starts_with(|digit: char| digit.is_ascii_digit()) && !digits.starts_with('0')).then_some(number)
}

/// Parses a SHA-512 in lowercase hex.
pub(super) fn digest_bytes(text: &str) -> Option<[u8; DIGEST_BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * DIGEST_BYTES {
        return None;
    }
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; DIGEST_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

/// A struct that must be a JSON object. The code that serde derives also accepts a list.
pub(super) struct StrictObject<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StrictObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = StrictObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(StrictObject)
    }
}

/// Deserializes a map, rejecting duplicate keys.
pub(super) fn unique_map<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueVisitor(PhantomData))
}

/// The same for structs that must be JSON objects.
pub(super) fn unique_objects<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let entries: BTreeMap<String, StrictObject<V>> = unique_map(deserializer)?;
    Ok(entries.into_iter().map(|(key, value)| (key, value.0)).collect())
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            if entries.insert(key, value).is_some() {
                return Err(A::Error::custom("a key occurs twice"));
            }
        }
        Ok(entries)
    }
}
