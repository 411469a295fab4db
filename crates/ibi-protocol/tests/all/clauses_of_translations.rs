//! 4.2 step 6: which translation a client gets.

use ibi_protocol::analysis::{AcceptedLanguages, NotFoundReason, RoundDecision, RoundQuery};

use crate::federation::{ITEM, SECOND, THIRD, again, decided, outcome, query, undecided};

const ORIGINAL: &str = "url http://N/x state Original";

fn reads(modifiers: &str, header: &str) -> RoundQuery {
    RoundQuery { languages: AcceptedLanguages::parse(header), ..query(modifiers) }
}

fn over(query: RoundQuery) -> RoundQuery {
    RoundQuery { grace_over: true, ..query }
}

#[test]
fn clause_4_2_6_the_best_translation_for_the_client() {
    let offer = |language: &str| {
        format!("url.translation({language}) http://N/{language} state.translation({language}) Original")
    };
    let (pt, br, en) = (offer("pt"), offer("pt-BR"), offer("en"));
    let bare = "url.translation http://N/bare state.translation Original";
    let header = "pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3";
    // If no Archive claims the Original, what all offer counts.
    let nobody = |header: &str| undecided(&reads("+", header), &[&en, &br]);
    let first = nobody(header);
    assert_eq!(outcome(&reads("+", header), &[&en, "..."]), "wait");
    assert_eq!(outcome(&over(reads("+", header)), &[&en, "..."]), "0 /en +(en)");
    assert_eq!(outcome(&first, &[&en, &br, "..."]), "wait", "the Original may know better");
    assert_eq!(outcome(&over(first.clone()), &[&en, &br, "..."]), "1 /pt-BR +(pt-BR)");
    assert_eq!(outcome(&first, &[&en, &pt, bare]), "1 /pt +(pt)", "RFC 4647: from pt-BR to pt before fr");
    assert_eq!(outcome(&nobody("pt"), &[&en, &br]), "1 /pt-BR +(pt-BR)", "pt also takes pt-BR");
    assert_eq!(outcome(&nobody("de"), &[&en, bare]), "1 /bare +", "if none fits");
    assert_eq!(
        outcome(&nobody("de"), &[&en, &pt]),
        format!("ask {ITEM}: WithoutTranslation"),
        "else the item"
    );
    assert_eq!(outcome(&reads("+:", "de"), &[""]), "404");
    assert_eq!(outcome(&reads("+", ""), &[bare, "..."]), "wait");
    assert_eq!(outcome(&over(reads("+", "")), &[bare, "..."]), "0 /bare +");
    // With or without a URL: the best is followed to its holder.
    let known = format!("ibi.translation(pt-BR) {{rep {SECOND}}}");
    assert_eq!(outcome(&first, &[bare, &known]), format!("ask {SECOND}: leading +"));
    assert_eq!(outcome(&first, &[&en, &known]), format!("ask {SECOND}: leading +"));
    assert_eq!(
        outcome(&first, &[&br, &known]),
        format!("ask {SECOND}: leading +"),
        "its own Archive decides who has it"
    );
}

/// 2.4, *Consent*, ADR 13: no item becomes a translation of another Archive's item by its own
/// claim.
#[test]
fn clause_2_4_the_archive_of_the_original_knows_all_translations() {
    let evil = format!("ibi.translation(pt) {{rep {SECOND}}}");
    let with_url = format!("{evil} url.translation(pt) http://N/evil state.translation(pt) Original");
    let other = format!("ibi.translation(pt) {{rep {THIRD}}}");
    let own = format!("ibi.translation(en) {{rep {ITEM}}}");
    for claim in [&evil, &with_url] {
        for (modifiers, honest, then) in [
            ("+", own.as_str(), format!("ask {ITEM}: WithoutTranslation")),
            ("+(pt)", "x y", format!("ask {ITEM}+: Offers")),
            ("+(pt)", &other, format!("ask {THIRD}: leading +(pt)")),
            ("+(pt):", "x y", format!("ask {ITEM}+:: Offers")),
            ("+(pt)!", &other, format!("ask {THIRD}!: leading +(pt)")),
        ] {
            let (first, texts) = (reads(modifiers, "pt"), [claim.as_str(), honest]);
            assert_eq!(outcome(&first, &[claim, "..."]), "wait", "{modifiers}: for the Original");
            assert_eq!(outcome(&first, &[claim, honest, "..."]), "wait", "{modifiers}");
            assert_eq!(outcome(&first, &texts), format!("ask {ITEM}: WhoDecides"), "{modifiers}");
            let decided = again(&again(&first, &texts), &["", ORIGINAL]);
            assert_eq!(outcome(&over(decided.clone()), &[claim, "..."]), "wait", "{modifiers}");
            assert_eq!(outcome(&decided, &texts), then, "{modifiers}");
            // Several claimants must agree.
            let several = again(&again(&first, &texts), &[ORIGINAL, ORIGINAL]);
            assert!(!outcome(&several, &texts).contains(SECOND), "{modifiers}");
        }
    }
    let (pt, made) = (query("+(pt)"), again(&query("+(pt)"), &[&evil, "x y"]));
    // A removed item's Archive knows its translations, and a Copy's answer counts if there is no
    // Original.
    assert_eq!(outcome(&over(pt), &[&evil, "..."]), format!("ask {SECOND}: leading +(pt)"));
    let undecided = again(&made, &["", "state Deleted timestamp 2020"]);
    assert_eq!(outcome(&undecided, &[&evil, "x y"]), format!("ask {SECOND}: leading +(pt)"));
}

