//! A damaged journal (docs/security.md, *Journal*): nothing acknowledged is cut off, and every line
//! but a destroyed one is recovered (clauses 2.1 and 2.3).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{Run, ibi};
use crate::online::{Folder, until};

/// An Archive with a history: deposits, an update, a removal, a copy that was declared.
fn archive() -> Folder {
    let folder = Folder::new();
    let first = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=First"]);
    let second =
        folder.deposit(&[(b"b.txt", b"two")], &["--dc", "title=Second", "--next-edition-of", &first]);
    let third = folder.deposit(&[(b"c.txt", b"three")], &["--dc", "title=Third"]);
    assert_eq!(folder.archive("update", &[&second, "--dc", "title=Second again"]).status, 0);
    assert_eq!(folder.archive("remove", &[&third, "--reason", "asked for", "--yes"]).status, 0);
    folder.deposit(&[(b"d.txt", b"four")], &["--dc", "title=Last"]);
    folder
}

fn journal(folder: &Folder) -> PathBuf {
    folder.data().join("journal")
}

fn lose_index(folder: &Folder) {
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = fs::remove_file(folder.data().join(name));
    }
}

/// What each item is, with its version and what happened to it.
fn told(folder: &Folder) -> BTreeMap<String, (Value, Value)> {
    let list = folder.archive("list", &[]);
    assert_eq!(list.status, 0, "{}", list.stderr);
    let items = list.json().into_iter().map(|item| {
        let rep = item["rep"].as_str().unwrap().to_owned();
        let shown = folder.archive("show", &[&rep]).json().remove(0);
        (rep, (shown["state"].clone(), shown["version"].clone()))
    });
    items.collect()
}

/// Where each line of a file begins and ends, without the title.
fn lines(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let all = ends.map(|end| (std::mem::replace(&mut start, end), end));
    all.skip(1).collect()
}

/// Puts the journal back, and makes the index anew from it.
fn renew(folder: &Folder, whole: &[u8]) {
    lose_index(folder);
    fs::write(journal(folder), whole).unwrap();
    let run = folder.archive("rebuild", &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(fs::read(journal(folder)).unwrap(), whole, "and nothing was to be added");
}

fn names_the_line(run: &Run, line: usize) {
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("line {line} of ")), "{}", run.stderr);
    assert!(run.stderr.contains("ibi archive salvage"), "{}", run.stderr);
}

/// Issue: with one flipped bit in the last line, `audit` and `rebuild` succeeded, the line was cut
/// off, and an Original became a Copy. Every line, in several places, with and without the index.
#[test]
fn a_flipped_bit_anywhere_never_leaves_fewer_lines_in_silence() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    renew(&folder, &whole);
    let before = told(&folder);
    let all = lines(&whole);
    for (number, (start, end)) in all.iter().enumerate() {
        let file_line = number + 2;
        let spread = if number + 1 == all.len() { vec![0, 2, 3, 7] } else { vec![number % 3, 5] };
        for place in spread {
            // Among them the number, the checksum and the end of the line.
            let at = match place {
                5 => end - 1,
                7 => end - 10,
                place => start + (end - start) * place / 4,
            };
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 7);
            fs::write(journal(&folder), &damaged).unwrap();
            let run = folder.archive("audit", &[]);
            assert_eq!(run.status, 1, "line {file_line}, byte {at}: {}", run.stderr);
            names_the_line(&folder.archive("rebuild", &[]), file_line);
            lose_index(&folder);
            names_the_line(&folder.archive("rebuild", &[]), file_line);
            assert_eq!(fs::read(journal(&folder)).unwrap(), damaged, "nothing was cut off");
            let salvage = folder.archive("salvage", &[]);
            assert_eq!(salvage.status, 0, "{}", salvage.stderr);
            assert_eq!(salvage.json()[0]["lines"][0]["from"], "one bit corrected", "{}", salvage.stdout);
            assert_eq!(fs::read(journal(&folder)).unwrap(), whole, "line {file_line}, byte {at}");
            assert_eq!(told(&folder), before);
        }
    }
    let kept = fs::read_dir(folder.data()).unwrap();
    let kept = kept.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("journal.damaged-")
    });
    assert!(kept.count() > all.len(), "every damaged journal was kept");
}

