//! Content and index stores: conformance, and behaviour specific to stores on disk.

use std::collections::BTreeSet;
use std::fs;

use ibi_store::content::{ContentStorage as _, StagedVersion};
use ibi_store::{MemoryContentStorage, MemoryIndex, OcflTree, SqliteIndex, StorageError, conformance};

#[test]
fn content_in_memory_conforms() {
    conformance::content(MemoryContentStorage::default(), |store| store);
}

#[test]
fn a_tree_on_disk_conforms() {
    let data = tempfile::tempdir().unwrap();
    let tree = OcflTree::start(data.path(), "read me").unwrap();
    conformance::content(tree, |tree| {
        drop(tree);
        OcflTree::open(data.path()).unwrap()
    });
}

#[test]
fn records_in_memory_conform() {
    conformance::records(MemoryIndex::default(), |store| store);
}

#[test]
fn records_in_sqlite_conform() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("index.sqlite");
    conformance::records(SqliteIndex::create_empty(&path).unwrap(), |records| {
        drop(records);
        SqliteIndex::open(&path).unwrap()
    });
}

#[test]
fn records_made_anew_conform_until_they_are_put_in_place() {
    let data = tempfile::tempdir().unwrap();
    let (fresh, path) = (data.path().join("fresh"), data.path().join("index.sqlite"));
    SqliteIndex::create_empty(&path).unwrap();
    conformance::records(SqliteIndex::create_for_bulk_load(&fresh).unwrap(), |records| records);
    SqliteIndex::replace_index(&fresh, &path).unwrap();
    assert!(!fresh.exists());
    SqliteIndex::open(&path).unwrap();
}

#[test]
fn an_index_of_another_schema_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("index.sqlite");
    assert!(matches!(SqliteIndex::open(&path), Err(StorageError::NoIndex { .. })));
    fs::write(&path, "not a database, whatever it is called, and long enough to be looked at").unwrap();
    assert!(SqliteIndex::open(&path).is_err());
}

/// Clause 2.3: opening completes every step after the commit point.
#[test]
fn a_stale_root_inventory_is_updated() {
    let data = tempfile::tempdir().unwrap();
    let tree = OcflTree::start(data.path(), "read me").unwrap();
    let object = "test/a/2026/01.01.00.00";
    for version in 1..=2 {
        let staging = tree.begin_staging().unwrap();
        let name = format!("doc/{version}");
        tree.stage_file(&staging, &name, &mut name.as_bytes()).unwrap();
        let inventory = format!("{{\"version\":{version}}}").into_bytes();
        let publication = StagedVersion {
            staging: &staging,
            object,
            version,
            inventory: &inventory,
            whole: None,
            instead: false,
        };
        tree.prepare(&[publication]).unwrap();
        tree.publish(&[publication]).unwrap();
        tree.discard(&staging).unwrap();
    }
    let folder = data.path().join("tree").join(object);
    let whole = tree.head(object).unwrap();
    // After a crash: the version exists, and the root inventory is the previous one or incomplete.
    for name in ["inventory.json", "inventory.json.sha512"] {
        fs::copy(folder.join("v1").join(name), folder.join(name)).unwrap();
        tree.recover_object(object, &mut BTreeSet::new()).unwrap();
        assert_eq!(tree.head(object).unwrap(), whole, "{name}");
    }
    fs::write(folder.join("inventory.json"), "").unwrap();
    assert!(
        matches!(tree.head(object), Err(StorageError::DamagedInventory { .. })),
        "a damaged inventory is not used"
    );
    tree.recover_object(object, &mut BTreeSet::new()).unwrap();
    assert_eq!(tree.head(object).unwrap(), whole);
    // Folders created for an object that was never published are removed.
    fs::create_dir_all(data.path().join("tree/test/b/2026")).unwrap();
    tree.recover_object("test/b/2026/01.01.00.00", &mut BTreeSet::new()).unwrap();
    assert!(!data.path().join("tree/test/b").exists());
    assert!(folder.exists());
}

#[test]
fn an_interrupted_replacement_is_completed() {
    let data = tempfile::tempdir().unwrap();
    let tree = OcflTree::start(data.path(), "read me").unwrap();
    let object = "test/a/2026/01.01.00.00";
    let publish = |instead, inventory: &[u8], through: bool| {
        let staging = tree.begin_staging().unwrap();
        let publication =
            StagedVersion { staging: &staging, object, version: 1, inventory, whole: None, instead };
        tree.prepare(&[publication]).unwrap();
        if through {
            tree.publish(&[publication]).unwrap();
            tree.discard(&staging).unwrap();
        }
    };
    publish(false, b"{\"n\":1}", true);
    publish(true, b"{\"n\":2}", false);
    // Interrupted between its two steps.
    let place = fs::read_dir(data.path().join("staging")).unwrap().next().unwrap().unwrap().path();
    fs::rename(data.path().join("tree").join(object), place.join("old")).unwrap();
    assert!(tree.head(object).unwrap().is_none());
    tree.clear_staging().unwrap();
    assert_eq!(tree.head(object).unwrap().unwrap().inventory, b"{\"n\":2}");
    assert_eq!(fs::read_dir(data.path().join("staging")).unwrap().count(), 0);
}
