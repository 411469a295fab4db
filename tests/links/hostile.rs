//! A registered Archive that gives false answers about links (clause 2.4, *Consent*).

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

/// Its answers about the links of an item.
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

/// An Archive that is only asked, and claims to have the Original of everything, and its last
/// edition and its translations: readers stay with the Archive that is known to hold it (4.4), also
/// of a label whose prefix is nobody's.
#[test]
fn who_claims_everything_moves_no_reader() {
    const IMPORTED: &str = "old.test/x/1999/02.02.03.04";
    let federation = Federation::of_friends(2);
    let [a, b] = &federation.archives[..] else { unreachable!() };
    let own = a.deposit("own", &["--language", "en"]);
    a.deposit("imported", &["--language", "en", "--label", IMPORTED, "--original"]);
    let mut right = Vec::new();
    for first in [own.as_str(), IMPORTED] {
        let second = b.deposit("second", &["--language", "en", "--next-edition-of", first]);
        let pt = b.deposit("pt", &["--language", "pt", "--translation-of", first]);
        for newer in [&second, &pt] {
            settled(b, newer, "accepted");
            settled(a, newer, "accepted");
        }
        let urls = [first.to_owned(), format!("{first}!"), format!("{first}+(pt)"), format!("{first}!:")];
        right.extend(urls.map(|url| (federation.leads(&url), url)));
    }
    assert!(right.iter().all(|(lead, _)| lead.starts_with("col/")), "{right:?}");
    let evil = Scripted::new(SERVICE, |question, at| {
        let asked = question.value("parsedibiurl.ibi");
        let related = [".lastedition", ".translation(pt)", ".lastedition.metadata"].map(|relation| {
            format!(
                "ibi{relation} {{rep {NEWER}}}\r\nurl{relation} http://{at}/evil\r\n\
                 state{relation} Original\r\ncontenttype{relation} Data\r\n"
            )
        });
        item(asked, at, "/evil") + &related.concat()
    });
    evil.come(&federation.resolver);
    for (lead, url) in right.iter().cycle().take(3 * right.len()) {
        assert_eq!(federation.leads(url), *lead, "{url}");
    }
    // Its claims are told to the operator.
    until("an alert", || {
        let alerts = federation.resolver.json("alerts", &[]);
        alerts.iter().any(|alert| alert.to_string().contains(IMPORTED))
    });
}

/// Regression: an Archive that used a trusted Archive's label was trusted.
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

/// Regression: while the holder of the newer item was offline, another Archive that claimed its
/// Original withdrew the link.
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

/// Regression: the root of a group named items as members that do not state the link.
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

/// Regression: a cycle over three Archives was accepted, and every item in it was 508.
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

/// Clause 2.4, ADR 0013: an Archive that answers every query for a last edition with an edition of
/// its own.
#[test]
fn who_claims_to_be_the_next_edition_of_everything_moves_no_reader() {
    for claim in ["next", "last", "both", "jump"] {
        let federation = Federation::new(2);
        let [a, b] = &federation.archives[..] else { unreachable!() };
        let alone = a.deposit("alone", &["--language", "en"]);
        let old = a.deposit("old", &["--language", "en"]);
        let new = a.deposit("new", &["--language", "en", "--next-edition-of", &old]);
        let copied = b.does("copy", &[&alone, "--from", &format!("http://{}", a.server.at)]);
        assert_eq!(copied.len(), 1);
        // Of two editions in two Archives it knows the first link, as all do.
        let far = a.deposit("far", &["--language", "en"]);
        a.trusts(&b.folder.service);
        let near = b.deposit("near", &["--language", "en", "--next-edition-of", &far]);
        settled(a, &near, "accepted");
        let [start, next_of_it] = [far.clone(), near.clone()];
        let evil = Scripted::new(SERVICE, move |question, at| {
            let asked = question.value("parsedibiurl.ibi").replace("%2F", "/");
            let editions = question.value("parsedibiurl.verblist").contains("GetLastEdition");
            if asked == NEWER || !editions {
                return if asked == NEWER { item(NEWER, at, "/evil") } else { String::new() };
            }
            let next = if claim == "jump" && asked == start { &next_of_it } else { NEWER };
            let next = format!("ibi.nextedition {{rep {next}}}\r\n");
            let last = format!(
                "ibi.lastedition {{rep {NEWER}}}\r\nurl.lastedition http://{at}/evil\r\nstate.lastedition Original\r\n"
            );
            let more = match claim {
                "next" => next,
                "last" => last,
                _ => format!("{next}{last}"),
            };
            format!("ibi {{rep {asked}}}\r\n{more}")
        });
        evil.come(&federation.resolver);
        for _ in 0..30 {
            for (item, last) in [(&alone, &alone), (&old, &new), (&new, &new), (&far, &near)] {
                let led = federation.leads(&format!("{item}!"));
                assert_eq!(led, format!("col/{last}/doc/a.txt"), "{claim}");
            }
        }
        let asked = evil.all().iter().filter(|question| question.0.contains("GetLastEdition")).count();
        assert!(asked > 30, "{claim}: it was asked {asked} times");
    }
}

