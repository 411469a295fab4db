//! Groups of translations whose members refer to one another, in different Archives (clause 2.4,
//! *One successor*).

use super::{Federation, settled};
use crate::online::until;

/// Each member of a group leads to all others.
fn all_lead(federation: &Federation, members: &[(&str, &str)]) {
    for (_, from) in members {
        for (language, to) in members {
            let (url, right) = (format!("{from}+({language})"), format!("col/{to}/doc/a.txt"));
            until(&format!("{url} leads to {to}"), || federation.leads(&url) == right);
        }
    }
}

/// Regression: the root's Archive rejected a link that names another member, and a member's Archive
/// did not report to the root a link that names its own item.
#[test]
fn a_translation_of_a_translation_belongs_to_the_group_of_its_root() {
    let federation = Federation::of_friends(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    let en = a.deposit("en", &["--language", "en"]);
    let pt = b.deposit("pt", &["--language", "pt", "--translation-of", &en]);
    settled(b, &pt, "accepted");
    let fr = c.deposit("fr", &["--language", "fr", "--translation-of", &pt]);
    let es = b.deposit("es", &["--language", "es", "--translation-of", &pt]);
    all_lead(&federation, &[("en", &en), ("pt", &pt), ("fr", &fr), ("es", &es)]);
}

/// Regression: a member that was reported before its root stayed outside the group.
#[test]
fn a_group_whose_root_is_heard_of_last_becomes_one() {
    let mut federation = Federation::of_friends(3);
    let en = federation.archives[0].deposit("en", &["--language", "en"]);
    federation.archives[0].server.signal("-TERM");
    federation.archives[0].server.end();
    let [_, b, c] = &federation.archives[..] else { unreachable!() };
    let pt = b.deposit("pt", &["--language", "pt", "--translation-of", &en]);
    let fr = c.deposit("fr", &["--language", "fr", "--translation-of", &pt]);
    let es = b.deposit("es", &["--language", "es", "--translation-of", &pt]);
    settled(c, &fr, "accepted");
    federation.archives[0].server = federation.resolver.on_line(&federation.archives[0].folder);
    all_lead(&federation, &[("en", &en), ("pt", &pt), ("fr", &fr), ("es", &es)]);
}

/// Seen before: a translation of a member, deposited in the root's Archive, was stated to the
/// member's Archive only, and stayed outside the group.
#[test]
fn a_translation_of_a_member_deposited_with_the_root_belongs_to_the_group() {
    let federation = Federation::of_friends(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    let en = a.deposit("en", &["--language", "en"]);
    let pt = b.deposit("pt", &["--language", "pt", "--translation-of", &en]);
    let fr = c.deposit("fr", &["--language", "fr", "--translation-of", &en]);
    settled(a, &pt, "accepted");
    settled(a, &fr, "accepted");
    let de = a.deposit("de", &["--language", "de", "--translation-of", &fr]);
    let links = a.does("links list", &[]);
    let of_de: Vec<_> = links.iter().filter(|link| link["newer"] == *de).collect();
    let [link] = of_de[..] else { panic!("{links:?}") };
    assert_eq!((&link["older"], &link["status"]), (&en.clone().into(), &"accepted".into()), "in one commit");
    let all = [("en", &*en), ("pt", &pt), ("fr", &fr), ("de", &de)];
    all_lead(&federation, &all);
    assert_eq!(c.does("links list", &[]).iter().filter(|link| link["older"] == *fr).count(), 0);
    // A removed root keeps the list.
    a.does("remove", &[&en, "--reason", "a test", "--yes"]);
    let es = a.deposit("es", &["--language", "es", "--translation-of", &pt]);
    all_lead(&federation, &[("pt", &pt), ("fr", &fr), ("de", &de), ("es", &es)]);
}

/// The same in the Archive that the root's Original was handed over to.
#[test]
fn a_translation_of_a_member_is_listed_where_the_root_is_now() {
    let federation = Federation::of_friends(3);
    let [a, b, c] = &federation.archives[..] else { unreachable!() };
    let en = a.deposit("en", &["--language", "en"]);
    let pt = b.deposit("pt", &["--language", "pt", "--translation-of", &en]);
    let fr = a.deposit("fr", &["--language", "fr", "--translation-of", &pt]);
    all_lead(&federation, &[("en", &en), ("pt", &pt), ("fr", &fr)]);
    a.hand_over(&en, c, "copy");
    let de = c.deposit("de", &["--language", "de", "--translation-of", &pt]);
    all_lead(&federation, &[("en", &en), ("pt", &pt), ("fr", &fr), ("de", &de)]);
}
