//! A stable interface for programs: change it only deliberately
//! (`docs/formats/resolution-json.md`).

use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::analysis::{AnswerTombstone, ArchiveId, FoundUrl, ItemQuery, KnownCopy};
use ibi_protocol::{Relation, State, Verbs};

use super::*;
use crate::alerts::{RaisedAlert, RaisedClaim};
use crate::archive::{ArchivePlatform, RegistrationStatus};

const FROZEN: &str = include_str!("../../tests/samples/outcomes-1.json");
const ITEM: &str = "library.org.br/archive/2026/11.16.08.05";
const URL: &str = "http://archive.library.org.br/col/library.org.br/archive/2026/11.16.08.05/doc/report.pdf";

fn label(text: &str) -> Label {
    text.parse().unwrap()
}

fn item() -> LabelForms {
    LabelForms::new([label(ITEM), label("8JMKD3MGP8W/34PGRBS")])
}

fn relation(modifiers: &str) -> Relation {
    Relation::from_modifiers(modifiers).unwrap()
}

fn archive(number: u64) -> Arc<RegisteredArchive> {
    Arc::new(RegisteredArchive {
        id: ArchiveId(number),
        service: label(
            ["library.org.br/archive/2026/11.16.08.00", "inpe.br/copies/2026/11.16.09.00"][number as usize],
        ),
        address: None,
        hosts: Vec::new(),
        standing: RegistrationStatus::OnLine,
        registered: 0,
        changed: 0,
        email: None,
        platform: ArchivePlatform::default(),
    })
}

/// One of each kind, in the order of 4.3.
fn outcomes() -> Vec<ResolutionOutcome> {
    let found = FoundUrl {
        archive: ArchiveId(0),
        url: URL.to_owned(),
        relation: Relation::default(),
        ibi: Some(item()),
        contenttype: None,
        state: Some(State::Original),
        timestamp: None,
        urlkey: None,
        suspects: Vec::new(),
    };
    let tombstone = || AnswerTombstone::new(item(), Some("2026-11-16T10:00:00Z".to_owned()));
    let older = || ItemQuery { label: label(ITEM), verbs: Verbs::default(), file: None };
    let related =
        NotFoundReason::Related { item: item(), offered: vec![relation(":"), relation(":(oai_dc)")] };
    let copy = KnownCopy { archive: ArchiveId(1), ibi: Some(item()), url: URL.to_owned() };
    let claim = |number| RaisedClaim {
        service: archive(number).service.clone(),
        url: None,
        timestamp: None,
        seen: 0,
    };
    let claims = vec![claim(0), claim(1)];
    let verbs = Verbs { relation: relation("!"), ..Verbs::default() };
    let question = |text| ItemQuery { label: label(text), verbs: verbs.clone(), file: None };
    vec![
        ResolutionOutcome::Found { location: URL.to_owned(), archive: archive(0), found: Box::new(found) },
        ResolutionOutcome::Deleted { tombstones: vec![(archive(0), tombstone())], living: None },
        ResolutionOutcome::NotFound(NotFoundReason::Item),
        ResolutionOutcome::Incomplete {
            silent: vec![(archive(1), "no answer in time".to_owned())],
            otherwise: NotFoundReason::Item,
        },
        ResolutionOutcome::Alert(vec![RaisedAlert { item: item(), asked: ITEM.to_owned(), claims }]),
        ResolutionOutcome::NotFound(related),
        ResolutionOutcome::NotFound(NotFoundReason::File {
            item: item(),
            offered: vec![Relation::default()],
        }),
        ResolutionOutcome::NotFound(NotFoundReason::Original { copies: vec![copy] }),
        ResolutionOutcome::Cycle {
            chain: [ITEM, "inpe.br/copies/2026/11.16.09.05", ITEM].map(question).to_vec(),
            why: CycleReason::Repeats,
        },
        ResolutionOutcome::Deleted { tombstones: vec![(archive(0), tombstone())], living: Some(older()) },
        ResolutionOutcome::Ambiguous {
            items: vec![
                LabelForms::new([label("x.org/w@80/1998/08.02.08.56")]),
                LabelForms::new([label("x.org/w/1998/08.02.08.56.00"), label("8JMKD3MGP8W/34PGRBS")]),
            ],
            asked: PersistentUrl::parse("/x.org/w/1998/08.02.08.56:", None).unwrap(),
        },
        ResolutionOutcome::Reserved(item()),
        ResolutionOutcome::NotFound(NotFoundReason::Unheld {
            item: LabelForms::new([label("inpe.br/copies/2026/11.16.09.05")]),
            older: Some(older()),
        }),
    ]
}

#[test]
fn clause_4_3_outcomes_are_told_to_programs_as_the_frozen_sample_has_them() {
    let told: Vec<OutcomeView> =
        outcomes().iter().map(|outcome| OutcomeView::new(outcome, UiLanguage::English)).collect();
    let told = serde_json::to_string_pretty(&told).unwrap() + "\n";
    assert_eq!(told, FROZEN);
}

/// The language changes only the texts for people.
#[test]
fn words_have_two_languages_and_the_rest_has_one() {
    for outcome in outcomes() {
        let [mut english, portuguese] = [UiLanguage::English, UiLanguage::Portuguese]
            .map(|language| OutcomeView::new(&outcome, language));
        assert_ne!(english.title, portuguese.title);
        english.title = portuguese.title;
        english.detail.clone_from(&portuguese.detail);
        assert_eq!(serde_json::to_value(english).unwrap(), serde_json::to_value(portuguese).unwrap());
    }
}
