//! 4.2 steps 4 and 5, 4.3: where chains of editions lead.

use ibi_protocol::analysis::{AcceptedLanguages, NotFoundReason, RoundDecision, RoundQuery};

use crate::federation::{ITEM, SECOND, THIRD, again, decided, outcome, query};

fn reads(modifiers: &str, header: &str) -> RoundQuery {
    RoundQuery { languages: AcceptedLanguages::parse(header), ..query(modifiers) }
}

fn over(query: RoundQuery) -> RoundQuery {
    RoundQuery { grace_over: true, ..query }
}

/// An answer to `!`: the last edition, and its state there.
fn last(item: &str, path: &str, state: &str) -> String {
    format!("ibi.lastedition {{rep {item}}} url.lastedition http://N/{path} state.lastedition {state}")
}

fn next(item: &str) -> String {
    format!("ibi.nextedition {{rep {item}}}")
}

#[test]
fn clause_4_2_4_a_next_edition_beats_an_item_that_calls_itself_its_last() {
    let own = last(ITEM, "own", "Copy");
    let later = format!("{} {}", last(SECOND, "later", "Original"), next(SECOND));
    let ask = format!("ask {SECOND}!: NextEdition");
    let first = query("!");
    assert_eq!(outcome(&first, &[&own, ""]), "0 /own !", "nobody is left to wait for");
    assert_eq!(outcome(&first, &[&own, &next(SECOND), "..."]), "wait", "the Original may know better");
    assert_eq!(outcome(&over(first.clone()), &[&own, &next(SECOND), "..."]), ask);
    let first = over(first);
    assert_eq!(outcome(&first, &[&own, &later, "..."]), "1 /later !", "somebody has it");
    assert_eq!(outcome(&first, &[&later, "..."]), "0 /later !");
    assert_eq!(outcome(&first, &[&next(SECOND), &later, "..."]), ask, "whose Archive decides");
    let minted = later.replace(SECOND, "n1.br/archive/2010/02.16.17.46");
    let known = next("n1.br/archive/2010/02.16.17.46");
    assert_eq!(outcome(&first, &[&known, &minted, "..."]), "1 /later !", "that is where it is (4.4)");
    // Also after a translation, and only for the item that the editions belong to.
    let own = format!(
        "ibi.translation(pt) {{rep {SECOND}}} ibi.translation(pt).lastedition {{rep {SECOND}}} \
         url.translation(pt).lastedition http://N/own state.translation(pt).lastedition Original"
    );
    let known = format!("ibi.translation(pt) {{rep {SECOND}}}");
    let following = format!("{known} {}", next(THIRD));
    let next = format!("{known} ibi.translation(pt).nextedition {{rep {THIRD}}}");
    let ask = format!("ask {THIRD}!: NextEdition");
    let first = over(query("+(pt)!"));
    assert_eq!(outcome(&first, &[&format!("{own} {following}"), "..."]), "0 /own +(pt)!");
    assert_eq!(outcome(&first, &[&next, "..."]), ask);
    // If they differ, the translation's Archive decides.
    for other in [&following, &next] {
        let its = format!("ask {SECOND}!: leading +(pt)");
        assert_eq!(outcome(&first, &[&own, other, "..."]), its);
    }
    assert_eq!(outcome(&reads("+!", "pt"), &[&next]), ask);
    assert_eq!(outcome(&reads("+!:", "pt"), &[&next]), format!("ask {THIRD}!:: NextEdition"));
}

/// 2.4, *Consent*: no item becomes the next edition of another Archive's item by its own claim.
#[test]
fn clause_2_4_the_word_of_the_original_counts_against_any_claim_of_a_next_edition() {
    let original = last(ITEM, "own", "Original");
    let claims = [next(SECOND), last(SECOND, "evil", "Original"), last(SECOND, "evil", "Copy")];
    let both = format!("{} {}", claims[0], claims[1]);
    for claim in claims.iter().chain([&both]) {
        let said = [claim.as_str(), &original];
        assert_eq!(outcome(&query("!"), &[&original, "..."]), "0 /own !", "at once");
        assert_eq!(outcome(&query("!"), &[&original, claim, "..."]), "wait", "until the grace is over");
        let who = again(&query("!"), &said);
        assert_eq!(outcome(&query("!"), &said), format!("ask {ITEM}: WhoDecides"));
        let decided = again(&who, &["", "state Original url http://N/x"]);
        assert_eq!(outcome(&decided, &said), "1 /own !");
        assert_eq!(outcome(&over(decided), &[claim, "..."]), "wait", "for the Archive that decides");
        assert_eq!(outcome(&query("!"), &[claim, "..."]), "wait", "until the grace is over");
        assert_ne!(outcome(&query("!"), &[claim, ""]), "wait", "or all have answered");
        // If the minter answers, the decider need not be searched for (4.4).
        let minted = "n1.br/archive/2009/02.16.17.46";
        let first = RoundQuery { label: minted.parse().unwrap(), ..query("!") };
        let own = last(minted, "own", "Original");
        for first in [first.clone(), over(first)] {
            assert_eq!(outcome(&first, &[claim, &own, "..."]), "1 /own !", "at once");
        }
    }
    // The Original's own statement of a next edition holds, wherever it leads.
    let led_on = format!("{original} {}", next(SECOND));
    assert_eq!(outcome(&query("!"), &[&led_on, ""]), format!("ask {SECOND}!: NextEdition"));
}

