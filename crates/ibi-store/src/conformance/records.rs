//! The suite for [`IndexStorage`]: a store must behave exactly like [`MemoryIndex`] under any
//! sequence of operations.

use crate::StorageError;
use crate::index::{
    FileRecord, IndexRecord, IndexStorage, IndexedItem, LabelRecord, LabelRole, LinkKind, LinkRecord,
    MAX_INLINE_METADATA_BYTES, MemoryIndex,
};
use crate::journal::{JournalEntry, JournalPosition, LinkStatement, LinkStatus, State, Verb};

const TEST_ROUNDS: u64 = 120;
const TEST_PATHS: u64 = 12;

/// Runs the suite on an empty store. `reopen` closes it and opens it again from its durable state;
/// a store without durable state is returned as is.
///
/// # Panics
///
/// If the store violates the contract.
pub fn records<R: IndexStorage>(mut store: R, mut reopen: impl FnMut(R) -> R) {
    let model = MemoryIndex::default();
    let mut chance = TestRng(7);
    assert_eq!(store.position().unwrap(), JournalPosition::START);
    for round in 1..=TEST_ROUNDS {
        store.begin().unwrap();
        model.begin().unwrap();
        for number in 0..chance.below(4) {
            step(&store, &model, &mut chance, round * 10 + number);
            compare(&store, &model, &mut chance);
        }
        if chance.below(4) == 0 {
            store.roll_back().unwrap();
            model.roll_back().unwrap();
        } else {
            let position = JournalPosition { next: round + 1, place: round * 100 };
            store.commit(position).unwrap();
            model.commit(position).unwrap();
        }
        compare(&store, &model, &mut chance);
        if round % 20 == 0 {
            store = reopen(store);
            compare(&store, &model, &mut chance);
        }
    }
    store.roll_back().unwrap();
}

struct TestRng(u64);

impl TestRng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn path(number: u64) -> String {
    format!("test/a{}/2026/01.01.00.{number:02}", number % 3)
}

/// Applies one change to both.
fn step(store: &dyn IndexStorage, model: &dyn IndexStorage, chance: &mut TestRng, change: u64) {
    let number = chance.below(TEST_PATHS);
    let both = [store, model];
    match chance.below(9) {
        8 => {
            // A new item with a label of another item leaves nothing behind.
            let mut item = item(TEST_PATHS, change, chance);
            let role = LabelRole::Alias;
            let label = LabelRecord { folded: path(number), canonical: path(number), role };
            item.labels.push(label);
            if model.item(&path(number)).unwrap().is_some() {
                both.iter().for_each(|records| {
                    let refused = records.put_item(&item);
                    assert!(matches!(refused, Err(StorageError::LabelTaken { path: taken, .. }) if taken == path(number)));
                });
            }
        }
        0 => both.iter().for_each(|records| records.remove_item(&path(number)).unwrap()),
        2 => both.iter().for_each(|records| records.set_last_change(&path(number), change).unwrap()),
        1 => {
            let gone = [chance.below(change + 1), chance.below(change + 1)];
            both.iter().for_each(|records| records.remove_events(&gone).unwrap());
        }
        _ => {
            let (item, entry) = (item(number, change, chance), entry(number, change, chance));
            both.iter().for_each(|records| {
                records.put_item(&item).unwrap();
                records.add_event(&entry).unwrap();
            });
        }
    }
}

