//! The journal: appended lines are read back, torn writes are dropped, and damage is distinguished
//! from them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ibi_store::journal::{
    JournalEntry, JournalLine, JournalPosition, LinkKind, LinkStatement, LinkStatus, State, Verb,
};
use ibi_store::{Journal, OcflTree, StorageError};
use proptest::prelude::*;

fn folder() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    OcflTree::start(data.path(), "").unwrap();
    Journal::start(data.path()).unwrap();
    data
}

fn entry(change: u64, batch: u64, note: &str) -> JournalEntry {
    JournalEntry {
        change,
        batch,
        time: "2026-11-15T23:22:14Z".to_owned(),
        verb: Verb::Deposit,
        path: format!("test/a/2026/01.01.00.{change:02}"),
        version: 1,
        inventory: "0".repeat(32),
        state: State::Original,
        epoch: 1,
        by: "a name".to_owned(),
        owner: Some("5eed0123456789ab".to_owned()),
        source: None,
        source_state: Some(State::Copy),
        to: None,
        past: None,
        key: Some("table:1".to_owned()),
        note: Some(note.to_owned()),
        record: Some(format!("{{\"note\": {note:?}}}")),
        links: vec![link(note)],
        depends_on: Some(change),
    }
}

fn link(note: &str) -> LinkStatement {
    LinkStatement {
        kind: LinkKind::Edition,
        older: "test/a/2026/01.01.00.01".to_owned(),
        newer: "test/a/2026/01.01.00.02".to_owned(),
        status: LinkStatus::Withdrawn,
        counter: 7,
        older_labels: vec!["test/a/2026/01.01.00.01".to_owned()],
        newer_labels: vec![note.to_owned()],
        older_language: None,
        newer_language: Some("pt-BR".to_owned()),
        created: "2026-11-15T23:22:14Z".to_owned(),
        removed: true,
        unstated: true,
        archive: Some("test/b/2026/01.01.00.00".to_owned()),
        decided_by: Some("test/c/2026/01.01.00.00".to_owned()),
        receipt: Some("00".to_owned()),
        told_with: Some("test/a/2026/01.01.00.02".to_owned()),
    }
}

fn read(
    data: &Path,
    from: JournalPosition,
) -> Result<(Vec<JournalLine>, ibi_store::journal::JournalReadSummary), StorageError> {
    let mut told = Vec::new();
    let reading = Journal::read(data, from, &mut |line| {
        told.push(line);
        Ok(())
    })?;
    Ok((told, reading))
}

fn open(data: &Path) -> Journal {
    Journal::open(data, &read(data, JournalPosition::START).unwrap().1).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn appended_lines_are_read_back(notes in prop::collection::vec(".{0,20}|[ %=\n\t\u{85}]{0,5}", 1..6)) {
        let data = folder();
        let mut journal = open(data.path());
        let mut all = Vec::new();
        for (at, note) in notes.iter().enumerate() {
            let change = at as u64 + 1;
            let other = Some(note.clone());
            let entry = JournalEntry { source: other.clone(), to: other.clone(), past: other, by: note.clone(), ..entry(change, change, note) };
            journal.append(std::slice::from_ref(&entry)).unwrap();
            all.push(JournalLine::Entry(Box::new(entry)));
        }
        let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
        prop_assert_eq!(&told, &all);
        prop_assert_eq!(reading.end, journal.end());
    }

    /// A write torn at any byte leaves the lines before it, and the next write continues there.
    #[test]
    fn a_torn_line_is_dropped(cut in 1_usize..200, garbage in prop_oneof![prop::collection::vec(11..=u8::MAX, 0..20), prop::collection::vec(Just(0), 1100)]) {
        let data = folder();
        let mut journal = open(data.path());
        journal.append(&[entry(1, 1, "first")]).unwrap();
        let before = journal.end();
        journal.append(&[entry(2, 2, "second")]).unwrap();
        drop(journal);
        let path = data.path().join("journal");
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(bytes.len().saturating_sub(cut).max(before.place as usize));
        bytes.extend(garbage);
        fs::write(&path, bytes).unwrap();
        let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
        prop_assert_eq!(told.len(), 1);
        prop_assert_eq!(reading.end, before);
        let mut journal = Journal::open(data.path(), &reading).unwrap();
        journal.append(&[entry(2, 2, "again")]).unwrap();
        prop_assert_eq!(read(data.path(), JournalPosition::START).unwrap().0.len(), 2);
    }
}

