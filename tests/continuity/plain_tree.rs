//! `ibi archive plain-tree`: relative links of items work on disk (clause 2.3).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{OAI, UTILITIES};
use crate::binary::{IBI, Run};
use crate::online::{Folder, until};

fn lay(folder: &Folder, out: &Path, more: &[&str]) -> Run {
    folder.archive("plain-tree", &[&["--out", &*out.display().to_string()], more].concat())
}

/// The changes, item by item.
fn changes(run: &Run) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    run.json().iter().map(|line| (text(&line["item"]), text(&line["status"]))).collect()
}

struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// 001 §5: the script of one provider finds the file of another by a relative path.
#[test]
fn relative_links_of_the_founding_documents_work_on_disk() {
    let folder = Folder::new();
    folder.put(&[(b"utilities1.tcl", b"puts found")], &["--label", UTILITIES]);
    folder.put(&[(b"cgi/oai.tcl", b"source")], &["--label", OAI]);
    folder.put(&[(b"d.txt", b"d")], &["--label", "8JMKD3MGP8W/34PGRBS"]);
    let out = folder.place.path().join("plain");
    let run = lay(&folder, &out, &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(changes(&run).len(), 3, "{}", run.stdout);
    assert!(!out.join(&folder.service).exists(), "the service of the Archive is no item for others");
    let link = format!("../../../../../../{UTILITIES}/doc/utilities1.tcl");
    let script = out.join(OAI).join("doc/cgi/oai.tcl");
    assert_eq!(fs::read(script.parent().unwrap().join(link)).unwrap(), b"puts found");
    assert!(out.join("8JMKD3MGP8W/34PGRBS/doc/d.txt").is_file(), "two folders, as the label is spelled");
    assert_eq!(changes(&lay(&folder, &out, &[])), [], "nothing is done twice");
    // As documented in `docs/formats/plain-tree.md`.
    let of = fs::read_to_string(out.join(".ibi-plain-tree/of")).unwrap();
    assert_eq!(of, format!("ibi plain tree, format 1\nservice {}\n", folder.service));
    let stamp = fs::read_to_string(out.join(UTILITIES).join(".ibi-plain")).unwrap();
    let sidecar = folder.data().join("tree").join(UTILITIES).join("inventory.json.sha512");
    let digest = fs::read_to_string(sidecar).unwrap();
    assert_eq!(stamp, format!("{UTILITIES}\nv1 {}\n", &digest[..32]));
    // Writing into the plain tree does not change the Archive.
    fs::write(out.join(UTILITIES).join("doc/utilities1.tcl"), "spoilt").unwrap();
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

#[test]
fn the_newest_version_is_laid_out_and_what_is_removed_or_closed_vanishes() {
    let folder = Folder::new();
    let first = folder.deposit(&[(b"a", b"one"), (b"old", b"x")], &[]);
    let second = folder.deposit(&[(b"\xff \xc3\xa9", b"two")], &[]);
    let closed = folder.deposit(&[(b"c", b"three")], &["--access", "until:2999-01-01"]);
    let out = folder.place.path().join("plain");
    assert_eq!(lay(&folder, &out, &[]).status, 0);
    let file = |item: &str, name: &[u8]| {
        use std::os::unix::ffi::OsStrExt as _;
        fs::read(out.join(item).join("doc").join(std::ffi::OsStr::from_bytes(name))).ok()
    };
    assert_eq!(file(&second, b"\xff \xc3\xa9"), Some(b"two".to_vec()), "names in any bytes");
    assert_eq!(file(&closed, b"c"), None);
    let from = folder.folder(&[(b"a", b"two")]).display().to_string();
    assert_eq!(folder.archive("update", &[&first, &from]).status, 0);
    assert_eq!(folder.archive("remove", &[&second, "--reason", "x", "--yes"]).status, 0);
    let mut done = changes(&lay(&folder, &out, &[]));
    done.sort();
    let mut expected = vec![(first.clone(), "laid".to_owned()), (second.clone(), "removed".to_owned())];
    expected.sort();
    assert_eq!(done, expected);
    assert_eq!((file(&first, b"a"), file(&first, b"old")), (Some(b"two".to_vec()), None));
    assert!(!out.join(&second).exists());
    assert_eq!(changes(&lay(&folder, &out, &["--all"])), [(closed.clone(), "laid".to_owned())]);
    assert_eq!(file(&closed, b"c"), Some(b"three".to_vec()));
    assert_eq!(changes(&lay(&folder, &out, &[])), [(closed.clone(), "removed".to_owned())]);
    assert_eq!(file(&closed, b"c"), None);
}

/// The leftovers of a killed run are deleted, and an item that it had not put in place is written
/// again.
#[test]
fn an_interrupted_run_is_resumed() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a", b"one")], &[]);
    let out = folder.place.path().join("plain");
    assert_eq!(lay(&folder, &out, &[]).status, 0);
    let staging = out.join(".ibi-plain-tree/staging");
    fs::create_dir_all(staging.join("1/doc")).unwrap();
    fs::write(staging.join("1/doc/half"), "half").unwrap();
    fs::rename(out.join(&item), staging.join("2")).unwrap();
    assert_eq!(changes(&lay(&folder, &out, &[])), [(item.clone(), "laid".to_owned())]);
    assert_eq!(fs::read(out.join(&item).join("doc/a")).unwrap(), b"one");
    assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
}

#[test]
fn folders_of_others_are_left_alone() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a", b"one")], &[]);
    let strange = folder.place.path().join("strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("mine"), "").unwrap();
    let inside = folder.data().join("plain");
    for (out, says) in [(&strange, "neither empty nor a plain tree"), (&inside, "")] {
        let run = lay(&folder, out, &[]);
        assert!(run.status != 0 && run.stderr.contains(says), "{}", run.stderr);
    }
    let out = folder.place.path().join("plain");
    assert_eq!(lay(&folder, &out, &[]).status, 0);
    let other = Folder::new();
    assert!(lay(&other, &out, &[]).stderr.contains("of another Archive"));
    // A foreign folder in the place of an item is reported, and stays.
    fs::remove_dir_all(out.join(&item)).unwrap();
    fs::create_dir(out.join(&item)).unwrap();
    fs::write(out.join(&item).join("mine"), "").unwrap();
    let run = lay(&folder, &out, &[]);
    assert_eq!((run.status, changes(&run)), (1, vec![(item.clone(), "failed".to_owned())]));
    assert!(out.join(&item).join("mine").is_file());
}

/// Hard links are made on request, and are read-only: they are the Archive's own files.
#[test]
fn hard_links_are_read_only() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a", b"one")], &[]);
    let out = folder.place.path().join("plain");
    assert_eq!(lay(&folder, &out, &["--link"]).status, 0);
    let laid = fs::metadata(out.join(&item).join("doc/a")).unwrap();
    // On a filesystem that shares bytes nothing is linked.
    if laid.nlink() > 1 {
        assert_eq!(laid.mode() & 0o222, 0);
    }
    assert_eq!(folder.archive("audit", &[]).status, 0);
    let from = folder.folder(&[(b"a", b"two")]).display().to_string();
    assert_eq!(folder.archive("update", &[&item, &from]).status, 0);
    assert_eq!(lay(&folder, &out, &["--link"]).status, 0);
    assert_eq!(fs::read(out.join(&item).join("doc/a")).unwrap(), b"two");
}

