//! What other Archives tell of links (`docs/formats/links.md`): reports, hints, and statements in
//! them. Nothing panics; what passes its checks could have been written here, and comes back when
//! it is.
#![no_main]

use ibi_archive::links::LinkStatement;
use ibi_archive::links::report::{LINK_REPORT_FORMAT, LinkHint, LinkReport};
use ibi_id::Label;

/// The highest counter that is believed.
const MAX_COUNTER: u64 = 1 << 53;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = serde_json::from_slice::<LinkReport>(bytes) {
        check_report(&report);
    }
    if let Ok(hint) = serde_json::from_slice::<LinkHint>(bytes) {
        check_hint(&hint);
    }
    // A statement alone goes further than one that must stand in the right place of a whole report.
    if let Ok(link) = serde_json::from_slice::<LinkStatement>(bytes) {
        check_report(&report_with(link.clone()));
        let (older, newer) = (link.older.clone(), link.newer.clone());
        check_hint(&LinkHint { kind: link.kind, older, newer, decided: Some(link) });
    }
});

fn report_with(link: LinkStatement) -> LinkReport {
    let report = format!(
        r#"{{"format":{LINK_REPORT_FORMAT},"archive":"a.br/b/2026/11.17.09.00","item":{{"rep":"a.br/b/2026/11.17.09.01"}},
        "state":"Original","decides":true,"created":"2026-11-17T09:01:00Z","counter":1,"links":[]}}"#
    );
    let report = serde_json::from_str(&report).expect("a report");
    LinkReport { links: vec![link], ..report }
}

fn check_report(report: &LinkReport) {
    if report.check().is_err() {
        return;
    }
    assert_eq!(report.format, LINK_REPORT_FORMAT);
    assert!(Label::parse(report.item.primary()).is_ok() && Label::parse(&report.archive).is_ok());
    report.links.iter().for_each(check_statement);
    let written = serde_json::to_string(report).expect("texts and numbers");
    assert_eq!(
        serde_json::from_str::<LinkReport>(&written).ok().as_ref(),
        Some(report),
        "a report comes back"
    );
}

fn check_hint(hint: &LinkHint) {
    let Some((older, newer)) = hint.keys() else { return };
    assert_ne!(older, newer, "an item is not its own next edition");
    hint.decided.iter().for_each(check_statement);
    // What is looked up is the same item, also when it is spelled so.
    let canonical = LinkHint { older: older.clone(), newer: newer.clone(), ..hint.clone() };
    assert_eq!(canonical.keys(), Some((older, newer)), "labels in the spelling of statements stay so");
    let written = serde_json::to_string(hint).expect("texts and numbers");
    assert_eq!(serde_json::from_str::<LinkHint>(&written).ok().as_ref(), Some(hint), "a hint comes back");
}

/// What is written into the journal: lines of text, each a statement that counts.
fn check_statement(link: &LinkStatement) {
    assert!((1..=MAX_COUNTER).contains(&link.counter), "counter {}", link.counter);
    assert_ne!(link.older, link.newer);
    let labels = link.older_labels.iter().chain(&link.newer_labels).chain([&link.older, &link.newer]);
    assert!(labels.into_iter().all(|label| Label::parse(label).is_ok()));
    let texts = [&link.older_language, &link.newer_language, &link.archive, &link.receipt];
    let texts = texts.into_iter().flatten().chain([&link.created]);
    assert!(texts.into_iter().all(|text| text.len() <= 300 && !text.chars().any(char::is_control)));
}
