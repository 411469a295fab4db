//! 4.2 step 2: which answers are valid.

use ibi_protocol::analysis::{
    AnswerCheckError, AnswerExpectation, ArchiveReply, CheckedAnswer, LiveAnswer, check,
};
use ibi_protocol::{Pairs, PairsLimits, Verbs};

const ASKED: &str = "a.br/b/2009/02.16.17.46";
const SERVICE: &str = "n.br/archive/2001/01.01.01.01";

fn checked(text: &str, modifiers: &str) -> Result<Option<CheckedAnswer>, AnswerCheckError> {
    let pairs = Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap();
    let verbs = Verbs::from(ibi_protocol::Relation::from_modifiers(modifiers).unwrap());
    let (label, service) = (ASKED.parse().unwrap(), "n.br/archive/2001/01.01.01.01".parse().unwrap());
    let hosts = ["archive.n.br:8080".to_owned(), "Mirror.org".to_owned(), "[::1]:80".to_owned()];
    check(&pairs, &AnswerExpectation { label: &label, verbs: &verbs, service: &service, hosts: &hosts })
}

/// A valid answer with these pairs added.
fn live(text: &str) -> Result<LiveAnswer, AnswerCheckError> {
    let text = format!("ibi {{rep {ASKED}}} ibi.archiveservice {{rep n.br/archive/2001/01.01.01.01}} {text}");
    match checked(&text, "")? {
        Some(CheckedAnswer::Live(live)) => Ok(live),
        other => panic!("{other:?}"),
    }
}

#[test]
fn clause_4_2_2_an_answer_names_the_asked_label_in_one_of_its_forms_or_an_alias() {
    let service = "ibi.archiveservice {rep n.br/archive/2001/01.01.01.01}";
    for ibi in [
        "ibi {rep A.br/b@80/2009/02.16.17.46.00 ibip 8JMKD3MGP8W/35MME4E}",
        "ibi {ibip 8JMKD3MGP8W/35MME4E} ibi.alias a.br/b/2009/02.16.17.46",
        "ibi {ibip 8JMKD3MGP8W/35MME4E} ibi.alias {rep a.br/b/2009/02.16.17.46}",
    ] {
        assert!(
            matches!(checked(&format!("{ibi} {service}"), ""), Ok(Some(CheckedAnswer::Live(_)))),
            "{ibi}"
        );
    }
    for (ibi, wrong) in [
        ("ibi {ibip 8JMKD3MGP8W/35MME4E}", "the answer is about `ibip 8JMKD3MGP8W/35MME4E`, which is not"),
        ("ibi {ibip 8JMKD3MGP8W/35MME4E} ibi.alias 8JMKD3MGP8W/35MME4E", "the answer is about"),
        ("ibi {}", "the answer has no ibi"),
        ("", "the answer has no ibi"),
        ("ibi {rep x}", "ibi: `x` is not a valid IBI"),
    ] {
        let error = checked(&format!("{ibi} {service}"), "").unwrap_err().to_string();
        assert!(error.starts_with(wrong), "{ibi}: {error}");
    }
}

#[test]
fn clause_4_2_2_an_answer_is_in_the_name_of_the_archive_that_was_asked() {
    let ibi = format!("ibi {{rep {ASKED}}}");
    let other = format!("{ibi} ibi.archiveservice {{rep n.br/other/2001/01.01.01.01}}");
    assert!(matches!(checked(&other, ""), Err(AnswerCheckError::OtherArchive { .. })));
    assert!(matches!(checked(&ibi, ""), Err(AnswerCheckError::Missing { name: "ibi.archiveservice" })));
    let both =
        format!("{ibi} ibi.archiveservice {{ibip 8JMKD3MGP8W/35MME4E rep n.br/archive@80/2001/01.01.01.01}}");
    assert!(checked(&both, "").is_ok());
}

