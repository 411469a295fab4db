//! 4.2 step 6: which translation a client gets.

use ibi_protocol::analysis::{AcceptedLanguages, Decision, NotFound, Wanted};

use crate::federation::{ITEM, SECOND, THIRD, again, decided, outcome, wanted};

const ORIGINAL: &str = "url http://N/x state Original";

fn reads(modifiers: &str, header: &str) -> Wanted {
    Wanted { languages: AcceptedLanguages::parse(header), ..wanted(modifiers) }
}

fn over(wanted: Wanted) -> Wanted {
    Wanted { grace_over: true, ..wanted }
}

#[test]
fn clause_4_2_6_the_best_translation_for_the_client() {
    let offer = |language: &str| {
        format!("url.translation({language}) http://N/{language} state.translation({language}) Original")
    };
    let (pt, br, en) = (offer("pt"), offer("pt-BR"), offer("en"));
    let bare = "url.translation http://N/bare state.translation Original";
    let header = "pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3";
    let first = reads("+", header);
    assert_eq!(outcome(&first, &[&en, "..."]), "wait");
    assert_eq!(outcome(&over(first.clone()), &[&en, "..."]), "0 /en +(en)");
    assert_eq!(
        outcome(&first, &[&en, &br, "..."]),
        "1 /pt-BR +(pt-BR)",
        "the first preference ends the wait"
    );
    assert_eq!(outcome(&first, &[&en, &pt, bare]), "1 /pt +(pt)", "RFC 4647: from pt-BR to pt before fr");
    assert_eq!(outcome(&reads("+", "pt"), &[&en, &br]), "1 /pt-BR +(pt-BR)", "pt also takes pt-BR");
    assert_eq!(outcome(&reads("+", "de"), &[&en, bare]), "1 /bare +", "if none fits");
    assert_eq!(
        outcome(&reads("+", "de"), &[&en, &pt]),
        format!("ask {ITEM}: WithoutTranslation"),
        "else the item"
    );
    assert_eq!(outcome(&reads("+:", "de"), &[""]), "404");
    assert_eq!(outcome(&reads("+", ""), &[bare, "..."]), "0 /bare +", "nothing can be better");
    assert_eq!(outcome(&first, &[bare, "..."]), "wait", "something can");
    assert_eq!(outcome(&over(first.clone()), &[bare, "..."]), "0 /bare +");
    // With or without a URL: the best is followed to where it lives.
    let known = format!("ibi.translation(pt-BR) {{rep {SECOND}}}");
    assert_eq!(outcome(&first, &[bare, &known]), format!("ask {SECOND}: leading +"));
    assert_eq!(outcome(&first, &[&en, &known]), format!("ask {SECOND}: leading +"));
    assert_eq!(outcome(&first, &[&br, &known]), "0 /pt-BR +(pt-BR)", "of one language, one with a URL");
}

#[test]
fn clause_4_2_6_the_best_that_ends_in_nothing_gives_way_to_the_next_best() {
    let pt = format!("ibi.translation(pt) {{rep {SECOND}}}");
    let en = "url.translation(en) http://N/en state.translation(en) Original";
    let first = reads("+", "pt,en;q=0.5");
    let second = again(&first, &[&pt, en]);
    for nothing in ["", "state Deleted timestamp 2020"] {
        assert_eq!(outcome(&second, &[nothing, ""]), "1 /en +(en)", "{nothing}");
    }
    assert_eq!(outcome(&second, &["", "-"]), "503", "it may be with who is silent");
    assert_eq!(outcome(&second, &["url http://N/pt", ""]), "0 /pt");
    // Several without a URL, then bare, then the item itself.
    let fr = format!("ibi.translation(fr) {{rep {THIRD}}}");
    let several = reads("+", "pt,fr;q=0.5");
    let second = again(&several, &[&pt, &fr]);
    assert_eq!(second.label.to_string(), SECOND);
    assert_eq!(outcome(&second, &["", ""]), format!("ask {THIRD}: next best"));
    let third = again(&second, &["", ""]);
    assert_eq!(outcome(&third, &["", ""]), format!("ask {ITEM}: WithoutTranslation"));
    let fourth = again(&third, &["", ""]);
    assert_eq!(outcome(&fourth, &[ORIGINAL, ""]), "0 /x");
    assert_eq!(outcome(&fourth, &["", ""]), "404");
    let bare = format!("{pt} {en} url.translation http://N/bare state.translation Original");
    assert_eq!(outcome(&again(&reads("+", "pt"), &[&bare]), &[""]), "0 /bare +");
    // One with a name has no second choice: what it is, and what there is instead, is told.
    let second = again(&wanted("+(pt)"), &[&pt]);
    let Decision::NotFound(NotFound::Unheld { item, older }) = decided(&second, &[""]) else { panic!() };
    assert_eq!(
        (item.to_string(), older.unwrap().label.to_string()),
        (format!("rep {SECOND}"), ITEM.to_owned())
    );
    // The original of the next best is asked for by its name.
    let required = Wanted { original: true, ..first };
    let second = again(&required, &[&pt, en]);
    assert_eq!(outcome(&second, &["", ""]), format!("ask {ITEM}+(en): next best"));
}

