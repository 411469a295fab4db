//! The standard's conversations 8.1 and 8.2, replayed byte for byte against an Archive that has a
//! script.
//!
//! Two things are excepted. D25: in an acknowledgment the standard writes `url` with its `%20` as
//! it is (8.1), and in 8.2 only its `?` as `%3F`; we write both by Table 4.1, so that `%` is `%25`
//! and `=` is `%3D`. And D11: the standard's `url.persistent` has the port 80, ours has the
//! configured base URL; the base URL configured here is the standard's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ibi_protocol::analysis::{AcceptedLanguages, ArchiveId};
use ibi_protocol::{Pairs, PersistentUrl};
use ibi_resolver::{
    ArchiveDirectory, ArchivePlatform, ArchiveTransport, ArchiveTransportError, RaisedAlert,
    RegisteredArchive, RegistrationStatus, ResolutionOutcome, ResolutionRequest, Resolver,
};
use serde_json::Value as Json;

/// The same file as in `ibi-protocol`.
const CONVERSATIONS: &str = include_str!("../../../ibi-protocol/tests/vectors/conversations.json");
const NOTICE: &str = "notice {acknowledgment received}";

/// An Archive that says what the standard has it say, in that order, and the list of what it was
/// sent.
struct Scripted {
    archives: Arc<[Arc<RegisteredArchive>]>,
    answers: Mutex<VecDeque<String>>,
    sent: Mutex<Vec<String>>,
}

impl ArchiveTransport for Scripted {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let address = archive.address.as_deref().unwrap();
        self.sent.lock().unwrap().push(format!("http://{address}/{}?{query}", archive.service.spelling()));
        let answer = self.answers.lock().unwrap().pop_front().unwrap();
        std::future::ready(Ok(Bytes::from(answer)))
    }
}

impl ArchiveDirectory for Scripted {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        Arc::clone(&self.archives)
    }

    fn record_alert(&self, suspected: &RaisedAlert, _now: i64) {
        panic!("{suspected:?}");
    }
}

fn answer(list: &Json) -> String {
    let mut pairs = Pairs::new();
    for pair in list.as_array().unwrap() {
        let name = pair[0].as_str().unwrap();
        match &pair[1] {
            Json::String(word) => pairs.push(name, word),
            words => {
                let words = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap());
                pairs.push_words(name, &words.collect::<Vec<_>>());
            }
        }
    }
    pairs.to_string()
}

/// Table 4.1, written once more.
fn encoded(value: &str) -> String {
    let encode = |c: char| if " %&+=?".contains(c) { format!("%{:02X}", c as u32) } else { c.to_string() };
    value.chars().map(encode).collect()
}

/// The acknowledgment that the standard has, with its pairs in order of their names.
fn acknowledgment(archive: &RegisteredArchive, conversation: &Json) -> String {
    let pairs = conversation["acknowledgment"].as_object().unwrap();
    let mut pairs: Vec<(&String, &str)> =
        pairs.iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let address = archive.address.as_deref().unwrap();
    format!("http://{address}/{}?{}", archive.service.spelling(), pairs.join("&"))
}

/// Has the conversation, and compares all that was sent.
async fn converse(conversation: &Json, rounds: &[&Json]) {
    let archive = Arc::new(RegisteredArchive {
        id: ArchiveId(1),
        service: "sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse().unwrap(),
        address: Some("mtc-m16c.sid.inpe.br".to_owned()),
        hosts: Vec::new(),
        standing: RegistrationStatus::OnLine,
        registered: 0,
        changed: 0,
        email: None,
        platform: ArchivePlatform::default(),
    });
    let answers = rounds.iter().map(|round| answer(&round["answer"])).chain([NOTICE.to_owned()]);
    let scripted = Arc::new(Scripted {
        archives: [Arc::clone(&archive)].into(),
        answers: Mutex::new(answers.collect()),
        sent: Mutex::default(),
    });
    let resolver = Resolver::new(Arc::clone(&scripted), Arc::clone(&scripted), Arc::new(|| 1_700_000_000));
    let path = conversation["persistent"].as_str().unwrap().strip_prefix("http://urlib.net").unwrap();
    let asked = ResolutionRequest {
        robot: false,
        fresh: false,
        url: PersistentUrl::parse(path, None).unwrap(),
        persistent: format!("http://urlib.net:80{path}"),
        languages: AcceptedLanguages::parse("pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3"),
        client: vec!["172.16.44.200".parse().unwrap(), "150.163.68.1".parse().unwrap()],
        explain: false,
        goes: true,
    };
    let resolution = resolver.resolve(asked).await;
    let ResolutionOutcome::Found { location, .. } = resolution.outcome else {
        panic!("{:?}", resolution.outcome)
    };
    assert_eq!(location, conversation["redirect"].as_str().unwrap());
    resolver.close(Duration::from_secs(1)).await;

    let requests = rounds.iter().map(|round| round["request"].as_str().unwrap().to_owned());
    let expected: Vec<String> = requests.chain([acknowledgment(&archive, conversation)]).collect();
    assert_eq!(*scripted.sent.lock().unwrap(), expected);
    assert!(scripted.answers.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn conversation_8_1() {
    let vectors: Json = serde_json::from_str(CONVERSATIONS).unwrap();
    let conversation = &vectors["8.1"];
    converse(conversation, &[conversation]).await;
    let sent = acknowledgment_of(conversation);
    assert!(sent.contains("CCSDS%2520650.0-B-1.pdf"), "{sent}: D25, where the standard has %20");
}

#[tokio::test(start_paused = true)]
async fn conversation_8_2() {
    let vectors: Json = serde_json::from_str(CONVERSATIONS).unwrap();
    let conversation = &vectors["8.2"];
    let rounds: Vec<&Json> = conversation["rounds"].as_array().unwrap().iter().collect();
    converse(conversation, &rounds).await;
    let sent = acknowledgment_of(conversation);
    assert!(sent.contains("metadata.cgi%3Fchoice%3Doai_dc"), "{sent}: D25");
}

/// What of the acknowledgment is excepted, to be seen.
fn acknowledgment_of(conversation: &Json) -> String {
    encoded(conversation["acknowledgment"]["url"].as_str().unwrap())
}
