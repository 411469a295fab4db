//! `ibi archive import`: trees of uniform repositories become items (000 §4, 001 §5).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::{OAI, UTILITIES, record, write};
use crate::binary::Run;
use crate::online::Folder;

const METADATA: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.13.23.47";

fn import(folder: &Folder, tree: &Path, more: &[&str]) -> Run {
    folder.archive("import", &[&[&*tree.display().to_string()], more].concat())
}

/// The result for each place of the tree.
fn statuses(run: &Run) -> BTreeMap<String, String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    run.json().iter().map(|line| (text(line, "place"), text(line, "status"))).collect()
}

fn tree_of_the_founding_documents(root: &Path) {
    write(root, &format!("{UTILITIES}/doc/utilities1.tcl"), b"proc x {} {}");
    write(root, &format!("{UTILITIES}/service/history"), b"");
    write(root, &format!("{OAI}/doc/cgi/oai.tcl"), b"source");
    write(root, &format!("{METADATA}/doc/metadata.cgi"), b"#!/usr/bin/tclsh");
    let xml = record("Utilities", &format!("http://urlib.net/rep/{UTILITIES}"));
    write(root, &format!("{METADATA}/doc/oai_dc.xml"), xml.as_bytes());
    write(root, "8JMKD3MGP8W/35MMLL8/doc/index.html", b"<p>");
    write(root, "83LX3pFwXQZeBBx/hwiTk/doc/a.pdf", b"%PDF");
}

#[test]
fn a_tree_becomes_items_with_their_labels_and_nothing_is_doubled() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    tree_of_the_founding_documents(&tree);
    let items = [UTILITIES, OAI, "8JMKD3MGP8W/35MMLL8", "83LX3pFwXQZeBBx/hwiTk"];
    let all = |status: &str| items.map(|item| (item.to_owned(), status.to_owned())).into_iter().collect();
    let before = folder.archive("list", &[]).stdout;
    let dry = import(&folder, &tree, &["--dry-run"]);
    assert_eq!((dry.status, statuses(&dry)), (0, all("possible")), "{}", dry.stderr);
    assert_eq!(folder.archive("list", &[]).stdout, before, "a dry run changes nothing");
    let run = import(&folder, &tree, &[]);
    assert_eq!((run.status, statuses(&run)), (0, all("imported")), "{}", run.stderr);
    let again = import(&folder, &tree, &[]);
    assert_eq!((again.status, statuses(&again)), (0, all("already")));
    let line = run.json().into_iter().find(|line| line["place"] == UTILITIES).unwrap();
    assert_eq!((&line["metadata"], &line["left_out"]), (&json!(METADATA), &json!(["service"])));
    let item = folder.archive("show", &[UTILITIES]).json().remove(0);
    assert_eq!((&item["state"], &item["created"]), (&json!("Copy"), &json!("1998-08-02T08:56:00Z")));
    assert_eq!((&item["metadata"]["rep"], &item["language"]), (&json!(METADATA), &json!("pt")), "{item}");
    let found = folder.archive("show", &[METADATA]).json().remove(0);
    assert_eq!(found["describes"], UTILITIES, "{found}");
    // More of the tree arrives later: only that is imported.
    write(&tree, "dpi.inpe.br/banon/1999/01.02.03.04/doc/x", b"new");
    let more = statuses(&import(&folder, &tree, &[]));
    assert_eq!(more.values().filter(|status| *status == "imported").count(), 1, "{more:?}");
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Clause 1.3: two repositories that are one identifier in two spellings are both kept.
#[test]
fn repositories_spelled_apart_are_both_brought_in_and_then_already_there() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    let both = ["x.org/w@80/1998/08.02.08.56", "x.org/w/1998/08.02.08.56.00"];
    both.iter().for_each(|label| write(&tree, &format!("{label}/doc/a"), label.as_bytes()));
    let all = |status: &str| both.map(|item| (item.to_owned(), status.to_owned())).into_iter().collect();
    assert_eq!(statuses(&import(&folder, &tree, &[])), all("imported"));
    assert_eq!(statuses(&import(&folder, &tree, &[])), all("already"));
    // The same item in another spelling elsewhere is not a second one.
    let other = folder.place.path().join("other");
    write(&other, "x.org/w/1998/08.02.08.56/doc/a", b"x");
    let run = import(&folder, &other, &[]);
    assert_eq!(run.json()[0]["status"], "refused", "{}: which of the two it is cannot be told", run.stdout);
}

