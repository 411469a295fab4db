//! The suite for [`ContentStorage`].

use crate::content::{ContentStorage, StagedVersion, StagingId, VerifiedFile};
use crate::digests::{ContentDigests, DIGEST_BLOCK_BYTES};
use crate::ocfl::{Inventory, InventoryUser, InventoryVersion};
use crate::{FileRecord, StorageError};

/// Runs the suite on an empty store. `reopen` closes it and opens it again from its durable state;
/// a store without durable state is returned as is.
///
/// # Panics
///
/// If the store violates the contract.
pub fn content<C: ContentStorage>(mut store: C, mut reopen: impl FnMut(C) -> C) {
    assert_eq!(store.objects().unwrap().count(), 0, "a new store has no object");
    publication_is_atomic(&store);
    store = reopen(store);
    published_versions_are_kept(&store);
    versions_follow_each_other(&store);
    store = reopen(store);
    a_replacement_removes_the_old_object(&store);
    one_object_never_contains_another(&store);
    a_local_file_is_staged_unchanged(&store);
    staged_files_can_be_removed(&store);
    store = reopen(store);
    interrupted_work_is_swept(&store);
    blocks_are_checked(&store);
    a_whole_object_is_published_at_once(&store);
    store = reopen(store);
    a_damaged_file_is_replaced(&store);
    a_removed_object_is_gone(&store);
}

fn inventory(before: Option<&Inventory>, files: &[(&str, &[u8])], stored: &[&str]) -> Inventory {
    let mut inventory =
        before.cloned().unwrap_or_else(|| Inventory::new("ibi:test/a/2026/01.01.00.00".to_owned()));
    let digest = |bytes: &[u8]| ContentDigests::of(bytes).sha512;
    let version = InventoryVersion {
        created: "2026-01-01T00:00:00Z".to_owned(),
        message: "a test".to_owned(),
        user: InventoryUser { name: "tester".to_owned(), address: "ibi:test".to_owned() },
        state: std::collections::BTreeMap::new(),
    };
    let named = files.iter().map(|(name, bytes)| ((*name).to_owned(), digest(bytes)));
    let kept = files.iter().filter(|(name, _)| stored.contains(name));
    let kept = kept.map(|(name, bytes)| (digest(bytes), (*name).to_owned()));
    inventory.add_version(version, named, kept);
    inventory
}

fn staged(store: &impl ContentStorage, files: &[(&str, &[u8])]) -> StagingId {
    let staging = store.begin_staging().unwrap();
    for (name, bytes) in files {
        let digests = store.stage_file(&staging, name, &mut &bytes[..]).unwrap();
        assert_eq!(digests, ContentDigests::of(bytes), "what arrives is hashed");
    }
    staging
}

fn publish(
    store: &impl ContentStorage,
    staging: &StagingId,
    object: &str,
    inventory: &Inventory,
    instead: bool,
) -> Result<(), StorageError> {
    let bytes = inventory.to_bytes();
    let publication = StagedVersion {
        staging,
        object,
        version: inventory.head_number(),
        inventory: &bytes,
        whole: None,
        instead,
    };
    store.prepare(&[publication])?;
    store.publish(&[publication])?;
    store.discard(staging)
}

fn read(store: &impl ContentStorage, object: &str, file: &str) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let length = store.open(object, file).unwrap().read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

const TEST_OBJECT: &str = "test/a/2026/01.01.00.00";

fn publication_is_atomic(store: &impl ContentStorage) {
    let files: &[(&str, &[u8])] = &[("doc/a", b"one"), ("doc/sub/b", b"two")];
    let first = inventory(None, files, &["doc/a", "doc/sub/b"]);
    let staging = staged(store, files);
    assert!(store.is_free(TEST_OBJECT).unwrap());
    assert!(store.head(TEST_OBJECT).unwrap().is_none(), "what is staged is not there");
    assert!(!store.exists(TEST_OBJECT).unwrap());
    let bytes = first.to_bytes();
    let publication = StagedVersion {
        staging: &staging,
        object: TEST_OBJECT,
        version: 1,
        inventory: &bytes,
        whole: None,
        instead: false,
    };
    store.prepare(&[publication]).unwrap();
    assert!(store.head(TEST_OBJECT).unwrap().is_none(), "nor is what is secured");
    store.publish(&[publication]).unwrap();
    store.discard(&staging).unwrap();
}

fn published_versions_are_kept(store: &impl ContentStorage) {
    let objects: Vec<String> = store.objects().unwrap().map(Result::unwrap).collect();
    assert_eq!(objects, [TEST_OBJECT]);
    assert!(store.exists(TEST_OBJECT).unwrap());
    let head = store.head(TEST_OBJECT).unwrap().unwrap();
    assert_eq!(head.digest, Inventory::digest(&head.inventory));
    assert_eq!(store.version_digest(TEST_OBJECT, 1).unwrap(), Some(head.digest));
    assert_eq!(store.version_digest(TEST_OBJECT, 2).unwrap(), None);
    assert_eq!(read(store, TEST_OBJECT, "v1/content/doc/a"), b"one");
    assert_eq!(read(store, TEST_OBJECT, "v1/content/doc/sub/b"), b"two");
    let missing = store.open(TEST_OBJECT, "v1/content/doc/c").err().unwrap();
    assert!(matches!(missing, StorageError::MissingFile { .. }), "a missing file is reported as missing");
    assert!(!store.is_free(TEST_OBJECT).unwrap());
}

