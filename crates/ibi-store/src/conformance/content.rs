//! What every store of content must do.

use crate::content::{Checked, Content, Publication, Staging};
use crate::digests::{BLOCK, Digests};
use crate::ocfl::{Inventory, User, Version};
use crate::{FileRecord, KeepError};

/// Runs the suite on an empty store. `reopen` takes it down and opens it again from what is durable; a store that outlives
/// nothing hands it back.
///
/// # Panics
///
/// If the store does not do what it must.
pub fn content<C: Content>(mut store: C, mut reopen: impl FnMut(C) -> C) {
    assert_eq!(store.objects().unwrap().count(), 0, "a new store has no object");
    a_version_is_there_wholly_or_not_at_all(&store);
    store = reopen(store);
    what_was_published_stays(&store);
    versions_follow_each_other(&store);
    store = reopen(store);
    a_replacement_leaves_nothing_else(&store);
    one_object_never_contains_another(&store);
    a_file_that_lies_here_is_staged_as_it_is(&store);
    what_is_staged_can_be_taken_back(&store);
    store = reopen(store);
    interrupted_work_is_swept(&store);
    blocks_are_checked(&store);
    a_whole_object_is_put_in_its_place_at_once(&store);
    store = reopen(store);
    a_damaged_file_is_put_right(&store);
    what_is_taken_out_is_gone(&store);
}

fn inventory(before: Option<&Inventory>, files: &[(&str, &[u8])], stored: &[&str]) -> Inventory {
    let mut inventory =
        before.cloned().unwrap_or_else(|| Inventory::new("ibi:test/a/2026/01.01.00.00".to_owned()));
    let digest = |bytes: &[u8]| Digests::of(bytes).sha512;
    let version = Version {
        created: "2026-01-01T00:00:00Z".to_owned(),
        message: "a test".to_owned(),
        user: User { name: "tester".to_owned(), address: "ibi:test".to_owned() },
        state: std::collections::BTreeMap::new(),
    };
    let named = files.iter().map(|(name, bytes)| ((*name).to_owned(), digest(bytes)));
    let kept = files.iter().filter(|(name, _)| stored.contains(name));
    let kept = kept.map(|(name, bytes)| (digest(bytes), (*name).to_owned()));
    inventory.add(version, named, kept);
    inventory
}

fn staged(store: &impl Content, files: &[(&str, &[u8])]) -> Staging {
    let staging = store.stage().unwrap();
    for (name, bytes) in files {
        let digests = store.put(&staging, name, &mut &bytes[..]).unwrap();
        assert_eq!(digests, Digests::of(bytes), "what arrives is hashed");
    }
    staging
}

fn publish(
    store: &impl Content,
    staging: &Staging,
    object: &str,
    inventory: &Inventory,
    instead: bool,
) -> Result<(), KeepError> {
    let bytes = inventory.to_bytes();
    let publication =
        Publication { staging, object, version: inventory.number(), inventory: &bytes, whole: None, instead };
    store.secure(&[publication])?;
    store.publish(&[publication])?;
    store.discard(staging)
}

fn read(store: &impl Content, object: &str, file: &str) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let length = store.open(object, file).unwrap().read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

const OBJECT: &str = "test/a/2026/01.01.00.00";

fn a_version_is_there_wholly_or_not_at_all(store: &impl Content) {
    let files: &[(&str, &[u8])] = &[("doc/a", b"one"), ("doc/sub/b", b"two")];
    let first = inventory(None, files, &["doc/a", "doc/sub/b"]);
    let staging = staged(store, files);
    assert!(store.is_free(OBJECT).unwrap());
    assert!(store.head(OBJECT).unwrap().is_none(), "what is staged is not there");
    assert!(!store.exists(OBJECT).unwrap());
    let bytes = first.to_bytes();
    let publication = Publication {
        staging: &staging,
        object: OBJECT,
        version: 1,
        inventory: &bytes,
        whole: None,
        instead: false,
    };
    store.secure(&[publication]).unwrap();
    assert!(store.head(OBJECT).unwrap().is_none(), "nor is what is secured");
    store.publish(&[publication]).unwrap();
    store.discard(&staging).unwrap();
}

fn what_was_published_stays(store: &impl Content) {
    let objects: Vec<String> = store.objects().unwrap().map(Result::unwrap).collect();
    assert_eq!(objects, [OBJECT]);
    assert!(store.exists(OBJECT).unwrap());
    let head = store.head(OBJECT).unwrap().unwrap();
    assert_eq!(head.digest, Inventory::digest(&head.inventory));
    assert_eq!(store.version(OBJECT, 1).unwrap(), Some(head.digest));
    assert_eq!(store.version(OBJECT, 2).unwrap(), None);
    assert_eq!(read(store, OBJECT, "v1/content/doc/a"), b"one");
    assert_eq!(read(store, OBJECT, "v1/content/doc/sub/b"), b"two");
    let missing = store.open(OBJECT, "v1/content/doc/c").err().unwrap();
    assert!(matches!(missing, KeepError::MissingFile { .. }), "what is not there is told of as such");
    assert!(!store.is_free(OBJECT).unwrap());
}

