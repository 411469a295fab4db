//! Archives as they are on a test's paper: what each of them says to a question.

use ibi_protocol::analysis::{
    Answer, ArchiveId, AskAgain, Asked, Decision, Found, Said, Wanted, Why, check, decide,
};
use ibi_protocol::{Limits, Pairs, Verbs};

/// The item of most tests.
pub(crate) const ITEM: &str = "a.br/b/2009/02.16.17.46";
/// Others.
pub(crate) const SECOND: &str = "a.br/b/2010/02.16.17.46";
pub(crate) const THIRD: &str = "a.br/b/2011/02.16.17.46";

/// Somebody who wants this much of the item.
pub(crate) fn wanted(modifiers: &str) -> Wanted {
    let relation = ibi_protocol::Relation::from_modifiers(modifiers).unwrap();
    Wanted { verbs: Verbs::from(relation), ..Wanted::new(ITEM.parse().unwrap()) }
}

/// What the Archive of that number says, its own pairs being added: `N` in the text is its host. Nothing is an empty
/// answer, `...` is one that may still come, `-` one that failed.
pub(crate) fn answer(number: u64, text: &str, wanted: &Wanted) -> Answer {
    let archive = ArchiveId(number);
    let said = match text {
        "..." => Said::Waiting,
        "-" => Said::Failed("it is off line".to_owned()),
        "" => Said::Nothing,
        _ => {
            let service = format!("n{number}.br/archive/2001/01.01.01.01");
            let host = format!("archive.n{number}.br");
            let ibi = if text.starts_with("ibi ") {
                String::new()
            } else {
                format!("ibi {{rep {}}} ", wanted.label)
            };
            let text = format!(
                "{ibi}{} ibi.archiveservice {{rep {service}}}",
                text.replace("//N", &format!("//{host}"))
            );
            let pairs = Pairs::read(text.as_bytes(), &Limits::default()).unwrap();
            let (service, hosts) = (service.parse().unwrap(), [host]);
            let asked =
                Asked { label: &wanted.label, verbs: &wanted.verbs, service: &service, hosts: &hosts };
            Said::from(check(&pairs, &asked))
        }
    };
    if let Said::Failed(why) = &said
        && text != "-"
    {
        panic!("{text}: {why}");
    }
    Answer { archive, said }
}

/// What follows if the Archives 0, 1, … say this, in that order.
pub(crate) fn decided(wanted: &Wanted, said: &[&str]) -> Decision {
    let answers: Vec<Answer> = (0..).zip(said).map(|(number, text)| answer(number, text, wanted)).collect();
    decide(&answers, wanted)
}

/// The same in few words, for tables.
pub(crate) fn outcome(wanted: &Wanted, said: &[&str]) -> String {
    match decided(wanted, said) {
        Decision::Found(found) => {
            let Found { archive, url, relation, suspects, .. } = *found;
            let path = url.split_once(".br").unwrap().1;
            let alert = if suspects.is_empty() { "" } else { "and an alert" };
            let words = [&archive.0.to_string(), path, &relation.modifiers(), alert].map(str::to_owned);
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        }
        Decision::AskAgain(again) => {
            let AskAgain { question, why, .. } = *again;
            let why = match why {
                Why::Leading(part) => format!("leading {}", part.modifiers()),
                Why::NextBest(_) => "next best".to_owned(),
                other => format!("{other:?}"),
            };
            format!("ask {}{}: {why}", question.label, question.verbs.relation.modifiers())
        }
        Decision::Wait => "wait".to_owned(),
        other => format!("{}", other.status().unwrap()),
    }
}

/// The same once more, after the decision to ask again.
pub(crate) fn again(wanted: &Wanted, said: &[&str]) -> Wanted {
    match decided(wanted, said) {
        Decision::AskAgain(again) => wanted.next(&again),
        other => panic!("{other:?}"),
    }
}
