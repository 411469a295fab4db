//! Properties of all persistent URLs and of any answers of Archives.

use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerExpectation, AnswerOffer, ArchiveId, ArchiveReply, CheckedAnswer, ItemQuery,
    RoundAnswer, RoundDecision, RoundQuery, check, decide,
};
use ibi_protocol::{FilePath, Pairs, PairsLimits, PersistentUrl, Relation, State, UrlPart, Verbs};
use proptest::prelude::*;
use proptest::sample::select;

const ITEMS: [&str; 3] = ["a.br/b/2009/02.16.17.46", "a.br/b/2010/02.16.17.46", "8JMKD3MGP8W/35MME4E"];
const RELATIONS: [&str; 16] = [
    "",
    "!",
    "+",
    "+(pt)",
    "+(pt-BR)",
    "+(en)",
    ":",
    ":(oai_dc)",
    "!:",
    "!+(pt)",
    "+!",
    "+(pt)!",
    "+(en)!:",
    "+(pt):",
    "+(pt):+(en)",
    "+(en):+(pt)",
];

/// Paths near the grammar, and arbitrary texts.
fn path() -> impl Strategy<Value = String> {
    let before = select(vec!["", "rep/", "ibi:", "goto-/", "upn:x-1:", "upn:x:/", "upn%3Ax%3A", "x/"]);
    let label = select(vec![
        "8JMKD3MGP8W/35MME4E",
        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18%4080/2009/02.16.17.46",
        "LK47B6W./362SFKH/2009/02.16.17.46",
        "83LX3pFwXQZeBBx/hwiTk",
        "rep/8JMKD3MGP8W/2234/02.16.17.46",
        "8JMKD3MGP8W/35MMO4E",
    ]);
    let after = "([!+:]|\\(pt\\)|\\(pt-BR\\)|\\(oai_dc\\)|%2[18bB9]|%3A){0,4}(/[ -~é]{0,8}|/(%[0-9A-Fa-f]{2}){0,3}){0,2}";
    prop_oneof![
        4 => (before, label, after).prop_map(|(before, label, after)| format!("/{before}{label}{after}")),
        1 => "\\PC{0,40}",
        1 => "/?[A-Za-z0-9./:!+()%@-]{0,60}",
    ]
}

fn query() -> impl Strategy<Value = Option<String>> {
    let pair = prop_oneof![
        "ibiurl\\.(verblist=(Get(LastEdition|Translation|Metadata|FileList)(\\(pt\\))?[+ ]?){0,3}|x=1)",
        Just("ibiurl.requireditemstatus=Original".to_owned()),
        "[a-z?=%&é #]{0,6}",
    ];
    let pairs = prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&"));
    prop::option::of(prop_oneof![pairs, Just("?".to_owned()), "\\PC{0,30}"])
}

/// An Archive's answer; its number is in the host of its URLs.
fn said() -> impl Strategy<Value = Option<String>> {
    let offer =
        (select(RELATIONS.to_vec()), select(ITEMS.to_vec()), 0_u8..8).prop_map(|(relation, item, has)| {
            let relation = Relation::from_modifiers(relation).unwrap();
            let mut text = String::new();
            if has & 1 != 0 && !relation.is_empty() {
                text += &format!("ibi{relation} {{rep {item}}} ");
            }
            if has & 2 != 0 {
                let state = if has & 4 != 0 { "Original" } else { "Copy" };
                text += &format!("url{relation} http://N/{relation} state{relation} {state} ");
            }
            text
        });
    let next = || {
        let of = select(vec!["", ".translation(pt)", ".translation(en)"]);
        let one = (of, select(ITEMS.to_vec()))
            .prop_map(|(of, item)| format!("ibi{of}.nextedition {{rep {item}}} "));
        prop::collection::vec(one, 0..2).prop_map(|all| all.concat())
    };
    let live = (prop::collection::vec(offer, 0..6), next())
        .prop_map(|(offers, next)| format!("x y {}{next}", offers.concat()));
    let removed = (next(), prop::option::of(select(ITEMS.to_vec()))).prop_map(|(next, translation)| {
        let translation = translation.map(|item| format!("ibi.translation(pt) {{rep {item}}} "));
        format!("state Deleted {next}{}", translation.unwrap_or_default())
    });
    prop_oneof![
        6 => live.prop_map(Some),
        2 => removed.prop_map(Some),
        1 => Just(Some("state Reserved".to_owned())),
        1 => select(ITEMS.to_vec())
            .prop_map(|item| Some(format!("ibi.alternatives {{{{rep {item}}} {{rep {item}}}}}"))),
        1 => Just(Some(String::new())),
        1 => Just(None),
        1 => "[ -z|~]{0,30}".prop_map(Some),
    ]
}

