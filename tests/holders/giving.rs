//! Who gives is asked: a token of a holder makes no second Original, and nobody else keeps a hand-over waiting.

use serde_json::{Value, json};

use super::Holder;
use crate::online::client::Reply;

/// What somebody with a token of the role `holder` says.
fn says(to: &Holder, token: &str, rep: &str, message: &Value) -> Reply {
    to.server.api(token, "POST", &format!("/items/{rep}/handover"), message.to_string().as_bytes())
}

fn inventory(of: &Holder, rep: &str) -> String {
    let held = of.server.get(&format!("/api/v1/items/{rep}/object")).json();
    held["inventory"].as_str().unwrap()[..32].to_owned()
}

/// Threat S8, clause 2.1: all that is in a grant is public, so that only who grants can tell.
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
        assert!(answer.text().contains("asked by itself"), "{}", answer.text());
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
    // Also what was true once: there and back, and the first grant again at one that has forgotten it.
    let taken = taker.token_file("holder");
    original.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &taken]);
    let standing = |name: &str| {
        let path = format!("/api/v1/items/{rep}/handover?name={name}");
        original.server.get(&path).json()["step"].clone()
    };
    assert_eq!(standing(&"ab".repeat(16)), "none");
    assert_eq!(original.server.get(&format!("/api/v1/items/{rep}/handover")).problem(), 400);
}

/// "The hand-over ends by itself once both are up": also if a third one is frozen that the copy came from.
#[test]
fn a_frozen_third_archive_keeps_nobody_waiting() {
    let (first, giver, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = first.folder.deposit(&[(b"a", b"one")], &[]);
    taker.does("copy", &[&rep, "--from", &first.url()]);
    first.does("transfer", &[&rep, "--to", &giver.url(), "--token-file", &giver.token_file("holder")]);
    first.server.signal("-STOP");
    giver.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &taker.token_file("holder")]);
    first.server.signal("-CONT");
    let states = [&first, &giver, &taker].map(|holder| holder.state(&rep));
    assert_eq!(states, ["Copy", "Copy", "Original"]);
}

/// An Archive is who it says that it is, whatever it is called.
#[test]
fn an_archive_with_two_addresses_hands_back() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let second = there.url().replace("127.0.0.1", "localhost");
    here.does("transfer", &[&rep, "--to", &second, "--token-file", &there.token_file("holder")]);
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
        here.run("transfer", &[&rep, "--to", &there.url(), "--token-file", &there.token_file("holder")]);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("is never given to another"), "{}", refused.stderr);
    assert_eq!(here.state(&rep), "Original");
}
