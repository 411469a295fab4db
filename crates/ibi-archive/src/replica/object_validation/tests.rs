use ibi_store::digests::sha512;
use ibi_store::ocfl::InventoryUser;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;

const LABEL: &str = "dpi.inpe.br/Banon/1998/08.02.08.56";

/// An object with these versions, each with files of these contents.
pub(crate) fn object(versions: &[Vec<u8>]) -> Vec<Inventory> {
    let mut inventory = Inventory::new(format!("ibi:{LABEL}"));
    let mut all = Vec::new();
    for (number, contents) in (1..).zip(versions) {
        let mut files = vec![
            (DESCRIPTION_FILE.to_owned(), sha512(format!("item {number}").as_bytes())),
            (METADATA_FILE.to_owned(), sha512(b"metadata")),
        ];
        let mut names: Vec<&u8> = contents.iter().collect();
        names.sort_unstable();
        names.dedup();
        files.extend(names.into_iter().map(|byte| (format!("doc/{byte}"), sha512(&[*byte]))));
        let new = files.iter().filter(|(_, digest)| !inventory.manifest.contains_key(digest));
        let stored: Vec<_> = new.map(|(name, digest)| (digest.clone(), name.clone())).collect();
        let version = InventoryVersion {
            created: "2026-11-16T00:00:00Z".to_owned(),
            message: format!("version {number}"),
            user: InventoryUser { name: "Ana".to_owned(), address: "mailto:ana@inpe.br".to_owned() },
            state: BTreeMap::new(),
        };
        inventory.add_version(version, files, stored);
        all.push(inventory.clone());
    }
    all
}

fn bytes(inventories: &[Inventory]) -> Vec<Vec<u8>> {
    inventories.iter().map(Inventory::to_bytes).collect()
}

/// The error for an object whose inventories were all changed in one way.
fn changed(change: impl Fn(&mut Value)) -> ObjectValidationError {
    let one = |inventory: &Inventory| {
        let mut value = serde_json::to_value(inventory).unwrap();
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    };
    let inventories: Vec<_> = object(&[vec![1, 2], vec![2, 3]]).iter().map(one).collect();
    validate_object(LABEL, &inventories).unwrap_err()
}

#[test]
fn what_we_write_is_whole() {
    let all = object(&[vec![1, 2], vec![2, 3], vec![]]);
    assert_eq!(validate_object(LABEL, &bytes(&all)), Ok(all[2].clone()));
    assert_eq!(validate_object(&LABEL.to_lowercase(), &bytes(&all[..1])), Ok(all[0].clone()), "by its path");
}

#[test]
fn versions_are_all_there_and_in_order() {
    let all = bytes(&object(&[vec![1], vec![2], vec![3]]));
    assert_eq!(validate_object(LABEL, &[]), Err(ObjectValidationError::Count { count: 0 }));
    let many = vec![Vec::new(); MAX_OBJECT_VERSIONS + 1];
    assert_eq!(
        validate_object(LABEL, &many),
        Err(ObjectValidationError::Count { count: MAX_OBJECT_VERSIONS + 1 })
    );
    // The last one is read first.
    assert!(matches!(validate_object(LABEL, &all[1..]), Err(ObjectValidationError::Head { version: 2, .. })));
    let swapped = [all[1].clone(), all[0].clone()];
    assert!(matches!(validate_object(LABEL, &swapped), Err(ObjectValidationError::Head { version: 2, .. })));
    assert!(matches!(
        validate_object(LABEL, &[b"{}".to_vec()]),
        Err(ObjectValidationError::Inventory { version: 1, .. })
    ));
    let long = vec![b' '; MAX_PEER_INVENTORY_BYTES + 1];
    assert_eq!(validate_object(LABEL, &[long]), Err(ObjectValidationError::Long { version: 1 }));
    let more = changed(|value| {
        let one = value["versions"]["v1"].clone();
        value["versions"]["v01"] = one;
    });
    assert!(matches!(more, ObjectValidationError::Inventory { version: 2, .. }), "{more}");
}

