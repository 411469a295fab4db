//! Who may add an item to the succession of another (clause 2.4, *Consent*).

use serde_json::json;

use super::{Federation, settled};
use crate::online::client::ask;
use crate::online::until;

/// Regression: edition 2 in B of an item of A, and the persistent URL of edition 1 with `!` led to
/// edition 1.
#[test]
fn an_edition_and_a_translation_in_another_archive_are_found_once_accepted() {
    let federation = Federation::new(2);
    let [a, b] = &federation.archives[..] else { unreachable!() };
    let first = a.deposit("first", &["--language", "en"]);
    let second = b.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    let primeira = b.deposit("primeira", &["--language", "pt", "--translation-of", &first]);
    settled(a, &second, "proposed");
    settled(a, &primeira, "proposed");
    // A claim by an unknown Archive changes nothing for readers.
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{first}/doc/a.txt"));
    assert_eq!(federation.leads(&format!("{first}+(pt)")), "404");
    a.does("links accept", &[&second]);
    a.does("links accept", &[&primeira, "--of", &first]);
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{second}/doc/a.txt"));
    assert_eq!(federation.leads(&format!("{first}+(pt)")), format!("col/{primeira}/doc/a.txt"));
    assert_eq!(federation.leads_for(&format!("{first}+"), "pt"), format!("col/{primeira}/doc/a.txt"));
    // Both ends know the link: the translation leads back.
    settled(b, &primeira, "accepted");
    assert_eq!(federation.leads(&format!("{primeira}+(en)")), format!("col/{first}/doc/a.txt"));
    assert_eq!(federation.leads(&format!("{primeira}+(en)!")), format!("col/{second}/doc/a.txt"));
    a.does("links withdraw", &[&second]);
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{first}/doc/a.txt"));
    settled(b, &second, "withdrawn");
    // Over the API, by operators only.
    let (operator, depositor) = (a.folder.token("operator"), a.folder.token("depositor"));
    let body = json!({ "newer": second }).to_string();
    assert_eq!(a.server.api(&depositor, "POST", "/links/accept", body.as_bytes()).status, 403);
    let accepted = a.server.api(&operator, "POST", "/links/accept", body.as_bytes());
    assert_eq!((accepted.status, &accepted.json()["status"]), (200, &json!("accepted")));
    let listed = a.server.api(&operator, "GET", "/links?status=accepted", b"").json();
    assert_eq!(listed["links"].as_array().unwrap().len(), 2, "{listed}");
}

