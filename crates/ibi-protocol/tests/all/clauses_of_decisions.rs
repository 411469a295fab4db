//! 4.2 steps 3 to 6: what follows from the answers.

use ibi_protocol::analysis::{
    AcceptedLanguages, ArchiveId, Claimed, Decision, Endless, MOST_ROUNDS, Wanted, suspects,
};
use ibi_protocol::{FilePath, PersistentUrl};

use crate::federation::{ITEM, SECOND, THIRD, again, answer, decided, outcome, wanted};

const URL: &str = "url http://N/x state Copy";
const ORIGINAL: &str = "url http://N/x state Original";

fn original(modifiers: &str) -> Wanted {
    Wanted { original: true, ..wanted(modifiers) }
}

fn reads(modifiers: &str, header: &str) -> Wanted {
    Wanted { languages: AcceptedLanguages::parse(header), ..wanted(modifiers) }
}

fn over(wanted: Wanted) -> Wanted {
    Wanted { grace_over: true, ..wanted }
}

#[test]
fn clause_4_2_1_all_that_a_persistent_url_asks_for_is_captured() {
    let query = "ibiurl.requireditemstatus=Original&page=2";
    let url = PersistentUrl::parse(&format!("/{ITEM}!/a.pdf"), Some(query)).unwrap();
    let languages = AcceptedLanguages::parse("pt-BR, en;q=0.5");
    let captured = Wanted::of(&url, languages.clone());
    let file = FilePath::new(b"/a.pdf").unwrap();
    assert_eq!(captured, Wanted { file, original: true, languages, ..wanted("!") });
}

#[test]
fn clause_4_2_3_exactly_one_claims_the_original() {
    let wanted = original("");
    assert_eq!(outcome(&wanted, &[URL, ORIGINAL, ""]), "1 /x");
    assert_eq!(outcome(&wanted, &[URL, ORIGINAL, "-"]), "1 /x");
    assert_eq!(outcome(&wanted, &[ORIGINAL, "..."]), "wait", "all answers are taken");
    assert_eq!(outcome(&over(wanted), &[ORIGINAL, "..."]), "wait", "and no grace ends that");
}

#[test]
fn clause_4_2_3_two_claims_or_none_are_asked_again_once_before_they_count() {
    for said in [[ORIGINAL, ORIGINAL], [URL, URL]] {
        let first = original("");
        assert_eq!(outcome(&first, &said), format!("ask {ITEM}: Claims"));
        let second = again(&first, &said);
        assert_eq!((second.round, second.asked.len()), (2, 0));
        assert_eq!(outcome(&second, &[URL, ORIGINAL]), "1 /x", "a transfer passed between two answers");
        let status = if said[0] == ORIGINAL { "409" } else { "404" };
        assert_eq!(outcome(&second, &said), status);
    }
}

#[test]
fn clause_4_2_3_the_suspects_are_named() {
    let second = again(&original(""), &[ORIGINAL, ORIGINAL]);
    let Decision::Alert(found) = decided(&second, &[ORIGINAL, URL, ORIGINAL]) else { panic!() };
    assert_eq!(found.len(), 1);
    let claimed = [0, 2].map(|number| Claimed {
        archive: ArchiveId(number),
        url: Some(format!("http://archive.n{number}.br/x")),
        timestamp: None,
    });
    assert_eq!((&found[0].claims[..], found[0].counts), (&claimed[..], true));
    assert_eq!(found[0].ibi.to_string(), format!("rep {ITEM}"));
}