#[test]
fn clause_4_2_2_a_url_is_http_or_https_without_user_info_on_a_registered_host() {
    for url in [
        "http://archive.n.br/x",
        "https://archive.n.br",
        "HTTP://ARCHIVE.N.BR:9/x?y@z#w",
        "http://mirror.org:8080/a@b",
        "http://mirror.org:/x",
        "http://[0::1]/x",
        "http://archive.n.br?x",
        &format!("http://archive.n.br/{}", "x".repeat(8192 - "http://archive.n.br/".len())),
    ] {
        assert_eq!(live(&format!("url {url}")).unwrap().offers[0].url.as_deref(), Some(url));
    }
    for url in [
        "ftp://archive.n.br/x",
        "javascript:alert(1)//archive.n.br",
        "//archive.n.br/x",
        "/x",
        "http:/archive.n.br",
        "http:///archive.n.br",
        "http://",
        "http://evil.org/archive.n.br",
        "http://archive.n.br.evil.org/",
        "http://evil.org#archive.n.br",
        "http://user@archive.n.br/",
        "http://archive.n.br@evil.org/",
        "http://archive.n.br:80@evil.org/",
        "http://archive.n.br\\@evil.org/",
        "http://archive.n.br/\\evil",
        "http://evil.org\\.archive.n.br/",
        "http://archive.n.br./",
        "http://archive%2En.br/",
        "http://archive.n.br:x/",
        "http://archive.n.br:99999/",
        "http://[::2]/",
        "http://[::1/",
        "http://[::1]x/",
        "{http://archive.n.br/a b}",
        "{http://archive.n.br/a http://archive.n.br/b}",
        &format!("http://archive.n.br/{}", "x".repeat(8193 - "http://archive.n.br/".len())),
    ] {
        let error = live(&format!("url {url}")).unwrap_err();
        assert!(
            matches!(error, AnswerCheckError::Url { .. }) && error.to_string().len() < 300,
            "{url}: {error}"
        );
    }
}

#[test]
fn clause_4_2_2_an_invalid_host_is_refused_even_if_registered() {
    let (label, service) = (ASKED.parse().unwrap(), "n.br/archive/2001/01.01.01.01".parse().unwrap());
    for registered in ["", ":80", "archive%2En.br", "[::1", "[archive.n.br]", "archive.n.br:x"] {
        let text = format!(
            "ibi {{rep {ASKED}}} ibi.archiveservice {{rep n.br/archive/2001/01.01.01.01}} url {{http://{registered}/x}}"
        );
        let pairs = Pairs::read(text.as_bytes(), &PairsLimits::default()).unwrap();
        let (verbs, hosts) = (Verbs::default(), [registered.to_owned()]);
        let asked = AnswerExpectation { label: &label, verbs: &verbs, service: &service, hosts: &hosts };
        let error = check(&pairs, &asked).unwrap_err().to_string();
        assert!(error.ends_with("its host or port is invalid"), "{registered}: {error}");
    }
}

#[test]
fn clause_4_2_2_an_invalid_answer_is_an_error_not_an_empty_answer() {
    assert_eq!(ArchiveReply::from(checked("", "")), ArchiveReply::Nothing);
    for text in ["state Lost", "contenttype X", "ibi.nextedition {rep x}", "ibi.nextedition rep", "x y"] {
        let failed = matches!(ArchiveReply::from(checked(text, "")), ArchiveReply::Failed(_));
        assert!(failed, "{text}");
        assert_eq!(live(text).is_err(), text != "x y", "{text}: pairs that nobody knows are skipped");
    }
    let many = |count: u32| -> String {
        (0..count).map(|n| format!("url.metadata(x{n}) http://archive.n.br/ ")).collect()
    };
    assert_eq!(live(&many(255)).unwrap().offers.len(), 256, "the item itself among them");
    assert!(matches!(live(&many(256)), Err(AnswerCheckError::TooMany { most: 256 })));
    let asked = |text: &str| {
        let text =
            format!("ibi {{rep {ASKED}}} ibi.archiveservice {{rep n.br/archive/2001/01.01.01.01}} {text}");
        checked(&text, ":")
    };
    assert!(asked("url.metadata http://evil.org/").is_err());
    assert!(asked("state.metadata Deleted").is_err());
    // Offers that were not requested are dropped.
    let Ok(Some(CheckedAnswer::Live(found))) = asked("url.translation http://evil.org/ url http://evil.org/")
    else {
        panic!()
    };
    assert!(found.offers.iter().all(|offer| offer.url.is_none()));
}

#[test]
fn clause_3_4_a_removed_item_is_a_tombstone() {
    let text = format!(
        "ibi {{rep {ASKED}}} ibi.archiveservice {{rep n.br/archive/2001/01.01.01.01}} state Deleted timestamp 2020"
    );
    let Ok(Some(CheckedAnswer::Deleted(tombstone))) = checked(&text, "+:") else { panic!() };
    assert_eq!((tombstone.ibi.labels().len(), tombstone.timestamp.as_deref()), (1, Some("2020")));
}

