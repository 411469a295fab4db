//! Going on from what exists, with a resolver: registered labels.

use std::fs;

use super::{Resolver, location, until};
use crate::online::Folder;

/// Clauses 2 and 3.2: an Archive comes on line under the label that it is registered with, in
/// either form, or by an alias.
#[test]
fn an_archive_is_registered_by_any_label_of_its_service() {
    let resolver = Resolver::new();
    let answers = resolver.serve();
    let rep = "sid.inpe.br/mtc-m21/2012/06.05.15.34.39";
    // One that no other run of the tests mints under.
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
        if registered.is_some() {
            assert_eq!(folder.archive("settings", &["--registered-label", &label]).status, 0);
        }
        let key = folder.place.path().join("key");
        fs::write(&key, resolver.register(&label)).unwrap();
        let url = format!("http://{}", resolver.at);
        let server = folder.serve_with(&["--resolver", &url, "--key-file", &key.display().to_string()]);
        until("it is on line", || resolver.standing(&label) == ("online".to_owned(), server.at.clone()));
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
