//! An Archive that lies about links (clause 2.4, *Consent*): it is registered, and answers what it likes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Federation, Member, settled};
use crate::online::client::ask;
use crate::online::until;
use crate::resolver::scripted::{Scripted, item};

const SERVICE: &str = "evil.test/x/2026/11.17.08.01.02";
const NEWER: &str = "evil.test/x/2026/11.17.09.03.04";

/// An Archive that claims the Original of an item.
fn liar(federation: &Federation, claimed: String) -> Scripted {
    let evil = Scripted::new(SERVICE, move |question, at| {
        let asked = question.value("parsedibiurl.ibi");
        if asked == claimed { item(&claimed, at, "/evil") } else { String::new() }
    });
    evil.come(&federation.resolver);
    evil
}

/// What it says of the links of an item.
fn says(evil: &Scripted, label: &str, more: Value) {
    let mut report = json!({
        "format": 1, "archive": SERVICE, "item": { "rep": label }, "state": "Original", "decides": true,
        "language": "en", "created": "2026-11-17T09:03:04Z", "counter": 0, "links": [],
    });
    report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    *evil.report.lock().unwrap() = Some(report.to_string());
}

fn hint(to: &Member, kind: &str, older: &str, newer: &str) {
    let hint = json!({ "kind": kind, "older": older, "newer": newer }).to_string();
    let heard = ask(&to.server.at, "POST", "/api/v1/links", "", hint.as_bytes());
    assert_eq!(heard.status, 202, "{}", heard.text());
}

/// Seen before: whoever called itself by a trusted Archive's label was trusted.
#[test]
fn an_archive_is_who_the_resolver_says_it_is() {
    let federation = Federation::new(2);
    let [a, b] = &federation.archives[..] else { unreachable!() };
    a.trusts(&b.folder.service);
    let first = a.deposit("first", &["--language", "en"]);
    let evil = liar(&federation, NEWER.to_owned());
    says(&evil, NEWER, json!({ "archive": b.folder.service, "next_edition_of": first }));
    hint(a, "edition", &first, NEWER);
    settled(a, NEWER, "proposed");
    let link = a.does("links list", &[]).pop().unwrap();
    assert_eq!(link["archive"], SERVICE);
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{first}/doc/a.txt"));
}

/// Seen before: while the holder of the newer item was offline, a stranger that claimed its Original withdrew the link.
#[test]
fn who_claims_what_an_offline_archive_holds_changes_no_link() {
    let mut federation = Federation::of_friends(2);
    let first = federation.archives[0].deposit("first", &["--language", "en"]);
    let second = federation.archives[1].deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(&federation.archives[0], &second, "accepted");
    federation.archives[1].server.signal("-TERM");
    federation.archives[1].server.end();
    let evil = liar(&federation, second.clone());
    says(&evil, &second, json!({}));
    let a = &federation.archives[0];
    hint(a, "edition", &first, &second);
    until("it was asked", || evil.all().iter().any(|question| question.0.contains("/links ")));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(a.status_of(&second), "accepted");
}

/// Seen before: the root of a group named items as its members that state nothing of the kind.
#[test]
fn a_root_makes_nobody_a_member_who_does_not_say_so() {
    let federation = Federation::new(1);
    let a = &federation.archives[0];
    let other = a.deposit("other", &["--language", "en"]);
    let pt = a.deposit("pt", &["--language", "pt", "--translation-of", &other]);
    let root = NEWER;
    let evil = liar(&federation, root.to_owned());
    let member = a.deposit("member", &["--language", "de", "--translation-of", root]);
    let mine = "evil.test/x/2026/11.17.09.05.06";
    let accepted = |newer: &str, language: &str, counter: u64| {
        json!({
            "kind": "translation", "older": root, "newer": newer, "status": "accepted", "counter": counter,
            "older_labels": [root], "newer_labels": [newer], "newer_language": language,
            "created": "2029-01-01T00:00:00Z",
        })
    };
    let links = [
        accepted(&member, "de", 1),
        accepted(&other, "en", 2),
        accepted(&pt, "pt", 3),
        accepted(mine, "fr", 4),
    ];
    says(&evil, root, json!({ "counter": 4, "links": links }));
    hint(a, "translation", root, &member);
    settled(a, &member, "accepted");
    assert_eq!(federation.leads(&format!("{other}+(pt)")), format!("col/{pt}/doc/a.txt"));
    assert_eq!(federation.leads(&format!("{other}+(fr)")), "404");
    assert_eq!(federation.leads(&format!("{pt}+(de)")), "404");
    assert_eq!(a.status_of(&other), "unknown");
}

/// Seen before: a cycle over three Archives was accepted, and every item in it was 508.
#[test]
fn a_cycle_over_three_archives_is_refused() {
    let federation = Federation::of_friends(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    let first = a.deposit("first", &["--language", "en"]);
    let second = b.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(b, &second, "accepted");
    let third = c.deposit("third", &["--language", "en", "--next-edition-of", &second]);
    settled(c, &third, "accepted");
    a.does("update", &[&first, "--next-edition-of", &third]);
    settled(c, &first, "refused");
    settled(a, &first, "refused");
    for item in [&first, &second, &third] {
        assert_eq!(federation.leads(&format!("{item}!")), format!("col/{third}/doc/a.txt"));
    }
}