/// False claims about the translations of all items.
#[derive(Debug, Clone, Copy)]
enum TranslationLie {
    /// It names an item of its own.
    Named,
    /// It also has that item.
    Held,
    /// It calls the item itself a translation, of which it has a copy.
    OfItself,
    /// The item was removed, and an item of its own is a translation of it.
    Removed,
}

/// The pairs of a false answer, for each relation of the query.
fn translation_lie(lie: TranslationLie, asked: &str, verbs: &str, at: &str) -> String {
    let after = |verb: &str, relation: &'static str| if verbs.contains(verb) { relation } else { "" };
    let before = if verbs.starts_with("GetMetadata") { ".metadata" } else { "" };
    let rest = match before {
        "" => format!("{}{}", after("GetLastEdition", ".lastedition"), after("GetMetadata", ".metadata")),
        _ => String::new(),
    };
    let item = if matches!(lie, TranslationLie::OfItself) { asked } else { NEWER };
    let mut said = format!("ibi {{rep {asked}}}\r\n");
    if matches!(lie, TranslationLie::Removed) {
        said += "state Deleted\r\ntimestamp 2026-11-17T09:03:04Z\r\n";
    }
    for language in ["pt", "en", "fr"] {
        let (link, whole) =
            (format!("{before}.translation({language})"), format!("{before}.translation({language}){rest}"));
        said += &format!("ibi{link} {{rep {item}}}\r\n");
        let state = match lie {
            TranslationLie::Held => "Original",
            TranslationLie::OfItself => "Copy",
            TranslationLie::Named | TranslationLie::Removed => continue,
        };
        said += &format!("url{whole} http://{at}/evil\r\nstate{whole} {state}\r\n");
    }
    said
}

/// Clause 2.4, ADR 0013: an Archive that answers every query for a translation with one of its own.
#[test]
fn who_claims_to_be_a_translation_of_everything_moves_no_reader() {
    use TranslationLie::{Held, Named, OfItself, Removed};
    for lie in [Named, Held, OfItself, Removed] {
        let federation = Federation::new(2);
        let [a, b] = &federation.archives[..] else { unreachable!() };
        let alone = a.deposit("alone", &["--language", "en"]);
        let copied = b.does("copy", &[&alone, "--from", &format!("http://{}", a.server.at)]);
        assert_eq!(copied.len(), 1);
        // The translation lives in another Archive.
        let root = a.deposit("root", &["--language", "en"]);
        a.trusts(&b.folder.service);
        let pt = b.deposit("pt", &["--language", "pt", "--translation-of", &root]);
        settled(a, &pt, "accepted");
        settled(b, &pt, "accepted");
        let evil = Scripted::new(SERVICE, move |question, at| {
            let asked = question.value("parsedibiurl.ibi").replace("%2F", "/");
            let verbs = question.value("parsedibiurl.verblist");
            match () {
                () if asked == NEWER => item(NEWER, at, "/evil"),
                () if verbs.contains("GetTranslation") => translation_lie(lie, &asked, verbs, at),
                () => String::new(),
            }
        });
        evil.come(&federation.resolver);
        let file = |item: &str| format!("col/{item}/doc/a.txt");
        let page = federation.leads_for(&format!("{alone}:"), "pt");
        for _ in 0..30 {
            for (url, expected) in [
                (format!("{alone}+"), file(&alone)),
                (format!("{alone}+(pt)"), "404".to_owned()),
                (format!("{alone}+!"), file(&alone)),
                (format!("{alone}:+"), page.clone()),
                (format!("{root}+"), file(&pt)),
                (format!("{root}+(pt)"), file(&pt)),
                (format!("{root}+!"), file(&pt)),
                (format!("{root}+(fr)"), "404".to_owned()),
            ] {
                assert_eq!(federation.leads_for(&url, "pt"), expected, "{lie:?} {url}");
            }
        }
        let asked = evil.all().iter().filter(|question| question.0.contains("GetTranslation")).count();
        assert!(asked > 30, "{lie:?}: it was asked {asked} times");
    }
}

