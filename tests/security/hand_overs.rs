//! A token of the role `holder` creates no false Original (clause 2.1): a third party must name the
//! giver.

use std::fs;

use serde_json::{Value, json};

use crate::binary::Run;
use crate::holders::{Holder, Promising};
use crate::online::{Folder, until};
use crate::resolver::Resolver;

/// An Archive that has a copy from another, and claims the Original.
fn impostor(of: &Holder, rep: &str) -> Holder {
    let impostor = Holder::new();
    claims(&impostor, of, rep);
    impostor
}

fn claims(impostor: &Holder, of: &Holder, rep: &str) {
    let token = of.token_file("holder");
    impostor.does("copy", &[rep, "--from", &of.url(), "--token-file", &token]);
    // Its operator declares it falsely, without asking the true holder.
    of.server.signal("-STOP");
    let said = impostor.run("update", &[rep, "--original", "--yes"]);
    of.server.signal("-CONT");
    assert_eq!((said.status, impostor.state(rep).as_str()), (0, "Original"), "{}", said.stderr);
}

fn gives(giver: &Holder, rep: &str, taker: &Holder) -> Run {
    let token = taker.token_file("holder");
    giver.run("transfer", &[rep, "--to", &taker.url(), "--token-file", &token])
}

/// Starts a hand-over that may wait, and reports why it does.
fn waits(giver: &Holder, rep: &str, taker: &Holder, for_what: &str) {
    let operator = giver.folder.token("operator");
    let path = format!("/items/{rep}/transfer");
    let begun = json!({ "to": taker.url(), "token": taker.folder.token("holder") }).to_string();
    assert_eq!(giver.server.api(&operator, "POST", &path, begun.as_bytes()).status, 202);
    until(for_what, || {
        let standing = giver.server.api(&operator, "GET", &path, b"").json();
        standing["handover"]["said"].as_str().is_some_and(|said| said.contains(for_what))
    });
    giver.does("transfer", &[rep, "--cancel"]);
}

/// A hand-over that is granted, with a server that never accepts it in the taker's place: the
/// messages that the taker would get.
fn grants(giver: &Holder, rep: &str, taker: &Holder) -> (Promising, Value) {
    let promising = Promising::of(&taker.folder.service);
    let operator = giver.folder.token("operator");
    let begun = json!({ "to": promising.url() }).to_string();
    giver.server.api(&operator, "POST", &format!("/items/{rep}/transfer"), begun.as_bytes());
    until("it is granted", || giver.state(rep) == "Copy");
    let notes = giver.folder.data().join("service/handovers");
    let note = fs::read_dir(notes).unwrap().next().unwrap().unwrap().path();
    let note: Value = serde_json::from_slice(&fs::read(note).unwrap()).unwrap();
    let name = note["handover"].as_str().unwrap();
    let standing = giver.server.get(&format!("/api/v1/items/{rep}/handover?name={name}")).json();
    let grant = json!({ "message": "grant", "terms": standing["terms"], "from": giver.url(), "by": "Eve",
                        "pass": note["pass"] });
    (promising, grant)
}

/// An Archive's view of the link that a newer item states.
fn link_status(of: &Holder, newer: &str) -> String {
    let links = of.run("links list", &[]).json();
    let link = links.iter().rev().find(|link| link["newer"] == newer);
    link.and_then(|link| link["status"].as_str()).unwrap_or("unknown").to_owned()
}