#[test]
fn hostile_trees_are_told_of_line_by_line() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    tree_of_the_founding_documents(&tree);
    symlink("/", tree.join("root")).unwrap();
    symlink("../..", tree.join("dpi.inpe.br/loop")).unwrap();
    write(&tree, "a.br/b/2001/01.01.00.00/doc/file", b"x");
    symlink("/etc/passwd", tree.join("a.br/b/2001/01.01.00.00/doc/link")).unwrap();
    fs::create_dir_all(tree.join("a.br/b/2001/01.01.00.01")).unwrap();
    symlink("/etc", tree.join("a.br/b/2001/01.01.00.01/doc")).unwrap();
    fs::create_dir_all(tree.join("a.br/b/2001/01.01.00.02")).unwrap();
    fs::create_dir_all(tree.join("a.br/b/2001/99.99.00.02/doc")).unwrap();
    fs::create_dir_all(tree.join("a.br/b/2001/01.01.00.03/doc")).unwrap();
    fs::create_dir_all(tree.join(OsStr::from_bytes(b"a.br/b/\xff"))).unwrap();
    let pipe = tree.join("a.br/b/2001/01.01.00.04/doc/pipe");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    write(&tree, "a.br/b/2001/01.01.00.05/doc/metadata.cgi", b"#!/bin/sh\ntouch /tmp/ran");
    let orphan = record("x", "a.br/c/1999/09.09.09.09");
    write(&tree, "a.br/b/2001/01.01.00.06/doc/oai_dc.xml", orphan.as_bytes());
    let second = record("second", UTILITIES);
    write(&tree, "z.br/b/2001/01.01.00.07/doc/oai_dc.xml", second.as_bytes());
    write(&tree, "a.br/b/2001/01.01.00.08/doc/broken.xml", b"<oai_dc:dc");
    write(&tree, "stray", b"");
    let run = import(&folder, &tree, &[]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    let statuses = statuses(&run);
    let status = |place: &str| statuses.get(place).map_or("nothing", String::as_str);
    for (place, expected) in [
        ("root", "skipped"),
        ("dpi.inpe.br/loop", "skipped"),
        ("a.br/b/2001/01.01.00.00", "refused"),
        ("a.br/b/2001/01.01.00.01", "refused"),
        ("a.br/b/2001/01.01.00.02", "skipped"),
        ("a.br/b/2001/99.99.00.02", "refused"),
        ("a.br/b/2001/01.01.00.03", "imported"),
        ("a.br/b/\u{fffd}", "skipped"),
        ("a.br/b/2001/01.01.00.04", "refused"),
        ("a.br/b/2001/01.01.00.05", "refused"),
        ("a.br/b/2001/01.01.00.06", "refused"),
        ("z.br/b/2001/01.01.00.07", "refused"),
        ("a.br/b/2001/01.01.00.08", "imported"),
        (UTILITIES, "imported"),
        (OAI, "imported"),
    ] {
        assert_eq!(status(place), expected, "{place}: {}", run.stdout);
    }
    assert!(
        run.json().iter().filter(|line| line["status"] == "refused").all(|line| line["reason"].is_string())
    );
    assert!(run.stderr.contains("1 file outside of repositories"), "{}", run.stderr);
    // A record without files is an item, too (clause 2.2).
    let empty = folder.archive("show", &["a.br/b/2001/01.01.00.03"]).json().remove(0);
    assert_eq!(empty["files"], json!([]), "{empty}");
    // Unreadable places are reported, unless the tests run as a user who can read everything.
    let closed = tree.join("a.br");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&closed).is_err() {
        let lines = import(&folder, &tree, &[]);
        assert_eq!(statuses_of(&lines, "a.br"), Some("refused".to_owned()));
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    let missing = import(&folder, &folder.place.path().join("nowhere"), &[]);
    assert_eq!(missing.status, 3, "{}", missing.stderr);
    let own = import(&folder, &folder.data().join("tree"), &[]);
    assert!(own.json().iter().all(|line| line["status"] != "imported"), "{}", own.stdout);
}

