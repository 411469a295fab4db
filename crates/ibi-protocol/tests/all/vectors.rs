//! The standard's examples and conversations, frozen under `tests/vectors/`.

use ibi_protocol::{
    Acknowledgment, Pairs, PairsLimits, SentUrl, State, UrlRequest, Verbs, WireRequest, answer,
    message::WireRegistration,
};
use serde_json::Value as Json;

fn vectors(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

fn of_pairs() -> Json {
    vectors(include_str!("../vectors/pairs.json"))
}

pub(crate) fn of_conversations() -> Json {
    vectors(include_str!("../vectors/conversations.json"))
}

/// A list in the format of the vectors: `[[name, word | [word, …]], …]`.
pub(crate) fn pairs(list: &Json) -> Pairs {
    let mut pairs = Pairs::new();
    for pair in list.as_array().unwrap() {
        let name = pair[0].as_str().unwrap();
        match &pair[1] {
            Json::String(word) => pairs.push(name, word),
            words => {
                let words: Vec<&str> =
                    words.as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
                pairs.push_words(name, &words);
            }
        }
    }
    pairs
}

fn read(text: &str) -> Pairs {
    Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap()
}

fn query(url: &Json) -> &str {
    url.as_str().unwrap().split_once('?').unwrap().1
}

#[test]
fn example_4_2_is_written_one_pair_to_a_line_and_read_again() {
    let list = pairs(&of_pairs()["example_4_2"]);
    let text = list.to_string();
    assert!(text.starts_with(
        "archiveaddress mtc-m16d.sid.inpe.br\r\ncontenttype Data\r\nibi {rep \
         sid.inpe.br/mtc-m19/2013/09.04.12.27.57 ibip 8JMKD3MGP7W/3EPGUE5}\r\n"
    ));
    assert!(text.ends_with("\r\nurlkey 1426203276-5985125171467764"));
    assert_eq!(read(&text), list);
    assert_eq!(read(&text.replace("\r\n", " ")), list, "on one line");
    assert_eq!(read(&text.replace("\r\n", "\n")), list, "with LF alone");
    assert_eq!(list.len(), text.lines().count());
}

#[test]
fn example_7_2_filtered_by_get_translation_is_example_7_3() {
    let vectors = of_pairs();
    let (all, wanted) = (pairs(&vectors["example_7_2"]["answer"]), pairs(&vectors["example_7_3"]["answer"]));
    let verbs = Verbs::parse(vectors["example_7_3"]["verblist"].as_str().unwrap()).unwrap();
    assert_eq!(answer::filter(all, &verbs), wanted);
}

#[test]
fn the_norms_answers_are_sorted_by_name() {
    for list in [&of_pairs()["example_7_2"]["answer"], &of_conversations()["8.1"]["answer"]] {
        let list = pairs(list);
        let mut sorted = list.clone();
        sorted.sort();
        assert_eq!(sorted, list);
    }
}

#[test]
fn section_8_rounds_have_nothing_to_filter() {
    let vectors = of_conversations();
    let first = pairs(&vectors["8.1"]["answer"]);
    assert_eq!(answer::filter(first.clone(), &Verbs::default()), first);
    let verbs = Verbs::parse("GetLastEdition GetMetadata(oai_dc)").unwrap();
    let rounds = vectors["8.2"]["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let list = pairs(&round["answer"]);
        assert_eq!(answer::filter(list.clone(), &verbs), list);
    }
}

#[test]
fn section_8_requests_are_written_byte_for_byte() {
    let vectors = of_conversations();
    let client = vec!["172.16.44.200".parse().unwrap(), "150.163.68.1".parse().unwrap()];
    let verbs = Verbs::parse("GetLastEdition GetMetadata(oai_dc)").unwrap();
    let rounds = &vectors["8.2"]["rounds"];
    for (url, ibi, verbs) in [
        (&vectors["8.1"]["request"], "8JMKD3MGP8W/35MMLL8", Verbs::default()),
        (&rounds[0]["request"], "8JMKD3MGP8W/35MMLL8", verbs.clone()),
        (&rounds[1]["request"], "sid.inpe.br/mtc-m18/2012/07.12.18.08", verbs),
    ] {
        let request =
            UrlRequest { client: client.clone(), ibi: ibi.to_owned(), file: None, verbs, wants_all: false };
        assert_eq!(WireRequest::Url(request.clone()).to_query(), query(url));
        let WireRequest::Url(found) = WireRequest::parse(query(url)).unwrap() else { panic!() };
        assert_eq!(found, request);
    }
}

#[test]
fn section_8_acknowledgments_are_written_but_for_d25() {
    let vectors = of_conversations();
    for conversation in ["8.1", "8.2"] {
        let given = &vectors[conversation]["acknowledgment"];
        let text = |name: &str| given[name].as_str().unwrap();
        let acknowledgment = Acknowledgment {
            client: vec!["172.16.44.200".parse().unwrap(), "150.163.68.1".parse().unwrap()],
            contenttype: text("contenttype").parse().unwrap(),
            ibi: Some(text("ibi").parse().unwrap()),
            state: Some(State::Original),
            url: SentUrl::new(text("url")),
            persistent: SentUrl::new(text("url.persistent")),
            urlkey: text("urlkey").to_owned(),
        };
        // By Table 4.1: `%`, `?`, `=` and space are encoded.
        let encoded = |name: &str| {
            let text = text(name).replace('%', "%25").replace(' ', "%20");
            text.replace('?', "%3F").replace('=', "%3D")
        };
        let mut names: Vec<&str> = given.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let wanted: Vec<String> = names.iter().map(|name| format!("{name}={}", encoded(name))).collect();
        let query = WireRequest::Acknowledgment(acknowledgment.clone()).to_query();
        assert_eq!(query, wanted.join("&"));
        let WireRequest::Acknowledgment(found) = WireRequest::parse(&query).unwrap() else { panic!() };
        assert_eq!(found, acknowledgment);
        assert!(found.url.matches_url(text("url")) && found.persistent.matches_url(text("url.persistent")));
        assert_eq!(found.url.decoded(), text("url"));
    }
}

#[test]
fn example_6_9_is_read_with_its_url_not_encoded_and_without_state() {
    let url =
        "http://mtc-m16d.sid.inpe.br/col/sid.inpe.br/mtc-m19/2013/09.04.12.27.57/doc/Relat%f3rio%20Final.pdf";
    let query = format!(
        "servicesubject=acknowledgment&clientinformation.ipaddress=150.163.2.175&contenttype=Data&ibi=rep%20\
         sid.inpe.br/mtc-m19/2013/09.04.12.27.57%20ibip%208JMKD3MGP7W/3EPGUE5&url={url}&url.persistent=\
         http://mtc-m16d.sid.inpe.br:80/8JMKD3MGP7W/3EPGUE5&urlkey=1424636122-5331490054869684"
    );
    let WireRequest::Acknowledgment(found) = WireRequest::parse(&query).unwrap() else { panic!() };
    assert_eq!(found.state, None);
    assert!(found.url.matches_url(url) && !found.url.matches_url(&url.replace("%20", "+")));
    assert_eq!(found.ibi.unwrap().labels().len(), 2);
}

#[test]
fn the_inclusion_is_read_and_written_byte_for_byte() {
    let vectors = of_conversations();
    let text = query(&vectors["inclusion"]["request"]);
    let request = WireRequest::parse(text).unwrap();
    assert_eq!(request.to_query(), text);
    let WireRequest::Inclusion(found) = request else { panic!() };
    let WireRegistration { address, service, ip, platform_version, email, key, .. } = &found;
    assert_eq!(address, "mtc-m21.sid.inpe.br");
    assert_eq!(service, "sid.inpe.br/mtc-m21/2012/06.05.15.34.39");
    assert_eq!(ip.to_string(), "150.163.34.239");
    assert_eq!((platform_version.as_str(), email.as_str()), ("2014:11.09.02.16.15", "banon@dpi.inpe.br"));
    assert_eq!(key.reveal(), "1234567890");
    let callback = query(&vectors["inclusion"]["callback"]);
    assert!(matches!(WireRequest::parse(callback), Ok(WireRequest::InclusionConfirmation)));
    assert_eq!(WireRequest::InclusionConfirmation.to_query(), callback);
}

#[test]
fn the_short_answers_are_the_norms() {
    let vectors = of_conversations();
    let answers = &vectors["inclusion"]["answers"];
    for (pairs, text) in [
        (answer::confirmation(), &vectors["inclusion"]["callback_answer"]),
        (answer::included(true), &answers[0]),
        (answer::included(false), &answers[1]),
        (answer::excluded(), &vectors["exclusion"]["answer"]),
        (answer::acknowledged(), &vectors["8.1"]["acknowledgment_answer"]),
    ] {
        assert_eq!(pairs, read(text.as_str().unwrap()));
    }
    assert_eq!(answer::acknowledged().to_string(), "notice {acknowledgment received}");
    assert_eq!(answer::refused().to_string(), "status.archive refused");
}