/// The source is closed to clients without a token, and still confirms that it has the Original.
#[test]
fn what_is_closed_at_its_source_is_not_taken_from_another() {
    let (source, taker) = (Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &["--access", "until:2999-01-01"]);
    let token = source.token_file("holder");
    taker.does("copy", &[&rep, "--from", &source.url(), "--token-file", &token]);
    assert_eq!(source.server.get(&format!("/api/v1/items/{rep}/object")).status, 403);
    let refused = gives(&impostor(&source, &rep), &rep, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("another Archive claims the Original"), "{}", refused.stderr);
    assert_eq!((source.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
}

/// A tombstone at the source, open or closed, overrides everything, including the operator's
/// confirmation.
#[test]
fn what_was_removed_at_its_source_is_not_taken_from_another() {
    for access in ["public", "until:2999-01-01"] {
        let (source, taker) = (Holder::new(), Holder::new());
        let rep = source.folder.deposit(&[(b"a", b"one")], &["--access", access]);
        let token = source.token_file("holder");
        taker.does("copy", &[&rep, "--from", &source.url(), "--token-file", &token]);
        let impostor = impostor(&source, &rep);
        source.does("remove", &[&rep, "--reason", "by law", "--yes"]);
        taker.folder.trusts_giver(&impostor.url(), None);
        taker.folder.trusts_giver(&impostor.url(), Some(&rep));
        let refused = gives(&impostor, &rep, &taker);
        assert_eq!(refused.status, 4, "{access}: {}", refused.stderr);
        assert!(refused.stderr.contains("was removed"), "{access}: {}", refused.stderr);
        assert_eq!(taker.state(&rep), "Copy", "{access}");
    }
}

/// An offline source contradicts nobody, and confirms nobody.
#[test]
fn a_source_that_is_offline_is_waited_for() {
    let (mut source, taker) = (Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &[]);
    taker.does("copy", &[&rep, "--from", &source.url()]);
    let impostor = impostor(&source, &rep);
    source.server.signal("-KILL");
    source.server.end();
    taker.folder.trusts_giver(&impostor.url(), None);
    waits(&impostor, &rep, &taker, "to the Original is unconfirmed");
    assert_eq!(taker.state(&rep), "Copy");
}

/// No Archive can be asked: only the operator can confirm.
#[test]
fn what_never_was_here_is_taken_on_the_operators_word_only() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    let refused = gives(&giver, &rep, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("ibi archive givers trust"), "{}", refused.stderr);
    assert_eq!((giver.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "nothing"));
    taker.folder.trusts_giver(&giver.url(), None);
    let listed = taker.run("givers list", &[]).json();
    assert_eq!(listed, [json!({ "giver": giver.url() })]);
    assert_eq!(gives(&giver, &rep, &taker).status, 0);
    assert_eq!((giver.state(&rep).as_str(), taker.state(&rep).as_str()), ("Copy", "Original"));
}

/// A resolver names the giver, or another Archive, or does not know.
#[test]
fn a_resolver_is_asked_who_has_what_never_was_here() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let member = || {
        let folder = Folder::new();
        Holder { server: resolver.on_line(&folder), folder }
    };
    let (mut source, taker, impostor) = (member(), member(), member());
    let [rep, other] = [b"one", b"two"].map(|bytes| source.folder.deposit(&[(b"a", bytes)], &[]));
    claims(&impostor, &source, &rep);
    let refused = gives(&impostor, &rep, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("another Archive claims the Original"), "{}", refused.stderr);
    // The true giver is named.
    let handed = gives(&source, &other, &taker);
    assert_eq!(handed.status, 0, "{}", handed.stderr);
    assert_eq!((source.state(&other).as_str(), taker.state(&other).as_str()), ("Copy", "Original"));
    // The true holder is offline: that only the impostor claims it proves nothing.
    source.server.signal("-KILL");
    source.server.end();
    waits(&impostor, &rep, &taker, "did not answer the resolver");
    assert_eq!(taker.state(&rep), "nothing");
}

