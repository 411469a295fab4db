//! 4.2 steps 3 to 6: decisions from the answers.

use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerClaim, ArchiveId, CycleReason, MAX_ROUNDS, RoundDecision, RoundQuery, suspects,
};
use ibi_protocol::{FilePath, PersistentUrl};

use crate::federation::{ITEM, SECOND, THIRD, again, answer, decided, outcome, query, undecided};

const URL: &str = "url http://N/x state Copy";
const ORIGINAL: &str = "url http://N/x state Original";

fn original(modifiers: &str) -> RoundQuery {
    RoundQuery { original: true, ..query(modifiers) }
}

fn reads(modifiers: &str, header: &str) -> RoundQuery {
    RoundQuery { languages: AcceptedLanguages::parse(header), ..query(modifiers) }
}

fn over(query: RoundQuery) -> RoundQuery {
    RoundQuery { grace_over: true, ..query }
}

#[test]
fn clause_4_2_1_all_that_a_persistent_url_asks_for_is_captured() {
    let text = "ibiurl.requireditemstatus=Original&page=2";
    let url = PersistentUrl::parse(&format!("/{ITEM}!/a.pdf"), Some(text)).unwrap();
    let languages = AcceptedLanguages::parse("pt-BR, en;q=0.5");
    let captured = RoundQuery::of(&url, languages.clone());
    let file = FilePath::new(b"/a.pdf").unwrap();
    assert_eq!(captured, RoundQuery { file, original: true, languages, ..query("!") });
}

#[test]
fn clause_4_2_3_exactly_one_claims_the_original() {
    let query = original("");
    assert_eq!(outcome(&query, &[URL, ORIGINAL, ""]), "1 /x");
    assert_eq!(outcome(&query, &[URL, ORIGINAL, "-"]), "1 /x");
    assert_eq!(outcome(&query, &[ORIGINAL, "..."]), "wait", "all answers are taken");
    assert_eq!(outcome(&over(query), &[ORIGINAL, "..."]), "wait", "and no grace ends that");
}

#[test]
fn clause_4_2_3_two_claims_or_none_are_asked_again_once_before_they_count() {
    for texts in [[ORIGINAL, ORIGINAL], [URL, URL]] {
        let first = original("");
        assert_eq!(outcome(&first, &texts), format!("ask {ITEM}: Claims"));
        let second = again(&first, &texts);
        assert_eq!((second.round, second.asked.len()), (2, 0));
        assert_eq!(outcome(&second, &[URL, ORIGINAL]), "1 /x", "a transfer passed between two answers");
        let status = if texts[0] == ORIGINAL { "409" } else { "404" };
        assert_eq!(outcome(&second, &texts), status);
    }
}