#[test]
fn it_is_the_item_that_was_asked_for() {
    let all = bytes(&object(&[vec![1]]));
    let other = "dpi.inpe.br/banon/1998/08.02.08.57";
    assert!(matches!(validate_object(other, &all), Err(ObjectValidationError::Other { .. })));
    assert!(matches!(validate_object("../../etc", &all), Err(ObjectValidationError::Other { .. })));
    for id in ["ibi:../../etc", "", LABEL, "ibi:"] {
        assert!(
            matches!(changed(|value| value["id"] = json!(id)), ObjectValidationError::Other { .. }),
            "{id}"
        );
    }
}

#[test]
fn bytes_lie_in_the_content_of_a_version_and_nowhere_else() {
    let at = |path: &str| changed(|value| value["manifest"][sha512(&[1])] = json!([path])).to_string();
    let long = format!("v1/content/{}", "a/".repeat(2100));
    let name = format!("v1/content/{}", "a".repeat(256));
    for (path, why) in [
        ("/etc/passwd", "path outside version content"),
        ("v1/inventory.json", "path outside version content"),
        ("v3/content/a", "path outside version content"),
        ("v0/content/a", "path outside version content"),
        ("v01/content/a", "path outside version content"),
        ("v+1/content/a", "path outside version content"),
        ("../v1/content/a", "path outside version content"),
        ("v1/content/", "empty"),
        ("v1/content/a//b", "empty"),
        ("v1/content/../a", "lead out"),
        ("v1/content/a/./b", "lead out"),
        ("v1/content/a\0b", "NUL"),
        (&long, "longer than 4096"),
        (&name, "longer than 255"),
        ("v1/content/doc/2", "duplicate path"),
        ("v1/content/doc/2/x", "its parent is a file"),
        ("v1/content/item.json/x", "its parent is a file"),
    ] {
        assert!(at(path).contains(why), "{path}: {}", at(path));
    }
    assert!(matches!(
        changed(|value| value["manifest"][sha512(&[1])] = json!([])),
        ObjectValidationError::Empty { .. }
    ));
    let unused = |value: &mut Value| value["manifest"][sha512(&[9])] = json!(["v1/content/doc/9"]);
    assert!(matches!(changed(unused), ObjectValidationError::Empty { .. }));
}

#[test]
fn digests_are_digests_and_their_bytes_lie_somewhere() {
    let renamed = |digest: &str| {
        changed(|value| {
            let paths = value["manifest"].as_object_mut().unwrap().remove(&sha512(&[1])).unwrap();
            value["manifest"][digest] = paths;
        })
    };
    for digest in ["", "00", &sha512(&[1]).to_uppercase(), &"g".repeat(128)] {
        let refused = renamed(digest);
        let is_refused =
            matches!(refused, ObjectValidationError::Digest { .. } | ObjectValidationError::Inventory { .. });
        assert!(is_refused, "{digest}: {refused}");
    }
    assert!(matches!(renamed(&sha512(b"other")), ObjectValidationError::Lacks { .. }));
    let later = changed(|value| value["manifest"][sha512(&[1])] = json!(["v2/content/doc/1"]));
    assert!(
        matches!(later, ObjectValidationError::Lacks { .. }),
        "v1 cannot have what came with v2: {later}"
    );
}

#[test]
fn every_version_has_its_texts_and_plain_names() {
    let without = |name: &str| {
        changed(|value| {
            let state = value["versions"]["v1"]["state"].as_object_mut().unwrap();
            state.retain(|_, paths| paths != &json!([name]));
        })
    };
    for name in [DESCRIPTION_FILE, METADATA_FILE] {
        assert!(matches!(without(name), ObjectValidationError::Without { .. }), "{name}");
    }
    let named = |paths: &[&str]| {
        changed(|value| value["versions"]["v1"]["state"][sha512(&[1])] = json!(paths)).to_string()
    };
    assert!(named(&["doc/2"]).contains("duplicate path"));
    assert!(named(&["doc/1", "doc/1/2"]).contains("its parent is a file"));
    assert!(named(&["doc/../1"]).contains("lead out"));
    assert!(named(&["other"]).contains("nothing else"));
    assert!(named(&[]).contains("no content path"));
}