fn item(number: u64, change: u64, chance: &mut TestRng) -> IndexedItem {
    let path = path(number);
    let state = [State::Original, State::Copy, State::Deleted][chance.below(3) as usize];
    let label = |folded: String, canonical: String, role| LabelRecord { folded, canonical, role };
    let mut labels = vec![
        label(path.clone(), path.clone(), LabelRole::Item),
        label(format!("meta{number}/x"), format!("meta{number}/x"), LabelRole::Metadata),
    ];
    if chance.below(2) == 0 {
        // Two items may differ in spelling only: one canonical spelling, two folded ones.
        labels.push(label(
            format!("alias{number}/spelled"),
            format!("alias{}/x", number / 2),
            LabelRole::Alias,
        ));
    }
    let kinds = [LinkKind::Translation, LinkKind::Edition];
    let links = kinds.into_iter().filter(|_| chance.below(2) == 0).collect::<Vec<_>>();
    let links = links.into_iter().map(|kind| LinkRecord { kind, to: path_of(chance) }).collect();
    let files = (0..chance.below(4)).map(|at| file(at, chance)).collect();
    IndexedItem {
        record: IndexRecord {
            path,
            change,
            version: chance.below(9) as u32 + 1,
            inventory: format!("{:032x}", chance.below(1 << 30)),
            state,
            epoch: chance.below(3),
            properties: format!("{{\"n\":{}}}", chance.below(100)),
            // Long metadata are left out of lookups. The limit is in bytes, and these characters
            // take two.
            metadata: match chance.below(8) {
                0 => format!("[\"{}\"]", "\u{e9}".repeat(MAX_INLINE_METADATA_BYTES / 2)),
                _ => "[]".to_owned(),
            },
        },
        labels,
        links,
        files,
    }
}

fn path_of(chance: &mut TestRng) -> String {
    path(chance.below(TEST_PATHS))
}

fn file(at: u64, chance: &mut TestRng) -> FileRecord {
    FileRecord {
        name: format!("{at}é{}.txt", if at == 2 { "/A" } else { "" }),
        content: format!("v1/content/doc/{at}"),
        size: chance.below(1 << 30) << 10,
        sha512: format!("{:0128x}", chance.below(1 << 30)),
        media: "text/plain".to_owned(),
        blocks: vec![chance.below(256) as u8; 32],
    }
}

fn entry(number: u64, change: u64, chance: &mut TestRng) -> JournalEntry {
    let some = |text: &str, chance: &mut TestRng| (chance.below(2) == 0).then(|| text.to_owned());
    JournalEntry {
        change,
        batch: change / 10 * 10,
        time: "2026-01-01T00:00:00Z".to_owned(),
        verb: [Verb::Deposit, Verb::Update, Verb::Remove][chance.below(3) as usize],
        path: path(number),
        version: 1,
        inventory: "0".repeat(32),
        state: State::Original,
        epoch: 1,
        by: "tester".to_owned(),
        owner: Some("5eed5eed".to_owned()),
        source: some("elsewhere", chance),
        source_state: [None, Some(State::Original), Some(State::Copy)][chance.below(3) as usize],
        key: some(&format!("key{change}"), chance),
        note: some("why = not %", chance),
        to: None,
        past: None,
        record: None,
        links: (0..chance.below(3)).map(|_| statement(chance)).collect(),
        depends_on: None,
    }
}

fn statement(chance: &mut TestRng) -> LinkStatement {
    LinkStatement {
        kind: [LinkKind::Translation, LinkKind::Edition][chance.below(2) as usize],
        older: path_of(chance),
        newer: path_of(chance),
        status: [LinkStatus::Proposed, LinkStatus::Accepted][chance.below(2) as usize],
        counter: chance.below(5),
        older_labels: Vec::new(),
        newer_labels: vec![path_of(chance)],
        older_language: None,
        newer_language: None,
        created: String::new(),
        removed: chance.below(2) == 0,
        unstated: false,
        archive: None,
        decided_by: None,
        receipt: None,
        told_with: None,
    }
}