#[test]
fn damage_before_a_later_batch_is_not_taken_for_a_cut() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first"), entry(2, 1, "second")]).unwrap();
    journal.append(&[entry(3, 3, "third")]).unwrap();
    let path = data.path().join("journal");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("second", "sec0nd")).unwrap();
    assert!(matches!(
        read(data.path(), JournalPosition::START),
        Err(StorageError::DamagedJournal { line: 2, .. })
    ));
    // A last line with its newline was written completely: it may have been acknowledged.
    fs::write(&path, whole.replace("third", "th1rd")).unwrap();
    assert!(matches!(
        read(data.path(), JournalPosition::START),
        Err(StorageError::DamagedJournal { line: 3, .. })
    ));
    // Pages of the last write that did not reach the disk read as zeros.
    let zeros = "\0".repeat(512);
    let start = whole.find("3 2026").unwrap();
    let hole = start.next_multiple_of(512);
    let mut torn = whole.clone();
    torn.replace_range(start.., &format!("{}{zeros}{}", "x".repeat(hole - start), "the rest\n"));
    fs::write(&path, torn).unwrap();
    assert_eq!(read(data.path(), JournalPosition::START).unwrap().0.len(), 2);
    // Lines missing in the middle are damage too.
    let without: String =
        whole.lines().filter(|line| !line.contains("second")).map(|line| format!("{line}\n")).collect();
    fs::write(&path, without).unwrap();
    assert!(matches!(read(data.path(), JournalPosition::START), Err(StorageError::DamagedJournal { .. })));
}

/// Clause 2.3: a flipped bit in any byte of any line never loses lines silently.
#[test]
fn no_flipped_bit_is_taken_for_a_cut() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first"), entry(2, 1, "Second *")]).unwrap();
    journal.append(&[entry(3, 3, "third"), entry(4, 3, "Last Joker")]).unwrap();
    let path = data.path().join("journal");
    let whole = fs::read(&path).unwrap();
    let title = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in 0..whole.len() {
        for bit in [0, at % 8, 5, 6] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            fs::write(&path, &damaged).unwrap();
            let read = read(data.path(), JournalPosition::START);
            match read {
                // The title of an older format differs in one bit.
                Ok((lines, _)) => assert!(at < title && lines.len() == 4, "byte {at}, bit {bit}"),
                Err(StorageError::DamagedJournal { .. }) => {}
                Err(StorageError::NewerFormat { .. }) => assert!(at < title),
                Err(error) => panic!("byte {at}, bit {bit}: {error}"),
            }
        }
    }
}

#[test]
fn the_last_batch_may_be_void_and_void_lines_are_recorded() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first")]).unwrap();
    journal.append(&[entry(2, 2, "second"), entry(3, 2, "third")]).unwrap();
    let (_, reading) = read(data.path(), JournalPosition::START).unwrap();
    let changes: Vec<u64> = reading.last_batch.iter().map(|entry| entry.change).collect();
    assert_eq!(changes, [2, 3]);
    journal.void("2026-11-15T23:22:14Z", &BTreeSet::from([3])).unwrap();
    let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
    assert_eq!(told.last(), Some(&JournalLine::Void(vec![3])));
    let changes: Vec<u64> = reading.last_batch.iter().map(|entry| entry.change).collect();
    assert_eq!(changes, [2]);
}

#[test]
fn a_journal_can_be_read_from_any_line() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first")]).unwrap();
    let place = journal.end();
    journal.append(&[entry(2, 2, "second")]).unwrap();
    let (told, _) = read(data.path(), place).unwrap();
    assert_eq!(told, [JournalLine::Entry(Box::new(entry(2, 2, "second")))]);
    fs::write(data.path().join("journal"), "ibi journal, format 1\n").unwrap();
    assert!(matches!(read(data.path(), place), Err(StorageError::JournalBehind { .. })));
    fs::write(data.path().join("journal"), "ibi journal, format 6\n").unwrap();
    assert!(matches!(read(data.path(), JournalPosition::START), Err(StorageError::NewerFormat { .. })));
    fs::remove_file(data.path().join("journal")).unwrap();
    assert!(matches!(read(data.path(), JournalPosition::START), Err(StorageError::NoJournal { .. })));
}

