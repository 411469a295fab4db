//! Editions and translations that are none, loops and chains (4.2 steps 5 and 6; R4, R10).

use std::fmt::Write as _;

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::{ArchiveQuestion, forms};

pub const LINKS: &[HostileBehaviour] = &[
    behaviour(
        "next-edition-of-everything",
        Varies,
        "2.4 4.2 ADR 13",
        "copies of everything whose next edition is its own item",
        Says(|asked| match asked.me.own_number(&asked.label) {
            Some(_) => asked.false_original(),
            None => next_edition(asked, "Copy", &asked.me.own_label(0)),
        }),
    ),
    behaviour(
        "next-edition-of-false-originals",
        Varies,
        "2.4 4.2 ADR 13",
        "false Originals of everything whose next edition is its own item",
        Says(|asked| match asked.me.own_number(&asked.label) {
            Some(_) => asked.false_original(),
            None => next_edition(asked, "Original", &asked.me.own_label(0)),
        }),
    ),
    behaviour(
        "next-edition-at-another",
        Varies,
        "2.4 4.2 R4",
        "says that the next edition of everything is an item of another Archive",
        Says(|asked| next_edition(asked, "Original", &asked.me.victim_label)),
    ),
    behaviour(
        "last-edition-of-everything",
        Varies,
        "2.4 4.2",
        "offers an item of its own as the last edition, the translation and the metadata of everything",
        Says(|asked| {
            let own = asked.me.own_label(1);
            asked.false_original().replace(
                &format!("{{{}}}\r\ncontenttype", forms(&asked.label)),
                &format!("{{{}}}\r\ncontenttype", forms(&own)),
            )
        }),
    ),
    behaviour(
        "translation-of-everything",
        Varies,
        "2.4 4.2 ADR 13",
        "claims to have a translation of everything in 20 languages",
        Says(|asked| {
            let mut answer = asked.opening_of_item();
            for (number, language) in LANGUAGES.iter().enumerate() {
                let own = forms(&asked.me.own_label(100 + number as u64));
                let url = asked.own_url();
                for relation in
                    [format!(".translation({language})"), format!(".translation({language}).metadata")]
                {
                    let _ = write!(
                        answer,
                        "ibi{relation} {{{own}}}\r\nurl{relation} {url}\r\nstate{relation} Original\r\n\
                         contenttype{relation} Data\r\n"
                    );
                }
            }
            answer
        }),
    ),
    behaviour(
        "translation-at-another",
        Varies,
        "2.4 4.2 R4",
        "says that the translation of everything is an item of another Archive, without a URL",
        Says(|asked| {
            let victim = forms(&asked.me.victim_label);
            let pairs = LANGUAGES.map(|language| format!("ibi.translation({language}) {{{victim}}}\r\n"));
            asked.opening_of_item() + &pairs.concat()
        }),
    ),
    behaviour(
        "edition-of-itself",
        Varies,
        "4.2 R10",
        "says that every item is its own next edition",
        Says(|asked| chain(asked, &asked.label)),
    ),
    behaviour(
        "edition-loop",
        Varies,
        "4.2 R10",
        "two items of its own that are each other's next edition",
        Says(|asked| {
            let number = asked.me.own_number(&asked.label).unwrap_or(0);
            chain(asked, &asked.me.own_label(1 - number % 2))
        }),
    ),
    behaviour(
        "edition-chain",
        Varies,
        "4.2 R10",
        "every item has a next edition, and that another, without end",
        Says(|asked| {
            let number = asked.me.own_number(&asked.label).map_or(0, |number| number + 1);
            chain(asked, &asked.me.own_label(number))
        }),
    ),
    behaviour(
        "edition-chain-slowly",
        Varies,
        "4.2 R7 R10",
        "the same, and each answer takes 700 ms",
        Says(|asked| {
            std::thread::sleep(std::time::Duration::from_millis(700));
            let number = asked.me.own_number(&asked.label).map_or(0, |number| number + 1);
            chain(asked, &asked.me.own_label(number))
        }),
    ),
    behaviour(
        "edition-back-to-the-asked",
        Varies,
        "4.2 R10",
        "its own items have somebody else's item as their next edition, and that has its own",
        Says(|asked| match asked.me.own_number(&asked.label) {
            Some(_) => chain(asked, &asked.me.victim_label),
            None => chain(asked, &asked.me.own_label(2)),
        }),
    ),
    behaviour(
        "translation-loop",
        Varies,
        "4.2 R10",
        "the translation of every item is another of its own, which it does not have",
        Says(|asked| {
            let number = asked.me.own_number(&asked.label).map_or(0, |number| number + 1);
            let next = forms(&asked.me.own_label(number));
            let pairs = LANGUAGES.map(|language| format!("ibi.translation({language}) {{{next}}}\r\n"));
            asked.opening_of_item() + &pairs.concat()
        }),
    ),
    behaviour(
        "thousands-of-relations",
        Fails,
        "3.4 R6",
        "2,000 formats of metadata of everything",
        Says(|asked| {
            let formats = (0..2000).map(|n| format!("url.metadata(f{n}) {}\r\n", asked.own_url()));
            asked.false_original() + &formats.collect::<String>()
        }),
    ),
    behaviour(
        "removed-with-a-next-edition",
        Varies,
        "3.4 4.3",
        "everything was removed and has its own item as the next edition and as every translation",
        Says(|asked| {
            if asked.me.own_number(&asked.label).is_some() {
                return asked.false_original();
            }
            let own = forms(&asked.me.own_label(0));
            let pairs = LANGUAGES.map(|language| format!("ibi.translation({language}) {{{own}}}\r\n"));
            let item = asked.opening_of_item();
            format!("{item}state Deleted\r\nibi.nextedition {{{own}}}\r\n{}", pairs.concat())
        }),
    ),
];

const LANGUAGES: [&str; 20] = [
    "pt", "pt-BR", "en", "en-GB", "fr", "es", "de", "it", "nl", "sv", "da", "fi", "pl", "cs", "ru", "zh",
    "ja", "ko", "ar", "tr",
];

/// Knows the item and where its editions go on, and has nothing.
fn chain(asked: &ArchiveQuestion<'_>, next: &str) -> String {
    format!("{}ibi.nextedition {{{}}}\r\n", asked.opening_of_item(), forms(next))
}

fn next_edition(asked: &ArchiveQuestion<'_>, state: &str, next: &str) -> String {
    let claim = asked.claim(state, &asked.own_url());
    let last = format!("ibi.lastedition {{{}}}", forms(&asked.label));
    let claim = claim.replace(&last, &format!("ibi.lastedition {{{}}}", forms(next)));
    format!("{claim}ibi.nextedition {{{}}}\r\n", forms(next))
}
