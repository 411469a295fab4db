//! The journal: what was appended is read, what was cut off is not, and damage is told apart from that.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ibi_store::journal::{Entry, LinkKind, LinkStatement, LinkStatus, Position, State, Told, Verb};
use ibi_store::{Journal, KeepError, Tree};
use proptest::prelude::*;

fn folder() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    Tree::start(data.path(), "").unwrap();
    Journal::start(data.path()).unwrap();
    data
}

fn entry(change: u64, batch: u64, note: &str) -> Entry {
    Entry {
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
        source: None,
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
    }
}

fn read(data: &Path, from: Position) -> Result<(Vec<Told>, ibi_store::journal::Reading), KeepError> {
    let mut told = Vec::new();
    let reading = Journal::read(data, from, &mut |line| {
        told.push(line);
        Ok(())
    })?;
    Ok((told, reading))
}

fn open(data: &Path) -> Journal {
    Journal::open(data, &read(data, Position::START).unwrap().1).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_appended_is_read_again(notes in prop::collection::vec(".{0,20}|[ %=\n\t\u{85}]{0,5}", 1..6)) {
        let data = folder();
        let mut journal = open(data.path());
        let mut all = Vec::new();
        for (at, note) in notes.iter().enumerate() {
            let change = at as u64 + 1;
            let other = Some(note.clone());
            let entry = Entry { source: other.clone(), to: other.clone(), past: other, by: note.clone(), ..entry(change, change, note) };
            journal.append(std::slice::from_ref(&entry)).unwrap();
            all.push(Told::Entry(Box::new(entry)));
        }
        let (told, reading) = read(data.path(), Position::START).unwrap();
        prop_assert_eq!(&told, &all);
        prop_assert_eq!(reading.end, journal.end());
    }

    /// A write that was cut off anywhere leaves the lines before it, and the next write goes on from there.
    #[test]
    fn a_line_that_was_cut_off_is_gone(cut in 1_usize..200, garbage in prop::collection::vec(any::<u8>(), 0..20)) {
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
        let (told, reading) = read(data.path(), Position::START).unwrap();
        prop_assert_eq!(told.len(), 1);
        prop_assert_eq!(reading.end, before);
        let mut journal = Journal::open(data.path(), &reading).unwrap();
        journal.append(&[entry(2, 2, "again")]).unwrap();
        prop_assert_eq!(read(data.path(), Position::START).unwrap().0.len(), 2);
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
    assert!(matches!(read(data.path(), Position::START), Err(KeepError::DamagedJournal { line: 2, .. })));
    // In the last batch, it may be a write whose pages came to the disk out of order.
    fs::write(&path, whole.replace("third", "th1rd")).unwrap();
    assert_eq!(read(data.path(), Position::START).unwrap().0.len(), 2);
    // Lines that are gone from the middle are damage too.
    let without: String =
        whole.lines().filter(|line| !line.contains("second")).map(|line| format!("{line}\n")).collect();
    fs::write(&path, without).unwrap();
    assert!(matches!(read(data.path(), Position::START), Err(KeepError::DamagedJournal { .. })));
}

#[test]
fn the_last_batch_is_what_may_be_void_and_void_lines_say_so() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first")]).unwrap();
    journal.append(&[entry(2, 2, "second"), entry(3, 2, "third")]).unwrap();
    let (_, reading) = read(data.path(), Position::START).unwrap();
    let changes: Vec<u64> = reading.last_batch.iter().map(|entry| entry.change).collect();
    assert_eq!(changes, [2, 3]);
    journal.void("2026-11-15T23:22:14Z", &BTreeSet::from([3])).unwrap();
    let (told, reading) = read(data.path(), Position::START).unwrap();
    assert_eq!(told.last(), Some(&Told::Void(vec![3])));
    let changes: Vec<u64> = reading.last_batch.iter().map(|entry| entry.change).collect();
    assert_eq!(changes, [2]);
}

#[test]
fn a_journal_can_be_followed_from_any_line() {
    let data = folder();
    let mut journal = open(data.path());
    journal.append(&[entry(1, 1, "first")]).unwrap();
    let place = journal.end();
    journal.append(&[entry(2, 2, "second")]).unwrap();
    let (told, _) = read(data.path(), place).unwrap();
    assert_eq!(told, [Told::Entry(Box::new(entry(2, 2, "second")))]);
    fs::write(data.path().join("journal"), "ibi journal, format 1\n").unwrap();
    assert!(matches!(read(data.path(), place), Err(KeepError::JournalBehind { .. })));
    fs::write(data.path().join("journal"), "ibi journal, format 4\n").unwrap();
    assert!(matches!(read(data.path(), Position::START), Err(KeepError::NewerFormat { .. })));
    fs::remove_file(data.path().join("journal")).unwrap();
    assert!(matches!(read(data.path(), Position::START), Err(KeepError::NoJournal { .. })));
}

fn sample(name: &str) -> tempfile::TempDir {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let data = tempfile::tempdir().unwrap();
    fs::copy(sample, data.path().join("journal")).unwrap();
    data
}

fn verbs(told: &[Told]) -> Vec<&str> {
    let names = told.iter().map(|line| match line {
        Told::Entry(entry) => entry.verb.name(),
        Told::Void(_) => "void",
    });
    names.collect()
}

#[test]
fn the_frozen_sample_of_format_1_is_still_read_and_gets_the_title_of_today() {
    let data = sample("journal-1");
    let (told, reading) = read(data.path(), Position::START).unwrap();
    assert_eq!(verbs(&told), ["deposit", "deposit", "deposit", "void", "update", "remove", "declare"]);
    assert_eq!(reading.end.next, 8);
    let journal = Journal::open(data.path(), &reading).unwrap();
    assert!(journal.is_older());
    journal.renew_title().unwrap();
    assert!(!journal.is_older());
    let text = fs::read_to_string(data.path().join("journal")).unwrap();
    assert!(text.starts_with("ibi journal, format 3\n"), "older programs refuse it as newer");
    assert_eq!(read(data.path(), Position::START).unwrap().0, told, "and nothing else differs");
}

#[test]
fn the_frozen_sample_of_format_2_is_still_read() {
    let data = sample("journal-2");
    let (told, _) = read(data.path(), Position::START).unwrap();
    assert_eq!(verbs(&told), ["copy", "refresh", "accept", "repair", "grant", "given", "drop"]);
    let Told::Entry(copy) = &told[0] else { panic!("{told:?}") };
    assert_eq!(copy.source.as_deref(), Some("http://archive.inpe.br"));
    assert!(copy.past.as_deref().is_some_and(|past| past.contains("deposit")));
    let Told::Entry(grant) = &told[4] else { panic!("{told:?}") };
    assert_eq!((grant.to.as_deref(), grant.epoch), (Some("http://archive.library.org.br:8080"), 3));
}

#[test]
fn the_frozen_sample_of_format_3_is_still_read() {
    let data = sample("journal-3");
    let (told, _) = read(data.path(), Position::START).unwrap();
    assert_eq!(verbs(&told), ["deposit", "deposit", "link"]);
    let Told::Entry(entry) = &told[2] else { panic!("{told:?}") };
    assert_eq!(entry.depends_on, Some(2));
    let [link] = &entry.links[..] else { panic!("{entry:?}") };
    assert_eq!((link.kind, link.status, link.counter), (LinkKind::Edition, LinkStatus::Accepted, 1));
    assert_eq!(link.newer_language.as_deref(), Some("en"));
}
