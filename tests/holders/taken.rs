//! A taker verifies its copy before it becomes the Original. A hand-over completes although the
//! taker moves or the giver loses its notes.

use std::fs;
use std::net::TcpListener;

use serde_json::json;

use super::{Holder, Promising, byte_equal};
use crate::binary::ibi;
use crate::online::server::Server;
use crate::online::{Folder, until};

/// Clause 2.1, "the taker first holds a verified Copy": a recorded but damaged copy does not count.
#[test]
fn a_damaged_copy_is_fetched_again_before_it_is_the_original() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let token = taker.token_file("holder");
    let damage = [
        ("v1/content/doc/a", Some("0ne")),
        ("v1/content/doc/a", None),
        ("v1/content/metadata/oai_dc.xml", Some("<x/>")),
        ("v1/content/item.json", None),
        ("inventory.json", Some("{}")),
        ("v1/inventory.json", None),
        ("", None),
    ];
    for (file, bytes) in damage {
        let rep = giver.folder.deposit(&[(b"a", b"one"), (b"b", b"two")], &[]);
        let before = taker.folder.place.path().join("before");
        let _ = fs::remove_dir_all(&before);
        taker.does("copy", &[&rep, "--from", &giver.url()]);
        assert_eq!(taker.run("export", &[&rep, "--out", before.to_str().unwrap()]).status, 0);
        let place = taker.tree(&rep).join(file);
        match bytes {
            Some(bytes) => fs::write(&place, bytes).unwrap(),
            None if file.is_empty() => fs::remove_dir_all(taker.tree(&rep)).unwrap(),
            None => fs::remove_file(&place).unwrap(),
        }
        giver.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &token, "--keep", "nothing"]);
        assert!(!giver.tree(&rep).exists(), "{file}: it is kept here");
        assert_eq!(taker.state(&rep), "Original", "{file}");
        let audit = taker.run("audit", &[&rep]);
        assert_eq!(audit.status, 0, "{file}: {}{}", audit.stdout, audit.stderr);
        assert_eq!(fs::read(taker.tree(&rep).join("v1/content/doc/a")).unwrap(), b"one", "{file}");
    }
}

/// A taker is identified by its service, at any address.
#[test]
fn a_taker_that_moved_takes_it_at_its_new_address() {
    let (giver, taker, other) = (Holder::new(), Holder::new(), Holder::new());
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    let promising = Promising::of(&taker.folder.service);
    let operator = giver.folder.token("operator");
    let begun = json!({ "to": promising.url() }).to_string();
    giver.server.api(&operator, "POST", &format!("/items/{rep}/transfer"), begun.as_bytes());
    until("it is granted", || giver.state(&rep) == "Copy");
    let promising_url = json!(promising.url());
    promising.go();
    // Nothing of the item is there; then a copy, at another Archive than the taker.
    let path = format!("/items/{rep}/transfer");
    let to = |holder: &Holder| {
        let body = json!({ "to": holder.url(), "token": holder.folder.token("holder") }).to_string();
        giver.server.api(&operator, "POST", &path, body.as_bytes())
    };
    assert_eq!(to(&other).problem(), 422);
    other.does("copy", &[&rep, "--from", &giver.url()]);
    let refused = to(&other);
    assert_eq!(refused.problem(), 409, "{}", refused.text());
    let noted = giver.server.api(&operator, "GET", &path, b"").json()["handover"]["to"].clone();
    assert_eq!(noted, promising_url, "it goes on with who it was granted to");
    taker.does("copy", &[&rep, "--from", &giver.url()]);
    // It only had a copy then, so it is no witness.
    taker.folder.trusts_giver(&giver.url(), Some(&rep));
    assert_eq!(to(&taker).status, 202);
    until("it is over", || giver.shown(&rep)["source"] == json!(taker.url()));
    assert_eq!((giver.state(&rep).as_str(), taker.state(&rep).as_str()), ("Copy", "Original"));
    giver.does("refresh", &[&rep]);
}