/// 4.2 step 2 requires the queried label, in `ibi` or as `ibi.alias`; by 3.4 a removed item answers
/// with exactly six pairs, without `ibi.alias`. Hence a removed item queried by an alias names only
/// itself.
#[test]
fn clauses_3_4_and_4_2_2_a_removed_item_that_was_asked_for_by_an_alias_names_itself() {
    let six = |service: &str, ibi: &str| {
        format!(
            "archiveaddress archive.n.br ibi.archiveservice {{rep {service}}} ibi.platformsoftware {{}} {ibi} \
             state Deleted timestamp 2020-01-01T00:00:00Z"
        )
    };
    let (own, other) = ("n.br/archive/2001/01.01.01.01", "n.br/other/2001/01.01.01.01");
    let Ok(Some(CheckedAnswer::Deleted(tombstone))) =
        checked(&six(own, "ibi {ibip 8JMKD3MGP8W/35MME4E}"), "")
    else {
        panic!()
    };
    assert_eq!(tombstone.ibi.to_string(), "ibip 8JMKD3MGP8W/35MME4E");
    for (service, ibi) in [
        (other, "ibi {ibip 8JMKD3MGP8W/35MME4E}"),
        (own, "ibi {}"),
        (own, "ibi {ibip x}"),
        // It names the alias that it answers for, and that is another one.
        (own, "ibi {ibip 8JMKD3MGP8W/35MME4E} ibi.alias a.br/b/2010/02.16.17.46"),
    ] {
        assert!(checked(&six(service, ibi), "").is_err(), "{service} {ibi}");
    }
    let alive = six(own, "ibi {ibip 8JMKD3MGP8W/35MME4E}").replace("Deleted", "Original");
    assert!(
        matches!(checked(&alive, ""), Err(AnswerCheckError::OtherItem { .. })),
        "only for what was removed"
    );
}

#[test]
fn clause_3_1_without_a_urlkey_there_is_nothing_to_acknowledge() {
    assert_eq!(live("urlkey 1234567890").unwrap().urlkey.as_deref(), Some("1234567890"));
    assert_eq!((live("urlkey x").unwrap().urlkey, live("").unwrap().urlkey), (None, None));
}

#[test]
fn clause_4_2_2_a_nul_in_a_url_fails_the_answer() {
    for url in ["http://archive.n.br/a\0b", "http://archive.n.br/a%00b"] {
        let body = format!("ibi {{rep {ASKED}}} ibi.archiveservice {{rep {SERVICE}}} url {url}");
        let pairs = Pairs::read(body.as_bytes(), &PairsLimits::default()).unwrap();
        let (label, service) = (ASKED.parse().unwrap(), SERVICE.parse().unwrap());
        let hosts = ["archive.n.br".to_owned()];
        let asked =
            AnswerExpectation { label: &label, verbs: &Verbs::default(), service: &service, hosts: &hosts };
        assert!(matches!(check(&pairs, &asked), Err(AnswerCheckError::Url { .. })), "{url:?}");
    }
}

#[test]
fn clause_1_3_an_answer_that_names_several_items_of_one_spelling() {
    let label: ibi_id::Label = "x.org/w/1998/08.02.08.56".parse().unwrap();
    let service = SERVICE.parse().unwrap();
    let read = |list: &str| {
        let body =
            format!("ibi {{rep {label}}} ibi.archiveservice {{rep {SERVICE}}} ibi.alternatives {{{list}}}");
        let pairs = Pairs::read(body.as_bytes(), &PairsLimits::default()).unwrap();
        check(
            &pairs,
            &AnswerExpectation { label: &label, verbs: &Verbs::default(), service: &service, hosts: &[] },
        )
    };
    let two = "{rep x.org/w@80/1998/08.02.08.56} {rep x.org/w/1998/08.02.08.56.00 ibip LK47B6W/362SFKH}";
    let Ok(Some(CheckedAnswer::Several(items))) = read(two) else { panic!() };
    assert_eq!(items[0].to_string(), "rep x.org/w@80/1998/08.02.08.56", "as they are spelled");
    assert_eq!((items.len(), items[1].labels().len()), (2, 2));
    assert!(read("{rep x.org/w/1998/08.02.08.56}").is_err(), "one is no alternative");
    assert!(read("{rep x.org/w/1998/08.02.08.56} {rep y.org/w/1998/08.02.08.56}").is_err(), "another item");
    assert!(read(&"{rep x.org/w/1998/08.02.08.56} ".repeat(17)).is_err(), "bounded");
}

#[test]
fn clause_3_4_a_reserved_label() {
    let body = format!("ibi {{rep {ASKED}}} ibi.archiveservice {{rep {SERVICE}}} state Reserved");
    let pairs = Pairs::read(body.as_bytes(), &PairsLimits::default()).unwrap();
    let (label, service) = (ASKED.parse().unwrap(), SERVICE.parse().unwrap());
    let asked = AnswerExpectation { label: &label, verbs: &Verbs::default(), service: &service, hosts: &[] };
    let Ok(Some(CheckedAnswer::Reserved(item))) = check(&pairs, &asked) else { panic!() };
    assert!(item.contains(&label));
}
