//! Properties of all texts.

use ibi_protocol::{
    Acknowledgment, ContentType, FilePath, Pairs, PairsLimits, Relation, RelationPart, SentUrl, State,
    UrlRequest, Verbs, WireRequest, answer, words,
};
use proptest::prelude::*;
use proptest::sample::select;

fn wide() -> PairsLimits {
    PairsLimits { bytes: usize::MAX, ..PairsLimits::default() }
}

/// Texts with the relevant characters: braces, backslashes, white space, percent codes; and
/// arbitrary ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z{}\\\\ \r\n\t%é]{0,12}", "\\PC{0,8}", "[ -~]{0,12}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        "[ab{}\\\\ \r\n]{0,40}".prop_map(String::into_bytes),
        "([a-z.]{1,8}[ \n]{1,2}(\\{[a-z {}\\\\]{0,9}\\}|[a-z\\\\]{1,5})[ \r\n]{1,3}){0,6}"
            .prop_map(String::into_bytes),
    ]
}

fn pairs() -> impl Strategy<Value = Pairs> {
    let value = prop_oneof![
        text().prop_map(|value| (value, Vec::new())),
        prop::collection::vec(text(), 0..4).prop_map(|words| (String::new(), words)),
    ];
    prop::collection::vec((text(), value), 0..8).prop_map(|list| {
        let mut pairs = Pairs::new();
        for (name, (value, words)) in list {
            if words.is_empty() {
                pairs.push(name, &value);
            } else {
                pairs.push_words(name, &words.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        pairs
    })
}

fn relation() -> impl Strategy<Value = Relation> {
    let language = select(vec![None, Some("pt"), Some("pt-BR"), Some("en"), Some("bh")]);
    let format = prop::option::of("[A-Za-z0-9_.!~*'-]{1,64}");
    let signs = prop::option::of(select(Relation::ALL_COMPOSITIONS.to_vec()));
    (signs, [language.clone(), language], format).prop_map(|(signs, languages, format)| {
        let mut languages = languages.into_iter();
        let parts = signs.unwrap_or_default().chars().map(|sign| match sign {
            '!' => RelationPart::LastEdition,
            '+' => RelationPart::Translation(
                languages.next().flatten().map(|language| language.parse().unwrap()),
            ),
            _ => RelationPart::Metadata(format.clone()),
        });
        Relation::new(parts.collect()).unwrap()
    })
}

fn verbs() -> impl Strategy<Value = Verbs> {
    (relation(), any::<bool>()).prop_map(|(relation, file_list)| Verbs { relation, file_list })
}

proptest! {
    #[test]
    fn pairs_round_trip(pairs in pairs()) {
        let text = pairs.to_string();
        prop_assert!(text.bytes().all(|c| c.is_ascii_graphic() || c == b' ' || c == b'\r' || c == b'\n'));
        prop_assert_eq!(text.matches("\r\n").count(), pairs.len().saturating_sub(1), "no value breaks a line");
        prop_assert_eq!(Pairs::read(text.as_bytes(), &PairsLimits::default()), Ok(pairs.clone()));
        for (_, value) in pairs.iter() {
            prop_assert!(value.words().is_ok());
        }
    }

    #[test]
    fn words_round_trip(list in prop::collection::vec("[!-z|~]{0,6}", 0..6)) {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut pairs = Pairs::new();
        pairs.push_words("x", &list);
        prop_assert_eq!(words(pairs.get("x").unwrap()), Ok(list));
    }

    #[test]
    fn any_bytes_parse_and_round_trip_or_fail(bytes in bytes()) {
        match Pairs::read(&bytes, &wide()) {
            Ok(pairs) => {
                let text = pairs.to_string();
                prop_assert!(text.bytes().all(|c| c.is_ascii_graphic() || matches!(c, b' ' | b'\r' | b'\n')));
                prop_assert_eq!(Pairs::read(text.as_bytes(), &wide()), Ok(pairs.clone()));
                // A value in braces can be any text and need not be a list, but splitting it must
                // not panic.
                let _lists = pairs.iter().filter(|(_, value)| value.words().is_ok()).count();
            }
            Err(error) => prop_assert!(error.to_string().contains("byte")),
        }
    }

    #[test]
    fn any_text_splits_into_words_or_fails(text in text()) {
        if let Ok(words) = words(&text) {
            prop_assert!(words.iter().all(|word| text.contains(word)));
        }
    }

    #[test]
    fn relations_round_trip(relation in relation()) {
        prop_assert_eq!(Relation::parse(&relation.to_string()), Ok(relation.clone()));
        prop_assert_eq!(Relation::from_modifiers(&relation.modifiers()), Ok(relation));
    }

    #[test]
    fn verbs_round_trip(verbs in verbs()) {
        prop_assert_eq!(Verbs::parse(&verbs.to_string()), Ok(verbs));
    }

    #[test]
    fn any_text_is_a_relation_in_normal_spelling_or_fails(
        text in "([.!+:](lastedition|translation|metadata|)(\\((pt|oai_dc|x)\\))?){0,5}|\\PC{0,20}"
    ) {
        if let Ok(relation) = Relation::parse(&text) {
            prop_assert_eq!(relation.to_string(), text.clone());
        }
        if let Ok(relation) = Relation::from_modifiers(&text) {
            prop_assert_eq!(relation.modifiers(), text.clone());
        }
        if let Ok(verbs) = Verbs::parse(&text) {
            prop_assert_eq!(Verbs::parse(&verbs.to_string()), Ok(verbs));
        }
    }

    #[test]
    fn filtering_is_idempotent(
        list in prop::collection::vec((select(answer::RELATION_PROPERTIES.to_vec()), relation()), 0..12), verbs in verbs()
    ) {
        let mut pairs = Pairs::new();
        for (property, relation) in &list {
            pairs.push(format!("{property}{relation}"), "x");
            prop_assert_eq!(answer::property(&format!("{property}{relation}")), Some((*property, relation.clone())));
        }
        pairs.push("urlkey", "1234567890");
        let once = answer::filter(pairs.clone(), &verbs);
        prop_assert_eq!(answer::filter(once.clone(), &verbs), once.clone());
        let exact = format!("url{}", verbs.relation);
        prop_assert_eq!(once.get(&exact), pairs.get(&exact), "what is asked for stays");
    }

    #[test]
    fn url_requests_round_trip(
        client in prop::collection::vec(any::<std::net::IpAddr>(), 1..4), verbs in verbs(),
        path in prop::collection::vec(any::<u8>(), 0..20)
    ) {
        let file = FilePath::new(&path).unwrap_or_default();
        let request = UrlRequest { client, ibi: "8JMKD3MGP8W/35MMLL8".to_owned(), file, verbs, wants_all: false };
        let query = WireRequest::Url(request.clone()).to_query();
        prop_assert!(query.bytes().all(|c| c.is_ascii_graphic() && c != b'#'), "{}", query);
        let Ok(WireRequest::Url(found)) = WireRequest::parse(&query) else { return Err(TestCaseError::fail(query)) };
        prop_assert_eq!(found, request);
    }

    #[test]
    fn acknowledgments_round_trip(
        url in "\\PC{1,20}", persistent in "\\PC{1,20}", state in prop::option::of(select(vec![State::Original, State::Copy])),
        metadata in any::<bool>(), forms in any::<bool>(), urlkey in "[0-9]{10,20}(-[0-9]{10,20})?"
    ) {
        let acknowledgment = Acknowledgment {
            client: vec!["::1".parse().unwrap()],
            contenttype: if metadata { ContentType::Metadata } else { ContentType::Data },
            ibi: forms.then(|| "ibip 8JMKD3MGP8W/35MMLL8".parse().unwrap()),
            state,
            url: SentUrl::new(&url),
            persistent: SentUrl::new(&persistent),
            urlkey,
        };
        let query = WireRequest::Acknowledgment(acknowledgment.clone()).to_query();
        let Ok(WireRequest::Acknowledgment(found)) = WireRequest::parse(&query) else { return Err(TestCaseError::fail(query)) };
        prop_assert!(found.url.matches_url(&url) && found.persistent.decoded() == persistent);
        prop_assert_eq!(found, acknowledgment);
    }

    #[test]
    fn any_query_parses_or_fails(query in "\\PC{0,60}|(servicesubject=(urlRequest|acknowledgment|inclusionRequest)\
        &)?([a-z.]{1,30}=[^&]{0,20}&){0,5}") {
        match WireRequest::parse(&query) {
            Ok(request) => {
                let written = request.to_query();
                prop_assert_eq!(WireRequest::parse(&written).map(|read| read.to_query()), Ok(written));
            }
            Err(error) => {
                let pairs = error.to_pairs();
                prop_assert_eq!(Pairs::read(pairs.to_string().as_bytes(), &PairsLimits::default()), Ok(pairs));
            }
        }
    }
}