fn versions_follow_each_other(store: &impl ContentStorage) {
    let first = Inventory::parse(&store.head(TEST_OBJECT).unwrap().unwrap().inventory).unwrap();
    let second = inventory(Some(&first), &[("doc/a", b"one"), ("doc/c", b"three")], &["doc/c"]);
    let staging = staged(store, &[("doc/c", b"three")]);
    publish(store, &staging, TEST_OBJECT, &second, false).unwrap();
    let head = store.head(TEST_OBJECT).unwrap().unwrap();
    assert_eq!(Inventory::parse(&head.inventory).unwrap(), second);
    assert_eq!(store.version_digest(TEST_OBJECT, 2).unwrap(), Some(head.digest));
    assert!(store.version_digest(TEST_OBJECT, 1).unwrap().is_some(), "the version before stays");
    assert_eq!(read(store, TEST_OBJECT, "v2/content/doc/c"), b"three");
    assert_eq!(read(store, TEST_OBJECT, "v1/content/doc/sub/b"), b"two");
    let again = staged(store, &[("doc/c", b"other")]);
    let occupied = publish(store, &again, TEST_OBJECT, &second, false);
    assert!(matches!(occupied, Err(StorageError::Occupied { .. })), "a version is not overwritten");
    assert_eq!(read(store, TEST_OBJECT, "v2/content/doc/c"), b"three");
    store.discard(&again).unwrap();
}

fn a_replacement_removes_the_old_object(store: &impl ContentStorage) {
    let only = inventory(None, &[("item.json", b"gone")], &["item.json"]);
    let staging = staged(store, &[("item.json", b"gone")]);
    publish(store, &staging, TEST_OBJECT, &only, true).unwrap();
    assert_eq!(read(store, TEST_OBJECT, "v1/content/item.json"), b"gone");
    assert!(store.open(TEST_OBJECT, "v1/content/doc/a").is_err(), "the bytes are destroyed");
    assert_eq!(store.version_digest(TEST_OBJECT, 2).unwrap(), None);
    let files = store.files(TEST_OBJECT).unwrap();
    assert!(files.iter().all(|file| !file.contains("doc/")), "{files:?}");
}

fn one_object_never_contains_another(store: &impl ContentStorage) {
    for free in ["test/a/2026/01.01.00.01", "test/b/2026/01.01.00.00"] {
        assert!(store.is_free(free).unwrap(), "{free}");
    }
    for not_free in [TEST_OBJECT, "test/a", "test", "test/a/2026/01.01.00.00/v2"] {
        assert!(!store.is_free(not_free).unwrap(), "{not_free}");
    }
    let staging = staged(store, &[("doc/a", b"x")]);
    let inventory = inventory(None, &[("doc/a", b"x")], &["doc/a"]);
    for object in [TEST_OBJECT, "test/a"] {
        let again = staged(store, &[("doc/a", b"x")]);
        let occupied = publish(store, &again, object, &inventory, false);
        assert!(matches!(occupied, Err(StorageError::Occupied { .. })), "{object}: {occupied:?}");
        store.discard(&again).unwrap();
    }
    publish(store, &staging, "test/z/2026/02.02.00.00", &inventory, false).unwrap();
    let objects: Vec<String> = store.objects().unwrap().map(Result::unwrap).collect();
    assert_eq!(objects, [TEST_OBJECT, "test/z/2026/02.02.00.00"], "in order");
}

fn staged_files_can_be_removed(store: &impl ContentStorage) {
    let staging = staged(store, &[("doc/a", b"x"), ("doc/sub/b", b"y")]);
    store.unstage_file(&staging, "doc/sub/b").unwrap();
    let inventory = inventory(None, &[("doc/a", b"x")], &["doc/a"]);
    publish(store, &staging, "test/y/2026/02.02.00.00", &inventory, false).unwrap();
    assert!(store.open("test/y/2026/02.02.00.00", "v1/content/doc/sub/b").is_err());
}

fn a_local_file_is_staged_unchanged(store: &impl ContentStorage) {
    let file = std::env::temp_dir().join(format!(
        "ibi-conformance-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&file, b"from a file").unwrap();
    let staging = store.begin_staging().unwrap();
    store.stage_local_file(&staging, "doc/sub/c", &file).unwrap();
    let inventory = inventory(None, &[("doc/sub/c", b"from a file")], &["doc/sub/c"]);
    publish(store, &staging, "test/w/2026/02.02.00.00", &inventory, false).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"from a file", "it stays where it is");
    std::fs::remove_file(&file).unwrap();
    let kept = store.open("test/w/2026/02.02.00.00", "v1/content/doc/sub/c").unwrap();
    let mut buffer = [0; 20];
    let read = kept.read_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer[..read], b"from a file");
}

