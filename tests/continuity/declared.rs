//! `ibi archive import --original` on items that are already here, and `deposit --original` (clause
//! 2.1).

use std::fs;

use serde_json::json;

use super::{UTILITIES, write};
use crate::online::Folder;
use crate::resolver::Resolver;

/// Copies of an earlier import are declared Originals where nobody claims them; an item without
/// files may be the service of an Archive, and stays a Copy.
#[test]
fn copies_of_an_earlier_import_are_declared_originals_after_asking() {
    let resolver = Resolver::new();
    let (holder, importer) = (Folder::new(), Folder::new());
    let (taken, empty) = ("a.br/b/2001/01.01.00.00", "a.br/b/2001/01.01.00.01");
    holder.put(&[(b"a", b"one")], &["--label", taken, "--original"]);
    let tree = importer.place.path().join("col");
    write(&tree, &format!("{UTILITIES}/doc/a"), b"one");
    write(&tree, &format!("{taken}/doc/a"), b"one");
    fs::create_dir_all(tree.join(empty).join("doc")).unwrap();
    let tree = tree.display().to_string();
    assert_eq!(importer.archive("import", &[&tree]).status, 0);
    let state = |label: &str| importer.archive("show", &[label]).json().remove(0)["state"].clone();
    let import = |url: &str, more: &[&str]| {
        let run = importer.archive("import", &[&[&*tree, "--original", "--resolver", url], more].concat());
        let lines = run.json();
        let line = |place: &str| lines.iter().find(|line| line["place"] == place).unwrap().clone();
        let statuses = [taken, empty, UTILITIES].map(|place| line(place)["status"].clone());
        (run.status, statuses, line(empty)["reason"].to_string(), run.stdout)
    };
    // An unreachable resolver confirms nothing.
    let (status, statuses, _, out) = import("http://127.0.0.1:1", &[]);
    assert_eq!((status, statuses), (1, ["refused", "already", "refused"].map(|s| json!(s))), "{out}");
    assert!(out.contains("cannot ask the resolver"), "{out}");
    let _answers = resolver.serve();
    let _there = resolver.on_line(&holder);
    let url = format!("http://{}", resolver.at);
    let (status, statuses, _, out) = import(&url, &["--dry-run"]);
    assert_eq!((status, statuses), (1, ["refused", "already", "possible"].map(|s| json!(s))), "{out}");
    assert_eq!(state(UTILITIES), "Copy", "a dry run changes nothing");
    let (status, statuses, reason, out) = import(&url, &[]);
    assert_eq!((status, statuses), (1, ["refused", "already", "declared"].map(|s| json!(s))), "{out}");
    assert!(reason.contains("stays a Copy"), "{reason}");
    assert_eq!([taken, empty, UTILITIES].map(state), ["Copy", "Copy", "Original"].map(|s| json!(s)));
    let (_, statuses, _, out) = import(&url, &[]);
    assert_eq!(statuses[2], "already", "{out}");
    // New items without files are imported as Copies, and that is reported.
    let new = "a.br/b/2001/01.01.00.02";
    fs::create_dir_all(format!("{tree}/{new}/doc")).unwrap();
    let (_, _, _, out) = import(&url, &[]);
    assert!(out.lines().any(|line| line.contains(new) && line.contains("stays a Copy")), "{out}");
    assert_eq!(state(new), "Copy");
    assert_eq!(importer.archive("audit", &[]).status, 0);
}

/// Seen before: a label whose item another Archive had removed became an Original again.
#[test]
fn a_deposit_as_the_original_asks_who_has_or_had_it() {
    let resolver = Resolver::new();
    let (holder, other) = (Folder::new(), Folder::new());
    let [taken, gone, free] = ["00", "01", "02"].map(|end| format!("a.br/b/2001/01.01.00.{end}"));
    for label in [&taken, &gone] {
        holder.put(&[(b"a", b"one")], &["--label", label, "--original"]);
    }
    assert_eq!(holder.archive("remove", &[&gone, "--reason", "a test", "--yes"]).status, 0);
    let file = other.place.path().join("b.txt");
    fs::write(&file, b"two").unwrap();
    let file = file.display().to_string();
    let _answers = resolver.serve();
    let _there = resolver.on_line(&holder);
    let url = format!("http://{}", resolver.at);
    let deposit =
        |label: &str| other.archive("deposit", &[&file, "--label", label, "--original", "--resolver", &url]);
    for (label, why) in [(&taken, "claims the Original"), (&gone, "was removed")] {
        let run = deposit(label);
        assert!(run.status != 0 && run.stderr.contains(why), "{label}: {} {}", run.status, run.stderr);
        assert_ne!(other.archive("show", &[label]).status, 0, "{label} is not here");
    }
    let run = deposit(&free);
    assert_eq!(run.status, 0, "{}", run.stderr);
    // Without a resolver nobody is asked, and it is said.
    let run = other.archive("deposit", &[&file, "--label", "a.br/b/2001/01.01.00.03", "--original"]);
    assert!(run.status == 0 && run.stderr.contains("not checked"), "{} {}", run.status, run.stderr);
}
