//! A stable interface for programs: change it only deliberately
//! (`docs/formats/resolution-json.md`).

use super::*;

const FROZEN: &str = include_str!("../../../tests/samples/explanation-1.json");
const ITEM: &str = "library.org.br/archive/2026/11.16.08.05";
const NEXT: &str = "library.org.br/archive/2027/01.04.08.00";

fn heard(archive: &str, said: ExplainedReply, microseconds: Option<u64>) -> ExplainedAnswer {
    let address = microseconds.map(|_| format!("{archive}.org.br"));
    ExplainedAnswer {
        archive: format!("org.br/{archive}/2026/11.16.08.00"),
        address,
        secure: false,
        said,
        microseconds,
        index_age: None,
    }
}

fn offered(label: &str, url: Option<String>, next_edition: Option<String>) -> ExplainedReply {
    let (item, ibi) = (format!("rep {label}"), Some(format!("rep {label}")));
    let offer = ExplainedOffer { modifiers: "!".to_owned(), ibi, url, state: Some("Original") };
    ExplainedReply::Offered { item, offers: vec![offer], next_edition, translated_next: BTreeMap::new() }
}

fn round(label: &str, why: &str, archives: Vec<ExplainedAnswer>) -> ExplainedRound {
    ExplainedRound {
        question: format!("{label}!"),
        why: ExplainedReason::new(why, ""),
        query: format!(
            "clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={label}&parsedibiurl.verblist=GetLastEdition&\
             servicesubject=urlRequest"
        ),
        archives,
        microseconds: 2000,
    }
}

/// Covers every kind of reply.
#[test]
fn an_explanation_is_told_to_programs_as_the_frozen_sample_has_it() {
    let url = format!("http://library.org.br/col/{NEXT}/doc/report.pdf");
    let removed = ExplainedReply::Deleted {
        item: format!("rep {NEXT}"),
        timestamp: Some("2027-02-01T00:00:00Z".to_owned()),
        next_edition: None,
        offers: Vec::new(),
    };
    let absent = ExplainedReply::Failed { why: "offline since 2026-12-01T00:00:00Z".to_owned() };
    let rounds = vec![
        round(
            ITEM,
            "requested by the client",
            vec![
                heard("museum", ExplainedReply::Nothing, Some(900)),
                heard("library", offered(ITEM, None, Some(format!("rep {NEXT}"))), Some(1700)),
                heard("herbarium", absent.clone(), None),
            ],
        ),
        round(
            NEXT,
            "an Archive knows a next edition (4.2 step 5)",
            vec![
                heard("museum", removed, Some(800)),
                heard("library", offered(NEXT, Some(url.clone()), None), Some(1900)),
                heard("herbarium", absent, None),
                heard("observatory", ExplainedReply::Waiting, None),
            ],
        ),
    ];
    let explanation = ResolutionExplanation {
        persistent: format!("http://resolver.org.br/{ITEM}!"),
        rounds,
        status: 302,
        location: Some(url),
        because: ExplainedReason::new(
            "the first answer that satisfies the request, and no Archive named a later edition in time (4.2 step 4)",
            "",
        ),
        microseconds: 4100,
        began: Instant::now(),
    };
    assert_eq!(serde_json::to_string_pretty(&explanation).unwrap() + "\n", FROZEN);
}
