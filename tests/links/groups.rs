//! Groups of translations whose members name one another, in different Archives (clause 2.4, *One successor*).

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

/// Seen before: the Archive of the root did not take a link that names another member, and that of a member did not tell the
/// root of one that names an item of its own.
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

/// Seen before: a member that was heard of before its own root was stayed outside the group.
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