fn statuses_of(run: &Run, place: &str) -> Option<String> {
    statuses(run).remove(place)
}

#[test]
fn originals_need_a_resolver_to_ask() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    tree_of_the_founding_documents(&tree);
    assert_eq!(import(&folder, &tree, &["--original"]).status, 2);
    // An unreachable resolver confirms nothing: nothing is declared.
    let run = import(&folder, &tree, &["--original", "--resolver", "http://127.0.0.1:1"]);
    assert_eq!(run.status, 1);
    assert!(run.json().iter().all(|line| line["status"] == "refused"), "{}", run.stdout);
}

/// Killed repeatedly and rerun: everything is imported, and nothing twice.
#[test]
fn a_killed_import_is_resumed() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    let labels: Vec<String> =
        (0..400).map(|number| format!("a.br/b/{:04}/01.01.00.00", 1600 + number)).collect();
    for label in &labels {
        write(&tree, &format!("{label}/doc/file"), label.as_bytes());
    }
    let (data, place) = (folder.data().display().to_string(), tree.display().to_string());
    for round in 0..6 {
        let mut child = std::process::Command::new(crate::binary::IBI)
            .args(["archive", "import", &place, "--data", &data])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60 + 90 * round));
        let _ = child.kill();
        let _ = child.wait();
    }
    let run = import(&folder, &tree, &[]);
    assert_eq!((run.status, statuses(&run).len()), (0, labels.len()), "{}", run.stderr);
    let listed = folder.archive("list", &[]).json();
    assert_eq!(listed.len(), labels.len() + 1, "and the service");
    let mut found: Vec<&str> = listed.iter().map(|item| item["rep"].as_str().unwrap()).collect();
    found.retain(|rep| rep.starts_with("a.br/"));
    found.sort_unstable();
    assert_eq!(found, labels);
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Clause 2.2: metadata that arrive after their item are applied, and nothing is reported that is
/// not here.
#[test]
fn metadata_that_come_later_are_taken_over() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    write(&tree, &format!("{UTILITIES}/doc/a"), b"one");
    write(&tree, &format!("{OAI}/doc/a"), b"two");
    assert_eq!(import(&folder, &tree, &[]).status, 0);
    let before = folder.archive("show", &[UTILITIES]).json().remove(0);
    write(&tree, &format!("{METADATA}/doc/oai_dc.xml"), record("Utilities", UTILITIES).as_bytes());
    let dry = import(&folder, &tree, &["--dry-run"]);
    assert_eq!(statuses_of(&dry, UTILITIES).as_deref(), Some("possible"));
    let run = import(&folder, &tree, &[]);
    assert_eq!(
        (run.status, statuses_of(&run, UTILITIES).as_deref()),
        (0, Some("described")),
        "{}",
        run.stdout
    );
    let line = run.json().into_iter().find(|line| line["place"] == UTILITIES).unwrap();
    assert_eq!(line["metadata"], before["metadata"]["rep"], "the label that they keep");
    assert!(line["reason"].as_str().unwrap().contains("as an alias"), "{line}");
    let item = folder.archive("show", &[UTILITIES]).json().remove(0);
    assert_eq!((&item["language"], &item["state"]), (&json!("pt"), &json!("Copy")), "{item}");
    assert_eq!(
        (&item["metadata"]["rep"], &item["aliases"]),
        (&before["metadata"]["rep"], &json!([METADATA]))
    );
    assert!(item.to_string().contains("\"Utilities\""), "{item}");
    assert_eq!(folder.archive("show", &[METADATA]).json().remove(0)["rep"], UTILITIES);
    let again = import(&folder, &tree, &[]);
    assert_eq!((again.status, statuses_of(&again, UTILITIES).as_deref()), (0, Some("already")));
    // Alone in another tree: the item is in the Archive.
    let (other, label) = (folder.place.path().join("other"), "sid.inpe.br/mtc-m18/2009/07.21.13.24");
    write(&other, &format!("{label}/doc/oai_dc.xml"), record("OAI", OAI).as_bytes());
    let run = import(&folder, &other, &[]);
    assert_eq!((run.status, statuses_of(&run, label).as_deref()), (0, Some("described")), "{}", run.stdout);
    assert!(folder.archive("show", &[OAI]).json().remove(0).to_string().contains("\"OAI\""));
    assert_eq!(statuses_of(&import(&folder, &other, &[]), label).as_deref(), Some("already"));
    // Metadata that somebody wrote are never replaced, and that is reported.
    let (third, label) = (folder.place.path().join("third"), "sid.inpe.br/mtc-m18/2009/07.21.13.25");
    write(&third, &format!("{label}/doc/oai_dc.xml"), record("Other", OAI).as_bytes());
    let run = import(&folder, &third, &[]);
    assert_eq!((run.status, statuses_of(&run, label).as_deref()), (1, Some("refused")), "{}", run.stdout);
    assert!(run.stdout.contains("already has metadata here"), "{}", run.stdout);
    assert_eq!(folder.archive("rebuild", &[]).status, 0);
    assert_eq!(folder.archive("show", &[UTILITIES]).json().remove(0), item, "made anew from the tree");
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Clause 1.3: what was refused because its label is that of another repository is refused again.
#[test]
fn a_conflict_of_labels_is_refused_in_every_run() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    let (upper, lower) = ("X.org/w/1998/08.02.08.56", "x.org/w/1998/08.02.08.56");
    write(&tree, &format!("{upper}/doc/a"), b"one");
    write(&tree, &format!("{lower}/doc/a"), b"another");
    for (round, first) in [(1, "imported"), (2, "already")] {
        let run = import(&folder, &tree, &[]);
        assert_eq!(statuses_of(&run, upper).as_deref(), Some(first), "{round}: {}", run.stdout);
        assert_eq!(statuses_of(&run, lower).as_deref(), Some("refused"), "{round}: {}", run.stdout);
        assert_eq!(run.status, 1);
    }
    // By itself: equal files are the same item, others are not.
    let other = folder.place.path().join("other");
    write(&other, &format!("{lower}/doc/a"), b"one");
    assert_eq!(statuses_of(&import(&folder, &other, &[]), lower).as_deref(), Some("already"));
    write(&other, &format!("{lower}/doc/a"), b"two");
    let run = import(&folder, &other, &[]);
    assert_eq!(statuses_of(&run, lower).as_deref(), Some("refused"), "{}", run.stdout);
    // A metadata label is not the label of an item.
    let item = folder.archive("show", &[upper]).json().remove(0);
    let metadata = item["metadata"]["rep"].as_str().unwrap();
    write(&other, &format!("{metadata}/doc/a"), b"x");
    assert_eq!(statuses_of(&import(&folder, &other, &[]), metadata).as_deref(), Some("refused"));
}

#[test]
fn a_tree_that_is_begun_too_deep_is_told_where_it_begins() {
    let folder = Folder::new();
    let tree = folder.place.path().join("col");
    write(&tree, &format!("{UTILITIES}/doc/a"), b"one");
    write(&tree, "8JMKD3MGP8W/35MMLL8/doc/index.html", b"<p>");
    let host = UTILITIES.split('/').next().unwrap();
    let repository = tree.join(UTILITIES);
    for within in [&tree.join(host), &tree.join(host).join("banon"), &repository, &tree.join("8JMKD3MGP8W")] {
        let run = import(&folder, within, &[]);
        assert_eq!(run.status, 1, "{}: {}", within.display(), run.stderr);
        let beginning = tree.canonicalize().unwrap().display().to_string();
        assert!(
            run.stderr.contains("Start with the folder") && run.stderr.contains(&beginning),
            "{}",
            run.stderr
        );
    }
    assert_eq!(import(&folder, &tree, &[]).status, 0);
}
