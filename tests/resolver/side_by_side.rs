//! Several resolvers side by side: an Archive registers with all of them.

use std::fs;

use super::{Folder, Resolver, location, until};
use crate::binary::ibi;

/// From one exported registry, in which keys are digests: the same key is good at both.
#[test]
fn resolvers_from_one_registry_answer_alike() {
    let [first, second] = [Resolver::new(), Resolver::new()];
    let folder = Folder::new();
    let (key, registry) = (folder.place.path().join("key"), folder.place.path().join("registry.txt"));
    let made = first.register(&folder.service);
    fs::write(&key, &made).unwrap();
    let text = first.run("export", &[]).stdout;
    assert!(text.contains("$argon2id$") && !text.contains(&made));
    fs::write(&registry, text).unwrap();
    let report = second.json("import", &[&registry.display().to_string()]).pop().unwrap();
    assert_eq!(report["added"], 1);
    let mut servers = [first.serve(), second.serve()];
    let [one, two] = [&first, &second].map(|resolver| format!("http://{}", resolver.at));
    let key = key.display().to_string();
    let mut archive = folder.serve_with(&["--resolver", &one, "--resolver", &two, "--key-file", &key]);
    for resolver in [&first, &second] {
        let online = ("online".to_owned(), archive.at.clone());
        until("it is online", || resolver.standing(&folder.service) == online);
    }
    let item = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let path = format!("/{item}");
    let to = format!("http://{}/col/{item}/doc/a.txt", archive.at);
    servers.iter().for_each(|server| assert_eq!(location(&server.get(&path)), to));
    let statistics = format!("/api/v1/items/{item}/statistics");
    // A client that does not say what it is, is a robot for a resolver that answers from its index;
    // an acknowledgment does not tell.
    let counted = || {
        let counted = &archive.get(&statistics).json()["totals"]["resolutions"];
        counted["people"].as_u64().unwrap() + counted["robots"].as_u64().unwrap()
    };
    until("the redirects of both are counted", || counted() == 2);
    // What is not here is sent to the first.
    let away = archive.get("/unknown.test/x/2020/01.01.01.01");
    assert_eq!(away.header("location"), format!("{one}/unknown.test/x/2020/01.01.01.01"));
    // One is gone: the other goes on, and is told when the Archive leaves.
    servers[0].signal("-KILL");
    servers[0].end();
    assert_eq!(location(&servers[1].get(&path)), to);
    archive.signal("-TERM");
    assert_eq!(archive.end(), Some(0));
    assert_eq!(second.standing(&folder.service).0, "offline");
}

#[test]
fn each_resolver_may_have_a_key_of_its_own() {
    let resolvers = [Resolver::new(), Resolver::new()];
    let _servers = [resolvers[0].serve(), resolvers[1].serve()];
    let folder = Folder::new();
    let mut said = Vec::new();
    for (number, resolver) in resolvers.iter().enumerate() {
        let key = folder.place.path().join(format!("key{number}"));
        fs::write(&key, resolver.register(&folder.service)).unwrap();
        said.extend(["--resolver".to_owned(), format!("http://{}", resolver.at)]);
        said.extend(["--key-file".to_owned(), key.display().to_string()]);
    }
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let _archive = folder.serve_with(&said);
    for resolver in &resolvers {
        until("it is online", || resolver.standing(&folder.service).0 == "online");
    }
    let data = folder.data().display().to_string();
    let serve = ["archive", "serve", "--data", &data, "--listen", "127.0.0.1:0"];
    for (more, words) in [
        (&["--resolver", "http://a.test", "--resolver", "http://b.test"][..], "3 keys for 4 resolvers"),
        (&[said[0], said[1]][..], "is given twice"),
    ] {
        let all = [&serve[..], &said, more, &["--key-file", said[3]][..]].concat();
        let run = ibi(&all);
        assert_eq!(run.status, 2, "{}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}