/// A damaged file is not written: the previous one stays.
#[test]
fn damage_is_not_passed_on() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a", b"one")], &[]);
    fs::write(folder.data().join("tree").join(&item).join("v1/content/doc/a"), "0ne").unwrap();
    let out = folder.place.path().join("plain");
    let run = lay(&folder, &out, &[]);
    // Shared bytes are not read: there is nothing to copy.
    if run.status != 0 {
        assert!(run.stdout.contains("\"failed\"") && !out.join(&item).exists(), "{}", run.stdout);
    }
}

#[test]
fn it_is_kept_up_to_date_while_it_is_watched() {
    let folder = Folder::new();
    let out = folder.place.path().join("plain");
    let data = folder.data().display().to_string();
    let place = out.display().to_string();
    let child = Command::new(IBI)
        .args(["archive", "plain-tree", "--data", &data, "--out", &place, "--watch"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _watching = Watching(child.unwrap());
    until("it has begun", || out.join(".ibi-plain-tree/of").is_file());
    let doc = |item: &str| -> PathBuf { out.join(item).join("doc/a") };
    let item = folder.deposit(&[(b"a", b"one")], &[]);
    until("it is laid out", || fs::read(doc(&item)).is_ok_and(|bytes| bytes == b"one"));
    let from = folder.folder(&[(b"a", b"two")]).display().to_string();
    assert_eq!(folder.archive("update", &[&item, &from]).status, 0);
    until("it is updated", || fs::read(doc(&item)).is_ok_and(|bytes| bytes == b"two"));
    let copy = folder.put(&[(b"a", b"x")], &["--label", UTILITIES]);
    until("the copy is there", || doc(UTILITIES).is_file());
    assert_eq!(copy["state"], "Copy");
    assert_eq!(folder.archive("remove", &[&item, "--reason", "x", "--yes"]).status, 0);
    until("it has vanished", || !out.join(&item).exists());
    assert_eq!(folder.archive("drop", &[UTILITIES, "--yes"]).status, 0);
    until("the dropped copy has vanished", || !out.join(UTILITIES).exists());
    let second = lay(&folder, &out, &[]);
    assert!(second.stderr.contains("another process works on the plain tree"), "{}", second.stderr);
}

/// Killed at any moment, an item is complete in one version; a rerun updates it.
#[test]
fn killed_at_any_moment_each_item_is_whole() {
    let folder = Folder::new();
    let out = folder.place.path().join("plain");
    let version = |number: u32| vec![number as u8 + b'0'; 50_000 + number as usize];
    let item = folder.deposit(&[(b"a", &version(0)), (b"b/c", &version(0))], &[]);
    assert_eq!(lay(&folder, &out, &[]).status, 0);
    let (data, place) = (folder.data().display().to_string(), out.display().to_string());
    for round in 1..=8 {
        let from = folder.folder(&[(b"a", &version(round)), (b"b/c", &version(round))]).display().to_string();
        assert_eq!(folder.archive("update", &[&item, &from]).status, 0);
        let child = Command::new(IBI)
            .args(["archive", "plain-tree", "--data", &data, "--out", &place])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let killed = Watching(child.unwrap());
        std::thread::sleep(std::time::Duration::from_millis(u64::from(round) * 7));
        drop(killed);
        let doc = out.join(&item).join("doc");
        let [a, c] = ["a", "b/c"].map(|name| fs::read(doc.join(name)).unwrap());
        assert!(a == c && (a == version(round) || a == version(round - 1)), "round {round}");
        assert_eq!(lay(&folder, &out, &[]).status, 0);
        assert_eq!(fs::read(doc.join("a")).unwrap(), version(round));
    }
}

/// 003 Example 7.8: metadata are a repository of their own. After a round trip through a plain
/// tree, an item keeps its title, language and metadata label; one with a target URL is left out.
#[test]
fn a_plain_tree_brought_in_elsewhere_keeps_the_metadata() {
    let folder = Folder::new();
    let item = folder.put(&[(b"a", b"one")], &["--dc", "title=Livro & mapa", "--language", "pt-BR"]);
    let url = folder.archive("deposit", &["--url", "https://maps.library.org.br/wms"]).json().remove(0);
    let [rep, metadata, away] =
        [&item["rep"], &item["metadata"]["rep"], &url["rep"]].map(|label| label.as_str().unwrap().to_owned());
    let out = folder.place.path().join("plain");
    let run = lay(&folder, &out, &[]);
    let mut told = changes(&run);
    told.sort();
    let mut expected = vec![(rep.clone(), "laid".to_owned()), (away.clone(), "left-out".to_owned())];
    expected.sort();
    assert_eq!((run.status, told), (0, expected), "{}", run.stdout);
    assert!(
        run.stdout.contains("it leads to a URL") && run.stderr.contains("1 item left out"),
        "{}",
        run.stderr
    );
    assert!(!out.join(&away).exists() && !out.join(url["metadata"]["rep"].as_str().unwrap()).exists());
    let stamp = fs::read_to_string(out.join(&metadata).join(".ibi-plain")).unwrap();
    assert_eq!(stamp.lines().nth(2), Some("metadata"));
    let other = Folder::new();
    let place = out.display().to_string();
    let run = other.archive("import", &[&place]);
    assert_eq!((run.status, run.json().len()), (0, 1), "{}{}", run.stdout, run.stderr);
    let there = other.archive("show", &[&rep]).json().remove(0);
    assert_eq!(there["metadata"]["rep"], *metadata);
    assert_eq!((&there["language"], &there["state"]), (&"pt-BR".into(), &"Copy".into()), "{there}");
    assert!(there.to_string().contains("Livro & mapa"), "{there}");
    // An item that is here already has its metadata: nothing is done.
    let own = folder.archive("import", &[&place]);
    assert_eq!((own.status, &own.json()[0]["status"]), (0, &"already".into()), "{}", own.stdout);
    assert_eq!(own.json()[0]["metadata"], *metadata);
    // The metadata are removed with the item, also when it is dropped.
    let second = other.place.path().join("plain");
    assert_eq!(lay(&other, &second, &[]).status, 0);
    assert!(second.join(&metadata).join("doc/oai_dc.xml").is_file());
    assert_eq!(other.archive("drop", &[&rep, "--yes"]).status, 0);
    assert_eq!(changes(&lay(&other, &second, &[])), [(rep.clone(), "removed".to_owned())]);
    assert!(!second.join(&metadata).exists());
}

/// Clause 2.2: the record in the tree is the one that is served, with the persistent URL; a link
/// changes it, though it makes no version.
#[test]
fn the_record_is_complete_and_follows_links() {
    const RESOLVER: &str = "http://resolver.library.test";
    let folder = Folder::new();
    let item = folder.put(&[(b"a", b"one")], &["--dc", "title=First"]);
    let label = item["rep"].as_str().unwrap();
    let metadata = item["metadata"]["rep"].as_str().unwrap();
    let out = folder.place.path().join("plain");
    let record = || fs::read_to_string(out.join(metadata).join("doc/oai_dc.xml")).unwrap();
    assert_eq!(lay(&folder, &out, &[]).status, 0);
    assert!(!record().contains(RESOLVER));
    assert_eq!(lay(&folder, &out, &["--resolver", RESOLVER]).status, 0);
    let url = format!("<dc:identifier>{RESOLVER}/{label}</dc:identifier>");
    assert!(record().contains(&url), "{}", record());
    assert_eq!(changes(&lay(&folder, &out, &["--resolver", RESOLVER])), [], "nothing changed");
    let second = folder.deposit(&[(b"a", b"two")], &["--next-edition-of", label]);
    assert_eq!(lay(&folder, &out, &["--resolver", RESOLVER]).status, 0);
    assert!(record().contains(&second), "{}", record());
    let wrong = lay(&folder, &out, &["--resolver", "library"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("--resolver"), "{}", wrong.stderr);
}