#[test]
fn clause_2_4_where_next_editions_differ_the_archive_of_the_original_decides() {
    let first = query("!");
    let (evil, honest) = (next(THIRD), format!("{} {}", next(SECOND), last(SECOND, "second", "Original")));
    assert_eq!(outcome(&first, &[&evil, &honest, "..."]), "wait");
    for claim in [evil, last(THIRD, "evil", "Original")] {
        let said = [claim.as_str(), &honest];
        assert_eq!(outcome(&first, &said), format!("ask {ITEM}: WhoDecides"));
        let who = again(&first, &said);
        assert_eq!(who.round, 1, "it leads no further");
        assert_eq!(outcome(&over(who.clone()), &["state Copy url http://N/x", "..."]), "wait");
        let original = "state Original url http://N/x";
        assert_eq!(outcome(&who, &["", original]), format!("ask {ITEM}!: Decided"));
        let decided = again(&who, &["", original]);
        assert_eq!(outcome(&decided, &said), "1 /second !");
        // Nobody holds the Original, or its holder does not answer: all claims count as before.
        let nobody = again(&who, &["", "-"]);
        assert_ne!(outcome(&nobody, &said), "404");
        assert_ne!(outcome(&decided, &[&claim, "-"]), "404");
    }
    // A later end is not accepted where others know only the next edition.
    let jump = format!("{} {}", next(SECOND), last(THIRD, "evil", "Original"));
    assert_eq!(outcome(&first, &[&jump, &next(SECOND)]), format!("ask {SECOND}!: NextEdition"));
    assert_eq!(outcome(&first, &[&jump, ""]), "0 /evil !", "nobody says otherwise");
}

#[test]
fn clause_4_2_4_a_copys_word_counts_when_an_original_or_all_have_answered() {
    let first = query("!");
    let (copy, original) = (last(ITEM, "copy", "Copy"), last(ITEM, "own", "Original"));
    assert_eq!(outcome(&first, &[&copy, "..."]), "wait");
    assert_eq!(outcome(&over(first.clone()), &[&copy, "..."]), "wait", "the grace does not end it");
    assert_eq!(outcome(&first, &[&copy, &original, "..."]), "1 /own !");
    assert_eq!(outcome(&first, &[&copy, "-"]), "0 /copy !", "the deadline");
    // If a translation follows, the state is that of the translation.
    let own = format!(
        "ibi.lastedition {{rep {ITEM}}} ibi.lastedition.translation(pt) {{rep {SECOND}}} \
         url.lastedition.translation(pt) http://N/pt state.lastedition.translation(pt) Original"
    );
    assert_eq!(outcome(&over(query("!+(pt)")), &[&own, "..."]), "wait");
    assert_eq!(outcome(&query("!+(pt)"), &[&own, ""]), "0 /pt !+(pt)");
}

#[test]
fn clause_4_2_4_a_copy_of_a_later_edition_may_be_behind() {
    let first = query("!");
    let copy = last(SECOND, "copy", "Copy");
    assert_eq!(outcome(&first, &[&copy, "..."]), "wait");
    let original = last(SECOND, "own", "Original");
    assert_eq!(outcome(&over(first.clone()), &[&original, "..."]), "0 /own !");
    let ask = format!("ask {SECOND}!: CopyOfLast");
    assert_eq!(outcome(&over(first.clone()), &[&copy, &original, "..."]), ask, "all are asked for it");
    assert_eq!(outcome(&first, &[&copy, ""]), format!("ask {SECOND}!: CopyOfLast"));
    let second = again(&first, &[&copy, ""]);
    assert_eq!(outcome(&second, &[&copy, &next(THIRD)]), format!("ask {THIRD}!: NextEdition"));
    assert_eq!(outcome(&second, &[&copy, ""]), "0 /copy !");
    assert_eq!(
        outcome(&second, &["-", ""]),
        "0 /copy !",
        "it was there a moment ago, and nobody knows better"
    );
    // Once a newer edition is known, the Copy is no longer used.
    let third = again(&second, &[&copy, &next(THIRD)]);
    assert_eq!(outcome(&third, &["", ""]), "404");
    assert_eq!(outcome(&third, &["-", ""]), "503");
}