fn interrupted_work_is_swept(store: &impl ContentStorage) {
    // All stagings that were not discarded, from here and from before, are removed.
    let _ = staged(store, &[("doc/a", b"four")]);
    assert!(!store.is_staging_empty().unwrap());
    let swept = store.clear_staging().unwrap();
    assert!(swept.stagings >= 1 && swept.bytes >= 4, "{swept:?}");
    assert_eq!(store.clear_staging().unwrap().stagings, 0, "once");
    assert!(store.is_staging_empty().unwrap());
    assert_eq!(store.objects().unwrap().count(), 4, "and nothing else does");
}

const WHOLE_TEST_OBJECT: &str = "test/v/2026/02.02.00.00";

/// As stored elsewhere, with all its versions; also as a replacement of an existing object.
fn a_whole_object_is_published_at_once(store: &impl ContentStorage) {
    let first = inventory(None, &[("doc/a", b"one")], &["doc/a"]);
    let second = inventory(Some(&first), &[("doc/a", b"one"), ("doc/b", b"two")], &["doc/b"]);
    // A version without new content.
    let third = inventory(Some(&second), &[("doc/b", b"two")], &[]);
    let all = [first.to_bytes(), second.to_bytes(), third.to_bytes()];
    for (versions, instead) in [(2, false), (3, true)] {
        let staging = staged(store, &[("v1/content/doc/a", b"one"), ("v2/content/doc/b", b"two")]);
        let (last, older) = all[..versions].split_last().unwrap();
        let publication = StagedVersion {
            staging: &staging,
            object: WHOLE_TEST_OBJECT,
            version: versions as u32,
            inventory: last,
            whole: Some(older),
            instead,
        };
        store.prepare(&[publication]).unwrap();
        store.publish(&[publication]).unwrap();
        store.discard(&staging).unwrap();
        assert_eq!(store.head(WHOLE_TEST_OBJECT).unwrap().unwrap().inventory, *last);
        for (number, inventory) in (1..).zip(&all[..versions]) {
            assert_eq!(
                store.version_digest(WHOLE_TEST_OBJECT, number).unwrap(),
                Some(Inventory::digest(inventory))
            );
        }
        assert_eq!(read(store, WHOLE_TEST_OBJECT, "v2/content/doc/b"), b"two");
    }
}

fn a_damaged_file_is_replaced(store: &impl ContentStorage) {
    let staging = staged(store, &[("doc/b", b"right")]);
    store.replace_file(&staging, "doc/b", WHOLE_TEST_OBJECT, "v2/content/doc/b").unwrap();
    store.discard(&staging).unwrap();
    assert_eq!(read(store, WHOLE_TEST_OBJECT, "v2/content/doc/b"), b"right");
}

fn a_removed_object_is_gone(store: &impl ContentStorage) {
    let staging = store.begin_staging().unwrap();
    store.move_to_staging(&staging, WHOLE_TEST_OBJECT).unwrap();
    assert!(!store.exists(WHOLE_TEST_OBJECT).unwrap() && store.is_free(WHOLE_TEST_OBJECT).unwrap());
    store.discard(&staging).unwrap();
    assert!(store.is_staging_empty().unwrap());
}

fn blocks_are_checked(store: &impl ContentStorage) {
    let bytes: Vec<u8> = (0..DIGEST_BLOCK_BYTES + 1000).map(|at| (at % 251) as u8).collect();
    let staging = staged(store, &[("doc/large", &bytes)]);
    let inventory = inventory(None, &[("doc/large", &bytes)], &["doc/large"]);
    let object = "test/x/2026/02.02.00.00";
    publish(store, &staging, object, &inventory, false).unwrap();
    let ContentDigests { size, sha512, blocks, .. } = ContentDigests::of(&bytes);
    let media = "application/octet-stream".to_owned();
    let content = "v1/content/doc/large".to_owned();
    let file = FileRecord { name: "large".to_owned(), content, size, sha512, media, blocks };
    let mut copy = Vec::new();
    VerifiedFile::open(store, object, &file).unwrap().copy_to(&mut copy).unwrap();
    assert_eq!(copy, bytes);
    let mut wrong = file;
    wrong.blocks[32] ^= 1;
    let checked = VerifiedFile::open(store, object, &wrong).unwrap();
    let mut block = Vec::new();
    checked.read_block(0, &mut block).unwrap();
    let damaged = checked.read_block(1, &mut block);
    assert!(matches!(damaged, Err(StorageError::DamagedBlock { block: 1, .. })), "{damaged:?}");
    assert!(block.is_empty(), "nothing of a damaged block is given out");
    wrong.size += 1;
    let longer = VerifiedFile::open(store, object, &wrong).unwrap().read_block(1, &mut block);
    assert!(longer.is_err(), "a file that is too short is damaged");
}