fn versions_follow_each_other(store: &impl Content) {
    let first = Inventory::parse(&store.head(OBJECT).unwrap().unwrap().inventory).unwrap();
    let second = inventory(Some(&first), &[("doc/a", b"one"), ("doc/c", b"three")], &["doc/c"]);
    let staging = staged(store, &[("doc/c", b"three")]);
    publish(store, &staging, OBJECT, &second, false).unwrap();
    let head = store.head(OBJECT).unwrap().unwrap();
    assert_eq!(Inventory::parse(&head.inventory).unwrap(), second);
    assert_eq!(store.version(OBJECT, 2).unwrap(), Some(head.digest));
    assert!(store.version(OBJECT, 1).unwrap().is_some(), "the version before stays");
    assert_eq!(read(store, OBJECT, "v2/content/doc/c"), b"three");
    assert_eq!(read(store, OBJECT, "v1/content/doc/sub/b"), b"two");
    let again = staged(store, &[("doc/c", b"other")]);
    let occupied = publish(store, &again, OBJECT, &second, false);
    assert!(matches!(occupied, Err(KeepError::Occupied { .. })), "a version is not overwritten");
    assert_eq!(read(store, OBJECT, "v2/content/doc/c"), b"three");
    store.discard(&again).unwrap();
}

fn a_replacement_leaves_nothing_else(store: &impl Content) {
    let only = inventory(None, &[("item.json", b"gone")], &["item.json"]);
    let staging = staged(store, &[("item.json", b"gone")]);
    publish(store, &staging, OBJECT, &only, true).unwrap();
    assert_eq!(read(store, OBJECT, "v1/content/item.json"), b"gone");
    assert!(store.open(OBJECT, "v1/content/doc/a").is_err(), "the bytes are destroyed");
    assert_eq!(store.version(OBJECT, 2).unwrap(), None);
    let files = store.files(OBJECT).unwrap();
    assert!(files.iter().all(|file| !file.contains("doc/")), "{files:?}");
}

fn one_object_never_contains_another(store: &impl Content) {
    for free in ["test/a/2026/01.01.00.01", "test/b/2026/01.01.00.00"] {
        assert!(store.is_free(free).unwrap(), "{free}");
    }
    for not_free in [OBJECT, "test/a", "test", "test/a/2026/01.01.00.00/v2"] {
        assert!(!store.is_free(not_free).unwrap(), "{not_free}");
    }
    let staging = staged(store, &[("doc/a", b"x")]);
    let inventory = inventory(None, &[("doc/a", b"x")], &["doc/a"]);
    for object in [OBJECT, "test/a"] {
        let again = staged(store, &[("doc/a", b"x")]);
        let occupied = publish(store, &again, object, &inventory, false);
        assert!(matches!(occupied, Err(KeepError::Occupied { .. })), "{object}: {occupied:?}");
        store.discard(&again).unwrap();
    }
    publish(store, &staging, "test/z/2026/02.02.00.00", &inventory, false).unwrap();
    let objects: Vec<String> = store.objects().unwrap().map(Result::unwrap).collect();
    assert_eq!(objects, [OBJECT, "test/z/2026/02.02.00.00"], "in order");
}

fn what_is_staged_can_be_taken_back(store: &impl Content) {
    let staging = staged(store, &[("doc/a", b"x"), ("doc/sub/b", b"y")]);
    store.take_back(&staging, "doc/sub/b").unwrap();
    let inventory = inventory(None, &[("doc/a", b"x")], &["doc/a"]);
    publish(store, &staging, "test/y/2026/02.02.00.00", &inventory, false).unwrap();
    assert!(store.open("test/y/2026/02.02.00.00", "v1/content/doc/sub/b").is_err());
}

fn a_file_that_lies_here_is_staged_as_it_is(store: &impl Content) {
    let file = std::env::temp_dir().join(format!(
        "ibi-conformance-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&file, b"from a file").unwrap();
    let staging = store.stage().unwrap();
    store.put_file(&staging, "doc/sub/c", &file).unwrap();
    let inventory = inventory(None, &[("doc/sub/c", b"from a file")], &["doc/sub/c"]);
    publish(store, &staging, "test/w/2026/02.02.00.00", &inventory, false).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"from a file", "it stays where it is");
    std::fs::remove_file(&file).unwrap();
    let kept = store.open("test/w/2026/02.02.00.00", "v1/content/doc/sub/c").unwrap();
    let mut buffer = [0; 20];
    let read = kept.read_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer[..read], b"from a file");
}

