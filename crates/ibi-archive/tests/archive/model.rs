//! Random operations, and a model to compare with: what was deposited is what comes out, through
//! updates, removals, openings and rebuildings.

use std::collections::BTreeMap;
use std::fs;

use ibi_archive::deposit::DepositSource;
use ibi_archive::dublin_core::{DublinCore, Element};
use ibi_archive::rebuild::rebuild;
use ibi_archive::store::State;
use ibi_archive::{Archive, ArchiveError, Holdings, ItemChanges};
use proptest::prelude::*;

use crate::ours::{Ours, answers, deposit, titled};

type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Deposit {
        files: Files,
        title: String,
        alias: bool,
        foreign: Option<(u8, bool)>,
    },
    Update {
        item: usize,
        files: Option<Files>,
        title: Option<String>,
    },
    Remove {
        item: usize,
        purge: bool,
    },
    Declare {
        item: usize,
    },
    /// A copy is taken out.
    Drop {
        item: usize,
    },
    Open,
    Rebuild {
        delete: bool,
    },
}

fn files() -> impl Strategy<Value = Files> {
    let name = prop::sample::select(vec!["a", "A", "b.html", "sub/c d.pdf", "sub/é", "z%.txt"]);
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::btree_map(name.prop_map(str::to_owned), bytes, 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    let foreign = prop::option::weighted(0.4, (0_u8..4, any::<bool>()));
    prop_oneof![
        4 => (files(), "[a-zé ]{1,9}x", any::<bool>(), foreign)
            .prop_map(|(files, title, alias, foreign)| Step::Deposit { files, title, alias, foreign }),
        4 => (any::<usize>(), prop::option::of(files()), prop::option::of("[a-z]{1,9}"))
            .prop_map(|(item, files, title)| Step::Update { item, files, title }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(item, purge)| Step::Remove { item, purge }),
        1 => any::<usize>().prop_map(|item| Step::Declare { item }),
        1 => any::<usize>().prop_map(|item| Step::Drop { item }),
        1 => Just(Step::Open),
        1 => any::<bool>().prop_map(|delete| Step::Rebuild { delete }),
    ]
}

/// An item as it should be.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    label: String,
    state: State,
    version: u32,
    title: String,
    files: Files,
    purged: bool,
}

struct Model {
    ours: Ours,
    archive: Option<Archive>,
    items: Vec<Expected>,
    /// Labels whose copies were taken out.
    dropped: Vec<String>,
}

impl Model {
    fn archive(&mut self) -> &mut Archive {
        self.archive.as_mut().unwrap()
    }

    fn chosen(&self, item: usize) -> Option<usize> {
        (!self.items.is_empty()).then(|| item % self.items.len())
    }

    fn deposit(&mut self, files: Files, title: String, alias: bool, foreign: Option<(u8, bool)>) {
        let path = self.ours.files(&files);
        let mut draft = titled(&title);
        let mut state = State::Original;
        let (mut taken, mut dropped) = (false, false);
        if let Some((number, original)) = foreign {
            let label = format!("elsewhere.test/x/1999/01.01.00.{number:02}");
            taken = self.items.iter().any(|item| item.label == label);
            dropped = self.dropped.contains(&label);
            draft.labels = vec![label];
            draft.original = original;
            state = if original { State::Original } else { State::Copy };
        }
        if alias {
            draft.aliases = vec![format!("alias.test/x/2001/01.01.00.00.{:02}", self.items.len() % 60)];
        }
        let result = deposit(self.archive(), &path, draft);
        if taken {
            assert!(matches!(result, Err(ArchiveError::Taken { .. })), "{result:?}");
            return;
        }
        if dropped {
            assert!(matches!(result, Err(ArchiveError::Dropped { .. })), "its label stays taken: {result:?}");
            return;
        }
        if alias && matches!(result, Err(ArchiveError::Taken { .. })) {
            return;
        }
        let label = result.unwrap();
        self.items.push(Expected {
            label,
            state,
            version: 1,
            title: title.trim().to_owned(),
            files,
            purged: false,
        });
    }

    fn update(&mut self, item: usize, files: Option<Files>, title: Option<String>) {
        let Some(at) = self.chosen(item) else { return };
        let expected = self.items[at].clone();
        let source = files.as_ref().map(|files| DepositSource::at(&self.ours.files(files)).unwrap());
        let statements = title.iter().map(|title| format!("title={title}").parse().unwrap()).collect();
        let changes = ItemChanges { statements, ..ItemChanges::default() };
        let change =
            self.archive().prepare_update(&expected.label, source.as_ref(), changes, "tester", &|_| ());
        match expected.state {
            State::Copy => assert!(matches!(change, Err(ArchiveError::IsCopy { .. }))),
            State::Deleted => assert!(matches!(change, Err(ArchiveError::Removed { .. }))),
            State::Original => {
                let new_files = files.unwrap_or_else(|| expected.files.clone());
                let new_title = title.unwrap_or_else(|| expected.title.clone());
                let same = new_files == expected.files && new_title == expected.title;
                let change = change.unwrap();
                assert_eq!(
                    change.is_none(),
                    same,
                    "a version is made if something is different, and only then"
                );
                if let Some(change) = change {
                    self.archive().commit(vec![change]).pop().unwrap().unwrap();
                    let item = &mut self.items[at];
                    (item.files, item.title, item.version) = (new_files, new_title, item.version + 1);
                }
            }
        }
    }