/// Every query returns the same result.
fn compare(store: &dyn IndexStorage, model: &dyn IndexStorage, chance: &mut TestRng) {
    assert_eq!(store.position().unwrap(), model.position().unwrap());
    assert_eq!(store.missing_items().unwrap(), model.missing_items().unwrap());
    let (after, limit) = (path_of(chance), chance.below(5) as usize + 1);
    assert_eq!(store.list("", 100).unwrap(), model.list("", 100).unwrap());
    assert_eq!(store.list(&after, limit).unwrap(), model.list(&after, limit).unwrap());
    assert_eq!(store.changes(0, 100).unwrap(), model.changes(0, 100).unwrap());
    let labels: Vec<String> = (0..40).map(|number| path(number % (TEST_PATHS + 1))).collect();
    for kind in [LinkKind::Translation, LinkKind::Edition] {
        assert_eq!(store.linked_labels(kind, &labels).unwrap(), model.linked_labels(kind, &labels).unwrap());
    }
    let (from, few) = (chance.below(40), chance.below(9) as usize);
    assert_eq!(store.changed_paths(from, few).unwrap(), model.changed_paths(from, few).unwrap());
    assert_eq!(store.event_at(from).unwrap(), model.event_at(from).unwrap());
    assert_eq!(
        store.items_with_links(&after, limit).unwrap(),
        model.items_with_links(&after, limit).unwrap()
    );
    for number in 0..=TEST_PATHS {
        let path = path(number);
        assert_eq!(store.item(&path).unwrap(), model.item(&path).unwrap());
        for many in [0, 2] {
            let more = store.has_more_files(&path, many).unwrap();
            assert_eq!(more, model.has_more_files(&path, many).unwrap());
        }
        assert_eq!(store.metadata(&path).unwrap(), model.metadata(&path).unwrap());
        assert_eq!(store.metadata_size(&path).unwrap(), model.metadata_size(&path).unwrap());
        assert_eq!(store.files(&path, "", 100).unwrap(), model.files(&path, "", 100).unwrap());
        assert_eq!(store.files(&path, "0é", 1).unwrap(), model.files(&path, "0é", 1).unwrap());
        assert_eq!(store.file(&path, "1é.txt").unwrap(), model.file(&path, "1é.txt").unwrap());
        assert_eq!(store.total_file_size(&path).unwrap(), model.total_file_size(&path).unwrap());
        assert_eq!(store.events(&path).unwrap(), model.events(&path).unwrap());
        assert_eq!(store.last_event(&path).unwrap(), model.last_event(&path).unwrap());
        assert_eq!(store.links(&path).unwrap(), model.links(&path).unwrap());
        for kind in [LinkKind::Translation, LinkKind::Edition] {
            assert_eq!(
                store.items_linking_to(kind, &path).unwrap(),
                model.items_linking_to(kind, &path).unwrap()
            );
            let older = store.links_to_older(kind, &path).unwrap();
            assert_eq!(older, model.links_to_older(kind, &path).unwrap());
            let newer = store.links_from_newer(kind, &path).unwrap();
            assert_eq!(newer, model.links_from_newer(kind, &path).unwrap());
        }
        let names = [
            path.clone(),
            format!("meta{number}/x"),
            format!("alias{number}/spelled"),
            format!("alias{number}/x"),
        ];
        for name in &names {
            assert_eq!(store.find(name, name).unwrap(), model.find(name, name).unwrap(), "{name}");
            assert_eq!(store.find_exact(name).unwrap(), model.find_exact(name).unwrap(), "{name}");
        }
        let canonical = &names[3];
        assert_eq!(store.find("no/such", canonical).unwrap(), model.find("no/such", canonical).unwrap());
    }
    for status in [None, Some(LinkStatus::Proposed), Some(LinkStatus::Refused)] {
        let all = store.link_statements(status, (0, 0), 1000).unwrap();
        assert_eq!(all, model.link_statements(status, (0, 0), 1000).unwrap());
        let place = (chance.below(TEST_ROUNDS * 10), chance.below(2));
        let page = store.link_statements(status, place, 3).unwrap();
        assert_eq!(page, model.link_statements(status, place, 3).unwrap());
    }
    for change in 0..20 {
        let key = format!("key{}", chance.below(TEST_ROUNDS * 10) + change);
        assert_eq!(store.by_request(&key).unwrap(), model.by_request(&key).unwrap());
    }
}