#[test]
fn clause_4_2_3_claims_are_counted_per_ibi_of_what_the_relation_leads_to() {
    let first = original("!");
    let edition = |item: &str, state: &str| {
        format!("ibi.lastedition {{rep {item}}} url.lastedition http://N/{item} state.lastedition {state}")
    };
    let (own, later) = (edition(ITEM, "Original"), edition(SECOND, "Original"));
    assert_eq!(
        outcome(&first, &[&own, &later]),
        format!("1 /{SECOND} !"),
        "one claim for each item: no alert"
    );
    let copy = edition(SECOND, "Copy");
    assert_eq!(
        outcome(&first, &[&own, &copy]),
        format!("ask {SECOND}!: CopyOfLast"),
        "the editions after a copy come first"
    );
    let second = again(&first, &[&own, &copy]);
    assert_eq!(
        outcome(&second, &[&copy]),
        format!("ask {SECOND}!: Claims"),
        "the original of the last edition"
    );
    let third = again(&second, &[&copy]);
    assert_eq!(outcome(&third, &[&copy]), "404");
    assert_eq!(outcome(&third, &[&later, &later]), "409");
    // The item on the way is a copy everywhere, and what it leads to is the original.
    let way = format!("state Copy url http://N/ {later}");
    assert_eq!(outcome(&first, &[&way]), format!("0 /{SECOND} !"));
    // One Archive that says it twice is one; an item in two forms is one.
    let bare = original("+");
    let twice = "ibi.translation {rep a.br/b/2010/02.16.17.46} url.translation http://N/x state.translation Original \
                 ibi.translation(pt) {rep a.br/b/2010/02.16.17.46} url.translation(pt) http://N/y state.translation(pt) \
                 Original";
    assert_eq!(outcome(&bare, &[twice]), "0 /x +");
    // A claim counts in whatever language it is made: the item is the same.
    let english = "ibi.translation(en) {rep a.br/b/2010/02.16.17.46} url.translation(en) http://N/en \
                   state.translation(en) Original";
    assert_eq!(outcome(&bare, &[twice, english]), format!("ask {ITEM}+: Claims"));
    let forms = |forms: &str| {
        format!("ibi.lastedition {{{forms}}} url.lastedition http://N/x state.lastedition Original")
    };
    let (rep, ibip) = (forms(&format!("rep {SECOND}")), forms("ibip 8JMKD3MGP8W/35MME4E"));
    let both = forms(&format!("rep {SECOND} ibip 8JMKD3MGP8W/35MME4E"));
    let asked = again(&first, &[&rep, &ibip, &both]);
    let Decision::Alert(found) = decided(&asked, &[&rep, &ibip, &both]) else { panic!() };
    assert_eq!((found.len(), found[0].claims.len()), (1, 3), "the third ties the others together");
}

#[test]
fn clause_4_2_3_claims_of_the_label_asked_for_are_of_one_item_whatever_it_is_called() {
    let alias = format!("ibi {{ibip 8JMKD3MGP8W/35MME4E}} ibi.alias {ITEM} {ORIGINAL}");
    let said = [ORIGINAL, &alias];
    assert_eq!(outcome(&wanted(""), &said), "0 /x and an alert");
    assert_eq!(outcome(&original(""), &said), format!("ask {ITEM}: Claims"));
    assert_eq!(outcome(&again(&original(""), &said), &said), "409");
}

#[test]
fn clause_4_2_3_an_archive_that_claims_twice_is_named_with_where_it_has_it() {
    let wanted = reads("+", "pt");
    // The one in the client's language comes first, but only its name is known.
    let twice = format!(
        "ibi.translation(pt) {{rep {SECOND}}} state.translation(pt) Original ibi.translation {{rep {SECOND}}} \
         url.translation http://N/x state.translation Original"
    );
    let found = suspects(&[answer(0, &twice, &wanted), answer(1, &twice, &wanted)], &wanted);
    let urls: Vec<Option<&str>> = found[0].claims.iter().map(|claim| claim.url.as_deref()).collect();
    assert_eq!(urls, [Some("http://archive.n0.br/x"), Some("http://archive.n1.br/x")]);
}

#[test]
fn clause_4_2_3_steps_5_and_6_come_first() {
    let first = original("!");
    let next = format!("ibi.nextedition {{rep {SECOND}}}");
    assert_eq!(outcome(&first, &[&next, ORIGINAL]), format!("ask {SECOND}!: NextEdition"));
    let pt = "url.translation(pt) http://N/pt state.translation(pt) Original";
    let en = "url.translation(en) http://N/en state.translation(en) Copy";
    let bare = Wanted { original: true, ..reads("+", "pt,en") };
    assert_eq!(outcome(&bare, &[en, pt]), "1 /pt +(pt)");
    let bare = Wanted { original: true, ..reads("+", "en,pt") };
    assert_eq!(
        outcome(&bare, &[en, pt]),
        format!("ask {ITEM}+: Claims"),
        "not the original of another language"
    );
}

