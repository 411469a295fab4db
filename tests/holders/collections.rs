//! Whole collections: copied by prefix, date and list, and refreshed, by commands and over the API.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Holder, byte_equal};
use crate::binary::Run;
use crate::online::until;

#[test]
fn collections_come_by_prefix_date_and_list() {
    let (here, there) = (Holder::new(), Holder::new());
    let reps: Vec<String> =
        (0..5).map(|number| here.folder.deposit(&[(b"a", format!("{number}").as_bytes())], &[])).collect();
    let prefix = reps[0].split('/').take(2).collect::<Vec<_>>().join("/") + "/";
    let list = there.folder.data().join("list");
    fs::write(&list, format!("# two of them\n{}\n\n{}\n", reps[0], reps[1])).unwrap();
    let from = ["--from", &here.url()];
    let lines = |run: Run| {
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json().iter().map(|line| line["found"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = list.to_str().unwrap();
    assert_eq!(lines(there.run("copy", &["--list", list, from[0], from[1]])), ["new", "new"]);
    let mut all = lines(there.run("copy", &["--prefix", &prefix, from[0], from[1]]));
    all.sort();
    assert_eq!(
        all,
        ["equal", "equal", "new", "new", "new"],
        "what is here is passed over, and the service is nobody's to copy"
    );
    assert_eq!(lines(there.run("copy", &["--since", "2001-01-01", from[0], from[1]])), ["equal"; 5]);
    assert_eq!(lines(there.run("copy", &["--since", "2999-01-01", from[0], from[1]])), [""; 0]);
    let audited = there.run("audit", &[]);
    assert_eq!(audited.status, 0, "{}", audited.stdout);
}

/// The lines of a response; its items in order of their labels.
fn told(holder: &Holder, path: &str, body: &Value) -> Vec<(String, String)> {
    let token = holder.folder.token("operator");
    let answer = holder.server.api(&token, "POST", path, body.to_string().as_bytes());
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/x-ndjson"));
    let text = answer.text();
    // Each line is a chunk of its own.
    let lines = text.lines().filter(|line| line.starts_with('{')).map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let found = line["found"].as_str().or(line["error"].as_str()).unwrap().to_owned();
        (line["item"].as_str().unwrap().to_owned(), found)
    });
    let mut lines: Vec<_> = lines.collect();
    assert!(text.ends_with("0\r\n\r\n"), "whole: {text}");
    lines.sort();
    lines
}

#[test]
fn collections_come_over_the_api_too() {
    let (here, there) = (Holder::new(), Holder::new());
    let reps: Vec<String> =
        (0..4).map(|number| here.folder.deposit(&[(b"a", format!("{number}").as_bytes())], &[])).collect();
    let prefix = reps[0].split('/').take(2).collect::<Vec<_>>().join("/") + "/";
    let each = |found: &[&str]| -> Vec<(String, String)> {
        reps.iter().zip(found).map(|(rep, found)| (rep.clone(), (*found).to_owned())).collect()
    };
    let named = told(&there, "/copy", &json!({ "from": here.url(), "items": [reps[0]] }));
    assert_eq!(named, each(&["new"]));
    let all = told(&there, "/copy", &json!({ "from": here.url(), "prefix": prefix }));
    assert_eq!(all, each(&["equal", "new", "new", "new"]));
    assert!(reps.iter().all(|rep| byte_equal(&here.tree(rep), &there.tree(rep))));
    let since = told(&there, "/copy", &json!({ "from": here.url(), "since": "2001-01-01" }));
    assert_eq!(since, each(&["equal"; 4]));
    let by = there.shown(&reps[0])["history"].as_array().unwrap().last().unwrap()["by"].clone();
    assert_eq!(by, "librarian", "who, and from where");
    // A missing item is reported in its line, and the others are copied.
    let unknown =
        told(&there, "/copy", &json!({ "from": here.url(), "items": ["a.b/c/2001/01.01.01.01", reps[2]] }));
    assert_eq!(unknown[1].1, "equal");
    assert!(unknown[0].1.contains("404") || unknown[0].1.contains("has no"), "{unknown:?}");
    here.does("update", &[&reps[0], "--dc", "title=Two"]);
    here.does("remove", &[&reps[1], "--reason", "by law", "--yes"]);
    fs::write(there.tree(&reps[2]).join("inventory.json"), "altered").unwrap();
    let refreshed = told(&there, "/refresh", &json!({}));
    assert_eq!(refreshed, each(&["behind", "removed", "altered", "equal"]));
    assert_eq!(there.state(&reps[1]), "Deleted");
}

#[test]
fn collections_that_are_not_said_or_not_there_are_refused() {
    let holder = Holder::new();
    let operator = holder.folder.token("operator");
    let url = holder.url();
    for (path, body, status) in [
        ("/copy", json!({ "prefix": "a" }), 422),
        ("/copy", json!({ "from": url }), 422),
        ("/copy", json!({ "from": url, "prefix": "a", "since": "2026-01-01" }), 422),
        ("/copy", json!({ "from": url, "since": "yesterday" }), 422),
        ("/copy", json!({ "from": "ftp://x", "prefix": "a" }), 422),
        ("/copy", json!({ "from": "http://127.0.0.1:1", "prefix": "a" }), 422),
        ("/copy", json!({ "from": url, "whole": true }), 422),
        ("/refresh", json!({ "form": url }), 422),
        ("/refresh", json!({ "from": "AAA" }), 422),
    ] {
        let refused = holder.server.api(&operator, "POST", path, body.to_string().as_bytes());
        assert_eq!(refused.problem(), status, "{body}");
    }
    let depositor = holder.folder.token("depositor");
    assert_eq!(holder.server.api(&depositor, "POST", "/refresh", b"{}").problem(), 403);
}

/// The exit status distinguishes an unreachable Archive (retry) from a missing item.
#[test]
fn a_source_that_does_not_answer_is_told_by_the_status() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    let nobody = ["--from", "http://127.0.0.1:1"];
    for (command, which) in [
        ("copy", vec![&*rep]),
        ("copy", vec!["--prefix", "a"]),
        ("refresh", vec![&*rep]),
        ("refresh", vec![]),
    ] {
        let run = there.run(command, &[&which[..], &nobody].concat());
        assert_eq!(run.status, 3, "{command} {which:?}: {}", run.stderr);
        assert!(run.stderr.contains("does not answer"), "{}", run.stderr);
    }
    let unknown = there.run("copy", &["x.test/a/2026/01.01.00.00", "--from", &here.url()]);
    assert_eq!(unknown.status, 1, "{}", unknown.stderr);
}

