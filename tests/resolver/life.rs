//! Archives and resolvers that stop, are killed, move and come back (clauses 3.3 and 4.3).

use super::outcomes::{INCOMPLETE, told};
use super::{Folder, Resolver, follow, location, until};
use crate::binary::ibi_with;

#[test]
fn an_archive_that_stops_is_killed_moves_and_comes_back_is_followed() {
    let [a, b] = [Folder::new(), Folder::new()];
    let item = format!("/{}", a.deposit(&[(b"a.txt", b"one")], &[]));
    let other = format!("/{}", b.deposit(&[(b"a.txt", b"two")], &[]));
    let resolver = Resolver::new();
    let server = resolver.serve();
    let mut archive = resolver.on_line(&a);
    let _other = resolver.on_line(&b);
    let mut ports = vec![archive.at.clone()];
    for end in ["-TERM", "-KILL", "-TERM"] {
        assert_eq!(location(&server.get(&item)), format!("http://{}/col{item}/doc/a.txt", archive.at));
        archive.signal(end);
        let status = archive.end();
        assert_eq!(status, if end == "-TERM" { Some(0) } else { None }, "{}", archive.log());
        if end == "-TERM" {
            // It announced it: nothing has to be detected.
            assert_eq!(resolver.standing(&a.service).0, "offline");
        }
        let (json, _) = told(&server, &item, 503, INCOMPLETE);
        assert_eq!(json["silent"], serde_json::json!([a.service]));
        assert_eq!(follow(&server.get(&other)).body, b"two");
        let last = std::mem::replace(&mut archive, resolver.on_line(&a));
        drop(last);
        ports.push(archive.at.clone());
        assert_eq!(follow(&server.get(&item)).body, b"one", "at its new address at once");
    }
    ports.dedup();
    assert!(ports.len() > 1, "it was somewhere else: {ports:?}");
}

/// A hanging Archive delays nobody who asks for other Archives' items, and is not taken for one
/// without the item.
#[test]
fn an_archive_that_hangs_delays_only_what_it_has() {
    let [a, b] = [Folder::new(), Folder::new()];
    let item = format!("/{}", a.deposit(&[(b"a.txt", b"one")], &[]));
    let other = format!("/{}", b.deposit(&[(b"a.txt", b"two")], &[]));
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&a);
    let _other = resolver.on_line(&b);
    archive.signal("-STOP");
    for _ in 0..20 {
        assert_eq!(follow(&server.get(&other)).body, b"two");
    }
    let reply = server.get_with(&item, "Accept: application/json\r\n");
    assert_eq!((reply.problem(), &reply.json()["silent"][0]), (503, &a.service.as_str().into()));
    archive.signal("-CONT");
    until("it answers again", || server.get(&item).status == 302);
    assert_eq!(follow(&server.get(&item)).body, b"one");
}

/// The registry survives: Archives that were online are queried at once, without any action.
#[test]
fn a_resolver_that_is_restarted_resolves_as_before() {
    let folder = Folder::new();
    let item = format!("/{}", folder.deposit(&[(b"a.txt", b"one")], &[]));
    let resolver = Resolver::new();
    let mut server = resolver.serve();
    let archive = resolver.on_line(&folder);
    for end in ["-TERM", "-KILL"] {
        server.signal(end);
        assert_eq!(server.end(), if end == "-TERM" { Some(0) } else { None }, "{}", server.log());
        let last = std::mem::replace(&mut server, resolver.serve());
        assert!(!last.log().contains("panicked"));
        assert_eq!(follow(&server.get(&item)).body, b"one");
    }
    assert_eq!(archive.log().matches("confirmed by the resolver").count(), 1, "it was told once");
    // One server at a time; commands work beside it.
    let twice = resolver.run("serve", &["--listen", "127.0.0.1:0"]);
    assert_eq!((twice.status, twice.stdout.as_str()), (4, ""), "{}", twice.stderr);
    assert!(twice.stderr.contains("online already: stop it first"), "{}", twice.stderr);
    assert_eq!(resolver.json("archives", &[]).len(), 1);
    let (status, log) = archive.stop();
    assert_eq!(status, Some(0));
    assert!(log.contains("offline: the resolver was notified"), "{log}");
}

#[test]
fn an_archive_waits_for_a_resolver_that_comes_later() {
    let folder = Folder::new();
    let item = format!("/{}", folder.deposit(&[(b"a.txt", b"one")], &[]));
    let resolver = Resolver::new();
    let key = folder.place.path().join("key");
    std::fs::write(&key, resolver.register(&folder.service)).unwrap();
    let url = format!("http://{}", resolver.at);
    let archive = folder.serve_with(&["--resolver", &url, "--key-file", &key.display().to_string()]);
    until("it was tried in vain", || archive.log().contains("cannot reach the resolver"));
    let server = resolver.serve();
    let here = ("online".to_owned(), archive.at.clone());
    until("it was tried again", || resolver.standing(&folder.service) == here);
    assert_eq!(follow(&server.get(&item)).body, b"one");
}

/// Another resolver continues from an export: the Archive keeps its key.
#[test]
fn a_registry_that_is_exported_is_gone_on_with_elsewhere() {
    let folder = Folder::new();
    let item = format!("/{}", folder.deposit(&[(b"a.txt", b"one")], &[]));
    let [first, second] = [Resolver::new(), Resolver::new()];
    let old = first.serve();
    drop(first.on_line(&folder));
    assert_eq!(first.standing(&folder.service).0, "offline");
    let text = first.run("export", &[]).stdout;
    let key = std::fs::read_to_string(folder.place.path().join("key")).unwrap();
    assert!(text.starts_with("ibi registry, format 1\n") && text.contains(&folder.service), "{text}");
    assert!(!text.contains(&key) && text.contains("$argon2id$"), "only its digest");
    drop(old);
    let data = second.data().display().to_string();
    let import = ["resolver", "import", "--data", &data, "--json", "-"];
    for (added, kept) in [(1, 0), (0, 1)] {
        let run = ibi_with(&import, text.as_bytes());
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert_eq!(run.json()[0], serde_json::json!({ "added": added, "replaced": 0, "kept": kept }));
    }
    assert_eq!(second.run("export", &[]).stdout, text, "word for word");
    let server = second.serve();
    assert_eq!(server.get(&item).status, 503, "it is known, and offline");
    let _archive = second.on_line(&folder);
    assert_eq!(follow(&server.get(&item)).body, b"one");
}