fn interrupted_work_is_swept(store: &impl Content) {
    // Stagings that were not discarded, here and before, all go.
    let _ = staged(store, &[("doc/a", b"four")]);
    assert!(!store.is_swept().unwrap());
    let swept = store.sweep().unwrap();
    assert!(swept.stagings >= 1 && swept.bytes >= 4, "{swept:?}");
    assert_eq!(store.sweep().unwrap().stagings, 0, "once");
    assert!(store.is_swept().unwrap());
    assert_eq!(store.objects().unwrap().count(), 4, "and nothing else does");
}

const WHOLE: &str = "test/v/2026/02.02.00.00";

/// As it lies in another store, with all its versions; also in the place of what is there.
fn a_whole_object_is_put_in_its_place_at_once(store: &impl Content) {
    let first = inventory(None, &[("doc/a", b"one")], &["doc/a"]);
    let second = inventory(Some(&first), &[("doc/a", b"one"), ("doc/b", b"two")], &["doc/b"]);
    // A version that has no bytes of its own.
    let third = inventory(Some(&second), &[("doc/b", b"two")], &[]);
    let all = [first.to_bytes(), second.to_bytes(), third.to_bytes()];
    for (versions, instead) in [(2, false), (3, true)] {
        let staging = staged(store, &[("v1/content/doc/a", b"one"), ("v2/content/doc/b", b"two")]);
        let (last, older) = all[..versions].split_last().unwrap();
        let publication = Publication {
            staging: &staging,
            object: WHOLE,
            version: versions as u32,
            inventory: last,
            whole: Some(older),
            instead,
        };
        store.secure(&[publication]).unwrap();
        store.publish(&[publication]).unwrap();
        store.discard(&staging).unwrap();
        assert_eq!(store.head(WHOLE).unwrap().unwrap().inventory, *last);
        for (number, inventory) in (1..).zip(&all[..versions]) {
            assert_eq!(store.version(WHOLE, number).unwrap(), Some(Inventory::digest(inventory)));
        }
        assert_eq!(read(store, WHOLE, "v2/content/doc/b"), b"two");
    }
}

fn a_damaged_file_is_put_right(store: &impl Content) {
    let staging = staged(store, &[("doc/b", b"right")]);
    store.mend(&staging, "doc/b", WHOLE, "v2/content/doc/b").unwrap();
    store.discard(&staging).unwrap();
    assert_eq!(read(store, WHOLE, "v2/content/doc/b"), b"right");
}

fn what_is_taken_out_is_gone(store: &impl Content) {
    let staging = store.stage().unwrap();
    store.take_out(&staging, WHOLE).unwrap();
    assert!(!store.exists(WHOLE).unwrap() && store.is_free(WHOLE).unwrap());
    store.discard(&staging).unwrap();
    assert!(store.is_swept().unwrap());
}

fn blocks_are_checked(store: &impl Content) {
    let bytes: Vec<u8> = (0..BLOCK + 1000).map(|at| (at % 251) as u8).collect();
    let staging = staged(store, &[("doc/large", &bytes)]);
    let inventory = inventory(None, &[("doc/large", &bytes)], &["doc/large"]);
    let object = "test/x/2026/02.02.00.00";
    publish(store, &staging, object, &inventory, false).unwrap();
    let Digests { size, sha512, blocks, .. } = Digests::of(&bytes);
    let media = "application/octet-stream".to_owned();
    let content = "v1/content/doc/large".to_owned();
    let file = FileRecord { name: "large".to_owned(), content, size, sha512, media, blocks };
    let mut copy = Vec::new();
    Checked::open(store, object, &file).unwrap().copy_to(&mut copy).unwrap();
    assert_eq!(copy, bytes);
    let mut wrong = file;
    wrong.blocks[32] ^= 1;
    let checked = Checked::open(store, object, &wrong).unwrap();
    let mut block = Vec::new();
    checked.block(0, &mut block).unwrap();
    let damaged = checked.block(1, &mut block);
    assert!(matches!(damaged, Err(KeepError::DamagedBlock { block: 1, .. })), "{damaged:?}");
    assert!(block.is_empty(), "nothing of a damaged block is given out");
    wrong.size += 1;
    let longer = Checked::open(store, object, &wrong).unwrap().block(1, &mut block);
    assert!(longer.is_err(), "a file that is too short is damaged");
}
