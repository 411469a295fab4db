//! Stores of content and records: conformance, and what only a store on disk can show.

use std::collections::BTreeSet;
use std::fs;

use ibi_store::content::{Content as _, Publication};
use ibi_store::{KeepError, MemoryContent, MemoryRecords, SqliteRecords, Tree, conformance};

#[test]
fn content_in_memory_conforms() {
    conformance::content(MemoryContent::default(), |store| store);
}

#[test]
fn a_tree_on_disk_conforms() {
    let data = tempfile::tempdir().unwrap();
    let tree = Tree::start(data.path(), "read me").unwrap();
    conformance::content(tree, |tree| {
        drop(tree);
        Tree::open(data.path()).unwrap()
    });
}

#[test]
fn records_in_memory_conform() {
    conformance::records(MemoryRecords::default(), |store| store);
}

#[test]
fn records_in_sqlite_conform() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("index.sqlite");
    conformance::records(SqliteRecords::start_anew(&path).unwrap(), |records| {
        drop(records);
        SqliteRecords::open(&path).unwrap()
    });
}

#[test]
fn records_made_anew_conform_until_they_are_put_in_place() {
    let data = tempfile::tempdir().unwrap();
    let (fresh, path) = (data.path().join("fresh"), data.path().join("index.sqlite"));
    SqliteRecords::start_anew(&path).unwrap();
    conformance::records(SqliteRecords::bulk(&fresh).unwrap(), |records| records);
    SqliteRecords::put_in_place(&fresh, &path).unwrap();
    assert!(!fresh.exists());
    SqliteRecords::open(&path).unwrap();
}

#[test]
fn an_index_of_another_form_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("index.sqlite");
    assert!(matches!(SqliteRecords::open(&path), Err(KeepError::NoIndex { .. })));
    fs::write(&path, "not a database, whatever it is called, and long enough to be looked at").unwrap();
    assert!(SqliteRecords::open(&path).is_err());
}

/// Clause 2.3: opening redoes whatever comes after the commit point.
#[test]
fn a_root_inventory_that_was_not_put_in_place_is_redone() {
    let data = tempfile::tempdir().unwrap();
    let tree = Tree::start(data.path(), "read me").unwrap();
    let object = "test/a/2026/01.01.00.00";
    for version in 1..=2 {
        let staging = tree.stage().unwrap();
        let name = format!("doc/{version}");
        tree.put(&staging, &name, &mut name.as_bytes()).unwrap();
        let inventory = format!("{{\"version\":{version}}}").into_bytes();
        let publication = Publication {
            staging: &staging,
            object,
            version,
            inventory: &inventory,
            whole: None,
            instead: false,
        };
        tree.secure(&[publication]).unwrap();
        tree.publish(&[publication]).unwrap();
        tree.discard(&staging).unwrap();
    }
    let folder = data.path().join("tree").join(object);
    let whole = tree.head(object).unwrap();
    // As a crash leaves it: the version is there, the root inventory is the one before, or half of it is.
    for name in ["inventory.json", "inventory.json.sha512"] {
        fs::copy(folder.join("v1").join(name), folder.join(name)).unwrap();
        tree.settle(object, &mut BTreeSet::new()).unwrap();
        assert_eq!(tree.head(object).unwrap(), whole, "{name}");
    }
    fs::write(folder.join("inventory.json"), "").unwrap();
    assert!(matches!(tree.head(object), Err(KeepError::DamagedInventory { .. })), "it is not given out");
    tree.settle(object, &mut BTreeSet::new()).unwrap();
    assert_eq!(tree.head(object).unwrap(), whole);
    // Folders that were made for an object that never came are gone.
    fs::create_dir_all(data.path().join("tree/test/b/2026")).unwrap();
    tree.settle("test/b/2026/01.01.00.00", &mut BTreeSet::new()).unwrap();
    assert!(!data.path().join("tree/test/b").exists());
    assert!(folder.exists());
}

#[test]
fn a_replacement_that_was_cut_off_is_finished() {
    let data = tempfile::tempdir().unwrap();
    let tree = Tree::start(data.path(), "read me").unwrap();
    let object = "test/a/2026/01.01.00.00";
    let publish = |instead, inventory: &[u8], through: bool| {
        let staging = tree.stage().unwrap();
        let publication =
            Publication { staging: &staging, object, version: 1, inventory, whole: None, instead };
        tree.secure(&[publication]).unwrap();
        if through {
            tree.publish(&[publication]).unwrap();
            tree.discard(&staging).unwrap();
        }
    };
    publish(false, b"{\"n\":1}", true);
    publish(true, b"{\"n\":2}", false);
    // Cut off between its two steps.
    let place = fs::read_dir(data.path().join("staging")).unwrap().next().unwrap().unwrap().path();
    fs::rename(data.path().join("tree").join(object), place.join("old")).unwrap();
    assert!(tree.head(object).unwrap().is_none());
    tree.sweep().unwrap();
    assert_eq!(tree.head(object).unwrap().unwrap().inventory, b"{\"n\":2}");
    assert_eq!(fs::read_dir(data.path().join("staging")).unwrap().count(), 0);
}
