//! 4.2 steps 4 and 5, 4.3: where chains of editions lead.

use ibi_protocol::analysis::{AcceptedLanguages, Decision, NotFound, Wanted};

use crate::federation::{ITEM, SECOND, THIRD, again, decided, outcome, wanted};

fn reads(modifiers: &str, header: &str) -> Wanted {
    Wanted { languages: AcceptedLanguages::parse(header), ..wanted(modifiers) }
}

fn over(wanted: Wanted) -> Wanted {
    Wanted { grace_over: true, ..wanted }
}

/// An answer to `!`: which item is the last edition, and in which state it is there.
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
    let first = wanted("!");
    assert_eq!(outcome(&first, &[&own, ""]), "0 /own !", "nobody is left to wait for");
    assert_eq!(outcome(&first, &[&own, &next(SECOND), "..."]), ask, "at once");
    assert_eq!(outcome(&over(first.clone()), &[&own, &next(SECOND), "..."]), ask);
    assert_eq!(outcome(&first, &[&last(ITEM, "own", "Original"), &next(SECOND)]), ask, "an Original too");
    assert_eq!(outcome(&first, &[&own, &later, "..."]), "1 /later !", "somebody has it");
    assert_eq!(outcome(&first, &[&later, "..."]), "0 /later !", "at once");
    assert_eq!(outcome(&first, &[&next(SECOND), &later, "..."]), "1 /later !", "it went through it");
    // Also after a translation, and only for the item that the editions are of.
    let own = format!(
        "ibi.translation(pt) {{rep {SECOND}}} ibi.translation(pt).lastedition {{rep {SECOND}}} \
         url.translation(pt).lastedition http://N/own state.translation(pt).lastedition Original"
    );
    assert_eq!(outcome(&wanted("+(pt)!"), &[&own, &next(THIRD), "..."]), "0 /own +(pt)!");
    let next = format!("ibi.translation(pt).nextedition {{rep {THIRD}}}");
    let ask = format!("ask {THIRD}!: NextEdition");
    assert_eq!(outcome(&wanted("+(pt)!"), &[&own, &next, "..."]), ask);
    assert_eq!(outcome(&reads("+!", "pt"), &[&next]), ask);
    assert_eq!(outcome(&reads("+!:", "pt"), &[&next]), format!("ask {THIRD}!:: NextEdition"));
}

#[test]
fn clause_4_2_4_a_copys_word_counts_when_an_original_or_all_have_answered() {
    let first = wanted("!");
    let (copy, original) = (last(ITEM, "copy", "Copy"), last(ITEM, "own", "Original"));
    assert_eq!(outcome(&first, &[&copy, "..."]), "wait");
    assert_eq!(outcome(&over(first.clone()), &[&copy, "..."]), "wait", "the grace does not end it");
    assert_eq!(outcome(&first, &[&copy, &original, "..."]), "1 /own !");
    assert_eq!(outcome(&first, &[&copy, "-"]), "0 /copy !", "the deadline");
    // With a translation after it, the state is that of the translation.
    let own = format!(
        "ibi.lastedition {{rep {ITEM}}} ibi.lastedition.translation(pt) {{rep {SECOND}}} \
         url.lastedition.translation(pt) http://N/pt state.lastedition.translation(pt) Original"
    );
    assert_eq!(outcome(&over(wanted("!+(pt)")), &[&own, "..."]), "wait");
    assert_eq!(outcome(&wanted("!+(pt)"), &[&own, ""]), "0 /pt !+(pt)");
}

#[test]
fn clause_4_2_4_a_copy_of_a_later_edition_may_be_behind() {
    let first = wanted("!");
    let copy = last(SECOND, "copy", "Copy");
    assert_eq!(outcome(&first, &[&copy, "..."]), "wait");
    assert_eq!(outcome(&first, &[&copy, &last(SECOND, "own", "Original"), "..."]), "1 /own !");
    assert_eq!(outcome(&first, &[&copy, ""]), format!("ask {SECOND}!: CopyOfLast"));
    let second = again(&first, &[&copy, ""]);
    assert_eq!(outcome(&second, &[&copy, &next(THIRD)]), format!("ask {THIRD}!: NextEdition"));
    assert_eq!(outcome(&second, &[&copy, ""]), "0 /copy !");
    assert_eq!(
        outcome(&second, &["-", ""]),
        "0 /copy !",
        "it was there a moment ago, and nobody knows better"
    );
    // As soon as somebody does, it is not given any more.
    let third = again(&second, &[&copy, &next(THIRD)]);
    assert_eq!(outcome(&third, &["", ""]), "404");
    assert_eq!(outcome(&third, &["-", ""]), "503");
}