    fn remove(&mut self, item: usize, purge: bool) {
        let Some(at) = self.chosen(item) else { return };
        let expected = self.items[at].clone();
        let change = self.archive().prepare_removal(&expected.label, "a reason", "tester", purge);
        if expected.state == State::Copy {
            assert!(matches!(change, Err(ArchiveError::RemoveCopy { .. })), "only the Original is removed");
            return;
        }
        if expected.state == State::Deleted && (!purge || expected.purged) {
            assert!(matches!(change, Err(ArchiveError::Removed { .. })));
            return;
        }
        self.archive().commit(vec![change.unwrap()]).pop().unwrap().unwrap();
        let item = &mut self.items[at];
        item.state = State::Deleted;
        item.files.clear();
        item.purged |= purge;
        item.version = if purge { 1 } else { item.version + 1 };
    }

    fn declare(&mut self, item: usize) {
        let Some(at) = self.chosen(item) else { return };
        let expected = self.items[at].clone();
        let declared = self.archive().declare_original(&expected.label, "tester");
        assert_eq!(declared.is_ok(), expected.state == State::Copy, "{declared:?}");
        if declared.is_ok() {
            self.items[at].state = State::Original;
        }
    }

    fn take_out(&mut self, item: usize) {
        let Some(at) = self.chosen(item) else { return };
        let Expected { label, state, .. } = self.items[at].clone();
        let dropped = self.archive().drop_copy(&label, "tester", None);
        assert_eq!(dropped.is_ok(), state == State::Copy, "{dropped:?}");
        if dropped.is_ok() {
            self.items.remove(at);
            assert!(matches!(self.archive().holdings().find(&label), Err(ArchiveError::Dropped { .. })));
            self.dropped.push(label);
        }
    }

    fn open(&mut self) {
        let before = answers(self.archive().holdings());
        self.archive = None;
        let (archive, found) = self.ours.open();
        assert_eq!((found.finished, found.undone, found.swept.stagings), (0, 0, 0), "nothing was cut off");
        assert_eq!(answers(archive.holdings()), before);
        self.archive = Some(archive);
    }

    /// Clause 2.3: the index can be deleted, and every answer is the same after rebuilding it.
    fn rebuild(&mut self, delete: bool) {
        let before = answers(self.archive().holdings());
        self.archive = None;
        if delete {
            for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
                let _ = fs::remove_file(self.ours.data().join(name));
            }
        }
        let rebuilt = rebuild(&self.ours.data(), "tester", &|_| ()).unwrap();
        assert!(rebuilt.adopted.is_empty() && rebuilt.missing.is_empty() && rebuilt.damaged.is_empty());
        let (archive, _) = self.ours.open();
        assert_eq!(answers(archive.holdings()), before);
        self.archive = Some(archive);
    }

    fn compare(&mut self) {
        let items = self.items.clone();
        let holdings = self.archive().holdings();
        assert_eq!(holdings.list("", 1000).unwrap().len(), items.len() + 1, "and the Archive service");
        for expected in items {
            let (holding, _) = holdings.find(&expected.label).unwrap();
            assert_eq!((holding.state, holding.version), (expected.state, expected.version), "{expected:?}");
            let title = holding.metadata.of(Element::Title).next().unwrap().value();
            assert_eq!(title, expected.title, "the last metadata stays, also of what was removed");
            assert_eq!(files_of(holdings, &holding.path), expected.files);
            assert_eq!(holding.item.removed.is_some(), expected.state == State::Deleted);
        }
    }
}

fn files_of(holdings: &Holdings, path: &str) -> Files {
    let files = holdings.files(path, "", 1000).unwrap();
    let read = |file: &ibi_archive::store::FileRecord| {
        let mut bytes = Vec::new();
        holdings.open_file(path, file).unwrap().copy_to(&mut bytes).unwrap();
        (String::from_utf8(ibi_archive::store::decode_logical_path(&file.name)).unwrap(), bytes)
    };
    files.iter().map(read).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_archive_does_what_the_model_does(steps in prop::collection::vec(step(), 1..25)) {
        let ours = Ours::new();
        let archive = Some(ours.init());
        let mut model = Model { ours, archive, items: Vec::new(), dropped: Vec::new() };
        for step in steps {
            match step {
                Step::Deposit { files, title, alias, foreign } => model.deposit(files, title, alias, foreign),
                Step::Update { item, files, title } => model.update(item, files, title),
                Step::Remove { item, purge } => model.remove(item, purge),
                Step::Declare { item } => model.declare(item),
                Step::Drop { item } => model.take_out(item),
                Step::Open => model.open(),
                Step::Rebuild { delete } => model.rebuild(delete),
            }
            model.compare();
        }
        model.open();
        model.rebuild(true);
        model.compare();
    }
}

#[test]
fn metadata_that_is_replaced_as_a_whole_is() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = ours.files(&Files::from([("a".to_owned(), b"1".to_vec())]));
    let label = deposit(&mut archive, &path, titled("first")).unwrap();
    let record = DublinCore::parse("creator=Somebody").unwrap();
    let changes = ItemChanges { record: Some(record.clone()), ..ItemChanges::default() };
    let change = archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    archive.commit(vec![change]).pop().unwrap().unwrap();
    assert_eq!(*archive.holdings().find(&label).unwrap().0.metadata, record);
}
