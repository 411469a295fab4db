mod claims;
mod hostile_pages;

use ibi_protocol::Verbs;
use ibi_protocol::location::LocationTarget;

use super::*;
use crate::archive::ArchivePlatform;
use crate::archive::RegistrationStatus;

const ITEM: &str = "library.org.br/archive/2026/11.16.08.05";
const OPAQUE: &str = "8JMKD3MGP8W/34PGRBS";
const NOW: i64 = 1_800_000_000;

fn record(path: &str, labels: &[&str], state: State) -> LocationRecord {
    let texts = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>();
    LocationRecord {
        path: path.to_owned(),
        labels: texts(labels),
        metadata: vec![format!("{}.01", labels[0])],
        aliases: Vec::new(),
        state,
        epoch: 1,
        ask: false,
        target: LocationTarget::File("a%20b.pdf".to_owned()),
        files: Some(vec!["a%20b.pdf".to_owned()]),
        data_time: "2026-11-16T08:05:00Z".to_owned(),
        metadata_time: None,
        language: None,
        metadata_languages: Vec::new(),
        next_edition: Vec::new(),
        translations: Vec::new(),
        inventories: vec!["one".to_owned()],
    }
}

fn page(next: &str, records: Vec<LocationRecord>) -> LocationPage {
    LocationPage { next: next.to_owned(), records, ..LocationPage::default() }
}

fn archive(id: u64) -> RegisteredArchive {
    RegisteredArchive {
        id: ArchiveId(id),
        service: format!("library.org.br/archive/2026/11.16.08.0{id}").parse().unwrap(),
        address: Some(format!("a{id}.org.br")),
        hosts: Vec::new(),
        standing: RegistrationStatus::OnLine,
        registered: 0,
        changed: 0,
        email: None,
        platform: ArchivePlatform::default(),
    }
}

fn query(label: &str, modifiers: &str) -> RoundQuery {
    let mut query = RoundQuery::new(label.parse().unwrap());
    query.verbs =
        Verbs { relation: ibi_protocol::Relation::from_modifiers(modifiers).unwrap(), ..Verbs::default() };
    query
}

fn reply(index: &LocationIndex, id: u64, query: &RoundQuery) -> IndexReply {
    index.reply(&index.find(query).unwrap(), &archive(id), query).unwrap()
}

fn open() -> (tempfile::TempDir, LocationIndex) {
    let folder = tempfile::tempdir().unwrap();
    let index = LocationIndex::open(folder.path()).unwrap();
    (folder, index)
}

#[test]
fn clause_4_4_an_item_is_found_by_its_labels_until_it_is_gone() {
    let (folder, index) = open();
    let id = ArchiveId(1);
    index.apply(id, &page("1-x", vec![record(ITEM, &[ITEM, OPAQUE], State::Original)]), NOW).unwrap();
    for label in [ITEM, OPAQUE] {
        let found = index.locate(&label.parse::<Label>().unwrap()).unwrap().unwrap();
        assert_eq!(found.path, format!("/col/{ITEM}/doc/a%20b.pdf"));
        assert_eq!((found.archive, found.state), (id, State::Original));
    }
    let IndexReply::Answer(pairs) = reply(&index, 1, &query(OPAQUE, ":")) else { panic!() };
    assert_eq!(pairs.get("url.metadata"), Some(&*format!("http://a1.org.br/col/{ITEM}.01/")));
    assert!(matches!(reply(&index, 2, &query(ITEM, "")), IndexReply::Nothing));
    let other = "library.org.br/archive/2026/11.16.08.05.00";
    assert!(
        matches!(reply(&index, 1, &query(other, "")), IndexReply::Ask),
        "clause 1.3: another spelling is for the Archive"
    );
    drop(index);
    let index = LocationIndex::open(folder.path()).unwrap();
    assert_eq!(index.followed_record(id).unwrap().position, "1-x", "it survives");
    let gone = LocationPage { gone: vec![ITEM.to_owned()], ..page("2-x", Vec::new()) };
    index.apply(id, &gone, NOW).unwrap();
    assert_eq!(index.label_count().unwrap(), 0);
    assert_eq!(index.followed_record(id).unwrap().items, 0);
}

#[test]
fn a_record_that_changes_leaves_nothing_behind() {
    let (_folder, index) = open();
    let id = ArchiveId(1);
    let aliased = LocationRecord {
        aliases: vec!["a.br/b/2009/02.16.17.46".to_owned()],
        ..record(ITEM, &[ITEM], State::Original)
    };
    index.apply(id, &page("1", vec![aliased]), NOW).unwrap();
    let IndexReply::Answer(pairs) = reply(&index, 1, &query("a.br/b/2009/02.16.17.46", "")) else { panic!() };
    assert_eq!(pairs.get("ibi.alias"), Some("a.br/b/2009/02.16.17.46"));
    let closed = LocationRecord { ask: true, ..record(ITEM, &[ITEM], State::Original) };
    index.apply(id, &page("2", vec![closed]), NOW).unwrap();
    assert!(index.locate(&"a.br/b/2009/02.16.17.46".parse::<Label>().unwrap()).unwrap().is_none());
    assert!(index.locate(&ITEM.parse::<Label>().unwrap()).unwrap().is_none(), "closed: the Archive is asked");
    assert!(matches!(reply(&index, 1, &query(ITEM, "")), IndexReply::Ask));
    assert!(matches!(reply(&index, 1, &query(ITEM, ":")), IndexReply::Answer(_)), "metadata are open");
    let restarted = LocationPage { restart: true, ..page("1", Vec::new()) };
    index.apply(id, &restarted, NOW).unwrap();
    assert_eq!(index.label_count().unwrap(), 0);
}

