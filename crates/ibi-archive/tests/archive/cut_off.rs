//! Openings after a cut, made by hand (the real binary is killed in `tests/torture`). Clause 2.3:
//! opening redoes whatever comes after the commit point, so that open equals rebuild.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ibi_archive::rebuild::rebuild;
use ibi_archive::store::State;
use ibi_archive::{ArchiveError, ItemChanges};

use crate::ours::{Ours, answers, deposit, titled};

fn some_file(ours: &Ours) -> std::path::PathBuf {
    ours.files(&BTreeMap::from([("a.txt".to_owned(), b"bytes".to_vec())]))
}

/// The index as it was before, as if the last change had not come to it.
fn put_back(data: &Path, index: &[u8]) {
    for name in ["index.sqlite-wal", "index.sqlite-shm"] {
        let _ = fs::remove_file(data.join(name));
    }
    fs::write(data.join("index.sqlite"), index).unwrap();
}

#[test]
fn a_change_that_was_made_and_not_recorded_is_finished() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let label = deposit(&mut archive, &some_file(&ours), titled("kept")).unwrap();
    drop(archive);
    let before = fs::read(ours.data().join("index.sqlite")).unwrap();
    let (mut archive, _) = ours.open();
    let statements = vec!["title=changed".parse().unwrap()];
    let changes = ItemChanges { statements, ..ItemChanges::default() };
    let change = archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    archive.commit(vec![change]).pop().unwrap().unwrap();
    let late = deposit(&mut archive, &some_file(&ours), titled("late")).unwrap();
    let expected = answers(archive.holdings());
    drop(archive);
    put_back(&ours.data(), &before);
    let (archive, found) = ours.open();
    assert_eq!((found.finished, found.undone), (2, 0));
    assert_eq!(answers(archive.holdings()), expected);
    archive.holdings().find(&late).unwrap();
}

#[test]
fn a_change_that_was_journalled_and_not_made_is_undone_for_ever() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let kept = deposit(&mut archive, &some_file(&ours), titled("kept")).unwrap();
    drop(archive);
    let before = fs::read(ours.data().join("index.sqlite")).unwrap();
    let (mut archive, _) = ours.open();
    let expected = answers(archive.holdings());
    let lost = deposit(&mut archive, &some_file(&ours), titled("never published")).unwrap();
    drop(archive);
    // As if the cut had come before the object was put in its place.
    put_back(&ours.data(), &before);
    fs::remove_dir_all(ours.data().join("tree").join(&lost)).unwrap();
    let (archive, found) = ours.open();
    assert_eq!((found.finished, found.undone), (0, 1));
    assert_eq!(answers(archive.holdings()), expected);
    assert!(matches!(archive.holdings().find(&lost), Err(ArchiveError::Unknown { .. })));
    archive.holdings().find(&kept).unwrap();
    drop(archive);
    let rebuilt = rebuild(&ours.data(), "tester", &|_| ()).unwrap();
    assert!(rebuilt.missing.is_empty() && rebuilt.adopted.is_empty());
    let (mut archive, _) = ours.open();
    assert_eq!(answers(archive.holdings()), expected, "open equals rebuild");
    // The label was minted, and is unused: it can be used once.
    let mut draft = titled("published after all");
    draft.labels = vec![lost.clone()];
    assert_eq!(deposit(&mut archive, &some_file(&ours), draft).unwrap(), lost);
    let expected = answers(archive.holdings());
    drop(archive);
    rebuild(&ours.data(), "tester", &|_| ()).unwrap();
    assert_eq!(answers(ours.open().0.holdings()), expected);
}

#[test]
fn what_interrupted_work_left_is_swept_and_told_of() {
    let ours = Ours::new();
    drop(ours.init());
    fs::create_dir_all(ours.data().join("staging/17/content/doc")).unwrap();
    fs::write(ours.data().join("staging/17/content/doc/half"), vec![0; 1000]).unwrap();
    let (_, found) = ours.open();
    assert_eq!((found.swept.stagings, found.swept.bytes), (1, 1000));
    assert_eq!(fs::read_dir(ours.data().join("staging")).unwrap().count(), 0);
}

#[test]
fn an_object_that_other_hands_put_into_the_tree_is_a_copy_until_somebody_declares_it() {
    let [from, to] = [Ours::new(), Ours::new()];
    let mut archive = from.init();
    let label = deposit(&mut archive, &some_file(&from), titled("wandering")).unwrap();
    drop(archive);
    drop(to.init());
    let object = to.data().join("tree").join(&label);
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(from.data().join("tree").join(&label))
        .arg(&object)
        .status();
    assert!(copied.unwrap().success());
    let rebuilt = rebuild(&to.data(), "tester", &|_| ()).unwrap();
    assert_eq!(rebuilt.adopted, std::slice::from_ref(&label));
    let (mut archive, _) = to.open();
    assert_eq!(archive.holdings().find(&label).unwrap().0.state, State::Copy);
    let expected = answers(archive.holdings());
    drop(archive);
    assert!(rebuild(&to.data(), "tester", &|_| ()).unwrap().adopted.is_empty(), "once");
    (archive, _) = to.open();
    assert_eq!(answers(archive.holdings()), expected);
    archive.declare_original(&label, "tester").unwrap();
    let holding = archive.holdings().find(&label).unwrap().0;
    assert_eq!((holding.state, holding.epoch), (State::Original, 2));
}

#[test]
fn rebuilding_tells_what_is_missing_and_what_is_damaged() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let [gone, hurt, _] = ["gone", "hurt", "well"]
        .map(|title| deposit(&mut archive, &some_file(&ours), titled(title)).unwrap());
    drop(archive);
    fs::remove_dir_all(ours.data().join("tree").join(&gone)).unwrap();
    let inventory = ours.data().join("tree").join(&hurt).join("inventory.json");
    let text = fs::read_to_string(&inventory).unwrap();
    fs::write(&inventory, text.replace("\"head\": \"v1\"", "\"head\": \"v2\"")).unwrap();
    let rebuilt = rebuild(&ours.data(), "tester", &|_| ()).unwrap();
    assert_eq!(rebuilt.missing, [gone]);
    assert_eq!(rebuilt.damaged.len(), 1);
    assert_eq!(rebuilt.damaged[0].0, hurt);
    assert_eq!(rebuilt.items, 2, "the service and the one that is well");
}

#[test]
fn an_older_journal_is_refused_until_what_the_index_knows_is_put_back() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let before = fs::read(ours.data().join("journal")).unwrap();
    deposit(&mut archive, &some_file(&ours), titled("late")).unwrap();
    drop(archive);
    let whole = fs::read_to_string(ours.data().join("journal")).unwrap();
    fs::write(ours.data().join("journal"), before).unwrap();
    let error = ibi_archive::opening::open(&ours.data(), "tester").err().unwrap();
    assert!(error.to_string().contains("ibi archive salvage"), "{error}");
    // Clause 2.3: what was acknowledged is not forgotten by making the index anew.
    let error = rebuild(&ours.data(), "tester", &|_| ()).unwrap_err();
    assert!(error.to_string().contains("ibi archive salvage"), "{error}");
    ibi_archive::salvage::salvage(&ours.data(), None, "tester", &|_| ()).unwrap();
    let salvaged = fs::read_to_string(ours.data().join("journal")).unwrap();
    assert_eq!(salvaged.lines().count(), whole.lines().count());
    ours.open();
}