fn wanted() -> impl Strategy<Value = RoundQuery> {
    let asked = prop::collection::vec((select(ITEMS.to_vec()), select(RELATIONS.to_vec())), 0..3);
    let header = select(vec!["", "pt", "en;q=0.5,pt-BR", "fr"]);
    let modifiers = prop_oneof![select(RELATIONS.to_vec()), select(Relation::ALL_COMPOSITIONS.to_vec())];
    (select(ITEMS.to_vec()), modifiers, any::<[bool; 3]>(), header, asked, 1_u32..40).prop_map(
        |(item, modifiers, [original, file, grace_over], header, asked, round)| {
            let verbs = |modifiers: &str| Verbs::from(Relation::from_modifiers(modifiers).unwrap());
            let question = |(label, modifiers): (&str, &str)| ItemQuery {
                label: label.parse().unwrap(),
                verbs: verbs(modifiers),
                file: None,
            };
            RoundQuery {
                verbs: verbs(modifiers),
                original,
                file: if file { FilePath::new(b"a").unwrap() } else { None },
                languages: AcceptedLanguages::parse(header),
                asked: asked.into_iter().map(question).collect(),
                round,
                grace_over,
                ..RoundQuery::new(item.parse().unwrap())
            }
        },
    )
}

fn is_waiting(answer: &RoundAnswer) -> bool {
    matches!(answer.said, ArchiveReply::Waiting { .. })
}

fn answers(said: &[Option<String>], wanted: &RoundQuery) -> Vec<RoundAnswer> {
    let read = |(number, text): (u64, &Option<String>)| {
        let service = format!("n{number}.br/archive/2001/01.01.01.01");
        let hosts = [format!("archive.n{number}.br")];
        let said = match text.as_deref() {
            None => ArchiveReply::Waiting { has_own_prefix: number % 2 == 0 },
            Some("") => ArchiveReply::Nothing,
            Some(text) => {
                let text = text.replace("//N", &format!("//{}", hosts[0]));
                let text =
                    format!("ibi {{rep {}}} ibi.archiveservice {{rep {service}}} {text}", wanted.label);
                match Pairs::read(text.as_bytes(), &PairsLimits::default()) {
                    Err(error) => ArchiveReply::Failed(error.to_string()),
                    Ok(pairs) => {
                        let service = service.parse().unwrap();
                        let asked = AnswerExpectation {
                            label: &wanted.label,
                            verbs: &wanted.verbs,
                            service: &service,
                            hosts: &hosts,
                        };
                        ArchiveReply::from(check(&pairs, &asked))
                    }
                }
            }
        };
        RoundAnswer { archive: ArchiveId(number), said }
    };
    (0..).zip(said).map(read).collect()
}

fn offers(answers: &[RoundAnswer]) -> impl Iterator<Item = (ArchiveId, &AnswerOffer)> {
    answers.iter().flat_map(|answer| match &answer.said {
        ArchiveReply::Offered(CheckedAnswer::Live(live)) => {
            live.offers.iter().map(|offer| (answer.archive, offer)).collect()
        }
        _ => Vec::new(),
    })
}