/// A closed item is reported, and does not stop the others.
#[test]
fn a_closed_item_that_comes_first_keeps_no_other_from_coming() {
    let (here, there) = (Holder::new(), Holder::new());
    let closed = here.folder.deposit(&[(b"a", b"one")], &["--access", "until:2999-01-01"]);
    let open = here.folder.deposit(&[(b"b", b"two")], &[]);
    let all = closed.split('/').take(2).collect::<Vec<_>>().join("/") + "/";
    for (prefix, many) in [(&all, 2), (&closed, 1)] {
        let run = there.run("copy", &["--prefix", prefix, "--from", &here.url()]);
        assert_eq!((run.status, run.json().len() >= many), (1, true), "{}{}", run.stdout, run.stderr);
        let told = run.json().into_iter().find(|line| line["item"] == closed).unwrap();
        assert!(told["error"].as_str().unwrap().contains("asks for a token"), "{told}");
    }
    assert_eq!(there.state(&open), "Copy");
}

/// Memory is bounded, whatever an Archive lists.
#[test]
fn a_list_that_goes_in_a_circle_is_refused() {
    let lists = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", lists.local_addr().unwrap());
    std::thread::spawn(move || {
        let item =
            json!({ "path": "a/b", "state": "Original", "version": 1, "updated": "2026-11-16T00:00:00Z" });
        let body = json!({ "items": [item], "next": "a/b" }).to_string();
        for mut stream in lists.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    let copied = Holder::new().run("copy", &["--prefix", "a", "--from", &url]);
    assert_eq!(copied.status, 3, "{}", copied.stderr);
    assert!(copied.stderr.contains("its list goes back to a/b"), "{}", copied.stderr);
}

/// Abandoned fetches do not fill the disk.
#[test]
fn parts_of_copies_that_were_left_alone_are_thrown_away() {
    let holder = Holder::new();
    let copies = holder.folder.data().join("service/copies");
    let [old, young] = ["a.test+old", "a.test+young"].map(|name| copies.join(name));
    for folder in [&old, &young] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("0.part"), b"part").unwrap();
    }
    let touched = std::process::Command::new("touch")
        .args(["-d", "8 days ago"])
        .args([&old.join("0.part"), &old, &young])
        .status();
    assert!(touched.unwrap().success());
    until("the old one is gone", || !old.exists());
    assert!(young.join("0.part").exists(), "somebody may go on with it");
}