fn sample(name: &str) -> tempfile::TempDir {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let data = tempfile::tempdir().unwrap();
    fs::copy(sample, data.path().join("journal")).unwrap();
    data
}

fn verbs(told: &[JournalLine]) -> Vec<&str> {
    let names = told.iter().map(|line| match line {
        JournalLine::Entry(entry) => entry.verb.name(),
        JournalLine::Void(_) => "void",
    });
    names.collect()
}

#[test]
fn the_frozen_sample_of_format_1_is_still_read_and_gets_the_title_of_today() {
    let data = sample("journal-1");
    let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
    assert_eq!(verbs(&told), ["deposit", "deposit", "deposit", "void", "update", "remove", "declare"]);
    assert_eq!(reading.end.next, 8);
    let journal = Journal::open(data.path(), &reading).unwrap();
    assert!(journal.has_older_title() && journal.is_older_than_links());
    journal.write_current_title().unwrap();
    assert!(!journal.has_older_title());
    let text = fs::read_to_string(data.path().join("journal")).unwrap();
    assert!(text.starts_with("ibi journal, format 5\n"), "older programs refuse it as newer");
    assert_eq!(read(data.path(), JournalPosition::START).unwrap().0, told, "and nothing else differs");
}

#[test]
fn the_frozen_sample_of_format_2_is_still_read() {
    let data = sample("journal-2");
    let (told, _) = read(data.path(), JournalPosition::START).unwrap();
    assert_eq!(verbs(&told), ["copy", "refresh", "accept", "repair", "grant", "given", "drop"]);
    let JournalLine::Entry(copy) = &told[0] else { panic!("{told:?}") };
    assert_eq!(copy.source.as_deref(), Some("http://archive.inpe.br"));
    assert!(copy.past.as_deref().is_some_and(|past| past.contains("deposit")));
    let JournalLine::Entry(grant) = &told[4] else { panic!("{told:?}") };
    assert_eq!((grant.to.as_deref(), grant.epoch), (Some("http://archive.library.org.br:8080"), 3));
}

#[test]
fn the_frozen_sample_of_format_3_is_still_read() {
    let data = sample("journal-3");
    let (told, _) = read(data.path(), JournalPosition::START).unwrap();
    assert_eq!(verbs(&told), ["deposit", "deposit", "link"]);
    let JournalLine::Entry(entry) = &told[2] else { panic!("{told:?}") };
    assert_eq!(entry.depends_on, Some(2));
    let [link] = &entry.links[..] else { panic!("{entry:?}") };
    assert_eq!((link.kind, link.status, link.counter), (LinkKind::Edition, LinkStatus::Accepted, 1));
    assert_eq!(link.newer_language.as_deref(), Some("en"));
}

/// Items are owned by ids, not by names.
#[test]
fn the_frozen_sample_of_format_4_is_still_read() {
    let data = sample("journal-4");
    let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
    let owners = told.iter().map(|line| match line {
        JournalLine::Entry(entry) => (entry.by.as_str(), entry.owner.as_deref()),
        JournalLine::Void(_) => panic!("{line:?}"),
    });
    let expected = [
        ("root", Some("operator")),
        ("Ana Maria", Some("5eed0123456789ab")),
        ("Ana Maria", Some("5eed0123456789ab")),
        ("root", None),
    ];
    assert_eq!(owners.collect::<Vec<_>>(), expected);
    let older = Journal::open(data.path(), &reading).unwrap();
    assert!(older.has_older_title() && !older.is_older_than_links());
}

/// The state that a Copy's source reported, and unconfirmed statements.
#[test]
fn the_frozen_sample_of_format_5_is_still_read() {
    let data = sample("journal-5");
    let (told, reading) = read(data.path(), JournalPosition::START).unwrap();
    let [JournalLine::Entry(first), JournalLine::Entry(second)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((first.source_state, second.source_state), (Some(State::Original), Some(State::Copy)));
    let [link] = &second.links[..] else { panic!("{second:?}") };
    assert_eq!(link.told_with.as_deref(), Some("inpe.br/smp/2026/11.17.09.02"));
    let journal = Journal::open(data.path(), &reading).unwrap();
    assert!(!journal.has_older_title() && !journal.is_older_than_links());
}
