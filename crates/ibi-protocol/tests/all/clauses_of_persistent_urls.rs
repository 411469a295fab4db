//! 4.1: persistent URLs.

use ibi_protocol::{PersistentUrl, PersistentUrlError, Relation, UrlPart};
use serde_json::Value as Json;

const IBIP: &str = "8JMKD3MGP8W/35MME4E";
const REP: &str = "sid.inpe.br/mtc-m18@80/2009/02.16.17.46";

fn vectors() -> Json {
    serde_json::from_str(include_str!("../vectors/persistent-urls.json")).unwrap()
}

fn parse(url: &str) -> Result<PersistentUrl, PersistentUrlError> {
    match url.split_once('?') {
        Some((path, query)) => PersistentUrl::parse(path, Some(query)),
        None => PersistentUrl::parse(url, None),
    }
}

fn read(url: &str) -> PersistentUrl {
    parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// The normal form of a URL.
fn plain(url: &str) -> String {
    read(url).to_string()
}

fn position(url: &str) -> (UrlPart, usize) {
    parse(url).unwrap_err().position()
}

#[test]
fn the_norms_urls_are_read() {
    for case in vectors()["parse"].as_array().unwrap() {
        let found = read(case["url"].as_str().unwrap());
        let verbs: Vec<&str> =
            case["verbs"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        assert_eq!(found.label.spelling(), case["ibi"].as_str().unwrap());
        assert_eq!(found.verbs.to_string(), verbs.join(" "), "{case}");
        assert_eq!(found.file.as_ref().and_then(|file| file.as_str()), case["path"].as_str(), "{case}");
        assert_eq!(found.original, case["original"].as_bool().unwrap_or(false), "{case}");
        assert_eq!(found.passed_on, "");
        assert_eq!(read(&found.to_string()), found);
    }
}

#[test]
fn the_norms_modifiers_are_read_and_what_is_none_is_refused() {
    let words = |name: &str| -> Vec<String> {
        vectors()[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    for label in [IBIP, REP, "83LX3pFwXQZeBBx/hwiTk"] {
        for modifiers in words("modifiers") {
            let url = format!("/{label}{modifiers}");
            assert_eq!(read(&url).verbs.relation.modifiers(), modifiers);
            assert_eq!(plain(&url), url);
        }
        for modifiers in words("not_modifiers") {
            let error = parse(&format!("/{label}{modifiers}")).unwrap_err();
            let (place, at) = error.position();
            let is_of_modifiers =
                matches!(error, PersistentUrlError::Modifiers { .. } | PersistentUrlError::Spelling { .. });
            assert!(is_of_modifiers && place == UrlPart::Path, "{modifiers}: {error}");
            assert!((label.len()..label.len() + 1 + modifiers.len()).contains(&at), "{modifiers}: {error}");
        }
    }
    assert_eq!(words("modifiers"), Relation::ALL_COMPOSITIONS);
}

#[test]
fn clause_4_1_the_order_of_reading_is_ibip_rep_legacy() {
    let form = |url: &str| (read(url).label.form().name(), plain(url));
    let (dated, file) = (format!("/{IBIP}/2009/02.16.17.46"), "/LK47B6W/362SFKH/2009/02.16.17.46");
    assert_eq!(form(&dated), ("ibip", dated.clone()), "D17: by meaning");
    assert_eq!(read(&dated).file.unwrap().as_str(), Some("/2009/02.16.17.46"));
    assert_eq!(form(file).0, "ibip");
    // The same words, but the port shows that the second is a host.
    assert_eq!(form("/LK47B6W/362SFKH@80/2009/02.16.17.46").0, "rep");
    assert_eq!(form("/LK47B6W./362SFKH/2009/02.16.17.46/a").0, "rep");
    // The first word looks like an IBIp, but encodes no address.
    assert_eq!(form("/AW/22/2009/02.16.17.46").0, "rep");
    assert_eq!(form("/83LX3pFwXQZeBBx/hwiTk/a/b/c").0, "legacy");
    assert_eq!(read("/a.br/b/2009/02.16.17.46/c/d").file.unwrap().as_str(), Some("/c/d"));
}

#[test]
fn clause_4_1_percent_encoded_signs_are_accepted() {
    let wanted = read(&format!("/{IBIP}!+(pt-BR):(oai_dc)"));
    assert_eq!(read(&format!("/{IBIP}%21%2B%28pt-BR%29%3A%28oai_dc%29")), wanted);
    assert_eq!(read(&format!("/{IBIP}%21%2b%28pt%2DBR%29%3a%28oai%5Fdc%29")), wanted);
    assert_eq!(plain("/upn%3A9HFNHE%3ALK47B6W/362SFKH"), "/LK47B6W/362SFKH");
    assert_eq!(plain("/sid.inpe.br/mtc-m18%4080/2009/02.16.17.46%3A"), format!("/{REP}:"));
    // Decoded once: double encoding yields no modifier, and an encoded slash separates nothing.
    assert!(parse(&format!("/{IBIP}%2521")).is_err() && parse(&IBIP.replace('/', "%2F")).is_err());
}

#[test]
fn clause_4_1_links_in_the_field_are_read_and_only_the_plain_one_is_written() {
    for before in [
        "rep/",
        "ibi/",
        "rep-/",
        "ibi-/",
        "goto/",
        "goto-/",
        "ibi:",
        "upn:9HFNHE:",
        "upn:9HF-NHE:",
        "upn:9HFNHE:/",
    ] {
        for label in [IBIP, REP, "83LX3pFwXQZeBBx/hwiTk"] {
            let url = format!("/{before}{label}!:/a.pdf?page=1");
            assert_eq!(plain(&url), format!("/{label}!:/a.pdf?page=1"));
            // Removed once.
            assert!(parse(&format!("/{before}{before}{label}")).is_err(), "{before}");
        }
        assert!(parse(&format!("/{before}")).is_err() && parse(&format!("/{before}x/y")).is_err());
        assert!(parse(&format!("/x{before}{IBIP}")).is_err());
    }
    for wrong in ["upn:", "upn::", "upn:a_b:", "upn:a:b:", "REP/", "rep--/", "ibi:/", "ibi/ibi:"] {
        assert!(parse(&format!("/{wrong}{IBIP}")).is_err(), "{wrong}");
    }
}

#[test]
fn clause_4_1_what_stands_before_is_taken_off_only_if_the_rest_parses() {
    for label in ["rep/x/2009/02.16.17.46", "ibi/x/2009/02.16.17.46", "goto/x/2009/02.16.17.46"] {
        assert_eq!(read(&format!("/{label}")).label.spelling(), label);
        assert_eq!(plain(&format!("/rep/{label}:")), format!("/{label}:"));
    }
    // Both readings are possible: the label wins, so that written URLs can be read back.
    let both = "/rep/8JMKD3MGP8W/2234/02.16.17.46";
    assert_eq!((read(both).label.form().name(), plain(both)), ("rep", both.to_owned()));
}

#[test]
fn clause_4_1_the_verbs_of_the_query_come_after_the_modifiers() {
    for (url, wanted) in [
        ("!?ibiurl.verblist=GetMetadata", "!:"),
        ("!?ibiurl.verblist=GetMetadata+GetLastEdition", "!:"),
        ("?ibiurl.verblist=GetLastEdition%20GetMetadata(oai_dc)", "!:(oai_dc)"),
        ("?ibiurl.verblist=GetLastEdition%2BGetMetadata%28oai_dc%29", "!:(oai_dc)"),
        ("?ibiurl%2Everblist=GetTranslation(pt-BR)", "+(pt-BR)"),
        ("+:+?ibiurl.verblist=GetTranslation", "+:+"),
        ("?ibiurl.verblist=", ""),
        ("?ibiurl.verblist", ""),
        ("!??", "!:"),
        (":??", ":"),
        ("?", ""),
    ] {
        assert_eq!(plain(&format!("/{IBIP}{url}")), format!("/{IBIP}{wanted}"), "{url}");
    }
    for list in ["GetFileList+GetLastEdition", "GetLastEdition+GetFileList"] {
        let url = format!("/{IBIP}:?ibiurl.verblist={list}");
        assert!(matches!(parse(&url), Err(PersistentUrlError::Verbs { .. })), "`:!` is none of the 14");
        let url = format!("/{IBIP}?x=1&ibiurl.verblist={list}");
        assert_eq!(plain(&url), format!("/{IBIP}!?ibiurl.verblist=GetFileList&x=1"));
    }
    for wrong in ["GetX", "GetMetadata+GetLastEdition", "GetMetadata(", "%FF", "GetTranslation(pt-br)"] {
        assert!(parse(&format!("/{IBIP}?ibiurl.verblist={wrong}")).is_err(), "{wrong}");
    }
    assert!(parse(&format!("/{IBIP}:(oai_dc)??")).is_err(), "two formats at once");
}

#[test]
fn clause_4_1_the_original_can_be_required_and_nothing_else() {
    assert!(read(&format!("/{IBIP}?ibiurl.requireditemstatus=Original")).original);
    assert!(!read(&format!("/{IBIP}?requireditemstatus=Original")).original);
    for value in ["", "original", "Copy", "Original+"] {
        let error = parse(&format!("/{IBIP}?a=1&ibiurl.requireditemstatus={value}")).unwrap_err();
        assert!(matches!(error, PersistentUrlError::Status { .. }), "{error}");
        assert_eq!(error.position(), (UrlPart::Query, 30));
    }
}

#[test]
fn clause_4_1_other_pairs_belong_to_the_item_and_go_along_raw_and_in_order() {
    let passed_on = |query: &str| read(&format!("/{IBIP}?{query}")).passed_on;
    for raw in ["b=2&a=1", "a", "a=%2B+%f3&a=;", "&&", "=", "?a", "a?b=c/d", "ibiurl=1", "Ibiurl.x=1"] {
        assert_eq!(passed_on(raw), raw);
        let ours = format!("ibiurl.new=1&{raw}&ibiurl.requireditemstatus=Original&ibiurl.=");
        assert_eq!(passed_on(&ours), raw, "unknown names of ours are dropped");
    }
    assert_eq!(passed_on("a=ó b\n#c"), "a=%C3%B3%20b%0A%23c", "what no URL can have");
    let alone = read(&format!("/{IBIP}??&ibiurl.new=1"));
    assert_eq!((alone.passed_on.as_str(), alone.verbs.is_empty()), ("?", true));
    assert_eq!(read(&alone.to_string()), alone, "{alone}");
}

#[test]
fn clause_4_1_what_goes_along_is_appended_after_a_question_mark_or_an_ampersand() {
    let url = read(&format!("/{IBIP}?b=%20&a"));
    for (item, wanted) in [
        ("http://a.br/x", "http://a.br/x?b=%20&a"),
        ("http://a.br/x?y=1", "http://a.br/x?y=1&b=%20&a"),
        ("http://a.br/x?", "http://a.br/x?b=%20&a"),
        ("http://a.br/x#page", "http://a.br/x?b=%20&a#page"),
        ("http://a.br/x?y#p?", "http://a.br/x?y&b=%20&a#p?"),
    ] {
        assert_eq!(url.append(item), wanted);
        assert_eq!(read(&format!("/{IBIP}")).append(item), item);
    }
}

#[test]
fn clause_4_1_a_file_is_decoded_once_and_written_encoded() {
    let file = |url: &str| read(url).file.unwrap().as_bytes().to_vec();
    assert_eq!(file(&format!("/{IBIP}:/a+b!(c):%2B%20%25.pdf")), b"/a+b!(c):+ %.pdf");
    assert_eq!(plain(&format!("/{IBIP}/a%20%f3%3F%23.pdf")), format!("/{IBIP}/a%20%F3%3F%23.pdf"));
    assert_eq!(read(&format!("/{IBIP}/")).file, None);
    assert_eq!(read(&format!("/{IBIP}!/")).file, None);
    for wrong in ["/..", "/a/%2e%2E/b", "/%252e%252e", "/a%00"] {
        let error = parse(&format!("/{IBIP}:{wrong}")).unwrap_err();
        assert!(matches!(error, PersistentUrlError::File { at: 21, .. }), "{wrong}: {error:?}");
    }
}

#[test]
fn clause_4_1_all_that_is_asked_for_is_written() {
    for query in [
        "ibiurl.requireditemstatus=Original",
        "ibiurl.requireditemstatus=Original&x=1",
        "ibiurl.requireditemstatus=Original&?",
        "ibiurl.requireditemstatus=Original&ibiurl.verblist=GetFileList&?",
        "ibiurl.verblist=GetFileList",
        "ibiurl.verblist=GetFileList&?",
        "ibiurl.verblist=&?",
        "?&x",
        "x",
    ] {
        let url = format!("/{IBIP}!/a.pdf?{query}");
        assert_eq!(plain(&url), url);
    }
}

#[test]
fn clause_4_3_a_400_has_a_name_for_programs() {
    for (url, code) in [
        ("/8JMKD3MGP8W/35MMO4E".to_owned(), "ibip-character"),
        ("/a.br/b/2009/2.16".to_owned(), "date-shape"),
        ("/http://urlib.net/x".to_owned(), "scheme"),
        ("/urn:x".to_owned(), "scheme"),
        (format!("/{IBIP}!!"), "modifiers"),
        (format!("/{IBIP}+(pt-br)"), "spelling"),
        (format!("/{IBIP}/.."), "file"),
        (format!("/{IBIP}?ibiurl.verblist=GetX"), "verbs"),
        (format!("/{IBIP}?ibiurl.verblist=GetTranslation(pt-br)"), "spelling"),
        (format!("/{IBIP}?ibiurl.requireditemstatus=Copy"), "status"),
        (format!("/{IBIP}?ibiurl.verblist=&ibiurl.verblist="), "pair-twice"),
    ] {
        assert_eq!(parse(&url).unwrap_err().code(), code, "{url}");
    }
}

#[test]
fn clause_4_3_a_400_says_which_rule_and_where() {
    let said = |url: &str| parse(url).unwrap_err().to_string();
    assert_eq!(position("/8JMKD3MGP8W/35MMO4E"), (UrlPart::Path, 17));
    assert_eq!(position("/rep/8JMKD3MGP8W/35MMO4E"), (UrlPart::Path, 21));
    assert_eq!(
        position("/upn%3Ax:sid.inpe.br/a/2009/13.01.00.00"),
        (UrlPart::Path, 28),
        "{}",
        said("/upn%3Ax:sid.inpe.br/a/2009/13.01.00.00")
    );
    assert_eq!(position("/a.br/b/2009/02.30.00.00:"), (UrlPart::Path, 16));
    assert_eq!(position(&format!("/{IBIP}%21!")), (UrlPart::Path, 23));
    assert_eq!(position(&format!("/{IBIP}+(pt)+(xx)")), (UrlPart::Path, 25));
    assert_eq!(position(&format!("/{IBIP}?x&ibiurl.verblist=GetX")), (UrlPart::Query, 18));
    assert_eq!(position(&format!("/{IBIP}?ibiurl.verblist=&ibiurl.verblist=")), (UrlPart::Query, 17));
    assert!(said("/8JMKD3MGP8W/35MMO4E").starts_with("not a valid IBI: an IBIp uses the digits 2-9"));
    assert!(said("/http://urlib.net/x").contains("this begins with a scheme"));
    assert!(said("/").contains("there is no label"));
    let spelling = said(&format!("/{IBIP}+(pt-br)"));
    assert_eq!(spelling, "`+(pt-br)` is written `+(pt-BR)` in a persistent URL (at byte 21 of the path)");
    let spelling = said(&format!("/{IBIP}?x&ibiurl.verblist=GetLastEdition+GetTranslation(pt-br)"));
    assert_eq!(
        spelling,
        "`GetTranslation(pt-br)` is written `GetTranslation(pt-BR)` in a persistent URL (at byte 18 of the query)"
    );
    for url in ["", "/", "//", "/favicon.ico", "/robots.txt", "/é", "/%", "/%2", "/:", "/a/b/c/d/e", "/+(pt)"]
    {
        let error = parse(url).unwrap_err();
        assert!(
            matches!(error, PersistentUrlError::Label { .. }) && error.position().1 <= url.len(),
            "{url}"
        );
        assert!(!error.code().is_empty());
    }
}