#[test]
fn the_kind_of_inventory_is_ours() {
    let other = changed(|value| value["type"] = json!("https://ocfl.io/2.0/spec/#inventory"));
    assert!(matches!(other, ObjectValidationError::Inventory { version: 2, .. }), "{other}");
    let other = changed(|value| value["digestAlgorithm"] = json!("sha256"));
    assert!(matches!(other, ObjectValidationError::Inventory { version: 2, .. }), "{other}");
}

fn versions() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(0_u8..8, 0..5), 1..6)
}

/// All JSON pointers in a document.
fn places(value: &Value, here: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(value, &format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        Value::Array(members) => {
            members.iter().enumerate().for_each(|(at, value)| places(value, &format!("{here}/{at}"), all));
        }
        _ => all.push(here.to_owned()),
    }
}

proptest! {
    #[test]
    fn any_object_is_whole_and_cut_back_to_any_version(versions in versions()) {
        let all = object(&versions);
        prop_assert_eq!(validate_object(LABEL, &bytes(&all)), Ok(all[all.len() - 1].clone()));
        for (number, inventory) in (1..).zip(&all) {
            prop_assert_eq!(&inventory_at(&all[all.len() - 1], number), inventory);
        }
        for (a, ours) in all.iter().enumerate() {
            for (b, theirs) in all.iter().enumerate() {
                let expected = match a.cmp(&b) {
                    Ordering::Less => HistoryComparison::Behind,
                    Ordering::Equal => HistoryComparison::Equal,
                    Ordering::Greater => HistoryComparison::Ahead,
                };
                prop_assert_eq!(compare_inventories(ours, theirs), expected);
            }
        }
    }

    /// A change of any text in any inventory but the last is detected: the author and content of a
    /// version are bound by later versions.
    #[test]
    fn a_change_of_one_inventory_is_noticed(versions in versions(), which in any::<Index>(), at in any::<Index>()) {
        let all = object(&versions);
        prop_assume!(all.len() > 1);
        let which = which.index(all.len());
        let mut value = serde_json::to_value(&all[which]).unwrap();
        let mut found = Vec::new();
        places(&value, "", &mut found);
        let place = value.pointer_mut(&found[at.index(found.len())]).unwrap();
        *place = json!(format!("{}x", place.as_str().unwrap()));
        let altered: Option<Inventory> = serde_json::from_value(value.clone()).ok();
        let mut inventories = bytes(&all);
        inventories[which] = serde_json::to_vec(&value).unwrap();
        let checked = validate_object(LABEL, &inventories);
        // What only the last version states is protected by its digest alone.
        let is_last = which == all.len() - 1;
        prop_assert!(checked.is_err() || (is_last && checked.as_ref().ok() == altered.as_ref()));
        if let Some(altered) = altered {
            prop_assert_eq!(compare_inventories(&altered, &all[which]), HistoryComparison::Altered);
        }
    }

    #[test]
    fn other_histories_are_told_apart(ours in versions(), theirs in versions()) {
        let (a, b) = (object(&ours), object(&theirs));
        let compared = compare_inventories(&a[a.len() - 1], &b[b.len() - 1]);
        let sets = |versions: &[Vec<u8>]| -> Vec<BTreeSet<u8>> {
            versions.iter().map(|version| version.iter().copied().collect()).collect()
        };
        let (ours, theirs) = (sets(&ours), sets(&theirs));
        let common = ours.len().min(theirs.len());
        let expected = match ours[..common] == theirs[..common] {
            false => HistoryComparison::Altered,
            true if ours.len() == theirs.len() => HistoryComparison::Equal,
            true if ours.len() < theirs.len() => HistoryComparison::Behind,
            true => HistoryComparison::Ahead,
        };
        prop_assert_eq!(compared, expected);
    }

    #[test]
    fn nothing_makes_the_check_panic(inventories in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..4)) {
        let _ = validate_object(LABEL, &inventories);
    }
}
