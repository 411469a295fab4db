//! Migration with a resolver: registered labels, declared Originals, copies without an Original.

use std::fs;

use serde_json::json;

use super::{Resolver, figure, location, until};
use crate::online::Folder;

/// Clauses 2 and 3.2: an Archive comes online under the label that it is registered with, in
/// either form, or by an alias.
#[test]
fn an_archive_is_registered_by_any_label_of_its_service() {
    let resolver = Resolver::new();
    let answers = resolver.serve();
    let rep = "sid.inpe.br/mtc-m21/2012/06.05.15.34.39";
    // A prefix that no other run of the tests uses.
    let port = (1000 + std::process::id() % 60_000).to_string();
    for (options, registered) in [
        (&["--service", rep][..], None),
        (&["--service", "8JMKD3MGP8W/34PGRBS"], None),
        (&["--service", "83LX3pFwXQZeBBx/hwiTk"], None),
        (&["--ip", "150.163.34.243", "--ip-port", &port], Some("ibip")),
        (&[], Some("alias")),
    ] {
        let folder = Folder::begun_with(options);
        let settings = folder.archive("settings", &[]).json().remove(0);
        let label = match registered {
            None => folder.service.clone(),
            Some("ibip") => settings["service"][1].as_str().unwrap().to_owned(),
            Some(_) => {
                let alias = "dpi.inpe.br/banon-pc3/2011/01.01.00.00";
                assert_eq!(folder.archive("update", &[&folder.service, "--alias", alias]).status, 0);
                alias.to_owned()
            }
        };
        // By default, the Archive tries its labels one after the other.
        if registered == Some("alias") {
            assert_eq!(folder.archive("settings", &["--registered-label", &label]).status, 0);
        }
        let key = folder.place.path().join("key");
        fs::write(&key, resolver.register(&label)).unwrap();
        let url = format!("http://{}", resolver.at);
        let server = folder.serve_with(&["--resolver", &url, "--key-file", &key.display().to_string()]);
        until("it is online", || resolver.standing(&label) == ("online".to_owned(), server.at.clone()));
        let item = folder.deposit(&[(b"a", b"one")], &[]);
        let found = answers.get(&format!("/{item}"));
        assert!(location(&found).contains(&server.at), "{label}");
        drop(server);
        assert_eq!(resolver.run("retire", &["--service", &label]).status, 0);
        let prefix = label.split('/').next().unwrap();
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-{prefix}"));
        }
    }
}

/// Clause 2.1: an item whose Original another Archive claims is not declared one here.
#[test]
fn an_import_declares_originals_after_asking() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let (holder, importer) = (Folder::new(), Folder::new());
    let (taken, free) = ("a.br/b/2001/01.01.00.00", "a.br/b/2001/01.01.00.01");
    holder.put(&[(b"a", b"one")], &["--label", taken, "--original"]);
    let mut there = resolver.on_line(&holder);
    let tree = importer.place.path().join("col");
    for label in [taken, free] {
        fs::create_dir_all(tree.join(label).join("doc")).unwrap();
        fs::write(tree.join(label).join("doc/a"), "one").unwrap();
    }
    let (tree, url) = (tree.display().to_string(), format!("http://{}", resolver.at));
    let import = || importer.archive("import", &[&tree, "--original", "--resolver", &url]);
    let statuses = |run: crate::binary::Run| -> Vec<String> {
        run.json().iter().map(|line| line["status"].as_str().unwrap().to_owned()).collect()
    };
    let run = import();
    assert_eq!(run.status, 1);
    assert!(run.stdout.contains("claims the Original"), "{}", run.stdout);
    assert_eq!(statuses(run), ["refused", "imported"]);
    assert_eq!(importer.archive("show", &[free]).json().remove(0)["state"], "Original");
    // A silent Archive may have it.
    there.signal("-KILL");
    there.end();
    fs::create_dir_all(format!("{tree}/a.br/b/2001/01.01.00.02/doc")).unwrap();
    fs::write(format!("{tree}/a.br/b/2001/01.01.00.02/doc/a"), "two").unwrap();
    let run = import();
    assert!(run.stdout.contains("did not answer"), "{}", run.stdout);
    assert_eq!(statuses(run), ["refused", "already", "refused"]);
    // As copies they are imported in any case.
    let run = importer.archive("import", &[&tree]);
    assert_eq!(statuses(run), ["imported", "already", "imported"]);
    assert_eq!(importer.archive("show", &[taken]).json().remove(0)["state"], "Copy");
}

/// Clause 2.1: there is no copy without an original, and one whose Original nobody claims is
/// reported.
#[test]
fn copies_without_an_original_are_listed() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let (holder, copier) = (Folder::new(), Folder::new());
    let item = holder.deposit(&[(b"a", b"one")], &[]);
    let mut there = resolver.on_line(&holder);
    let here = resolver.on_line(&copier);
    let from = format!("http://{}", there.at);
    assert_eq!(copier.archive("copy", &[&item, "--from", &from]).status, 0);
    let url = format!("http://{}", resolver.at);
    let audit = || copier.archive("audit", &["--resolver", &url]);
    let run = audit();
    assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let orphan = "a.br/b/2001/01.01.00.00";
    copier.put(&[(b"a", b"x")], &["--label", orphan]);
    let run = audit();
    assert_eq!((run.status, run.json()), (1, vec![json!({"item": orphan, "original": "nobody"})]));
    // The server reports it, too: in its log, and as a metric.
    until("it is reported", || here.log().contains("nobody claims the Original of this copy"));
    assert!(here.log().contains(orphan));
    until("it is counted", || figure(&here, "ibi_orphan_copies") == "1");
    // While an Archive is silent, it is unknown.
    there.signal("-KILL");
    there.end();
    let run = audit();
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.json().iter().all(|line| line["original"] == "unknown"), "{}", run.stdout);
    assert_eq!(run.json().len(), 2);
    drop(here);
}
