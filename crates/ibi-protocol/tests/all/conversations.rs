//! The norm's conversations 8.1 and 8.2, from the persistent URL to the acknowledgment.

use ibi_protocol::analysis::{
    AcceptedLanguages, Answer, ArchiveId, Asked, Decision, Found, Said, Wanted, Why, check, decide,
};
use ibi_protocol::{PersistentUrl, Request, SentUrl};
use serde_json::Value as Json;

use crate::vectors::{of_conversations, pairs};

fn first(conversation: &Json) -> Wanted {
    let path = conversation["persistent"].as_str().unwrap().strip_prefix("http://urlib.net").unwrap();
    let url = PersistentUrl::parse(path, None).unwrap();
    assert_eq!(url.to_string(), path);
    Wanted::of(&url, AcceptedLanguages::parse("pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3"))
}

/// What follows from the Archive's answer, another one having nothing.
fn round(wanted: &Wanted, answer: &Json) -> Decision {
    let asked = Asked {
        label: &wanted.label,
        verbs: &wanted.verbs,
        service: &"sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse().unwrap(),
        hosts: &["mtc-m16c.sid.inpe.br".to_owned()],
    };
    let said = Said::from(check(&pairs(answer), &asked));
    let answers =
        [Answer { archive: ArchiveId(0), said: Said::Nothing }, Answer { archive: ArchiveId(1), said }];
    decide(&answers, wanted)
}

fn ends_as_the_norm_has_it(conversation: &Json, decision: Decision) {
    let Decision::Found(found) = decision else { panic!("{decision:?}") };
    let Found { archive, url, suspects, .. } = &*found;
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
    assert!(Request::Acknowledgment(sent).to_query().contains("servicesubject=acknowledgment"));
}

#[test]
fn conversation_8_1() {
    let vectors = of_conversations();
    let conversation = &vectors["8.1"];
    let wanted = first(conversation);
    ends_as_the_norm_has_it(conversation, round(&wanted, &conversation["answer"]));
}

#[test]
fn conversation_8_2() {
    let vectors = of_conversations();
    let conversation = &vectors["8.2"];
    let rounds = &conversation["rounds"];
    let wanted = first(conversation);
    assert_eq!(wanted.label.spelling(), rounds[0]["ibi"].as_str().unwrap());
    let decision = round(&wanted, &rounds[0]["answer"]);
    let Decision::AskAgain(again) = decision else { panic!("{decision:?}") };
    assert_eq!(again.why, Why::NextEdition);
    let wanted = wanted.next(&again);
    assert_eq!(wanted.label.spelling(), rounds[1]["ibi"].as_str().unwrap());
    assert_eq!(wanted.verbs.to_string(), "GetLastEdition GetMetadata(oai_dc)", "with all verbs");
    ends_as_the_norm_has_it(conversation, round(&wanted, &rounds[1]["answer"]));
}
