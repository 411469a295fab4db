//! Messages to the resolver, its queries to Archives, and how it interprets their answers (003 §4
//! to §6.2 and §8).

use serde_json::{Map, Value, json};

use super::replay::{self, REGISTRATION_KEY, RESOLVER_SERVICE, ReplayArchive, TestResolver};
use super::{each, texts};
use crate::online::client::ask;
use crate::online::until;

/// The service and an item of it, for rows that name none.
const ANY_SERVICE: &str = "sid.inpe.br/mtc-m19@80/2009/08.21.17.02";
const ANY_ITEM: &str = "8JMKD3MGP7W/3EPGUE5";

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// The pairs of a query, as they came. The address of the test, the last of the proxies, is taken
/// off.
fn pairs(target: &str) -> Value {
    let query = target.split_once('?').unwrap().1;
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        let value = if name == "clientinformation.ipaddress" {
            value.strip_suffix("%20127.0.0.1").unwrap()
        } else {
            value
        };
        (name.to_owned(), Value::String(value.to_owned()))
    };
    Value::Object(query.split('&').map(pair).collect::<Map<_, _>>())
}

/// Table 4.1: how each character arrives at an Archive.
pub(super) fn special(input: &Value) -> Value {
    let resolver = TestResolver::new();
    let archive = ReplayArchive::new(Vec::new());
    archive.come(&resolver, ANY_SERVICE, &[]);
    each(&texts(input), |characters| {
        let encoded: String = characters.bytes().map(|byte| format!("%{byte:02X}")).collect();
        resolver.get(&format!("/{ANY_ITEM}/{encoded}"), "150.163.2.175", "pt");
        let last = archive.asked("urlRequest").pop().unwrap();
        let path = pairs(&last)["parsedibiurl.filepath"].as_str().unwrap().to_owned();
        path.strip_prefix('/').unwrap().into()
    })
}

/// What a persistent URL makes the resolver ask: for each the path and the pairs, as they are sent.
pub(super) fn sent(input: &Value) -> Value {
    let resolver = TestResolver::new();
    let archive = ReplayArchive::new(Vec::new());
    archive.come(&resolver, input["service"].as_str().unwrap_or(ANY_SERVICE), &[]);
    let languages = input["languages"].as_str().unwrap_or("pt");
    each(&texts(&input["urls"]), |url| {
        let before = archive.asked("urlRequest").len();
        let reply = resolver.get(url, input["client"].as_str().unwrap_or("150.163.2.175"), languages);
        assert_eq!(reply.status, 404, "{url}: {}", reply.text());
        // The first question: what follows is asked to say what there is instead.
        let asked = archive.asked("urlRequest").swap_remove(before);
        let pairs = pairs(&asked);
        let names: Vec<&String> = pairs.as_object().unwrap().keys().collect();
        json!({ "to": asked.split_once('?').unwrap().0, "names": names, "pairs": pairs })
    })
}

/// Table 5.1: keys that an Archive can be registered with.
pub(super) fn keys(input: &Value) -> Value {
    let resolver = TestResolver::new();
    each(&texts(input), |key| {
        let run = resolver.run("register", &["--service", ANY_SERVICE, &format!("--key={key}")]);
        if run.status == 0 { "taken".into() } else { "refused".into() }
    })
}

/// Example 5.1: the operator of the resolver is told a service and a key; from then on the Archive
/// may come.
pub(super) fn registered(input: &Value) -> Value {
    let resolver = TestResolver::new();
    let archive = ReplayArchive::new(Vec::new());
    let service = text(input, "archiveserviceibi");
    assert_eq!(input["registrationkey"], REGISTRATION_KEY);
    archive.come(&resolver, service, &[]);
    let listed = resolver.run("archives", &["--json"]).json();
    let known = listed.iter().any(|archive| archive["service"] == service);
    json!({ "by": "a command or the API of the resolver", "archiveserviceibi": if known { service } else { "" } })
}

/// Examples 5.2 to 5.4 and Table 5.2: going online and offline, and what is demanded for it.
pub(super) fn included(input: &Value) -> Value {
    let resolver = TestResolver::new();
    let archive = ReplayArchive::new(Vec::new());
    let service = text(input, "service");
    resolver.register(service, &[]);
    let tell = |message: &str| ask(&resolver.server.at, "GET", message, "", b"");
    let mut said = Map::new();
    for subject in texts(&input["subjects"]) {
        let message = replay::inclusion(subject, &archive.at, service);
        let without: Map<String, Value> = message
            .split_once('?')
            .unwrap()
            .1
            .split('&')
            .map(|pair| {
                let less = message.replacen(&format!("&{pair}"), "", 1).replacen(&format!("{pair}&"), "", 1);
                let reply = tell(&less);
                let taken = reply.status == 200 && reply.text().starts_with("status.archive");
                let name = pair.split_once('=').unwrap().0.to_owned();
                (name, if taken { "fac." } else { "obr." }.into())
            })
            .collect();
        let answer = tell(&message).text().trim_end().replace("\r\n", " ");
        said.insert(subject.to_owned(), json!({ "answer": answer, "pairs": without }));
    }
    let called = archive.asked("inclusionConfirmationRequest");
    json!({ "to": format!("/{RESOLVER_SERVICE}"), "said": said, "called_back": called.first() })
}

/// Example 6.9, §8.1 and §8.2: a whole conversation. Where the document has the Archive's address,
/// the test has its own.
pub(super) fn conversation(input: &Value) -> Value {
    let (service, address) = (text(input, "service"), text(input, "address"));
    let answers: Vec<String> = input["answers"].as_array().unwrap().iter().map(replay::body).collect();
    let archive = ReplayArchive::new(answers);
    let resolver = TestResolver::new();
    archive.come(&resolver, service, &[address]);
    let reply = resolver.get(text(input, "persistent"), text(input, "client"), text(input, "languages"));
    until("it is acknowledged", || !archive.asked("acknowledgment").is_empty());
    let requests: Vec<String> = archive
        .asked("urlRequest")
        .iter()
        .map(|target| format!("http://{address}{}", target.replacen("%20127.0.0.1", "", 1)))
        .collect();
    let acknowledgment = archive.asked("acknowledgment").swap_remove(0);
    let notice = ask(&archive.at, "GET", &acknowledgment, "", b"").text();
    json!({
        "requests": requests,
        "redirect": reply.header("location"),
        "acknowledged_at": format!("http://{address}{}", acknowledgment.split_once('?').unwrap().0),
        "acknowledgment": pairs(&acknowledgment),
        "names": pairs(&acknowledgment).as_object().unwrap().keys().collect::<Vec<_>>(),
        "notice": notice,
    })
}
