//! Scripted Archives: the answer of each to a query.

use ibi_id::Label;
use ibi_protocol::analysis::{
    AnswerExpectation, ArchiveId, ArchiveReply, FollowUpQuery, FoundUrl, RequeryReason, RoundAnswer,
    RoundDecision, RoundQuery, check, decide,
};
use ibi_protocol::{Pairs, PairsLimits, Verbs};

/// The item of most tests.
pub(crate) const ITEM: &str = "a.br/b/2009/02.16.17.46";
/// Further items.
pub(crate) const SECOND: &str = "a.br/b/2010/02.16.17.46";
pub(crate) const THIRD: &str = "a.br/b/2011/02.16.17.46";

/// A query for the item with these modifiers.
pub(crate) fn query(modifiers: &str) -> RoundQuery {
    let relation = ibi_protocol::Relation::from_modifiers(modifiers).unwrap();
    RoundQuery { verbs: Verbs::from(relation), ..RoundQuery::new(ITEM.parse().unwrap()) }
}

/// The answer of the Archive with this number, with its own pairs added; `N` in the text is its
/// host. An empty text is an empty answer, `...` an outstanding one, `-` a failed one.
pub(crate) fn answer(number: u64, text: &str, query: &RoundQuery) -> RoundAnswer {
    let archive = ArchiveId(number);
    let service = format!("n{number}.br/archive/2001/01.01.01.01").parse::<Label>().unwrap();
    let reply = match text {
        "..." => ArchiveReply::Waiting { has_own_prefix: query.label.shares_prefix(&service) == Some(true) },
        "-" => ArchiveReply::Failed("it is offline".to_owned()),
        "" => ArchiveReply::Nothing,
        _ => {
            let host = format!("archive.n{number}.br");
            let ibi = if text.starts_with("ibi ") {
                String::new()
            } else {
                format!("ibi {{rep {}}} ", query.label)
            };
            let text = format!(
                "{ibi}{} ibi.archiveservice {{rep {service}}}",
                text.replace("//N", &format!("//{host}"))
            );
            let pairs = Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap();
            let hosts = [host];
            let expected = AnswerExpectation {
                label: &query.label,
                verbs: &query.verbs,
                service: &service,
                hosts: &hosts,
            };
            ArchiveReply::from(check(&pairs, &expected))
        }
    };
    if let ArchiveReply::Failed(why) = &reply
        && text != "-"
    {
        panic!("{text}: {why}");
    }
    RoundAnswer { archive, said: reply }
}

/// The decision if the Archives 0, 1, … give these answers, in this order.
pub(crate) fn decided(query: &RoundQuery, texts: &[&str]) -> RoundDecision {
    let answers: Vec<RoundAnswer> =
        (0..).zip(texts).map(|(number, text)| answer(number, text, query)).collect();
    decide(&answers, query)
}

/// The decision in short form, for tables.
pub(crate) fn outcome(query: &RoundQuery, texts: &[&str]) -> String {
    match decided(query, texts) {
        RoundDecision::Found(found) => {
            let FoundUrl { archive, url, relation, suspects, .. } = *found;
            let path = url.split_once(".br").unwrap().1;
            let alert = if suspects.is_empty() { "" } else { "and an alert" };
            let words = [&archive.0.to_string(), path, &relation.modifiers(), alert].map(str::to_owned);
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        }
        RoundDecision::AskAgain(again) => {
            let FollowUpQuery { question, why, .. } = *again;
            let why = match why {
                RequeryReason::Leading(part) => format!("leading {}", part.modifiers()),
                RequeryReason::NextBest(_) => "next best".to_owned(),
                other => format!("{other:?}"),
            };
            format!("ask {}{}: {why}", question.label, question.verbs.relation.modifiers())
        }
        RoundDecision::Wait => "wait".to_owned(),
        other => format!("{}", other.status().unwrap()),
    }
}

/// The next query, after the decision to ask again.
pub(crate) fn again(query: &RoundQuery, texts: &[&str]) -> RoundQuery {
    match decided(query, texts) {
        RoundDecision::AskAgain(again) => query.next(&again),
        other => panic!("{other:?}"),
    }
}

/// The next query, after all were queried for the Original and none claims it.
pub(crate) fn undecided(query: &RoundQuery, texts: &[&str]) -> RoundQuery {
    let who = again(query, texts);
    assert_eq!(outcome(query, texts), format!("ask {}: WhoDecides", query.label));
    again(&who, &["state Copy url http://N/copy"])
}