#[test]
fn clause_4_4_who_is_known_to_hold_the_original_keeps_the_readers() {
    let (_folder, index) = open();
    let claim = || record(ITEM, &[ITEM], State::Original);
    index.apply(ArchiveId(1), &page("1", vec![claim()]), NOW).unwrap();
    let late = index.apply(ArchiveId(2), &page("1", vec![claim()]), NOW + 7 * 86_400).unwrap();
    assert_eq!(late.disputed, [ITEM], "the alert needs nobody to ask");
    assert!(matches!(reply(&index, 1, &query(ITEM, "")), IndexReply::Answer(_)));
    let later = || reply(&index, 2, &query(ITEM, ""));
    assert!(matches!(later(), IndexReply::Unsettled), "the holder may have handed it over meanwhile");
    index.confirm(ArchiveId(1), Instant::now(), false);
    assert!(matches!(later(), IndexReply::Nothing));
    assert!(index.locate(&ITEM.parse::<Label>().unwrap()).unwrap().is_none(), "the rules decide");
    // An update of the known holder's does not make its claim a new one.
    index.apply(ArchiveId(1), &page("2", vec![claim()]), NOW + 9 * 86_400).unwrap();
    assert!(matches!(reply(&index, 1, &query(ITEM, "")), IndexReply::Answer(_)));
    // Its operator retired it: the other one is believed.
    let asked = query(ITEM, "");
    let mut found = index.find(&asked).unwrap();
    found.retain_archives(|id| id != ArchiveId(1));
    assert!(matches!(index.reply(&found, &archive(2), &asked).unwrap(), IndexReply::Answer(_)));
    // Handed over: it says Copy.
    index.apply(ArchiveId(1), &page("3", vec![record(ITEM, &[ITEM], State::Copy)]), NOW).unwrap();
    assert!(matches!(reply(&index, 2, &query(ITEM, "")), IndexReply::Answer(_)));
}

#[test]
fn clause_4_4_a_copy_of_no_version_of_the_original_is_no_answer() {
    let (_folder, index) = open();
    let original = LocationRecord {
        inventories: vec!["one".to_owned(), "two".to_owned()],
        ..record(ITEM, &[ITEM], State::Original)
    };
    index.apply(ArchiveId(1), &page("1", vec![original]), NOW).unwrap();
    let copy = |inventory: &str| LocationRecord {
        inventories: vec![inventory.to_owned()],
        ..record(ITEM, &[ITEM], State::Copy)
    };
    index.apply(ArchiveId(2), &page("1", vec![copy("one")]), NOW).unwrap();
    assert!(matches!(reply(&index, 2, &query(ITEM, "")), IndexReply::Answer(_)), "merely behind");
    index.apply(ArchiveId(2), &page("2", vec![copy("forged")]), NOW).unwrap();
    assert!(matches!(reply(&index, 2, &query(ITEM, "")), IndexReply::Nothing));
}

/// 4.4: such a Copy is suspect when either of the two feeds reports it, and counts once the Archive
/// of the Original was heard from.
#[tokio::test(start_paused = true)]
async fn clause_4_4_a_copy_of_no_version_of_the_original_is_suspect() {
    let (_folder, index) = open();
    let versions = |state: State, inventories: &[&str]| LocationRecord {
        inventories: inventories.iter().map(|&text| text.to_owned()).collect(),
        ..record(ITEM, &[ITEM, OPAQUE], state)
    };
    let apply = |id: u64, record: LocationRecord| {
        index.apply(ArchiveId(id), &page("1", vec![record]), NOW).unwrap().copies
    };
    let suspect = SuspectCopy { label: ITEM.to_owned(), original: ArchiveId(1), copy: ArchiveId(2) };
    // The feed of the copy may be ahead.
    assert_eq!(apply(1, versions(State::Original, &["one"])), []);
    assert_eq!(apply(2, versions(State::Copy, &["one", "two"])), std::slice::from_ref(&suspect));
    assert_eq!(index.judge_copy(&suspect).unwrap(), CopyVerdict::Unknown);
    tokio::time::advance(Duration::from_secs(5)).await;
    index.confirm(ArchiveId(1), Instant::now(), false);
    assert_eq!(index.judge_copy(&suspect).unwrap(), CopyVerdict::Differs);
    assert_eq!(apply(1, versions(State::Original, &["one", "two"])), []);
    assert_eq!(index.judge_copy(&suspect).unwrap(), CopyVerdict::Fits);
    // Another spelling is another item (1.3), whoever has it.
    let other = "library.org.br/archive/2026/11.16.08.05.00";
    for (id, state) in [(1, State::Copy), (3, State::Copy), (3, State::Original)] {
        assert_eq!(
            apply(id, LocationRecord { inventories: vec!["x".to_owned()], ..record(other, &[other], state) }),
            []
        );
    }
    assert!(matches!(reply(&index, 2, &query(ITEM, "")), IndexReply::Answer(_)));
    // The Original's own report may be what makes a copy a foreign one.
    assert_eq!(apply(1, versions(State::Original, &["three"])), std::slice::from_ref(&suspect));
    assert_eq!(index.judge_copy(&suspect).unwrap(), CopyVerdict::Differs);
    let gone = LocationPage { gone: vec![ITEM.to_owned()], ..page("2", Vec::new()) };
    index.apply(ArchiveId(2), &gone, NOW).unwrap();
    assert_eq!(index.judge_copy(&suspect).unwrap(), CopyVerdict::Fits);
}