/// Destroys a line, beyond what its checksum puts right.
fn destroy(path: &Path, line: usize) {
    let mut bytes = fs::read(path).unwrap();
    let (start, end) = lines(&bytes)[line];
    let middle = usize::midpoint(start, end);
    bytes[middle - 6..middle + 6].copy_from_slice(b"############");
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_destroyed_line_comes_back_from_the_index_and_from_a_backup() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let (before, count) = (told(&folder), lines(&whole).len());
    let backup = folder.place.path().join("backup").display().to_string();
    let data = folder.data().display().to_string();
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    for line in 0..count {
        // The index has it.
        destroy(&journal(&folder), line);
        let run = folder.archive("salvage", &[]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let report = run.json().remove(0);
        let line_of = serde_json::json!([{"line": line + 2, "from": "index"}]);
        assert_eq!((&report["lines"], &report["in_doubt"]), (&line_of, &Value::from(false)));
        assert_eq!(
            (told(&folder), lines(&fs::read(journal(&folder)).unwrap()).len()),
            (before.clone(), count)
        );
        renew(&folder, &whole);
        // The index is lost, and the backup has it.
        destroy(&journal(&folder), line);
        lose_index(&folder);
        let run = folder.archive("salvage", &["--from", &backup]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert_eq!(run.json()[0]["lines"][0]["from"], "backup");
        assert_eq!(fs::read(journal(&folder)).unwrap(), whole);
        assert_eq!(told(&folder), before);
    }
    // A backup of another course is no source.
    destroy(&journal(&folder), 1);
    let other = archive();
    let other_data = other.data().display().to_string();
    let run = folder.archive("salvage", &["--from", &other_data]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("another backup"), "{}", run.stderr);
}

/// With index and backup lost, the tree tells of deposits and updates; what it does not tell of is
/// told to the operator.
#[test]
fn without_index_and_backup_originals_stay_originals_or_the_operator_is_told() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let before = told(&folder);
    let count = lines(&whole).len();
    for line in 0..count {
        destroy(&journal(&folder), line);
        lose_index(&folder);
        let run = folder.archive("salvage", &[]);
        assert_eq!(run.status, 1, "{}", run.stderr);
        let report = run.json().remove(0);
        assert_eq!(report["lines"], serde_json::json!([{"line": line + 2, "from": "lost"}]));
        if report["in_doubt"] == false {
            assert_eq!(told(&folder), before, "line {line}: {}", run.stderr);
        } else {
            assert!(run.stderr.contains("ibi archive confirm"), "{}", run.stderr);
            assert_eq!(folder.archive("list", &[]).status, 0);
            let data = folder.data().display().to_string();
            assert_eq!(ibi(&["archive", "confirm", "--data", &data]).status, 0);
            assert_eq!(told(&folder), before, "line {line}: {}", run.stderr);
        }
        renew(&folder, &whole);
    }
}

#[test]
fn reading_commands_and_backup_go_on_with_a_damaged_journal() {
    let folder = archive();
    let before = told(&folder);
    let data = folder.data().display().to_string();
    let backup = folder.place.path().join("backup").display().to_string();
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    destroy(&journal(&folder), 1);
    let run = ibi(&["backup", "--data", &data, "--out", &backup]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    assert!(run.stderr.contains("line 3 of"), "{}", run.stderr);
    lose_index(&folder);
    // All but what the lost line told: here that line is the deposit of an item with no other line.
    let list = folder.archive("list", &[]);
    assert_eq!(list.status, 0, "{}", list.stderr);
    assert!(list.stderr.contains("line 3 of"), "{}", list.stderr);
    assert_eq!(list.json().len(), before.len());
    let item = list.json()[0]["rep"].as_str().unwrap().to_owned();
    assert_eq!(folder.archive("show", &[&item]).status, 0);
    let out = folder.place.path().join("out").display().to_string();
    assert_eq!(folder.archive("export", &[&item, "--out", &out]).status, 0);
    assert!(!folder.data().join("index.sqlite").exists(), "reading leaves the folder as it is");
    let from = folder.folder(&[(b"e.txt", b"five")]).display().to_string();
    assert_ne!(folder.archive("deposit", &[&from]).status, 0, "nothing is changed");
    // The backup has the line of before, and brings it back.
    let restored = folder.place.path().join("restored").display().to_string();
    let run = ibi(&["restore", "--from", &backup, "--data", &restored]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("line 3 of the journal is recovered: backup"), "{}", run.stderr);
}

/// A write that was cut off is no damage: it was not acknowledged.
#[test]
fn a_torn_tail_goes_and_a_cut_into_what_the_index_knows_does_not() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let before = told(&folder);
    for torn in [&b"99 2026-11-15T2"[..], &[0; 700], b"9"] {
        fs::write(journal(&folder), [&whole[..], torn].concat()).unwrap();
        assert_eq!(told(&folder), before);
        assert_eq!(folder.archive("rebuild", &[]).status, 0);
        assert_eq!(fs::read(journal(&folder)).unwrap(), whole);
    }
    let (start, end) = *lines(&whole).last().unwrap();
    for length in [start, start + 20, end - 1] {
        fs::write(journal(&folder), &whole[..length]).unwrap();
        assert_eq!(folder.archive("audit", &[]).status, 1);
        assert_eq!(folder.archive("rebuild", &[]).status, 3);
        let run = folder.archive("salvage", &[]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert_eq!(run.json()[0]["lines"][0]["from"], "index");
        assert_eq!(told(&folder), before);
        renew(&folder, &whole);
    }
}

/// Killed between any two of its steps, a salvage is finished by the next.
#[test]
fn a_salvage_that_was_killed_is_finished_by_the_next() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let before = told(&folder);
    let index = folder.data().join("index.sqlite");
    let aside = folder.data().join("index.before-salvage");
    // Before the journal was replaced: the index is aside, a new journal was begun.
    destroy(&journal(&folder), 2);
    assert_eq!(folder.archive("list", &[]).status, 0);
    fs::rename(&index, &aside).unwrap();
    fs::write(folder.data().join("journal.new"), b"ibi journal, form").unwrap();
    let run = folder.archive("salvage", &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(run.json()[0]["lines"][0]["from"], "index");
    assert_eq!(told(&folder), before);
    // After it: the journal is whole, and there is no index yet.
    renew(&folder, &whole);
    fs::rename(&index, &aside).unwrap();
    let run = folder.archive("salvage", &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(told(&folder), before);
    assert!(!aside.exists());
    // The same where there was no index to begin with.
    renew(&folder, &whole);
    lose_index(&folder);
    fs::write(&aside, b"there was no index\n").unwrap();
    let run = folder.archive("salvage", &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(told(&folder), before);
    assert!(!aside.exists() && index.exists());
}

/// Issue: changes went on behind a damaged line that the index had followed. Found at opening and
/// by a server that runs, until it is salvaged; reading goes on.
#[test]
fn no_change_goes_behind_a_damaged_line() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let (data, token) = (folder.data().display().to_string(), folder.token("operator"));
    let item = folder.archive("list", &[]).json()[0]["rep"].as_str().unwrap().to_owned();
    let from = folder.folder(&[(b"e.txt", b"five")]).display().to_string();
    let server = folder.serve();
    let damaged = "not ready to write: journal-damaged\n";
    let refused = |server: &crate::online::server::Server| {
        let patched = server.api(&token, "PATCH", &format!("/items/{item}"), br#"{"language": "pt"}"#);
        assert_eq!(patched.problem(), 503, "{}", patched.text());
        assert!(patched.text().contains("journal-damaged"), "{}", patched.text());
        assert_eq!(server.get("/readyz").text(), damaged);
        assert_eq!(server.get("/readyz?for=reading").status, 200);
        assert_eq!(server.get(&format!("/api/v1/items/{item}")).status, 200);
        assert!(server.get("/metrics").text().contains("ibi_journal_damaged 1"));
    };
    // While it runs, and noted for those who come after it.
    destroy(&journal(&folder), 1);
    until("it is found", || server.get("/readyz").text() == damaged);
    refused(&server);
    assert!(folder.data().join("journal-is-damaged").exists());
    drop(server);
    // When it starts; and commands, with it and without.
    let server = folder.serve();
    refused(&server);
    let run = folder.archive("deposit", &[&from]);
    names_the_line(&run, 3);
    drop(server);
    names_the_line(&folder.archive("deposit", &[&from]), 3);
    let length = fs::metadata(journal(&folder)).unwrap().len();
    assert_eq!(length, whole.len() as u64, "nothing was added");
    let server = folder.serve();
    assert_eq!(folder.archive("salvage", &[]).status, 0);
    until("it is whole again", || server.get("/readyz").text() == "ready\n");
    assert!(server.get("/metrics").text().contains("ibi_journal_damaged 0"));
    assert!(!folder.data().join("journal-is-damaged").exists());
    assert_eq!(ibi(&["archive", "deposit", &from, "--data", &data]).status, 0);
}

/// That a change was refused for damage is known at once, also to who asked just before.
#[test]
fn a_change_that_damage_stopped_is_known_to_readyz_at_once() {
    let folder = archive();
    let token = folder.token("operator");
    let item = folder.archive("list", &[]).json()[0]["rep"].as_str().unwrap().to_owned();
    let from = folder.folder(&[(b"e.txt", b"five")]).display().to_string();
    let server = folder.serve();
    destroy(&journal(&folder), 1);
    assert_eq!(server.get("/readyz").text(), "ready\n", "nobody has looked");
    names_the_line(&folder.archive("deposit", &[&from]), 3);
    let patched = server.api(&token, "PATCH", &format!("/items/{item}"), br#"{"language": "pt"}"#);
    assert!(patched.text().contains("journal-damaged"), "{}", patched.text());
    assert_eq!(server.get("/readyz").text(), "not ready to write: journal-damaged\n");
    assert!(server.get("/metrics").text().contains("ibi_journal_damaged 1"));
}

/// Issue: a server did not start where the end of the journal was cut off or had garbage behind it,
/// so that nothing was read either, although commands read on.
#[test]
fn a_server_starts_and_reads_with_a_journal_that_is_damaged_at_its_end() {
    let folder = archive();
    let item = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=Read"]);
    let whole = fs::read(journal(&folder)).unwrap();
    let token = folder.token("operator");
    let before = told(&folder);
    let last = *lines(&whole).last().unwrap();
    let cut = |length: usize| whole[..length].to_vec();
    let with = |garbage: &[u8]| [&whole, garbage].concat();
    let mut flipped = whole.clone();
    flipped[usize::midpoint(last.0, last.1)] ^= 4;
    let damaged = [
        cut(last.0),
        cut(last.0 + 20),
        cut(last.1 - 1),
        with(b"garbage\n"),
        with(b"garbage\nand more of it\nwithout an end"),
        flipped,
    ];
    for (number, damaged) in damaged.iter().enumerate() {
        fs::write(journal(&folder), damaged).unwrap();
        let server = folder.serve();
        for path in [format!("/api/v1/items/{item}"), format!("/col/{item}/doc/a.txt"), "/".to_owned()] {
            assert_eq!(server.get(&path).status, 200, "{number}: {path}");
        }
        assert_eq!(server.get("/readyz?for=reading").status, 200);
        let patched = server.api(&token, "PATCH", &format!("/items/{item}"), br#"{"language": "pt"}"#);
        assert_eq!(patched.problem(), 503, "{number}: {}", patched.text());
        assert!(patched.text().contains("journal-damaged"), "{number}: {}", patched.text());
        assert_eq!(server.get("/readyz").text(), "not ready to write: journal-damaged\n", "{number}");
        assert!(server.get("/metrics").text().contains("ibi_journal_damaged 1"), "{number}");
        assert_eq!(&fs::read(journal(&folder)).unwrap(), damaged, "{number}: nothing was cut off or added");
        let salvage = folder.archive("salvage", &[]);
        assert_eq!(salvage.status, 0, "{number}: {}", salvage.stderr);
        assert_eq!(salvage.json()[0]["in_doubt"], false, "{number}: {}", salvage.stdout);
        until("it is whole again", || server.get("/readyz").text() == "ready\n");
        assert_eq!(server.get(&format!("/api/v1/items/{item}")).status, 200);
        assert_eq!(told(&folder), before, "{number}: {}", salvage.stderr);
        drop(server);
        renew(&folder, &whole);
    }
    // Put right by hand, it is opened again when the server is told to look (SIGHUP).
    fs::write(journal(&folder), with(b"garbage\n")).unwrap();
    let server = folder.serve();
    assert_eq!(server.get("/readyz").text(), "not ready to write: journal-damaged\n");
    fs::write(journal(&folder), &whole).unwrap();
    server.signal("-HUP");
    until("it is whole again", || server.get("/readyz").text() == "ready\n");
    let patched = server.api(&token, "PATCH", &format!("/items/{item}"), br#"{"language": "pt"}"#);
    assert_eq!(patched.status, 200, "{}", patched.text());
}

/// Issue: a salvage took garbage behind the last line for lost lines, and doubted all Originals.
/// The index had followed every change that was acknowledged.
#[test]
fn what_was_never_acknowledged_puts_no_original_in_doubt() {
    let folder = archive();
    let whole = fs::read(journal(&folder)).unwrap();
    let before = told(&folder);
    for (garbage, count) in [(&b"garbage\n"[..], 1), (b"9 x\n\nmore\n", 3), (b"two\nlines", 1)] {
        fs::write(journal(&folder), [&whole, garbage].concat()).unwrap();
        let run = folder.archive("salvage", &[]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let report = run.json().remove(0);
        assert_eq!(report["lines"], serde_json::json!([]), "{report}");
        assert_eq!((&report["in_doubt"], &report["unacknowledged_lines"]), (&false.into(), &count.into()));
        assert_eq!(fs::read(journal(&folder)).unwrap(), whole);
        assert_eq!(told(&folder), before);
        let kept = report["damaged_journal"].as_str().unwrap();
        assert!(fs::read(kept).unwrap().ends_with(garbage), "nothing is thrown away");
    }
    // Without the index nothing says how far it was: the operator is asked, as before.
    fs::write(journal(&folder), [&whole[..], b"garbage\n"].concat()).unwrap();
    lose_index(&folder);
    let run = folder.archive("salvage", &[]);
    assert_eq!((run.status, &run.json()[0]["in_doubt"]), (1, &true.into()), "{}", run.stderr);
}

/// What somebody else did to the end of the journal while a server runs is found before the next
/// line is written: nothing goes over it, behind it, or behind a hole.
#[test]
fn a_server_writes_nothing_where_the_journal_does_not_end_as_it_left_it() {
    let folder = archive();
    let token = folder.token("operator");
    let item = folder.archive("list", &[]).json()[0]["rep"].as_str().unwrap().to_owned();
    for (number, language) in ["pt", "en"].iter().enumerate() {
        let server = folder.serve();
        assert_eq!(server.get("/readyz").text(), "ready\n");
        let whole = fs::read(journal(&folder)).unwrap();
        let changed = match number {
            0 => {
                [&whole[..], b"garbage of another program, longer than any line of ours would be\n"].concat()
            }
            _ => whole[..whole.len() - 30].to_vec(),
        };
        fs::write(journal(&folder), &changed).unwrap();
        let body = format!(r#"{{"language": "{language}"}}"#);
        let patched = server.api(&token, "PATCH", &format!("/items/{item}"), body.as_bytes());
        assert_eq!(patched.problem(), 503, "{}", patched.text());
        assert_eq!(fs::read(journal(&folder)).unwrap(), changed, "nothing was written");
        assert_eq!(server.get("/readyz").text(), "not ready to write: journal-damaged\n");
        assert_eq!(folder.archive("salvage", &[]).status, 0);
        until("it is whole again", || server.get("/readyz").text() == "ready\n");
        let patched = server.api(&token, "PATCH", &format!("/items/{item}"), body.as_bytes());
        assert_eq!(patched.status, 200, "{}", patched.text());
    }
}
