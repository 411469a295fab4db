//! A resolver tells an Archive who else has an item, for audits between holders.

use std::fs;

use super::Resolver;
use crate::online::{Folder, server::Server};

#[test]
fn an_item_is_compared_with_all_archives_that_the_resolver_knows() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let folders: [Folder; 4] = std::array::from_fn(|_| Folder::new());
    let mut servers: Vec<Server> = folders.iter().map(|folder| resolver.on_line(folder)).collect();
    let [original, copies @ .., _] = &folders;
    let rep = original.deposit(&[(b"a", b"one"), (b"b", b"two")], &[]);
    let from = format!("http://{}", servers[0].at);
    for copy in copies {
        assert_eq!(copy.archive("copy", &[&rep, "--from", &from]).status, 0);
    }
    let url = format!("http://{}", resolver.at);
    let audit = |more: &[&str]| original.archive("audit", &[&[&*rep, "--resolver", &url], more].concat());
    let holders = |audited: &crate::binary::Run| -> Vec<(String, String)> {
        let report = audited.json().remove(0);
        let holders = report["holders"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let mut holders: Vec<_> = holders.map(|one| (text(&one["archive"]), text(&one["state"]))).collect();
        holders.sort();
        holders
    };
    let mut both = [1, 2].map(|number: usize| (format!("http://{}", servers[number].at), "Copy".to_owned()));
    both.sort();
    let audited = audit(&[]);
    assert_eq!(audited.status, 0, "{}", audited.stderr);
    assert_eq!(holders(&audited), both, "neither itself, nor the one that has it not");
    // An Archive that is both named and known is compared once.
    assert_eq!(holders(&audit(&["--with", &both[0].0])), both);
    // Local damage is repaired from an intact holder.
    fs::write(original.data().join("tree").join(&rep).join("v1/content/doc/a"), "0ne").unwrap();
    fs::write(copies[0].data().join("tree").join(&rep).join("v1/content/doc/a"), "0ne").unwrap();
    let body = format!("{{\"resolver\":\"{url}\",\"repair\":true}}");
    let path = format!("/items/{rep}/audit");
    let token = original.token("operator");
    let repaired = servers[0].api(&token, "POST", &path, body.as_bytes());
    assert_eq!(repaired.status, 200, "{}", repaired.text());
    assert_eq!(repaired.json()["repaired"][0], "v1/content/doc/a", "{}", repaired.text());
    assert_eq!(original.archive("audit", &[]).status, 0);
    // A registered Archive that does not answer may have it: that is reported.
    servers[2].signal("-KILL");
    servers[2].end();
    let audited = audit(&[]);
    assert!(audited.stderr.contains("does not answer"), "{}", audited.stderr);
    assert_eq!(holders(&audited).len(), 2);
}

#[test]
fn a_token_goes_to_no_archive_that_a_resolver_names_and_others_than_resolvers_are_told_apart() {
    let folder = Folder::new();
    let server = folder.serve();
    let rep = folder.deposit(&[(b"a", b"one")], &[]);
    let token = folder.place.path().join("token");
    fs::write(&token, "ibi_x").unwrap();
    let url = format!("http://{}", server.at);
    let refused =
        folder.archive("audit", &[&rep, "--resolver", &url, "--token-file", &token.display().to_string()]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.stderr.contains("pass a token only when comparing with one Archive"),
        "{}",
        refused.stderr
    );
    let other = folder.archive("audit", &[&rep, "--resolver", &url]);
    assert_eq!(other.status, 3, "{}", other.stderr);
    assert!(other.stderr.contains("does not answer as a resolver does"), "{}", other.stderr);
    let body = format!("{{\"with\":[\"{url}\",\"http://127.0.0.1:1\"],\"token\":\"ibi_x\"}}");
    let path = format!("/items/{rep}/audit");
    let refused = server.api(&folder.token("operator"), "POST", &path, body.as_bytes());
    assert_eq!(refused.status, 422, "{}", refused.text());
}