#[test]
fn clause_3_4_a_removed_item_names_its_translations() {
    let removed = format!("state Deleted timestamp 2020 ibi.translation(pt) {{rep {SECOND}}}");
    assert_eq!(outcome(&reads("+", "pt"), &[&removed]), format!("ask {SECOND}: leading +"));
    assert_eq!(outcome(&wanted("+(pt)"), &[&removed]), format!("ask {SECOND}: leading +(pt)"));
    assert_eq!(outcome(&reads("+", "en"), &[&removed]), "410");
    assert_eq!(outcome(&again(&reads("+", "pt"), &[&removed]), &[""]), "404");
}

#[test]
fn clause_4_2_6_each_translation_is_decided_by_itself_from_left_to_right() {
    let offer = |relation: &str| format!("url{relation} http://N/{relation} state{relation} Original");
    let english = offer(".translation(en).metadata.translation(en)");
    let french = [
        format!("ibi.translation(fr) {{rep {SECOND}}}"),
        offer(".translation(fr).metadata.translation(pt)"),
        offer(".translation(fr).metadata.translation(en)"),
        english.clone(),
    ]
    .join(" ");
    let first = reads("+:+", "fr,en;q=0.5,pt;q=0.1");
    let path = ".translation(fr).metadata.translation(en)";
    assert_eq!(outcome(&first, &[&french]), format!("0 /{path} +(fr):+(en)"), "not the English item's");
    // The first fits, the last does not: only the last one goes.
    let only = format!(
        "ibi.translation(fr) {{rep {SECOND}}} {}",
        offer(".translation(fr).metadata.translation(de)")
    );
    assert_eq!(outcome(&first, &[&only]), format!("ask {ITEM}+(fr):: WithoutTranslation"));
    // The first does not fit: only the first one goes.
    let german = offer(".translation(de).metadata.translation(fr)");
    assert_eq!(outcome(&first, &[&german]), format!("ask {ITEM}:+: WithoutTranslation"));
    assert_eq!(
        outcome(&reads("+!:+", "fr"), &["url http://N/x"]),
        format!("ask {ITEM}!:+: WithoutTranslation")
    );
    // What is known only by its name is asked for with all that is left.
    let named = format!("ibi.translation(fr) {{rep {SECOND}}} {english}");
    assert_eq!(outcome(&first, &[&named]), format!("ask {SECOND}:+: leading +"));
}

#[test]
fn clause_4_2_6_without_the_verb_that_cannot_be() {
    for (modifiers, then) in [("+", ""), ("!+", "!"), ("+!:", "!:"), ("+:+", ":+"), ("+:", ":"), (":+", ":")]
    {
        let ask = format!("ask {ITEM}{then}: WithoutTranslation");
        assert_eq!(outcome(&wanted(modifiers), &["url http://N/x"]), ask, "{modifiers}");
    }
    // The translation is never asked for a second time.
    let second = again(&wanted("+"), &["url http://N/x"]);
    assert_eq!(outcome(&second, &["url http://N/x"]), "0 /x");
}

#[test]
fn clause_4_2_6_a_language_with_a_name() {
    let offer = |language: &str| {
        format!("url.translation({language}) http://N/{language} state.translation({language}) Original")
    };
    let (pt, br, portugal) = (offer("pt"), offer("pt-BR"), offer("pt-PT"));
    assert_eq!(outcome(&wanted("+(pt)"), &[&br, &pt]), "1 /pt +(pt)");
    assert_eq!(outcome(&wanted("+(pt)"), &[&br, ""]), "0 /pt-BR +(pt-BR)", "else by a pt-XX");
    assert_eq!(outcome(&wanted("+(pt)"), &[&br, "..."]), "wait");
    assert_eq!(outcome(&wanted("+(pt)"), &[&pt, "..."]), "0 /pt +(pt)");
    assert_eq!(outcome(&reads("+(pt)", "en,pt-PT"), &[&br, &portugal]), "1 /pt-PT +(pt-PT)");
    assert_eq!(
        outcome(&wanted("+(pt-BR)"), &[&pt, &portugal]),
        format!("ask {ITEM}+: Offers"),
        "only by itself"
    );
    assert_eq!(outcome(&wanted("+(pt-BR)"), &[&br]), "0 /pt-BR +(pt-BR)");
}
