//! Two items imported under two spellings of one identifier, in two Archives (clauses 1.3, 2.4 and
//! 4.3).

use std::fs;

use serde_json::Value;

use super::{Folder, Resolver, follow};
use crate::online::server::Server;

const SPELLINGS: [&str; 2] = ["v.org/w@80/1998/08.02.08.56", "v.org/w/1998/08.02.08.56.00"];
const CANONICAL: &str = "v.org/w/1998/08.02.08.56";

/// Each spelling leads to its own item, also if the Original is required; a third one to a choice.
fn are_kept_apart(server: &Server, tries: usize) {
    for (label, bytes) in SPELLINGS.iter().zip([b"one" as &[u8], b"two"]) {
        for _ in 0..tries {
            assert_eq!(follow(&server.get(&format!("/{label}"))).body, bytes, "{label}");
        }
        let original = format!("/{label}?ibiurl.requireditemstatus=Original");
        assert_eq!(follow(&server.get(&original)).body, bytes, "{label}");
        let several = server.get_with(&format!("/{CANONICAL}"), "Accept: application/json\r\n");
        assert_eq!(several.status, 300, "{}", several.text());
        let mut offered: Vec<String> = serde_json::from_value(several.json()["offered"].clone()).unwrap();
        offered.sort();
        assert_eq!(offered, [SPELLINGS[1], SPELLINGS[0]].map(|label| format!("/{label}")));
    }
}

#[test]
fn items_spelled_apart_stay_apart_when_one_is_copied_handed_over_and_removed() {
    let [a, b] = [Folder::new(), Folder::new()];
    for (label, bytes) in SPELLINGS.iter().zip([b"one" as &[u8], b"two"]) {
        a.put(&[(b"a.txt", bytes)], &["--label", label, "--original"]);
    }
    let resolver = Resolver::new();
    let server = resolver.serve();
    let [here, there] = [resolver.on_line(&a), resolver.on_line(&b)];
    are_kept_apart(&server, 1);

    let copied = b.archive("copy", &[SPELLINGS[1], "--from", &format!("http://{}", here.at)]);
    assert_eq!(copied.status, 0, "{}", copied.stderr);
    are_kept_apart(&server, 20);

    let token = b.place.path().join("holder");
    fs::write(&token, b.token("holder")).unwrap();
    let to = ["--to", &format!("http://{}", there.at), "--token-file", &token.display().to_string()];
    let given = a.archive("transfer", &[&[SPELLINGS[1]], &to[..], &["--keep", "nothing"]].concat());
    assert_eq!(given.status, 0, "{}", given.stderr);
    are_kept_apart(&server, 20);
    assert_eq!(resolver.json("alerts", &["--all"]), [Value::Null; 0]);

    // An Archive that gave an item away does not take another for it while its new Archive is
    // silent.
    drop(there);
    assert_eq!(server.get(&format!("/{}", SPELLINGS[1])).status, 503);
    assert_eq!(follow(&server.get(&format!("/{}", SPELLINGS[0]))).body, b"one");
    // Nor is an item reported as removed because one of another spelling was.
    let there = resolver.on_line(&b);
    let removed = b.archive("remove", &[SPELLINGS[1], "--reason", "a mistake", "--yes"]);
    assert_eq!(removed.status, 0, "{}", removed.stderr);
    assert_eq!(server.get(&format!("/{}", SPELLINGS[1])).status, 410);
    assert_eq!(follow(&server.get(&format!("/{}", SPELLINGS[0]))).body, b"one");
    drop(here);
    assert_eq!(server.get(&format!("/{}", SPELLINGS[0])).status, 503);
    drop(there);
}
