//! Both inventory parsers, the full and the compact one, accept the same texts and give the same
//! results.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use ibi_store::digests::sha512;
use ibi_store::ocfl::{CompactInventory, Inventory, InventoryUser, InventoryVersion};
use proptest::prelude::*;

/// Builds an inventory with some versions and files.
fn text(versions: &[Vec<u8>]) -> String {
    let mut inventory = Inventory::new("ibi:x/y".to_owned());
    for files in versions {
        let user = InventoryUser { name: "Ana".to_owned(), address: "urn:ana".to_owned() };
        let state = BTreeMap::new();
        let version = InventoryVersion { created: "2026".to_owned(), message: "m".to_owned(), user, state };
        let named = files.iter().map(|file| (format!("doc/{file}"), sha512(&[*file])));
        let stored = files.iter().map(|file| (sha512(&[*file]), format!("doc/{file}")));
        inventory.add_version(version, named.collect::<Vec<_>>(), stored.collect::<Vec<_>>());
    }
    String::from_utf8(inventory.to_bytes()).unwrap()
}

/// Modifications that someone may make to an inventory's text.
const CHANGES: [(&str, &str); 20] = [
    ("\"v1\"", "\"v01\""),
    ("\"v1\"", "\"v+1\""),
    ("\"v1\"", "\"1\""),
    ("\"v2\"", "\"v1\""),
    ("\"v1\"", "\"v0\""),
    ("\"sha512\"", "\"sha256\""),
    ("\"id\"", "\"type\""),
    ("\"id\"", "\"other\""),
    ("\"state\"", "\"manifest\""),
    ("\"manifest\"", "\"state\""),
    ("\"message\"", "\"created\""),
    ("\"user\"", "\"users\""),
    ("\"name\"", "\"address\""),
    ("\"Ana\"", "7"),
    ("\"m\"", "null"),
    ("\"2026\"", "[[{\"a\": 1}]]"),
    ("a", "A"),
    ("\"doc/", "\"d\\u0000oc/"),
    ("[", "{"),
    ("{", "["),
];

fn check(text: &[u8]) -> Result<(), TestCaseError> {
    let (whole, compact) = (Inventory::parse(text), CompactInventory::parse(text));
    prop_assert_eq!(whole.is_ok(), compact.is_ok(), "{:?} {:?}", whole.err(), compact.err());
    let (Ok(whole), Ok(compact)) = (whole, compact) else { return Ok(()) };
    prop_assert_eq!(compact.head_version_number(), whole.head_number());
    prop_assert_eq!(compact.versions().count(), whole.versions.len());
    for number in compact.versions() {
        let told = &whole.versions[&format!("v{number}")].state;
        let told: usize = told.values().map(Vec::len).sum();
        prop_assert_eq!(compact.state(number).count(), told);
    }
    let last: BTreeMap<&str, Option<&str>> = whole.files().map(|(path, _, place)| (path, place)).collect();
    let found: BTreeMap<&str, Option<&str>> = compact
        .state(compact.head_version_number())
        .map(|(path, digest)| (path, digest.and_then(|digest| compact.content_path(digest))))
        .collect();
    prop_assert_eq!(found, last);
    Ok(())
}

proptest! {
    #[test]
    fn both_readers_take_the_same_inventories(
        versions in prop::collection::vec(prop::collection::vec(0_u8..4, 0..4), 1..4),
        changes in prop::collection::vec((0..CHANGES.len(), any::<bool>()), 0..3),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3, any::<u8>()), 0..3),
    ) {
        let mut text = text(&versions);
        check(text.as_bytes())?;
        for (change, is_everywhere) in changes {
            let (from, to) = CHANGES[change];
            text = if is_everywhere { text.replace(from, to) } else { text.replacen(from, to, 1) };
        }
        let mut text = text.into_bytes();
        check(&text)?;
        for (at, how, byte) in bytes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.remove(at)),
            }
        }
        check(&text)?;
    }
}

/// Such as lists in place of objects, and duplicate keys.
#[test]
fn neither_reader_takes_what_is_ambiguous() {
    let good = text(&[vec![1], vec![1, 2]]);
    assert!(Inventory::parse(good.as_bytes()).is_ok());
    let digest = sha512(&[1]);
    let twice = [
        good.replacen("\"manifest\": {", &format!("\"manifest\": {{\"{digest}\": [],"), 1),
        good.replacen("\"state\": {", &format!("\"state\": {{\"{digest}\": [],"), 1),
        good.replacen("\"versions\": {", "\"versions\": {}, \"versions\": {", 1),
        good.replacen("\"head\": ", "\"head\": \"v1\", \"head\": ", 1),
        format!(
            "[\"ibi:x/y\", \"type\", \"sha512\", \"v1\", {{}}, {{\"v1\": {}}}]",
            "[\"\", \"\", [\"\", \"\"], {}]"
        ),
    ];
    for text in twice {
        assert!(Inventory::parse(text.as_bytes()).is_err(), "{text}");
        assert!(CompactInventory::parse(text.as_bytes()).is_err(), "{text}");
    }
}