#[test]
fn clause_4_2_3_the_suspects_are_named() {
    let second = again(&original(""), &[ORIGINAL, ORIGINAL]);
    let RoundDecision::Alert(found) = decided(&second, &[ORIGINAL, URL, ORIGINAL]) else { panic!() };
    assert_eq!(found.len(), 1);
    let claimed = [0, 2].map(|number| AnswerClaim {
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
    let (own, later) = (edition(ITEM, "Copy"), edition(SECOND, "Original"));
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
    // The intermediate item is a Copy everywhere, and its target is the Original.
    let way = format!("state Copy url http://N/ {later}");
    assert_eq!(outcome(&first, &[&way]), format!("0 /{SECOND} !"));
    // Two claims by one Archive count once; so does an item with two labels.
    let bare = original("+");
    let twice = "ibi.translation {rep a.br/b/2010/02.16.17.46} url.translation http://N/x state.translation Original \
                 ibi.translation(pt) {rep a.br/b/2010/02.16.17.46} url.translation(pt) http://N/y state.translation(pt) \
                 Original";
    assert_eq!(outcome(&bare, &[twice]), "0 /x +");
    // A claim counts in any language: the item is the same.
    let english = "ibi.translation(en) {rep a.br/b/2010/02.16.17.46} url.translation(en) http://N/en \
                   state.translation(en) Original";
    let found = suspects(&[answer(0, twice, &bare), answer(1, english, &bare)], &bare);
    assert_eq!((found.len(), found[0].claims.len()), (1, 2));
    let forms = |forms: &str| {
        format!("ibi.lastedition {{{forms}}} url.lastedition http://N/x state.lastedition Original")
    };
    let (rep, ibip) = (forms(&format!("rep {SECOND}")), forms("ibip 8JMKD3MGP8W/35MME4E"));
    let both = forms(&format!("rep {SECOND} ibip 8JMKD3MGP8W/35MME4E"));
    let all = [(0, &rep), (1, &ibip), (2, &both)].map(|(number, texts)| answer(number, texts, &first));
    let found = suspects(&all, &first);
    assert_eq!((found.len(), found[0].claims.len()), (1, 3), "the third ties the others together");
}

#[test]
fn clause_4_2_3_claims_of_the_label_asked_for_are_of_one_item_whatever_it_is_called() {
    let alias = format!("ibi {{ibip 8JMKD3MGP8W/35MME4E}} ibi.alias {ITEM} {ORIGINAL}");
    let texts = [ORIGINAL, &alias];
    assert_eq!(outcome(&query(""), &texts), "0 /x and an alert");
    assert_eq!(outcome(&original(""), &texts), format!("ask {ITEM}: Claims"));
    assert_eq!(outcome(&again(&original(""), &texts), &texts), "409");
}

#[test]
fn clause_4_2_3_an_archive_that_claims_twice_is_named_with_where_it_has_it() {
    let query = reads("+", "pt");
    // The offer in the client's language comes first, but has only a label.
    let twice = format!(
        "ibi.translation(pt) {{rep {SECOND}}} state.translation(pt) Original ibi.translation {{rep {SECOND}}} \
         url.translation http://N/x state.translation Original"
    );
    let found = suspects(&[answer(0, &twice, &query), answer(1, &twice, &query)], &query);
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
    let bare = RoundQuery { original: true, ..reads("+", "pt,en") };
    let bare = undecided(&bare, &[en, pt]);
    assert_eq!(outcome(&bare, &[en, pt]), "1 /pt +(pt)");
    let bare = undecided(&RoundQuery { original: true, ..reads("+", "en,pt") }, &[en, pt]);
    assert_eq!(
        outcome(&bare, &[en, pt]),
        format!("ask {ITEM}+: Claims"),
        "not the original of another language"
    );
}

#[test]
fn clause_4_2_4_an_original_at_once_and_a_copy_after_the_grace() {
    assert_eq!(outcome(&query(""), &["", "...", URL, ORIGINAL]), "3 /x");
    assert_eq!(outcome(&query(""), &["", "...", URL]), "wait");
    assert_eq!(outcome(&over(query("")), &["", "...", URL, URL]), "2 /x", "of copies the first");
    assert_eq!(outcome(&query(""), &["-", URL]), "1 /x", "nobody is left to wait for");
    assert_eq!(outcome(&query(""), &["url http://N/x", "..."]), "wait", "who does not say may be a copy");
    assert_eq!(outcome(&query(":"), &["url.metadata http://N/m state.metadata Original", "..."]), "0 /m :");
    assert_eq!(outcome(&query(""), &["...", ""]), "wait");
    assert_eq!(
        outcome(&over(query("")), &["...", ""]),
        "wait",
        "the grace is for a better answer than one that is there"
    );
}

#[test]
fn clause_4_2_4_a_live_answer_beats_deleted() {
    let deleted = "state Deleted timestamp 2020-01-01T00:00:00Z";
    assert_eq!(outcome(&query(""), &[deleted, URL]), "1 /x");
    assert_eq!(outcome(&query(""), &[deleted, "..."]), "wait");
    assert_eq!(outcome(&over(query("")), &[deleted, "..."]), "wait");
    assert_eq!(outcome(&query(""), &[deleted, "-", ""]), "410");
    assert_eq!(
        outcome(&query("+(pt)"), &[deleted, "ibi.platformsoftware {}"]),
        format!("ask {ITEM}+: Offers")
    );
}

#[test]
fn clause_4_2_4_a_second_claim_raises_the_same_alert() {
    let query = query("");
    assert_eq!(outcome(&query, &[ORIGINAL, ORIGINAL]), "0 /x and an alert");
    assert_eq!(outcome(&query, &[ORIGINAL, "..."]), "0 /x");
    let later = [answer(0, ORIGINAL, &query), answer(1, ORIGINAL, &query)];
    let found = suspects(&later, &query);
    assert_eq!((found.len(), found[0].counts), (1, false), "not before they are asked again");
    assert!(suspects(&later[..1], &query).is_empty());
}

#[test]
fn clause_4_2_5_the_longest_leading_part_with_the_verbs_after_it() {
    let known = |part: &str, item: &str| format!("ibi{part} {{rep {item}}}");
    let (one, two) = (known(".lastedition", SECOND), known(".lastedition.translation(pt)", THIRD));
    let first = query("!+(pt):(oai_dc)");
    assert_eq!(outcome(&first, &[&one]), format!("ask {SECOND}+(pt):(oai_dc): leading !"));
    // The translations of an edition are decided by its own Archive; if nobody holds it, the answer
    // may be outdated.
    assert_eq!(outcome(&first, &[&one, &two]), format!("ask {SECOND}+(pt):(oai_dc): leading !"));
    let second = again(&first, &[&one, &two]);
    assert_eq!(outcome(&second, &["", ""]), format!("ask {SECOND}!+(pt):(oai_dc): next best"));
    assert_eq!(outcome(&first, &[&two, ""]), format!("ask {THIRD}:(oai_dc): leading !+(pt)"));
    let whole = known(".lastedition.translation(pt).metadata(oai_dc)", SECOND);
    assert_eq!(
        outcome(&first, &[&format!("{two} {whole}")]),
        format!("ask {SECOND}:(oai_dc): leading !+(pt):(oai_dc)"),
        "with GetMetadata(f) before them"
    );
    assert_eq!(
        outcome(&query(":(oai_dc)+(pt)"), &[&known(".metadata(oai_dc)", SECOND)]),
        format!("ask {SECOND}:(oai_dc)+(pt): leading :(oai_dc)")
    );
    assert_eq!(
        outcome(&query("+(pt)"), &[&known(".translation(pt)", SECOND)]),
        format!("ask {SECOND}: leading +(pt)")
    );
    let (first, pt) = (query("+(pt):"), known(".translation(pt)", THIRD));
    assert_eq!(outcome(&first, &[&pt, "..."]), "wait", "somebody may have the URL");
    assert_eq!(outcome(&over(first), &[&pt, "..."]), format!("ask {THIRD}:: leading +(pt)"));
}

#[test]
fn clause_4_2_5_the_next_edition_only_if_the_relation_begins_so_and_with_all_verbs() {
    let next = format!("ibi.nextedition {{rep {SECOND}}}");
    assert_eq!(outcome(&query("!:(oai_dc)"), &[&next]), format!("ask {SECOND}!:(oai_dc): NextEdition"));
    assert_eq!(outcome(&query("+!"), &[&next]), format!("ask {ITEM}!: WithoutTranslation"));
    assert_eq!(outcome(&query("+(pt)!"), &[&next]), format!("ask {ITEM}+!: Offers"));
    let known = format!("ibi.lastedition {{rep {THIRD}}}");
    let first = query("!:");
    let decided = again(&again(&first, &[&next, &known]), &["state Copy url http://N/", ""]);
    assert_eq!(outcome(&decided, &[&next, &known]), format!("ask {THIRD}:: leading !"), "else");
}

#[test]
fn clause_4_2_5_file_and_file_list_go_along_every_round() {
    let mut first = query("!");
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
    let first = query("!");
    let next = |item: &str| format!("ibi.nextedition {{rep {item}}}");
    let second = again(&first, &[&next(SECOND)]);
    let back = next(ITEM);
    let RoundDecision::Cycle { chain, why } = decided(&second, &[&back]) else { panic!() };
    let labels: Vec<String> = chain.iter().map(|question| question.label.to_string()).collect();
    assert_eq!(
        (labels.as_slice(), why),
        (&[ITEM, SECOND, ITEM].map(str::to_owned)[..], CycleReason::Repeats)
    );
    assert_eq!(outcome(&second, &[&back, "..."]), "wait");
    assert_eq!(outcome(&over(second.clone()), &[&back, "..."]), "wait", "whoever is left may lead out");
    let decided = again(&again(&second, &[&back, &next(THIRD)]), &["state Copy url http://N/", ""]);
    assert_eq!(
        outcome(&decided, &[&back, &next(THIRD)]),
        format!("ask {THIRD}!: NextEdition"),
        "another way"
    );
    let own = format!("ibi.lastedition {{rep {SECOND}}} url.lastedition http://N/own");
    let decided = undecided(&second, &[&back, &own]);
    assert_eq!(
        outcome(&decided, &[&back, &own]),
        "1 /own !",
        "who lies about editions keeps nobody from the item"
    );
    assert_eq!(outcome(&first, &[&next(ITEM)]), "508", "the shortest cycle");
    let own = format!("ibi {{rep {ITEM} ibip 8JMKD3MGP8W/35MME4E}}");
    let next = format!("{own} ibi.nextedition {{ibip 8JMKD3MGP8W/35MME4E}}");
    assert_eq!(outcome(&first, &[&next]), "508", "and under another name of the item");
    // An item that is its own metadata, but in another format, is no cycle.
    let own = format!("ibi.metadata(marc) {{rep {ITEM}}}");
    assert_eq!(outcome(&query(":(marc)"), &[&own]), format!("ask {ITEM}:: Offers"));
}

#[test]
fn clause_4_2_5_at_most_32_rounds_in_all() {
    let mut query = query("!");
    for round in 1..=MAX_ROUNDS {
        assert_eq!(query.round, round);
        let next = format!("ibi.nextedition {{rep a.br/b/{}/02.16.17.46}}", 2020 + round);
        match decided(&query, &[&next]) {
            RoundDecision::AskAgain(again) if round < MAX_ROUNDS => query = query.next(&again),
            RoundDecision::Cycle { chain, why: CycleReason::TooManyRounds } if round == MAX_ROUNDS => {
                assert_eq!(chain.len(), 33);
            }
            other => panic!("{round}: {other:?}"),
        }
    }
    let last = RoundQuery { original: true, round: MAX_ROUNDS, ..query };
    assert_eq!(outcome(&last, &["url.lastedition http://N/x"]), "508", "claims cannot be counted any more");
}