/// 4.4: the Archive whose service has the label's prefix is presumed to be the holder.
#[test]
fn clause_4_4_the_archive_that_gave_the_label_is_believed_first() {
    let minted = "n1.br/archive/2009/02.16.17.46";
    let first = |modifiers| RoundQuery { label: minted.parse().unwrap(), ..reads(modifiers, "pt,en;q=0.5") };
    assert_eq!(outcome(&first(""), &[ORIGINAL, ORIGINAL]), "1 /x and an alert");
    for modifiers in ["", ":"] {
        let (first, relation) = (first(modifiers), if modifiers.is_empty() { "" } else { ".metadata" });
        let claim = format!("url{relation} http://N/x state{relation} Original");
        let outcome = |texts: &[&str]| outcome(&first, texts).replace(" :", "");
        assert_eq!(outcome(&[&claim, "..."]), "wait", "its Archive may claim it, too");
        assert_eq!(outcome(&[&claim, &claim, "..."]), "1 /x and an alert");
        assert_eq!(outcome(&["...", &claim]), "1 /x", "at once");
        assert_eq!(outcome(&[&claim, "", "..."]), "0 /x", "handed over: at once");
        assert_eq!(outcome(&[&claim, &claim.replace("Original", "Copy"), "..."]), "0 /x");
        assert_eq!(outcome(&[&claim, "-", "..."]), "0 /x");
        let over = over(first.clone());
        assert_eq!(crate::federation::outcome(&over, &[&claim, "..."]).replace(" :", ""), "0 /x");
    }
    let own = format!(
        "ibi.translation(en) {{rep {minted}}} url.translation(en) http://N/en state.translation(en) Original"
    );
    let evil = format!("{own} ibi.translation(pt) {{rep {SECOND}}}");
    assert_eq!(outcome(&first("+"), &[&evil, &own, "..."]), "1 /en +(en) and an alert", "at once");
    let copy = own.replace("Original", "Copy");
    assert_eq!(outcome(&first("+"), &[&evil, &copy]), format!("ask {minted}: WhoDecides"), "a Copy now");
    let texts = [evil.as_str(), "x y"];
    let decided = again(&again(&first("+(pt)"), &texts), &[ORIGINAL, ORIGINAL]);
    assert_eq!(outcome(&decided, &texts), format!("ask {minted}+: Offers"));
}

#[test]
fn clause_4_2_6_the_best_that_ends_in_nothing_gives_way_to_the_next_best() {
    let pt = format!("ibi.translation(pt) {{rep {SECOND}}}");
    let en = "url.translation(en) http://N/en state.translation(en) Original";
    let first = undecided(&reads("+", "pt,en;q=0.5"), &[&pt, en]);
    let second = again(&first, &[&pt, en]);
    for nothing in ["", "state Deleted timestamp 2020"] {
        assert_eq!(outcome(&second, &[nothing, ""]), "1 /en +(en)", "{nothing}");
    }
    assert_eq!(outcome(&second, &["", "-"]), "503", "it may be with who is silent");
    assert_eq!(outcome(&second, &["url http://N/pt", ""]), "0 /pt");
    // Several without a URL, then one without a language, then the item itself.
    let fr = format!("ibi.translation(fr) {{rep {THIRD}}}");
    let several = undecided(&reads("+", "pt,fr;q=0.5"), &[&pt, &fr]);
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
    // A requested language has no second choice: the item and the alternatives are reported.
    let second = again(&query("+(pt)"), &[&pt]);
    let RoundDecision::NotFound(NotFoundReason::Unheld { item, older }) = decided(&second, &[""]) else {
        panic!()
    };
    assert_eq!(
        (item.to_string(), older.unwrap().label.to_string()),
        (format!("rep {SECOND}"), ITEM.to_owned())
    );
    // The Original of the next best is queried by its label.
    let required = RoundQuery { original: true, ..first };
    let second = again(&required, &[&pt, en]);
    assert_eq!(outcome(&second, &["", ""]), format!("ask {ITEM}+(en): next best"));
}

#[test]
fn clause_3_4_a_removed_item_names_its_translations() {
    let removed = format!("state Deleted timestamp 2020 ibi.translation(pt) {{rep {SECOND}}}");
    assert_eq!(outcome(&reads("+", "pt"), &[&removed]), format!("ask {SECOND}: leading +"));
    assert_eq!(outcome(&query("+(pt)"), &[&removed]), format!("ask {SECOND}: leading +(pt)"));
    assert_eq!(outcome(&reads("+", "en"), &[&removed]), "410");
    assert_eq!(outcome(&again(&reads("+", "pt"), &[&removed]), &[""]), "404");
}

