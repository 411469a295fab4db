//! 1.3: items imported under different spellings of one identifier stay separate, also in different
//! Archives.

use ibi_protocol::analysis::{RoundDecision, RoundQuery, suspects};

use crate::federation::{again, answer, decided, outcome};

const CANONICAL: &str = "v.org/w/1998/08.02.08.56";
const PORT: &str = "v.org/w@80/1998/08.02.08.56";
const SECONDS: &str = "v.org/w/1998/08.02.08.56.00";

fn asks(label: &str) -> RoundQuery {
    RoundQuery::new(label.parse().unwrap())
}

fn requires(label: &str) -> RoundQuery {
    RoundQuery { original: true, ..asks(label) }
}

fn says(label: &str, what: &str) -> String {
    format!("ibi {{rep {label}}} {what}")
}

fn original(label: &str) -> String {
    says(label, "url http://N/x state Original")
}

fn copy(label: &str) -> String {
    says(label, "url http://N/x state Copy")
}

fn deleted(label: &str) -> String {
    says(label, "state Deleted timestamp 2020-01-01T00:00:00Z")
}

#[test]
fn clause_1_3_the_exact_spelling_wins_whoever_comes_first() {
    let (port, seconds) = (original(PORT), copy(SECONDS));
    for texts in [[&*port, &*seconds], [&*seconds, &*port]] {
        let at = |label: &str| usize::from(!texts[0].contains(label)).to_string() + " /x";
        assert_eq!(outcome(&asks(PORT), &texts), at(PORT));
        assert_eq!(outcome(&asks(SECONDS), &texts), at(SECONDS));
        let folded = asks(&PORT.to_uppercase());
        assert_eq!(outcome(&folded, &texts), at(PORT), "but for case");
    }
    // Also if it is the canonical one, or if the queried label is an alias.
    assert_eq!(outcome(&asks(CANONICAL), &[&port, &copy(CANONICAL)]), "1 /x");
    let alias = format!("ibi {{ibip 8JMKD3MGP8W/35MME4E}} ibi.alias {SECONDS} url http://N/x state Original");
    assert_eq!(outcome(&asks(PORT), &[&alias, &port]), "1 /x");
    assert_eq!(outcome(&asks(SECONDS), &[&port, &alias]), "1 /x");
    // A removed exact match is removed, whatever exists in another spelling.
    assert_eq!(outcome(&asks(PORT), &[&seconds, &deleted(PORT)]), "410");
    assert_eq!(outcome(&asks(SECONDS), &[&seconds, &deleted(PORT), "-"]), "0 /x");
}

#[test]
fn clause_1_3_another_spelling_alone_is_the_item_but_a_better_one_is_waited_for() {
    let port = original(PORT);
    for asked in [CANONICAL, SECONDS, PORT] {
        assert_eq!(outcome(&asks(asked), &[&port, ""]), "0 /x", "{asked}");
        assert_eq!(outcome(&asks(asked), &[&port, "-"]), "0 /x", "{asked}");
    }
    let late = |label| RoundQuery { grace_over: true, ..asks(label) };
    assert_eq!(outcome(&asks(PORT), &[&port, "..."]), "0 /x", "at once");
    assert_eq!(outcome(&asks(CANONICAL), &[&port, "..."]), "wait");
    assert_eq!(outcome(&late(CANONICAL), &[&port, "..."]), "0 /x", "after the grace");
    assert_eq!(outcome(&late(SECONDS), &[&original(CANONICAL), "..."]), "0 /x");
    assert_eq!(outcome(&late(SECONDS), &[&port, "..."]), "wait", "until all have answered");
}

#[test]
fn clause_1_3_and_4_3_a_third_spelling_of_items_in_several_archives_is_300() {
    let (port, seconds) = (original(PORT), copy(SECONDS));
    for asked in [CANONICAL, "v.org/w@80/1998/08.02.08.56.00"] {
        for query in [asks(asked), requires(asked)] {
            let RoundDecision::Ambiguous(items) = decided(&query, &[&port, &seconds, &copy(PORT)]) else {
                panic!("{asked}");
            };
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            assert_eq!(items, [format!("rep {PORT}"), format!("rep {SECONDS}")]);
        }
    }
    // An Archive with both and another with one of them name two items, not three.
    let both = format!("ibi {{rep {CANONICAL}}} ibi.alternatives {{{{rep {PORT}}} {{rep {SECONDS}}}}}");
    let RoundDecision::Ambiguous(items) = decided(&asks(CANONICAL), &[&seconds, &both]) else { panic!() };
    assert_eq!(items.len(), 2);
    // A removed item is no alternative.
    assert_eq!(outcome(&asks(CANONICAL), &[&deleted(PORT), &seconds]), "1 /x");
}

#[test]
fn clauses_1_3_and_4_2_3_claims_of_the_original_are_counted_for_each_spelling() {
    let (port, seconds) = (original(PORT), original(SECONDS));
    for (asked, at) in [(PORT, "0 /x"), (SECONDS, "1 /x")] {
        assert_eq!(outcome(&asks(asked), &[&port, &seconds]), at, "without an alert");
        assert_eq!(outcome(&requires(asked), &[&port, &seconds]), at);
    }
    let late = |label: &str| {
        let query = asks(label);
        suspects(&[answer(0, &port, &query), answer(1, &seconds, &query)], &query).len()
    };
    assert_eq!([PORT, SECONDS, CANONICAL].map(late), [0; 3], "also among late answers");
    // Two claims for one spelling still conflict, also beside another spelling.
    let texts = [&*port, &*port, &*seconds];
    assert_eq!(outcome(&again(&requires(PORT), &texts), &texts), "409");
    let links = |label| {
        format!(
            "ibi {{rep a.br/b/2009/02.16.17.46}} ibi.metadata {{rep {label}}} \
                 url.metadata http://N/m state.metadata Original"
        )
    };
    let query = crate::federation::query(":");
    assert_eq!(outcome(&query, &[&links(PORT), &links(SECONDS)]), "0 /m :", "of what is related, too");
    assert_eq!(outcome(&query, &[&links(PORT), &links(PORT)]), "0 /m : and an alert");
}

#[test]
fn clauses_1_3_and_4_3_a_tombstone_of_another_spelling_is_no_410_while_an_archive_is_silent() {
    for asked in [PORT, CANONICAL] {
        assert_eq!(outcome(&asks(asked), &[&deleted(SECONDS), "-"]), "503", "{asked}");
        assert_eq!(outcome(&asks(asked), &[&deleted(SECONDS), ""]), "410", "{asked}");
    }
    assert_eq!(outcome(&asks(SECONDS), &[&deleted(SECONDS), "-"]), "410");
    let reserved = says(SECONDS, "state Reserved");
    assert_eq!(outcome(&asks(PORT), &[&reserved, "-"]), "503");
    assert_eq!(outcome(&asks(SECONDS), &[&reserved, "-"]), "403");
}
