//! The standard's conversations 8.1 and 8.2, from the persistent URL to the acknowledgment.

use ibi_protocol::analysis::{
    AcceptedLanguages, AnswerExpectation, ArchiveId, ArchiveReply, FoundUrl, RequeryReason, RoundAnswer,
    RoundDecision, RoundQuery, check, decide,
};
use ibi_protocol::{PersistentUrl, SentUrl, WireRequest};
use serde_json::Value as Json;

use crate::vectors::{of_conversations, pairs};

fn first(conversation: &Json) -> RoundQuery {
    let path = conversation["persistent"].as_str().unwrap().strip_prefix("http://urlib.net").unwrap();
    let url = PersistentUrl::parse(path, None).unwrap();
    assert_eq!(url.to_string(), path);
    RoundQuery::of(&url, AcceptedLanguages::parse("pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3"))
}

/// The decision on this answer, another Archive having nothing.
fn round(query: &RoundQuery, answer: &Json) -> RoundDecision {
    let expected = AnswerExpectation {
        label: &query.label,
        verbs: &query.verbs,
        service: &"sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse().unwrap(),
        hosts: &["mtc-m16c.sid.inpe.br".to_owned()],
    };
    let reply = ArchiveReply::from(check(&pairs(answer), &expected));
    let answers = [
        RoundAnswer { archive: ArchiveId(0), said: ArchiveReply::Nothing },
        RoundAnswer { archive: ArchiveId(1), said: reply },
    ];
    decide(&answers, query)
}

fn assert_matches_standard(conversation: &Json, decision: RoundDecision) {
    let RoundDecision::Found(found) = decision else { panic!("{decision:?}") };
    let FoundUrl { archive, url, suspects, .. } = &*found;
    assert_eq!((archive, url.as_str()), (&ArchiveId(1), conversation["redirect"].as_str().unwrap()));
    assert!(suspects.is_empty());
    let text = |name: &str| conversation["acknowledgment"][name].as_str().unwrap();
    let client = vec!["172.16.44.200".parse().unwrap(), "150.163.68.1".parse().unwrap()];
    let sent = found.acknowledgment(client, text("url.persistent")).unwrap();
    assert_eq!(sent.contenttype.as_str(), text("contenttype"));
    assert_eq!(sent.ibi.as_ref().unwrap().to_string(), text("ibi"));
    assert_eq!(sent.state.unwrap().as_str(), text("state"));
    assert_eq!(
        (&sent.url, &sent.persistent),
        (&SentUrl::new(text("url")), &SentUrl::new(text("url.persistent")))
    );
    assert_eq!(sent.urlkey, text("urlkey"));
    assert!(WireRequest::Acknowledgment(sent).to_query().contains("servicesubject=acknowledgment"));
}

#[test]
fn conversation_8_1() {
    let vectors = of_conversations();
    let conversation = &vectors["8.1"];
    let query = first(conversation);
    assert_matches_standard(conversation, round(&query, &conversation["answer"]));
}

#[test]
fn conversation_8_2() {
    let vectors = of_conversations();
    let conversation = &vectors["8.2"];
    let rounds = &conversation["rounds"];
    let query = first(conversation);
    assert_eq!(query.label.spelling(), rounds[0]["ibi"].as_str().unwrap());
    let decision = round(&query, &rounds[0]["answer"]);
    let RoundDecision::AskAgain(again) = decision else { panic!("{decision:?}") };
    assert_eq!(again.why, RequeryReason::NextEdition);
    let query = query.next(&again);
    assert_eq!(query.label.spelling(), rounds[1]["ibi"].as_str().unwrap());
    assert_eq!(query.verbs.to_string(), "GetLastEdition GetMetadata(oai_dc)", "with all verbs");
    assert_matches_standard(conversation, round(&query, &rounds[1]["answer"]));
}