#[test]
fn clause_4_2_4_an_original_at_once_and_a_copy_after_the_grace() {
    assert_eq!(outcome(&wanted(""), &["", "...", URL, ORIGINAL]), "3 /x");
    assert_eq!(outcome(&wanted(""), &["", "...", URL]), "wait");
    assert_eq!(outcome(&over(wanted("")), &["", "...", URL, URL]), "2 /x", "of copies the first");
    assert_eq!(outcome(&wanted(""), &["-", URL]), "1 /x", "nobody is left to wait for");
    assert_eq!(outcome(&wanted(""), &["url http://N/x", "..."]), "wait", "who does not say may be a copy");
    assert_eq!(outcome(&wanted(":"), &["url.metadata http://N/m state.metadata Original", "..."]), "0 /m :");
    assert_eq!(outcome(&wanted(""), &["...", ""]), "wait");
    assert_eq!(
        outcome(&over(wanted("")), &["...", ""]),
        "wait",
        "the grace is for a better answer than one that is there"
    );
}

#[test]
fn clause_4_2_4_a_live_answer_beats_deleted() {
    let deleted = "state Deleted timestamp 2020-01-01T00:00:00Z";
    assert_eq!(outcome(&wanted(""), &[deleted, URL]), "1 /x");
    assert_eq!(outcome(&wanted(""), &[deleted, "..."]), "wait");
    assert_eq!(outcome(&over(wanted("")), &[deleted, "..."]), "wait");
    assert_eq!(outcome(&wanted(""), &[deleted, "-", ""]), "410");
    assert_eq!(
        outcome(&wanted("+(pt)"), &[deleted, "ibi.platformsoftware {}"]),
        format!("ask {ITEM}+: Offers")
    );
}

#[test]
fn clause_4_2_4_a_second_claim_raises_the_same_alert() {
    let wanted = wanted("");
    assert_eq!(outcome(&wanted, &[ORIGINAL, ORIGINAL]), "0 /x and an alert");
    assert_eq!(outcome(&wanted, &[ORIGINAL, "..."]), "0 /x");
    let later = [answer(0, ORIGINAL, &wanted), answer(1, ORIGINAL, &wanted)];
    let found = suspects(&later, &wanted);
    assert_eq!((found.len(), found[0].counts), (1, false), "not before they are asked again");
    assert!(suspects(&later[..1], &wanted).is_empty());
}

#[test]
fn clause_4_2_5_the_longest_leading_part_with_the_verbs_after_it() {
    let known = |part: &str, item: &str| format!("ibi{part} {{rep {item}}}");
    let (one, two) = (known(".lastedition", SECOND), known(".lastedition.translation(pt)", THIRD));
    let first = wanted("!+(pt):(oai_dc)");
    assert_eq!(outcome(&first, &[&one]), format!("ask {SECOND}+(pt):(oai_dc): leading !"));
    // Of an edition that may be behind, the editions after it come first (step 4).
    assert_eq!(outcome(&first, &[&one, &two]), format!("ask {SECOND}!+(pt):(oai_dc): CopyOfLast"));
    let second = again(&first, &[&one, &two]);
    assert_eq!(outcome(&second, &["", ""]), format!("ask {THIRD}:(oai_dc): next best"));
    assert_eq!(outcome(&first, &[&two, ""]), format!("ask {THIRD}:(oai_dc): leading !+(pt)"));
    let whole = known(".lastedition.translation(pt).metadata(oai_dc)", SECOND);
    assert_eq!(
        outcome(&first, &[&two, &whole]),
        format!("ask {SECOND}:(oai_dc): leading !+(pt):(oai_dc)"),
        "with GetMetadata(f) before them"
    );
    assert_eq!(
        outcome(&wanted(":(oai_dc)+(pt)"), &[&known(".metadata(oai_dc)", SECOND)]),
        format!("ask {SECOND}:(oai_dc)+(pt): leading :(oai_dc)")
    );
    assert_eq!(
        outcome(&wanted("+(pt)"), &[&known(".translation(pt)", SECOND)]),
        format!("ask {SECOND}: leading +(pt)")
    );
    let (first, pt) = (wanted("+(pt):"), known(".translation(pt)", THIRD));
    assert_eq!(outcome(&first, &[&pt, "..."]), "wait", "somebody may have the URL");
    assert_eq!(outcome(&over(first), &[&pt, "..."]), format!("ask {THIRD}:: leading +(pt)"));
}