/// A giver's reports about other Archives are not kept: they could be invented.
#[test]
fn events_of_others_do_not_come_with_a_grant() {
    let (first, giver, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = first.folder.deposit(&[(b"a", b"one")], &[]);
    let token = giver.takes_from(&first);
    first.does("transfer", &[&rep, "--to", &giver.url(), "--token-file", &token]);
    let told = |holder: &Holder| -> Vec<(Value, Value)> {
        let events = holder.shown(&rep)["history"].as_array().unwrap().clone();
        events.into_iter().map(|event| (event["at"].clone(), event["event"].clone())).collect()
    };
    // The taker is ready, and the grant comes with an invented history.
    taker.folder.trusts_giver(&giver.url(), None);
    let (promising, mut grant) = grants(&giver, &rep, &taker);
    let event = |at: &str, event: &str| {
        json!({ "at": at, "change": 99, "time": "2026-11-17T00:00:00Z", "event": event, "version": 1,
                "state": "Original", "by": "Eve" })
    };
    let history = [event(&first.folder.service, "remove"), event(&giver.folder.service, "grant")];
    grant["history"] = json!(history);
    let (token, path) = (taker.folder.token("holder"), format!("/items/{rep}/handover"));
    until("it is accepted", || {
        let answer = taker.server.api(&token, "POST", &path, grant.to_string().as_bytes());
        answer.json()["answer"] == "accepted"
    });
    let kept = told(&taker);
    assert!(kept.contains(&(json!(giver.folder.service), json!("grant"))), "{kept:?}");
    assert!(kept.iter().all(|(at, _)| *at != json!(first.folder.service)), "{kept:?}");
    promising.go();
}

/// Regression: an item with another Archive's label, handed over under another name; and another
/// Archive's label among the names of one's own item.
#[test]
fn no_label_of_another_archive_comes_along_as_another_name() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let member = || {
        let folder = Folder::new();
        Holder { server: resolver.on_line(&folder), folder }
    };
    let (source, taker, hostile) = (member(), member(), member());
    let [first, second] = [b"one", b"two"].map(|bytes| source.folder.deposit(&[(b"a", bytes)], &[]));
    let data = hostile.folder.data().display().to_string();
    let minted = crate::binary::ibi(&["mint", "--data", &data]).stdout.trim().to_owned();
    let primary = ["--label", first.as_str(), "--original", "--alias", minted.as_str()];
    hostile.folder.deposit(&[(b"a", b"evil")], &primary);
    let alias = hostile.folder.deposit(&[(b"a", b"own")], &["--alias", &second]);
    for (name, taken, why) in [
        (&minted, &first, "another Archive claims the Original"),
        (&alias, &second, "one of its other labels belongs to an item at another Archive"),
    ] {
        let refused = gives(&hostile, name, &taker);
        assert_eq!(refused.status, 4, "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert_ne!(taker.state(taken), "Original", "{name}");
    }
    // With names that nobody else has it is accepted, under any of them.
    let named = hostile.folder.deposit(&[(b"a", b"own")], &["--alias", "other.test/x/2020/01.01.00.00"]);
    let handed = gives(&hostile, "other.test/x/2020/01.01.00.00", &taker);
    assert_eq!(handed.status, 0, "{}", handed.stderr);
    assert_eq!(taker.state(&named), "Original");
}

/// Regression: while the Archive of the Original was offline, the source of a copy was believed as
/// a giver, though it only had a copy.
#[test]
fn the_source_of_a_copy_is_no_witness_of_the_original() {
    let (mut source, between, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &[]);
    between.does("copy", &[&rep, "--from", &source.url()]);
    taker.does("copy", &[&rep, "--from", &between.url()]);
    source.server.signal("-KILL");
    source.server.end();
    let said = between.run("update", &[&rep, "--original", "--yes"]);
    assert_eq!((said.status, between.state(&rep).as_str()), (0, "Original"), "{}", said.stderr);
    taker.folder.trusts_giver(&between.url(), None);
    let refused = gives(&between, &rep, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("ibi archive givers trust GIVER IBI"), "{}", refused.stderr);
    assert_eq!((between.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
    // The operator's confirmation resolves it.
    taker.folder.trusts_giver(&between.url(), Some(&rep));
    let handed = gives(&between, &rep, &taker);
    assert_eq!((handed.status, taker.state(&rep).as_str()), (0, "Original"), "{}", handed.stderr);
}

/// The same with a resolver: it names the holder of the Original, and nobody while an Archive is
/// silent.
#[test]
fn a_resolver_is_the_witness_where_there_is_none() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let member = || {
        let folder = Folder::new();
        Holder { server: resolver.on_line(&folder), folder }
    };
    let (mut source, between, taker) = (member(), member(), member());
    let [rep, other] = [b"one", b"two"].map(|bytes| source.folder.deposit(&[(b"a", bytes)], &[]));
    for item in [&rep, &other] {
        between.does("copy", &[item, "--from", &source.url()]);
        taker.does("copy", &[item, "--from", &between.url()]);
    }
    let handed = gives(&source, &other, &taker);
    assert_eq!((handed.status, taker.state(&other).as_str()), (0, "Original"), "{}", handed.stderr);
    source.server.signal("-KILL");
    source.server.end();
    let said = between.run("update", &[&rep, "--original", "--yes"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    waits(&between, &rep, &taker, "did not answer the resolver");
    assert_eq!(taker.state(&rep), "Copy");
}

/// Regression: a routine `refresh` made the source, which now claims the Original, its own witness,
/// and its decisions about links led readers to its own items.
#[test]
fn a_refresh_makes_nobody_a_witness_by_its_own_word() {
    let (source, liar, taker) = (Holder::new(), Holder::new(), Holder::new());
    let [rep, newer] = [b"one", b"two"].map(|bytes| source.folder.deposit(&[(b"a", bytes)], &[]));
    for item in [&rep, &newer] {
        liar.does("copy", &[item, "--from", &source.url()]);
        taker.does("copy", &[item, "--from", &liar.url()]);
        source.server.signal("-STOP");
        let said = liar.run("update", &[item, "--original", "--yes"]);
        source.server.signal("-CONT");
        assert_eq!(said.status, 0, "{}", said.stderr);
    }
    let evil = liar.folder.deposit(&[(b"a", b"evil")], &["--next-edition-of", &rep]);
    liar.does("update", &[&newer, "--dc", "title=Newer"]);
    let refreshed = taker.does("refresh", &[]);
    assert!(refreshed.contains("equal") && refreshed.contains("behind"), "{refreshed}");
    // The same if the operator names the Archive to be asked.
    taker.does("refresh", &[&rep, "--from", &liar.url()]);
    taker.does("refresh", &[&newer, "--from", &liar.url()]);
    for item in [&rep, &newer] {
        let refused = gives(&liar, item, &taker);
        assert_eq!(refused.status, 4, "{}", refused.stderr);
        assert!(refused.stderr.contains("ibi archive givers trust GIVER IBI"), "{}", refused.stderr);
        // A general confirmation does not apply to items that came from a copy.
        taker.folder.trusts_giver(&liar.url(), None);
        assert_eq!((gives(&liar, item, &taker).status, taker.state(item).as_str()), (4, "Copy"));
    }
    assert_eq!(link_status(&taker, &evil), "unconfirmed", "readers are not led along it");
}

/// Regression: a `copy` of an item that was already here replaced the true witness by its source.
#[test]
fn a_witness_is_not_replaced_by_another_archives_own_word() {
    let (mut source, liar, taker) = (Holder::new(), Holder::new(), Holder::new());
    let [rep, dropped] = [b"one", b"two"].map(|bytes| source.folder.deposit(&[(b"a", bytes)], &[]));
    for item in [&rep, &dropped] {
        taker.does("copy", &[item, "--from", &source.url()]);
        claims(&liar, &source, item);
    }
    let prefix = rep.rsplit_once('/').and_then(|(rest, _)| rest.rsplit_once('/')).unwrap().0;
    let copied = taker.does("copy", &["--prefix", prefix, "--from", &liar.url()]);
    assert!(copied.contains("equal"), "{copied}");
    // Dropped and copied again, it is not a first copy.
    taker.does("drop", &[&dropped, "--yes"]);
    taker.does("copy", &[&dropped, "--from", &liar.url()]);
    for item in [&rep, &dropped] {
        let refused = gives(&liar, item, &taker);
        assert_eq!((refused.status, taker.state(item).as_str()), (4, "Copy"), "{}", refused.stderr);
        assert!(refused.stderr.contains("another Archive claims the Original"), "{}", refused.stderr);
    }
    source.server.signal("-KILL");
    source.server.end();
    waits(&liar, &rep, &taker, "to the Original is unconfirmed");
    assert_eq!(taker.state(&rep), "Copy");
}

/// The recipient named by a witness is one, too: it is asked when another Archive claims the
/// Original.
#[test]
fn who_a_witness_names_decides_about_links() {
    let (source, heir, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &[]);
    taker.does("copy", &[&rep, "--from", &source.url()]);
    let token = heir.takes_from(&source);
    source.does("transfer", &[&rep, "--to", &heir.url(), "--token-file", &token]);
    let next = heir.folder.deposit(&[(b"a", b"two")], &["--next-edition-of", &rep]);
    taker.does("refresh", &[&rep, "--from", &heir.url()]);
    assert_eq!(link_status(&taker, &next), "accepted");
    let handed = gives(&heir, &rep, &taker);
    assert_eq!((handed.status, taker.state(&rep).as_str()), (0, "Original"), "{}", handed.stderr);
}

/// Regression: bytes fetched on the operator's confirmation named the giver after the confirmation
/// was revoked.
#[test]
fn a_word_that_is_taken_back_counts_no_more() {
    let (source, liar, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &[]);
    claims(&liar, &source, &rep);
    let (promising, grant) = grants(&liar, &rep, &taker);
    let (token, path) = (taker.folder.token("holder"), format!("/items/{rep}/handover"));
    let offered = || taker.server.api(&token, "POST", &path, grant.to_string().as_bytes());
    assert_eq!(offered().status, 409, "nobody names it");
    taker.folder.trusts_giver(&liar.url(), None);
    assert_eq!(offered().json()["answer"], "fetching");
    until("it is fetched", || taker.state(&rep) == "Copy");
    let data = taker.folder.data().display().to_string();
    let said = crate::binary::ibi(&["archive", "givers", "distrust", "--data", &data, &liar.url()]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    let refused = offered();
    assert_eq!((refused.status, taker.state(&rep).as_str()), (409, "Copy"), "{refused:?}");
    // With the confirmation, it completes.
    taker.folder.trusts_giver(&liar.url(), None);
    until("it is accepted", || offered().json()["answer"] == "accepted");
    promising.go();
}

/// Without a resolver, other names cannot be looked up: the operator must confirm the giver.
#[test]
fn without_a_resolver_other_names_need_the_operators_word() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let alias = "other.test/x/2020/01.01.00.00";
    let rep = giver.folder.deposit(&[(b"a", b"one")], &["--alias", alias]);
    taker.does("copy", &[&rep, "--from", &giver.url()]);
    let refused = gives(&giver, &rep, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("its other labels cannot be verified without a resolver"),
        "{}",
        refused.stderr
    );
    assert_eq!((giver.state(&rep).as_str(), taker.state(&rep).as_str()), ("Original", "Copy"));
    taker.folder.trusts_giver(&giver.url(), None);
    let handed = gives(&giver, &rep, &taker);
    assert_eq!((handed.status, taker.state(alias).as_str()), (0, "Original"), "{}", handed.stderr);
}

/// An unused label that a depositor minted is no name of another's item.
#[test]
fn a_minted_label_comes_in_with_nobody_elses_item() {
    let (giver, taker) = (Holder::new(), Holder::new());
    let depositor = taker.folder.token("depositor");
    let minted = taker.server.api(&depositor, "POST", "/labels", b"{\"count\":1}").json();
    let minted = minted["labels"][0]["rep"].as_str().unwrap_or_else(|| panic!("{minted}")).to_owned();
    let rep = giver.folder.deposit(&[(b"a", b"one")], &["--alias", &minted]);
    let token = taker.takes_from(&giver);
    let refused = giver.run("transfer", &[&rep, "--to", &taker.url(), "--token-file", &token]);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert_eq!((taker.state(&rep).as_str(), taker.state(&minted).as_str()), ("nothing", "nothing"));
    let copied = taker.run("copy", &[&rep, "--from", &giver.url()]);
    assert!(
        copied.status != 0 && copied.stderr.contains("was minted here with a token"),
        "{}",
        copied.stderr
    );
}

/// Too many names, and names that an offline Archive may have: each refusal says which.
#[test]
fn other_names_that_cannot_be_asked_for_are_told_as_such() {
    let resolver = Resolver::new();
    let _answers = resolver.serve();
    let member = || {
        let folder = Folder::new();
        Holder { server: resolver.on_line(&folder), folder }
    };
    let (mut source, giver, taker) = (member(), member(), member());
    let aliases: Vec<String> =
        (0..101).map(|at| format!("other.test/x/2020/01.01.{:02}.{:02}", at / 60, at % 60)).collect();
    let named: Vec<&str> = aliases.iter().flat_map(|alias| ["--alias", alias.as_str()]).collect();
    let many = giver.folder.deposit(&[(b"a", b"many")], &named);
    let refused = gives(&giver, &many, &taker);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("more than 100 other labels"), "{}", refused.stderr);
    // Its Archive is offline: whether the name is free is unknown, though a copy here knows the
    // giver.
    let taken = source.folder.deposit(&[(b"a", b"taken")], &[]);
    let rep = giver.folder.deposit(&[(b"a", b"one")], &["--alias", &taken]);
    taker.does("copy", &[&rep, "--from", &giver.url()]);
    source.server.signal("-KILL");
    source.server.end();
    waits(&giver, &rep, &taker, "its other label online.test/");
    assert_eq!(taker.state(&rep), "Copy");
}

/// A copy's history of other Archives is attributed to its source.
#[test]
fn the_history_of_a_copy_says_who_told_it() {
    let (source, between, taker) = (Holder::new(), Holder::new(), Holder::new());
    let rep = source.folder.deposit(&[(b"a", b"one")], &[]);
    between.does("copy", &[&rep, "--from", &source.url()]);
    taker.does("copy", &[&rep, "--from", &between.url()]);
    let history = taker.shown(&rep)["history"].as_array().unwrap().clone();
    let deposit = history.iter().find(|event| event["event"] == "deposit").unwrap();
    assert_eq!((&deposit["at"], &deposit["told_by"]), (&json!(source.folder.service), &json!(between.url())));
    let own = history.iter().find(|event| event["at"].is_null()).unwrap();
    assert!(own["told_by"].is_null(), "{own}");
}