#[test]
fn clause_2_4_an_older_edition_is_not_given_while_anybody_knows_a_newer_one() {
    let own = last(ITEM, "own", "Copy");
    let second = again(&query("!:"), &[&own, &next(SECOND)]);
    let RoundDecision::NotFound(NotFoundReason::Unheld { item, older }) = decided(&second, &["", ""]) else {
        panic!()
    };
    let older = older.unwrap();
    assert_eq!(item.to_string(), format!("rep {SECOND}"));
    assert_eq!(
        (older.label.to_string(), older.verbs.relation.modifiers()),
        (ITEM.to_owned(), ":".to_owned())
    );
    let RoundDecision::Incomplete { otherwise, .. } = decided(&second, &["", "-"]) else { panic!() };
    assert!(matches!(otherwise, NotFoundReason::Unheld { .. }));
    // Of two named editions, one that nobody holds does not hide the other.
    let undecided = again(&query("!"), &[&next(THIRD), &next(SECOND)]);
    let asked = again(&undecided, &["state Copy url http://N/copy", ""]);
    let other = again(&asked, &[&next(THIRD), &next(SECOND)]);
    assert_eq!(outcome(&other, &["", ""]), format!("ask {SECOND}!: next best"));
}

#[test]
fn clause_3_4_a_removed_edition_in_the_middle_leads_on() {
    let removed = format!("state Deleted timestamp 2020 {}", next(THIRD));
    let second = again(&query("!"), &[&next(SECOND)]);
    assert_eq!(outcome(&over(second.clone()), &[&removed, "..."]), format!("ask {THIRD}!: NextEdition"));
    let third = again(&second, &[&removed]);
    assert_eq!(outcome(&third, &[&last(THIRD, "third", "Original")]), "0 /third !");
    // The last one was removed: 410, with the first as the newest existing one.
    let RoundDecision::Deleted { living, .. } = decided(&third, &["state Deleted timestamp 2021"]) else {
        panic!()
    };
    assert_eq!(living.unwrap().label.to_string(), ITEM);
    // Without `!`, next editions are ignored.
    assert_eq!(outcome(&query(""), &[&removed]), "410");
}

#[test]
fn clause_4_3_the_last_edition_that_lives_is_looked_for_where_the_way_jumped_over_it() {
    let jump = format!("ibi.lastedition {{rep {THIRD}}} {}", next(SECOND));
    let second = again(&query("!"), &[&jump]);
    assert_eq!(second.label.to_string(), THIRD);
    let gone = "state Deleted timestamp 2021";
    assert_eq!(outcome(&second, &[gone]), format!("ask {THIRD}!: next best"), "it may lead on");
    let second = again(&second, &[gone]);
    assert_eq!(outcome(&second, &[gone]), format!("ask {SECOND}!: LastLiving"));
    let third = again(&second, &[gone]);
    let lives = format!("ibi.lastedition {{rep {THIRD}}} {}", next(THIRD));
    for (said, last) in [(lives.as_str(), SECOND), ("", ITEM), ("state Deleted timestamp 2020", ITEM)] {
        let RoundDecision::Deleted { tombstones, living } = decided(&third, &[said]) else {
            panic!("{said}")
        };
        assert_eq!((tombstones.len(), living.unwrap().label.to_string()), (1, last.to_owned()), "{said}");
    }
}

/// A later edition known only by name may lack the requested relation, and one after it may have
/// it.
#[test]
fn clause_2_4_the_editions_after_one_that_lacks_what_is_wanted() {
    let first = query("!:(x)");
    let known = format!("ibi.lastedition {{rep {SECOND}}} {}", next(SECOND));
    let second = again(&first, &[&known]);
    assert_eq!(second.verbs.relation.modifiers(), ":(x)");
    assert_eq!(outcome(&second, &["url http://N/x state Copy"]), format!("ask {SECOND}!:(x): next best"));
    // A translation known only by name, of an edition that may be outdated.
    let known = format!("{} ibi.lastedition.translation(pt) {{rep {THIRD}}}", known);
    assert_eq!(outcome(&query("!+(pt)"), &[&known]), format!("ask {SECOND}!+(pt): CopyOfLast"));
    let second = again(&query("!+(pt)"), &[&known]);
    assert_eq!(outcome(&second, &[""]), format!("ask {THIRD}: next best"), "nobody knows better");
    let own = format!("ibi.lastedition {{rep {SECOND}}} ibi.lastedition.translation(pt) {{rep {THIRD}}}");
    assert_eq!(outcome(&over(second.clone()), &[&own, "..."]), "wait", "for all answers");
    assert_eq!(outcome(&second, &[&own, ""]), format!("ask {THIRD}: leading !+(pt)"));
}