/// Regression: an Archive that reported its link differently each time made another's journal grow.
#[test]
fn a_link_is_stated_again_only_so_often() {
    let federation = Federation::new(1);
    let a = &federation.archives[0];
    let first = a.deposit("first", &["--language", "en"]);
    let evil = liar(&federation, NEWER.to_owned());
    let looks = || evil.all().iter().filter(|question| question.0.contains("/links ")).count();
    let lines = || {
        let journal = std::fs::read_to_string(a.folder.data().join("journal")).unwrap();
        journal.lines().filter(|line| line.contains(" link ")).count()
    };
    for number in 0..120 {
        let created = format!("2026-11-17T{:02}:{:02}:00Z", number / 60, number % 60);
        says(&evil, NEWER, json!({ "next_edition_of": first, "created": created }));
        let before = looks();
        hint(a, "edition", &first, NEWER);
        until("it was asked", || looks() > before);
    }
    settled(a, NEWER, "proposed");
    assert!((90..=101).contains(&lines()), "{}", lines());
}

/// Clause 2.4: a copy of a copy has the correct links once the deciding Archive has confirmed them.
#[test]
fn links_of_a_copy_of_a_copy_are_confirmed_by_who_decides() {
    let mut federation = Federation::of_friends(3);
    let first = federation.archives[0].deposit("first", &["--language", "en"]);
    let second = federation.archives[0].deposit("second", &["--language", "en", "--next-edition-of", &first]);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    b.does("copy", &[&first, "--from", &a.url()]);
    assert_eq!(b.status_of(&second), "accepted", "its Original's Archive told so");
    a.server.signal("-STOP");
    c.does("copy", &[&first, "--from", &b.url()]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(c.status_of(&second), "unconfirmed");
    let leads = |member: &Member| ask(&member.server.at, "GET", &format!("/{first}!"), "", b"");
    let own = leads(c).header("location").to_owned();
    assert!(own.contains(&first), "{own}");
    a.server.signal("-CONT");
    settled(c, &second, "accepted");
    // It stays so while no other Archive answers.
    federation.archives[0].server.signal("-KILL");
    federation.archives[0].server.end();
    let c = &federation.archives[2];
    let own = leads(c).header("location").to_owned();
    assert!(own.contains(&second) || own.contains(&first), "{own}");
    assert_eq!(c.status_of(&second), "accepted");
}

/// Seen before: while a second Archive claimed the older item, a new link waited, and nobody was
/// told.
#[test]
fn a_link_to_a_contested_item_is_shown_as_waiting() {
    let federation = Federation::of_friends(2);
    let [a, b] = &federation.archives[..] else { unreachable!() };
    let first = a.deposit("first", &["--language", "en"]);
    let evil = liar(&federation, first.clone());
    says(&evil, &first, json!({}));
    let second = b.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    assert_eq!(b.status_of(&second), "waiting");
    until("the log says why", || {
        let log = b.server.log();
        log.contains("several Archives claim the Original") && log.contains(SERVICE)
    });
    assert_eq!(b.status_of(&second), "waiting");
    assert_eq!(a.status_of(&second), "unknown");
}