/// A giver restored from before the grant asks its taker how it ended.
#[test]
fn a_restored_giver_learns_from_its_taker_that_it_gave_the_item() {
    let (mut giver, taker) = (Holder::new(), Folder::new());
    let [rep, other] = [b"one", b"two"].map(|bytes| giver.folder.deposit(&[(b"a", bytes)], &[]));
    let folder = giver.folder.place.path().to_owned();
    let [data, backup, restored] =
        ["data", "backup", "restored"].map(|name| folder.join(name).display().to_string());
    // The taker is down.
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{at}");
    taker.trusts_giver(&giver.url(), None);
    let begun = json!({ "to": url, "token": taker.token("holder") }).to_string();
    let operator = giver.folder.token("operator");
    let path = format!("/items/{rep}/transfer");
    assert_eq!(giver.server.api(&operator, "POST", &path, begun.as_bytes()).status, 202);
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    let taking = Server::run(&["archive", "serve", "--listen", &at], &taker.data(), &[]);
    until("it is handed over", || {
        let item = taking.get(&format!("/api/v1/items/{rep}"));
        item.status == 200 && item.json()["state"] == "Original"
    });
    giver.server.signal("-KILL");
    giver.server.end();
    assert_eq!(ibi(&["restore", "--from", &backup, "--data", &restored]).status, 0);
    let unheard = ibi(&["archive", "confirm", "--data", &restored]);
    assert_eq!(unheard.status, 4, "how the hand-over ended is not known: {}", unheard.stderr);
    giver.server = Server::start(restored.as_ref(), &[]);
    let notes = folder.join("restored/service/handovers");
    until("it has learnt", || fs::read_dir(&notes).is_ok_and(|mut notes| notes.next().is_none()));
    // The operator's confirmation makes another item the Original again. Before it, no token of the
    // backup is valid: some may have been revoked since.
    let other = |server: &Server| server.get(&format!("/api/v1/items/{other}")).json()["state"].clone();
    assert_eq!(other(&giver.server), "Copy");
    assert_eq!(giver.server.api(&operator, "GET", "/links", b"").problem(), 401);
    for message in ["Originals again", "nothing to confirm"] {
        let confirmed = ibi(&["archive", "confirm", "--data", &restored]);
        assert!(confirmed.status == 0 && confirmed.stderr.contains(message), "{}", confirmed.stderr);
        // The server reopens the Archive once the command has ended its lease.
        until("it answers Original", || other(&giver.server) == "Original");
    }
    assert_eq!(giver.server.api(&operator, "GET", "/links", b"").status, 200);
    let item = giver.server.get(&format!("/api/v1/items/{rep}")).json();
    assert_eq!((&item["state"], &item["source"]), (&json!("Copy"), &json!(url)), "{item}");
    assert!(byte_equal(&folder.join("restored/tree").join(&rep), &taker.data().join("tree").join(&rep)));
}

/// The giver names a hand-over: a name used for another item proves nothing.
#[test]
fn a_name_that_was_accepted_for_another_item_accepts_nothing() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let [one, two] = [b"one", b"two"].map(|bytes| giver.folder.deposit(&[(b"a", bytes)], &[]));
    let token = taker.takes_from(&giver);
    giver.does("transfer", &[&one, "--to", &taker.url(), "--token-file", &token]);
    let journal = fs::read_to_string(taker.folder.data().join("journal")).unwrap();
    let (_, rest) = journal.split_once("accept:").unwrap();
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let terms = json!({ "handover": name, "epoch": 2, "inventory": "0".repeat(32) });
    let grant =
        json!({ "message": "grant", "terms": terms, "from": giver.url(), "by": "Eve", "history": [] });
    let path = format!("/items/{two}/handover");
    let answer = taker.server.api(&taker.folder.token("holder"), "POST", &path, grant.to_string().as_bytes());
    assert_eq!(answer.problem(), 409, "{}", answer.text());
}

/// "With all its versions, metadata and history": however much there is, and each event once.
#[test]
fn a_long_history_goes_with_its_item() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    let operator = giver.folder.token("operator");
    let update = |number: u32| {
        let body =
            json!({ "metadata": [{ "element": "title", "value": format!("{number} {}", "x".repeat(200)) }] });
        let answer =
            giver.server.api(&operator, "PATCH", &format!("/items/{rep}"), body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    (1..200).for_each(update);
    taker.does("copy", &[&rep, "--from", &giver.url()]);
    let events = |holder: &Holder| {
        let shown = holder.shown(&rep);
        let events = shown["history"].as_array().unwrap().clone();
        events.into_iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(events(&taker), [events(&giver), vec!["copy".to_owned()]].concat());
    update(200);
    taker.does("refresh", &[]);
    giver.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &taker.token_file("holder")]);
    let all = events(&taker);
    let count = |name: &str| all.iter().filter(|event| *event == name).count();
    let counts = ["deposit", "update", "copy", "refresh", "grant", "accept"].map(count);
    assert_eq!(counts, [1, 200, 1, 1, 1, 1], "{all:?}");
}

/// A copy follows the Original, wherever it was handed over to.
#[test]
fn a_copy_follows_its_original_from_archive_to_archive() {
    let (first, second, third, copy) = (Holder::new(), Holder::new(), Holder::new(), Holder::new());
    let rep = first.folder.deposit(&[(b"a", b"one")], &[]);
    copy.does("copy", &[&rep, "--from", &first.url()]);
    for (giver, taker) in [(&first, &second), (&second, &third)] {
        let token = taker.takes_from(giver);
        giver.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &token, "--keep", "nothing"]);
    }
    copy.does("refresh", &[]);
    third.does("update", &[&rep, "--dc", "title=Two"]);
    copy.does("refresh", &[&rep]);
    let shown = copy.shown(&rep);
    assert_eq!((&shown["version"], &shown["source"]), (&json!(2), &json!(third.url())));
    // Only the named Archive is asked.
    let named = copy.run("refresh", &[&rep, "--from", &first.url()]);
    assert_eq!(named.status, 1, "{}", named.stderr);
    assert!(named.stderr.contains("transferred to"), "{}", named.stderr);
}
