//! A taker asks the giver: a `holder` token cannot create a second Original, and nobody else can
//! delay a hand-over.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Holder, Promising};
use crate::online::client::{Reply, exchange};
use crate::online::until;

/// Messages of somebody with a token of the role `holder`.
fn says(to: &Holder, token: &str, rep: &str, message: &Value) -> Reply {
    to.server.api(token, "POST", &format!("/items/{rep}/handover"), message.to_string().as_bytes())
}

fn inventory(of: &Holder, rep: &str) -> String {
    let held = of.server.get(&format!("/api/v1/items/{rep}/object")).json();
    held["inventory"].as_str().unwrap()[..32].to_owned()
}

/// Threat S8, clause 2.1: everything in a grant is public, so only the granting Archive can confirm
/// it.
#[test]
fn a_grant_that_its_giver_knows_nothing_of_makes_no_second_original() {
    let (original, other, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = original.folder.deposit(&[(b"a", b"one")], &[]);
    let token = taker.folder.token("holder");
    let inventory = inventory(&original, &rep);
    let forged = |message: &str, from: &Holder, epoch: u64| {
        let terms = json!({ "handover": "ab".repeat(16), "epoch": epoch, "inventory": inventory });
        json!({ "message": message, "terms": terms, "from": from.url(), "by": "Eve", "pass": "00", "history": [] })
    };
    let refused = |message: &Value| {
        let answer = says(&taker, &token, &rep, message);
        assert_eq!(answer.problem(), 409, "{message}: {}", answer.text());
        assert!(answer.text().contains("the giver does not confirm this transfer"), "{}", answer.text());
    };
    // Nothing is there; then a copy of the Original; then one of a copy.
    refused(&forged("offer", &original, 2));
    refused(&forged("grant", &original, 2));
    taker.does("copy", &[&rep, "--from", &original.url()]);
    refused(&forged("grant", &original, 2));
    other.does("copy", &[&rep, "--from", &original.url()]);
    taker.does("drop", &[&rep, "--yes"]);
    taker.does("copy", &[&rep, "--from", &other.url()]);
    for epoch in [1, 2, 9_000_000_000_000] {
        refused(&forged("grant", &other, epoch));
    }
    assert_eq!((original.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
    // Also for an old truth: there and back, and the first grant again at an Archive that has
    // forgotten it.
    let taken = taker.token_file("holder");
    original.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &taken]);
    let standing = |name: &str| {
        let path = format!("/api/v1/items/{rep}/handover?name={name}");
        original.server.get(&path).json()["step"].clone()
    };
    assert_eq!(standing(&"ab".repeat(16)), "none");
    assert_eq!(original.server.get(&format!("/api/v1/items/{rep}/handover")).problem(), 400);
}

/// A giver run by the attacker, which answers as needed.
fn lying(standing: &Value) -> String {
    let giver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", giver.local_addr().unwrap());
    let body = standing.to_string();
    std::thread::spawn(move || {
        for mut stream in giver.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    url
}

/// Nobody can speak for the Archive that a copy came from, nor for the one that an item was granted
/// to.
#[test]
fn a_giver_that_lies_of_who_it_is_makes_no_second_original() {
    let (original, taker) = (Holder::new(), Holder::new());
    let rep = original.folder.deposit(&[(b"a", b"one")], &[]);
    taker.does("copy", &[&rep, "--from", &original.url()]);
    let terms = json!({ "handover": "cd".repeat(16), "epoch": 2, "inventory": inventory(&original, &rep) });
    let from = lying(&json!({ "archive": original.folder.service, "step": "granted", "terms": terms }));
    let grant = json!({ "message": "grant", "terms": terms, "from": from, "by": "Eve", "history": [] });
    let refused = says(&taker, &taker.folder.token("holder"), &rep, &grant);
    assert_eq!(refused.problem(), 409, "{}", refused.text());
    assert_eq!((original.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
    // It is granted to an Archive that does not answer: only that one can hand it back.
    let promising = Promising::new();
    let operator = original.folder.token("operator");
    let begun = json!({ "to": promising.url() }).to_string();
    original.server.api(&operator, "POST", &format!("/items/{rep}/transfer"), begun.as_bytes());
    until("it is granted", || original.state(&rep) == "Copy");
    let terms = json!({ "handover": "ef".repeat(16), "epoch": 9, "inventory": inventory(&original, &rep) });
    let from = lying(&json!({ "archive": "m/evil", "step": "granted", "terms": terms }));
    let grant = json!({ "message": "grant", "terms": terms, "from": from, "by": "Eve", "history": [] });
    let waits = says(&original, &original.folder.token("holder"), &rep, &grant);
    assert_eq!(waits.json()["answer"], "fetching", "{}", waits.text());
    assert_eq!(original.state(&rep), "Copy");
    promising.go();
}

/// A grant is for one taker, whoever else learns of it.
#[test]
fn a_grant_is_taken_by_nobody_else_than_its_taker() {
    let (giver, taker, other) = (Holder::new(), Holder::new(), Holder::new());
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    other.does("copy", &[&rep, "--from", &giver.url()]);
    taker.does("copy", &[&rep, "--from", &giver.url()]);
    // The taker is ready, and is stopped before it is granted anything.
    let promising = Promising::of(&taker.folder.service);
    let operator = giver.folder.token("operator");
    let begun = json!({ "to": promising.url() }).to_string();
    giver.server.api(&operator, "POST", &format!("/items/{rep}/transfer"), begun.as_bytes());
    until("it is granted", || giver.state(&rep) == "Copy");
    let notes = giver.folder.data().join("service/handovers");
    let note = fs::read_dir(notes).unwrap().next().unwrap().unwrap().path();
    let name = note.file_stem().unwrap().to_str().unwrap().to_owned();
    let standing = giver.server.get(&format!("/api/v1/items/{rep}/handover?name={name}")).json();
    assert_eq!((&standing["step"], &standing["taker"]), (&json!("granted"), &json!(taker.folder.service)));
    let (from, terms) = (giver.url(), &standing["terms"]);
    let grant = json!({ "message": "grant", "terms": terms, "from": from, "by": "Ana", "history": [] });
    let refused = says(&other, &other.folder.token("holder"), &rep, &grant);
    assert_eq!(refused.problem(), 409, "{}", refused.text());
    let token = taker.folder.token("holder");
    // Its copy is verified before that.
    until("it is accepted", || says(&taker, &token, &rep, &grant).json()["answer"] == "accepted");
    let states = [&giver, &taker, &other].map(|holder| holder.state(&rep));
    assert_eq!(states, ["Copy", "Original", "Copy"]);
    promising.go();
}

/// These may be the last bytes: if the taker shows nothing, the giver keeps them.
#[test]
fn nothing_is_dropped_for_a_taker_that_only_passes_on_what_is_here() {
    let giver = Holder::new();
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    let at = giver.server.at.clone();
    let taker = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taker.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut said = 0;
        for mut stream in taker.incoming().flatten() {
            let mut asked = vec![0; 1 << 16];
            let many = stream.read(&mut asked).unwrap_or(0);
            if asked.starts_with(b"POST") {
                said += 1;
                let ready = "{\"answer\":\"ready\",\"archive\":\"a.test/b/2026/11.16.00.00\"}";
                let body = if said == 1 { ready } else { "{\"answer\":\"accepted\"}" };
                let length = body.len();
                let head = "HTTP/1.1 200 OK\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
            } else {
                let _ = stream.write_all(&exchange(&at, &asked[..many]));
            }
        }
    });
    giver.does("transfer", &[&rep, "--to", &url, "--keep", "nothing"]);
    assert_eq!(giver.state(&rep), "Copy", "it is still here");
    assert!(giver.server.log().contains("ALARM: the recipient does not serve the item that it accepted"));
}

/// Clause 2.1: the witness does not answer. Doubt fails closed, and the operator's confirmation
/// ends it.
#[test]
fn a_frozen_source_keeps_a_giver_waiting_until_the_operator_speaks() {
    let (first, giver, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = first.folder.deposit(&[(b"a", b"one")], &[]);
    taker.does("copy", &[&rep, "--from", &first.url()]);
    first.does("transfer", &[&rep, "--to", &giver.url(), "--token-file", &giver.takes_from(&first)]);
    first.server.signal("-STOP");
    // It cannot name its recipient: only the operator can confirm it.
    taker.folder.trusts_giver(&giver.url(), None);
    let operator = giver.folder.token("operator");
    let begun = json!({ "to": taker.url(), "token": taker.folder.token("holder") }).to_string();
    let path = format!("/items/{rep}/transfer");
    assert_eq!(giver.server.api(&operator, "POST", &path, begun.as_bytes()).status, 202);
    until("it waits", || {
        let standing = giver.server.api(&operator, "GET", &path, b"").json();
        standing["handover"]["said"].as_str().is_some_and(|said| said.contains("is unconfirmed"))
    });
    assert_eq!((giver.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
    taker.folder.trusts_giver(&giver.url(), Some(&rep));
    until("it is handed over", || giver.state(&rep) == "Copy" && taker.state(&rep) == "Original");
    first.server.signal("-CONT");
    let states = [&first, &giver, &taker].map(|holder| holder.state(&rep));
    assert_eq!(states, ["Copy", "Copy", "Original"]);
}

/// An Archive is identified by its service, whatever its address.
#[test]
fn an_archive_with_two_addresses_hands_back() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let second = there.url().replace("127.0.0.1", "localhost");
    here.does("transfer", &[&rep, "--to", &second, "--token-file", &there.takes_from(&here)]);
    there.does("transfer", &[&rep, "--to", &here.url(), "--token-file", &here.token_file("holder")]);
    assert_eq!((here.state(&rep).as_str(), there.state(&rep).as_str()), ("Original", "Copy"));
    let itself = here.run("copy", &[&rep, "--from", &here.url()]);
    assert_eq!(itself.status, 1);
    assert!(itself.stderr.contains("is this Archive itself"), "{}", itself.stderr);
}

#[test]
fn what_the_taker_can_never_take_ends_the_hand_over() {
    let (here, there) = (Holder::new(), Holder::new());
    let alias = ["--alias", "83LX3pFwXQZeBBx/hwiTk"];
    let rep = here.folder.deposit(&[(b"a", b"one")], &alias);
    there.folder.deposit(&[(b"b", b"two")], &alias);
    let refused =
        here.run("transfer", &[&rep, "--to", &there.url(), "--token-file", &there.takes_from(&here)]);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("the item cannot be taken"), "{}", refused.stderr);
    assert!(there.server.log().contains("is never reassigned"), "its operator sees why");
    assert_eq!(here.state(&rep), "Original");
}