#[test]
fn clause_4_2_5_the_next_edition_only_if_the_relation_begins_so_and_with_all_verbs() {
    let next = format!("ibi.nextedition {{rep {SECOND}}}");
    assert_eq!(outcome(&wanted("!:(oai_dc)"), &[&next]), format!("ask {SECOND}!:(oai_dc): NextEdition"));
    assert_eq!(outcome(&wanted("+!"), &[&next]), format!("ask {ITEM}!: WithoutTranslation"));
    assert_eq!(outcome(&wanted("+(pt)!"), &[&next]), format!("ask {ITEM}+!: Offers"));
    let known = format!("ibi.lastedition {{rep {THIRD}}}");
    assert_eq!(outcome(&wanted("!:"), &[&next, &known]), format!("ask {THIRD}:: leading !"), "else");
}

#[test]
fn clause_4_2_5_file_and_file_list_go_along_every_round() {
    let mut first = wanted("!");
    first.verbs.file_list = true;
    first.file = FilePath::new(b"/a.pdf").unwrap();
    let second = again(&first, &[&format!("ibi.nextedition {{rep {SECOND}}}")]);
    assert_eq!(
        (second.verbs.to_string().as_str(), &second.file),
        ("GetLastEdition GetFileList", &first.file)
    );
    let third = again(&second, &[&format!("ibi.lastedition {{rep {THIRD}}}")]);
    assert_eq!((third.verbs.to_string().as_str(), &third.file), ("GetFileList", &first.file));
    assert_eq!((third.round, third.asked.len()), (3, 2));
}

#[test]
fn clause_4_2_5_a_question_is_never_repeated_and_a_cycle_is_reported() {
    let first = wanted("!");
    let next = |item: &str| format!("ibi.nextedition {{rep {item}}}");
    let second = again(&first, &[&next(SECOND)]);
    let back = next(ITEM);
    let Decision::Cycle { chain, why } = decided(&second, &[&back]) else { panic!() };
    let labels: Vec<String> = chain.iter().map(|question| question.label.to_string()).collect();
    assert_eq!((labels.as_slice(), why), (&[ITEM, SECOND, ITEM].map(str::to_owned)[..], Endless::Repeats));
    assert_eq!(outcome(&second, &[&back, "..."]), "wait");
    assert_eq!(outcome(&over(second.clone()), &[&back, "..."]), "wait", "whoever is left may lead out");
    assert_eq!(outcome(&second, &[&back, &next(THIRD)]), format!("ask {THIRD}!: NextEdition"), "another way");
    let own = format!("ibi.lastedition {{rep {SECOND}}} url.lastedition http://N/own");
    assert_eq!(
        outcome(&second, &[&back, &own]),
        "1 /own !",
        "who lies about editions keeps nobody from the item"
    );
    assert_eq!(outcome(&first, &[&next(ITEM)]), "508", "the shortest cycle");
    let own = format!("ibi {{rep {ITEM} ibip 8JMKD3MGP8W/35MME4E}}");
    let next = format!("{own} ibi.nextedition {{ibip 8JMKD3MGP8W/35MME4E}}");
    assert_eq!(outcome(&first, &[&next]), "508", "and under another name of the item");
    // That an item is its own metadata, but not in that format, is none.
    let own = format!("ibi.metadata(marc) {{rep {ITEM}}}");
    assert_eq!(outcome(&wanted(":(marc)"), &[&own]), format!("ask {ITEM}:: Offers"));
}

#[test]
fn clause_4_2_5_at_most_32_rounds_in_all() {
    let mut wanted = wanted("!");
    for round in 1..=MOST_ROUNDS {
        assert_eq!(wanted.round, round);
        let next = format!("ibi.nextedition {{rep a.br/b/{}/02.16.17.46}}", 2020 + round);
        match decided(&wanted, &[&next]) {
            Decision::AskAgain(again) if round < MOST_ROUNDS => wanted = wanted.next(&again),
            Decision::Cycle { chain, why: Endless::TooManyRounds } if round == MOST_ROUNDS => {
                assert_eq!(chain.len(), 33);
            }
            other => panic!("{round}: {other:?}"),
        }
    }
    let last = Wanted { original: true, round: MOST_ROUNDS, ..wanted };
    assert_eq!(outcome(&last, &["url.lastedition http://N/x"]), "508", "claims cannot be counted any more");
}