/// 2.4: a removed item in the middle of a chain of editions leads on, also behind a translation.
#[test]
fn clause_2_4_a_removed_item_without_a_fitting_translation_leads_to_its_next_edition() {
    let removed = format!("state Deleted timestamp 2020 ibi.nextedition {{rep {SECOND}}}");
    for modifiers in ["+!", "+!:", "+!:+"] {
        let without = modifiers.strip_prefix('+').unwrap();
        let ask = format!("ask {ITEM}{without}: WithoutTranslation");
        assert_eq!(outcome(&reads(modifiers, "en"), &[&removed]), ask);
    }
    assert_eq!(outcome(&reads("+", "en"), &[&removed]), "410");
}

/// 4.2 step 6, 4.3: a worse language is no substitute for a better one whose Archive is silent,
/// also where the worse one has a newer edition.
#[test]
fn clause_4_2_6_a_silent_archive_of_the_best_language_is_waited_for() {
    let known = format!(
        "ibi.translation(pt) {{rep {SECOND}}} ibi.translation(en) {{rep {ITEM}}} \
         ibi.translation(en).nextedition {{rep {THIRD}}}"
    );
    for modifiers in ["+!", "+!:", "+!:+"] {
        let first = reads(modifiers, "pt,en;q=0.5");
        let rest = modifiers.strip_prefix('+').unwrap();
        assert_eq!(outcome(&first, &[&known, ""]), format!("ask {SECOND}{rest}: leading +"));
        let second = again(&first, &[&known, ""]);
        assert_eq!(outcome(&second, &["", "-"]), "503", "{modifiers}");
        assert_eq!(outcome(&second, &["", ""]), format!("ask {THIRD}{rest}: next best"), "{modifiers}");
    }
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
    // The first matches, the last does not: only the last is dropped.
    let only = format!(
        "ibi.translation(fr) {{rep {SECOND}}} {}",
        offer(".translation(fr).metadata.translation(de)")
    );
    assert_eq!(outcome(&first, &[&only]), format!("ask {ITEM}+(fr):: WithoutTranslation"));
    // The first does not match: only the first is dropped.
    let german = offer(".translation(de).metadata.translation(fr)");
    assert_eq!(outcome(&first, &[&german]), format!("ask {ITEM}:+: WithoutTranslation"));
    assert_eq!(
        outcome(&reads("+!:+", "fr"), &["url http://N/x"]),
        format!("ask {ITEM}!:+: WithoutTranslation")
    );
    // An item known only by name is queried with all remaining verbs.
    let named = format!("ibi.translation(fr) {{rep {SECOND}}} {english}");
    assert_eq!(outcome(&first, &[&named]), format!("ask {SECOND}:+: leading +"));
}

#[test]
fn clause_4_2_6_without_the_verb_that_cannot_be() {
    for (modifiers, then) in [("+", ""), ("!+", "!"), ("+!:", "!:"), ("+:+", ":+"), ("+:", ":"), (":+", ":")]
    {
        let ask = format!("ask {ITEM}{then}: WithoutTranslation");
        assert_eq!(outcome(&query(modifiers), &["url http://N/x"]), ask, "{modifiers}");
    }
    // The translation is never requested again.
    let second = again(&query("+"), &["url http://N/x"]);
    assert_eq!(outcome(&second, &["url http://N/x"]), "0 /x");
}

#[test]
fn clause_4_2_6_a_language_with_a_name() {
    let offer = |language: &str| {
        format!("url.translation({language}) http://N/{language} state.translation({language}) Original")
    };
    let (pt, br, portugal) = (offer("pt"), offer("pt-BR"), offer("pt-PT"));
    let nobody = undecided(&query("+(pt)"), &[&br, &pt]);
    assert_eq!(outcome(&nobody, &[&br, &pt]), "1 /pt +(pt)");
    assert_eq!(outcome(&query("+(pt)"), &[&br, ""]), "0 /pt-BR +(pt-BR)", "else by a pt-XX");
    assert_eq!(outcome(&query("+(pt)"), &[&br, "..."]), "wait");
    assert_eq!(outcome(&over(query("+(pt)")), &[&pt, "..."]), "0 /pt +(pt)");
    let nobody = undecided(&reads("+(pt)", "en,pt-PT"), &[&br, &portugal]);
    assert_eq!(outcome(&nobody, &[&br, &portugal]), "1 /pt-PT +(pt-PT)");
    assert_eq!(
        outcome(&query("+(pt-BR)"), &[&pt, &portugal]),
        format!("ask {ITEM}+: Offers"),
        "only by itself"
    );
    assert_eq!(outcome(&query("+(pt-BR)"), &[&br]), "0 /pt-BR +(pt-BR)");
}