/// Counts of labels and bytes stay exact through changes and removals.
#[tokio::test(start_paused = true)]
async fn the_state_of_the_index_is_told() {
    let (_folder, index) = open();
    let archives = [archive(1), archive(2)];
    let state = || index.status(archives.iter()).unwrap();
    assert_eq!((state().archives.len(), state().labels, state().archives[0].followed), (2, 0, false));
    index.set_token(ArchiveId(1), "token").unwrap();
    let two = vec![
        record(ITEM, &[ITEM, OPAQUE], State::Original),
        record("a.br/b/2009/02.16.17.46", &["a.br/b/2009/02.16.17.46"], State::Original),
    ];
    index.apply(ArchiveId(1), &page("7-3f1c", two), NOW).unwrap();
    let told = state().archives[0].clone();
    assert_eq!((told.items, told.labels, state().labels, told.followed), (2, 5, 5, true));
    assert_eq!((told.position.as_deref(), told.sequence), (Some("7-3f1c"), Some(7)));
    assert_eq!((told.current, told.age_seconds, state().archives[1].items), (false, None, 0));
    assert!(told.bytes > 500 && state().bytes > told.bytes, "{told:?}");
    // The same again takes the same.
    index.apply(ArchiveId(1), &page("8", vec![record(ITEM, &[ITEM, OPAQUE], State::Original)]), NOW).unwrap();
    assert_eq!((state().archives[0].bytes, state().archives[0].labels), (told.bytes, 5));
    tokio::time::advance(Duration::from_secs(5)).await;
    index.confirm(ArchiveId(1), Instant::now(), false);
    tokio::time::advance(Duration::from_millis(1250)).await;
    assert_eq!((state().archives[0].current, state().archives[0].age_seconds), (true, Some(1.25)));
    // Its feed fails: the age grows on.
    index.doubt(ArchiveId(1));
    index.record_feed_result(ArchiveId(1), Some("it answered 500"));
    tokio::time::advance(Duration::from_secs(60)).await;
    let told = state().archives[0].clone();
    assert_eq!((told.current, told.age_seconds), (false, Some(61.25)));
    assert_eq!(told.error.as_deref(), Some("it answered 500"));
    let gone = vec![ITEM.to_owned(), "a.br/b/2009/02.16.17.46".to_owned()];
    index.apply(ArchiveId(1), &LocationPage { gone, ..page("9", Vec::new()) }, NOW).unwrap();
    let told = state().archives[0].clone();
    assert_eq!((told.items, told.labels, told.bytes, state().labels), (0, 0, 0, 0));
}

#[test]
fn what_the_index_cannot_hold_is_asked() {
    let (_folder, index) = open();
    let long = format!("library.org.br/{}/2026/11.16.08.05", "a".repeat(500));
    for odd in [record(&long, &[ITEM], State::Original), record("x", &["no label"], State::Original)] {
        assert!(index.apply(ArchiveId(1), &page("1", vec![odd]), NOW).unwrap().is_unfit);
    }
    let unsafe_target = LocationRecord {
        target: LocationTarget::File("x\r\nSet-Cookie: a".to_owned()),
        ..record(ITEM, &[ITEM], State::Original)
    };
    assert!(index.apply(ArchiveId(2), &page("1", vec![unsafe_target]), NOW).unwrap().is_unfit);
    assert_eq!(index.label_count().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_was_not_heard_from_is_asked() {
    let (_folder, index) = open();
    let id = ArchiveId(1);
    let age = || index.age(&index.followed(id));
    assert_eq!(age(), None, "never heard from");
    tokio::time::advance(Duration::from_secs(5)).await;
    index.confirm(id, Instant::now(), false);
    assert_eq!(age(), Some(Duration::ZERO));
    tokio::time::advance(MAX_INDEX_AGE).await;
    assert_eq!(age(), Some(MAX_INDEX_AGE));
    tokio::time::advance(Duration::from_millis(2)).await;
    assert_eq!(age(), None, "too old");
    index.confirm(id, Instant::now(), true);
    assert_eq!(age(), None, "restored: it wants to be asked");
    index.confirm(id, Instant::now(), false);
    index.doubt(id);
    assert_eq!(age(), None);
}
