//! What comes in from the network: lists of pairs, messages, verbs and relations, persistent URLs,
//! paths of files. Nothing panics, and what is read can be written and read again.
#![no_main]

use std::sync::Arc;

use ibi_protocol::analysis::{
    AnswerExpectation, ArchiveId, ArchiveReply, MAX_ROUNDS, RoundAnswer, RoundDecision, RoundQuery, check,
    decide,
};
use ibi_protocol::location::{
    LocationArchive, LocationLookup, LocationPage, LocationQuery, LocationRecord, answer,
};
use ibi_protocol::{
    FilePath, LabelLink, Pairs, PairsLimits, PersistentUrl, Relation, Verbs, WireRequest, words,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(pairs) = Pairs::read(bytes, &PairsLimits::default()) {
        resolve(&pairs);
        let written = pairs.to_string();
        let again = Pairs::read(written.as_bytes(), &PairsLimits::default()).expect("what was written");
        assert_eq!(again.to_string(), written, "a list of pairs comes back");
    }
    if let Some((evidence, _)) = ibi_store::registry::AlertEvidence::parse_account(bytes, 0) {
        assert!(evidence.depositor.is_none_or(|name| name.len() <= 255), "bounded");
    }
    if let Ok(page) = serde_json::from_slice::<LocationPage>(bytes) {
        answer_from(&page);
    }
    if let Ok(Some(path)) = FilePath::new(bytes) {
        assert!(!path.as_bytes().split(|&byte| byte == b'/').any(|name| name == b".."));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = words(text);
    if let Ok(verbs) = Verbs::parse(text) {
        assert_eq!(Verbs::parse(&verbs.to_string()).ok(), Some(verbs), "verbs come back");
    }
    for relation in [Relation::parse(text), Relation::from_modifiers(text)].into_iter().flatten() {
        assert_eq!(Relation::parse(&relation.to_string()).ok().as_ref(), Some(&relation));
        assert_eq!(Relation::from_modifiers(&relation.modifiers()).ok(), Some(relation));
    }
    if let Ok(request) = WireRequest::parse(text) {
        let query = request.to_query();
        assert_eq!(
            WireRequest::parse(&query).expect("what was written").to_query(),
            query,
            "a message comes back"
        );
    }
    match LabelLink::parse(text) {
        // What it asks for is a label, and reads the same at any resolver.
        Ok(link) => {
            let elsewhere = format!("https://urlib.net{}", link.url);
            assert_eq!(LabelLink::parse(&elsewhere).map(|link| link.url), Ok(link.url), "a link comes back");
        }
        Err(error) => assert!(error.position <= text.len()),
    }
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    if let Ok(url) = PersistentUrl::parse(path, query) {
        let written = url.to_string();
        let (path, query) = written.split_once('?').map_or((written.as_str(), None), |(p, q)| (p, Some(q)));
        let again = PersistentUrl::parse(path, query).expect("what was written");
        assert_eq!(again.to_string(), written, "a persistent URL comes back");
    }
});

/// What a location feed may hold, by label.
struct FeedRecords(Vec<Arc<LocationRecord>>);

impl LocationLookup for FeedRecords {
    type Error = std::convert::Infallible;

    fn by_label(&self, label: &str) -> Result<Option<Arc<LocationRecord>>, Self::Error> {
        let has_label = |record: &&Arc<LocationRecord>| record.labels.iter().any(|own| own == label);
        Ok(self.0.iter().find(has_label).cloned())
    }
}

/// Whatever a feed says, its answers end, and lead to the Archive's own address.
fn answer_from(page: &LocationPage) {
    let records = FeedRecords(page.records.iter().take(8).cloned().map(Arc::new).collect());
    let archive = LocationArchive { service: &page.service, base: "http://archive.test" };
    for record in &records.0 {
        for relation in Relation::all() {
            let verbs = Verbs { relation, ..Verbs::default() };
            let query =
                LocationQuery { label: record.primary(), is_metadata: false, verbs: &verbs, file: None };
            let Ok(Some(pairs)) = answer(&records, record, &query, &archive) else { continue };
            for (name, value) in pairs.iter().filter(|(name, _)| name.starts_with("url")) {
                assert!(value.as_str().starts_with("http://archive.test/col/"), "{name}");
            }
        }
    }
}

/// What any answer leads to: no client is sent to a host that is not the Archive's.
fn resolve(pairs: &Pairs) {
    const LABEL: &str = "8JMKD3MGP8W/35MMLL8";
    let service = "a.br/b/2009/02.16.17.46".parse().expect("a label");
    for verbs in [
        "",
        "GetLastEdition",
        "GetTranslation",
        "GetMetadata(oai_dc)",
        "GetTranslation GetLastEdition GetMetadata GetTranslation",
    ] {
        let mut wanted = RoundQuery::new(LABEL.parse().expect("a label"));
        wanted.verbs = Verbs::parse(verbs).expect("verbs");
        let hosts = ["b.a.br".to_owned()];
        let asked = AnswerExpectation {
            label: &wanted.label,
            verbs: &wanted.verbs,
            service: &service,
            hosts: &hosts,
        };
        let said = ArchiveReply::from(check(pairs, &asked));
        let answers = [
            RoundAnswer { archive: ArchiveId(1), said: said.clone() },
            RoundAnswer { archive: ArchiveId(2), said },
        ];
        // The same answers again and again: a question is never repeated, and every resolution
        // ends.
        let mut decision = decide(&answers[..1], &wanted);
        while let RoundDecision::AskAgain(again) = &decision {
            let next = wanted.next(again);
            assert!(next.round <= MAX_ROUNDS, "too many rounds");
            assert!(
                next.asked.len() == wanted.asked.len() || !next.asked.contains(&again.question),
                "repeated"
            );
            wanted = next;
            decision = decide(&answers, &wanted);
        }
        if let RoundDecision::Found(found) = decision {
            let url = found.url.to_ascii_lowercase();
            let rest = url.strip_prefix("http://b.a.br").or(url.strip_prefix("https://b.a.br"));
            let rest = rest.expect("the Archive's own host");
            assert!(rest.is_empty() || rest.starts_with(['/', ':', '?', '#']), "{url}");
        }
    }
}