proptest! {
    #[test]
    fn any_url_round_trips_or_fails_with_a_position(path in path(), query in query()) {
        match PersistentUrl::parse(&path, query.as_deref()) {
            Ok(url) => {
                let written = url.to_string();
                prop_assert!(written.bytes().all(|c| c.is_ascii_graphic() && c != b'#'), "{}", written);
                let (path, query) = match written.split_once('?') {
                    Some((path, query)) => (path, Some(query)),
                    None => (written.as_str(), None),
                };
                let again = PersistentUrl::parse(path, query);
                prop_assert_eq!(again.as_ref(), Ok(&url), "{}", written);
                prop_assert_eq!(again.unwrap().to_string(), written, "one plain form");
            }
            Err(error) => {
                let (place, at) = error.position();
                let length = if place == UrlPart::Path { path.len() } else { query.map_or(0, |query| query.len()) };
                prop_assert!(at <= length, "{error}");
                prop_assert!(error.to_string().contains(&format!("at byte {at} of the ")), "{error}");
            }
        }
    }

    #[test]
    fn a_client_is_sent_only_to_an_offered_url(said in prop::collection::vec(said(), 0..5), wanted in wanted()) {
        let answers = answers(&said, &wanted);
        match decide(&answers, &wanted) {
            RoundDecision::Found(found) => {
                let offered = |(archive, offer): (ArchiveId, &AnswerOffer)| {
                    archive == found.archive && offer.url.as_ref() == Some(&found.url) && offer.relation == found.relation
                };
                prop_assert!(offers(&answers).any(offered));
                prop_assert!(wanted.verbs.relation.accepts(&found.relation));
                if wanted.original {
                    prop_assert_eq!(found.state, Some(State::Original));
                    prop_assert!(!answers.iter().any(is_waiting));
                    let claims = offers(&answers).filter(|(archive, offer)| {
                        let is_same = match (&offer.ibi, &found.ibi) {
                            (Some(a), Some(b)) => a.labels().iter().any(|label| b.contains(label)),
                            _ => offer.relation == found.relation,
                        };
                        *archive != found.archive && offer.state == Some(State::Original)
                            && wanted.verbs.relation.accepts(&offer.relation) && is_same
                    });
                    prop_assert_eq!(claims.count(), 0, "exactly one claim");
                }
            }
            RoundDecision::AskAgain(again) => {
                let next = wanted.next(&again);
                let repeats = next.asked.contains(&again.question);
                prop_assert!(!repeats || next.asked == wanted.asked, "only claims are asked again");
                prop_assert!(next.round <= wanted.round.max(32));
            }
            RoundDecision::NotFound(_) | RoundDecision::Incomplete { .. } | RoundDecision::Cycle { why: ibi_protocol::analysis::CycleReason::Repeats, .. } => {
                prop_assert!(!answers.iter().any(is_waiting));
            }
            RoundDecision::Wait => prop_assert!(answers.iter().any(is_waiting)),
            RoundDecision::Alert(suspects) => prop_assert!(wanted.original && suspects.iter().all(|s| s.claims.len() > 1 && s.counts)),
            RoundDecision::Cycle { .. } => prop_assert!(wanted.round >= 32),
            RoundDecision::Deleted { tombstones, .. } => {
                prop_assert!(!tombstones.is_empty());
                // Who only knows of the item itself does not hold it.
                let has_it = |offer: &AnswerOffer| offer.relation.is_empty() && offer.url.is_some();
                prop_assert!(offers(&answers).all(|(_, offer)| wanted.verbs.is_empty() && !has_it(offer)));
            }
            RoundDecision::Ambiguous(items) => prop_assert!(items.len() > 1),
            RoundDecision::Reserved(item) => prop_assert!(!item.labels().is_empty()),
        }
    }

    #[test]
    fn every_resolution_terminates(said in prop::collection::vec(prop::collection::vec(said(), 1..4), 97), wanted in wanted()) {
        let mut wanted = RoundQuery { round: 1, asked: Vec::new(), ..wanted };
        for said in &said {
            // No Archive stays outstanding forever.
            let said: Vec<Option<String>> = said.iter().map(|text| Some(text.clone().unwrap_or_default())).collect();
            match decide(&answers(&said, &wanted), &wanted) {
                RoundDecision::AskAgain(again) => wanted = wanted.next(&again),
                other => {
                    prop_assert!(other.status().is_some());
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "more than 32 rounds, each with the question who decides");
    }
}