#[test]
fn clause_2_4_an_older_edition_is_not_given_while_anybody_knows_a_newer_one() {
    let own = last(ITEM, "own", "Original");
    let second = again(&wanted("!:"), &[&own, &next(SECOND)]);
    let Decision::NotFound(NotFound::Unheld { item, older }) = decided(&second, &["", ""]) else { panic!() };
    let older = older.unwrap();
    assert_eq!(item.to_string(), format!("rep {SECOND}"));
    assert_eq!(
        (older.label.to_string(), older.verbs.relation.modifiers()),
        (ITEM.to_owned(), ":".to_owned())
    );
    let Decision::Incomplete { otherwise, .. } = decided(&second, &["", "-"]) else { panic!() };
    assert!(matches!(otherwise, NotFound::Unheld { .. }));
    // Of two that are named, one that is nowhere does not hide the other.
    let other = again(&wanted("!"), &[&next(THIRD), &next(SECOND)]);
    assert_eq!(outcome(&other, &["", ""]), format!("ask {SECOND}!: next best"));
}

#[test]
fn clause_3_4_a_removed_edition_in_the_middle_leads_on() {
    let removed = format!("state Deleted timestamp 2020 {}", next(THIRD));
    let second = again(&wanted("!"), &[&next(SECOND)]);
    assert_eq!(outcome(&second, &[&removed, "..."]), format!("ask {THIRD}!: NextEdition"));
    let third = again(&second, &[&removed]);
    assert_eq!(outcome(&third, &[&last(THIRD, "third", "Original")]), "0 /third !");
    // The last one was removed: 410, and the last one that lives is the first.
    let Decision::Deleted { living, .. } = decided(&third, &["state Deleted timestamp 2021"]) else {
        panic!()
    };
    assert_eq!(living.unwrap().label.to_string(), ITEM);
    // Without `!` a next edition is nobody's concern.
    assert_eq!(outcome(&wanted(""), &[&removed]), "410");
}

#[test]
fn clause_4_3_the_last_edition_that_lives_is_looked_for_where_the_way_jumped_over_it() {
    let jump = format!("ibi.lastedition {{rep {THIRD}}} {}", next(SECOND));
    let second = again(&wanted("!"), &[&jump]);
    assert_eq!(second.label.to_string(), THIRD);
    let gone = "state Deleted timestamp 2021";
    assert_eq!(outcome(&second, &[gone]), format!("ask {THIRD}!: next best"), "it may lead on");
    let second = again(&second, &[gone]);
    assert_eq!(outcome(&second, &[gone]), format!("ask {SECOND}!: LastLiving"));
    let third = again(&second, &[gone]);
    let lives = format!("ibi.lastedition {{rep {THIRD}}} {}", next(THIRD));
    for (said, last) in [(lives.as_str(), SECOND), ("", ITEM), ("state Deleted timestamp 2020", ITEM)] {
        let Decision::Deleted { tombstones, living } = decided(&third, &[said]) else { panic!("{said}") };
        assert_eq!((tombstones.len(), living.unwrap().label.to_string()), (1, last.to_owned()), "{said}");
    }
}

/// A later edition that only its name is known of may not have what is wanted, and one after it
/// may.
#[test]
fn clause_2_4_the_editions_after_one_that_lacks_what_is_wanted() {
    let first = wanted("!:(x)");
    let known = format!("ibi.lastedition {{rep {SECOND}}} {}", next(SECOND));
    let second = again(&first, &[&known]);
    assert_eq!(second.verbs.relation.modifiers(), ":(x)");
    assert_eq!(outcome(&second, &["url http://N/x state Copy"]), format!("ask {SECOND}!:(x): next best"));
    // A translation that only its name is known of, of an edition that may be behind.
    let known = format!("{} ibi.lastedition.translation(pt) {{rep {THIRD}}}", known);
    assert_eq!(outcome(&wanted("!+(pt)"), &[&known]), format!("ask {SECOND}!+(pt): CopyOfLast"));
    let second = again(&wanted("!+(pt)"), &[&known]);
    assert_eq!(outcome(&second, &[""]), format!("ask {THIRD}: next best"), "nobody knows better");
    let own = format!("ibi.lastedition {{rep {SECOND}}} ibi.lastedition.translation(pt) {{rep {THIRD}}}");
    assert_eq!(outcome(&over(second.clone()), &[&own, "..."]), "wait", "for all answers");
    assert_eq!(outcome(&second, &[&own, ""]), format!("ask {THIRD}: leading !+(pt)"));
}