/// Links from a trusted Archive are accepted automatically; refused ones are not proposed again.
#[test]
fn a_trusted_archive_needs_no_word_and_a_refused_link_stays_refused() {
    let federation = Federation::new(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    a.trusts(&b.folder.service);
    let first = a.deposit("first", &["--language", "en"]);
    let second = b.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(b, &second, "accepted");
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{second}/doc/a.txt"));
    let strange = c.deposit("strange", &["--language", "en", "--next-edition-of", &second]);
    settled(b, &strange, "proposed");
    b.does("links refuse", &[&strange]);
    settled(c, &strange, "refused");
    c.does("update", &[&strange, "--dc", "title=Again"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(b.status_of(&strange), "refused");
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{second}/doc/a.txt"));
    // A link that is no longer stated is withdrawn.
    b.does("update", &[&second, "--next-edition-of", ""]);
    settled(a, &second, "withdrawn");
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{first}/doc/a.txt"));
}

/// Regression: with both editions in A, handing edition 2 over made `!` wrong.
#[test]
fn no_hand_over_changes_where_an_item_leads() {
    let federation = Federation::new(2);
    let [a, b] = &federation.archives[..] else { unreachable!() };
    let first = a.deposit("first", &["--language", "en"]);
    let second = a.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    let primeira = a.deposit("primeira", &["--language", "pt", "--translation-of", &first]);
    let leads = || {
        let urls = [format!("{first}!"), format!("{first}+(pt)"), format!("{primeira}+(en)!")];
        urls.map(|url| federation.leads(&url))
    };
    let file = |label: &str| format!("col/{label}/doc/a.txt");
    let right = [file(&second), file(&primeira), file(&second)];
    assert_eq!(leads(), right);
    a.hand_over(&second, b, "nothing");
    assert_eq!(leads(), right, "after edition 2 went to B");
    a.hand_over(&primeira, b, "nothing");
    assert_eq!(leads(), right, "after the translation went to B");
    a.hand_over(&first, b, "copy");
    assert_eq!(leads(), right, "after edition 1 went to B");
    a.does("drop", &[&first, "--yes"]);
    assert_eq!(leads(), right, "after its copy was dropped");
}

/// 2.4 and 4.3: a removed last edition is 410, never an older edition; an Archive that is offline
/// 503.
#[test]
fn a_removed_last_edition_is_410_and_an_archive_that_is_offline_503() {
    let mut federation = Federation::of_friends(2);
    let first = federation.archives[0].deposit("first", &["--language", "en"]);
    let second = federation.archives[1].deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(&federation.archives[1], &second, "accepted");
    federation.archives[1].server.signal("-TERM");
    federation.archives[1].server.end();
    assert_eq!(federation.leads(&format!("{first}!")), "503");
    let again = federation.resolver.on_line(&federation.archives[1].folder);
    federation.archives[1].server = again;
    let [a, b] = &federation.archives[..] else { unreachable!() };
    let third = a.deposit("third", &["--language", "en", "--next-edition-of", &second]);
    settled(a, &third, "accepted");
    b.does("remove", &[&second, "--reason", "a test", "--yes"]);
    assert_eq!(
        federation.leads(&format!("{first}!")),
        format!("col/{third}/doc/a.txt"),
        "the middle leads on"
    );
    assert_eq!(federation.leads(&format!("{second}!")), format!("col/{third}/doc/a.txt"));
    a.does("remove", &[&third, "--reason", "a test", "--yes"]);
    assert_eq!(federation.leads(&format!("{first}!")), "410");
}

/// An Archive that claims to be the next edition and the translation of everything misdirects no
/// reader.
#[test]
fn a_hostile_archive_that_claims_everything_moves_no_reader() {
    let federation = Federation::new(2);
    let [a, hostile] = &federation.archives[..] else { unreachable!() };
    let items: Vec<String> =
        (0..4).map(|number| a.deposit(&number.to_string(), &["--language", "en"])).collect();
    let second = a.deposit("second", &["--language", "en", "--next-edition-of", &items[0]]);
    let before: Vec<String> = items.iter().map(|item| federation.leads(&format!("{item}!"))).collect();
    let mut claims = Vec::new();
    for item in items.iter().chain([&second]) {
        claims.push(hostile.deposit("mine", &["--language", "en", "--next-edition-of", item]));
        claims.push(hostile.deposit("mine", &["--language", "pt", "--translation-of", item]));
        // A hint, and a forged decision.
        let (older, newer) = (item, claims.last().unwrap());
        let decided = json!({
            "kind": "translation", "older": older, "newer": newer, "status": "accepted", "counter": 9_000_000,
            "receipt": "0".repeat(64),
        });
        let hint = json!({ "kind": "translation", "older": older, "newer": newer, "decided": decided });
        let heard = ask(&a.server.at, "POST", "/api/v1/links", "", hint.to_string().as_bytes());
        assert_eq!(heard.status, 202, "{}", heard.text());
    }
    until("all claims were heard", || {
        let open = a.does("links list", &["--status", "proposed"]);
        open.len() == claims.len()
    });
    // It also holds copies of all items, and could report their links.
    for item in &items {
        hostile.does("copy", &[item, "--from", &a.url()]);
    }
    for _ in 0..10 {
        let after: Vec<String> = items.iter().map(|item| federation.leads(&format!("{item}!"))).collect();
        assert_eq!(after, before);
        for item in &items {
            assert_eq!(federation.leads(&format!("{item}+(pt)")), "404");
            assert_eq!(federation.leads_for(&format!("{item}+"), "pt"), format!("col/{item}/doc/a.txt"));
        }
    }
}

/// Regression: an item that was handed over and then stated no link kept its link.
#[test]
fn what_is_no_longer_stated_after_a_hand_over_is_withdrawn() {
    let federation = Federation::of_friends(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    let first = a.deposit("first", &["--language", "en"]);
    let second = b.deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(a, &second, "accepted");
    b.hand_over(&second, c, "nothing");
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{second}/doc/a.txt"));
    c.does("update", &[&second, "--next-edition-of", ""]);
    settled(a, &second, "withdrawn");
    assert_eq!(federation.leads(&format!("{first}!")), format!("col/{first}/doc/a.txt"));
}
