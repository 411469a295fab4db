//! 3.2 to 3.6: parsing of queries.

use ibi_protocol::{FilePath, FilePathError, MessageError, UrlRequest, WireProtocol, WireRequest};

const ASKED: &str = "servicesubject=urlRequest&clientinformation.ipaddress=150.163.2.175&parsedibiurl.ibi=\
                     8JMKD3MGP7W/3EPGUE5";
const ACKNOWLEDGED: &str = "servicesubject=acknowledgment&clientinformation.ipaddress=::1&contenttype=Data&state=Copy&\
                            url=http://a.br/&url.persistent=http://urlib.net/8JMKD3MGP7W/3EPGUE5&urlkey=1234567890";
const INCLUDED: &str = "servicesubject=exclusionRequest&archiveaddress=a.br:8080&archiveserviceibi=\
                        8JMKD3MGP7W/3EPGUE5&archiveip=::1&archiveprotocol=HTTP&archiveplatformversion=1&\
                        archiveadmemailaddress=a@b.br&registrationkey=1234567890";

fn url_request(query: &str) -> UrlRequest {
    match WireRequest::parse(query) {
        Ok(WireRequest::Url(request)) => request,
        other => panic!("{query}: {other:?}"),
    }
}

fn error(query: &str) -> MessageError {
    match WireRequest::parse(query) {
        Err(error) => error,
        Ok(request) => panic!("{query}: {request:?}"),
    }
}

/// A query with one pair replaced or removed.
fn with(query: &str, name: &str, value: Option<&str>) -> String {
    let others = query.split('&').filter(|pair| pair.split_once('=').unwrap().0 != name).map(str::to_owned);
    others.chain(value.map(|value| format!("{name}={value}"))).collect::<Vec<_>>().join("&")
}

#[test]
fn clause_3_pairs_come_in_any_order_and_unknown_ones_are_skipped() {
    let backwards: Vec<&str> = ASKED.split('&').rev().collect();
    assert_eq!(url_request(&backwards.join("&")), url_request(ASKED));
    assert_eq!(url_request(&format!("x&&=&y=%zz&{ASKED}&z=1&z=2")), url_request(ASKED));
}

#[test]
fn clause_3_values_are_decoded_once_and_plus_is_a_space() {
    for list in [
        "GetLastEdition%20GetMetadata(oai_dc)",
        "GetLastEdition+GetMetadata(oai_dc)",
        "GetLastEdition%20GetMetadata%28oai_dc%29",
    ] {
        let verbs = url_request(&with(ASKED, "parsedibiurl.verblist", Some(list))).verbs;
        assert_eq!(verbs.to_string(), "GetLastEdition GetMetadata(oai_dc)");
    }
    let file = url_request(&with(ASKED, "parsedibiurl.filepath", Some("/a%2520b%2Bc%26d"))).file.unwrap();
    assert_eq!(file.as_str(), Some("/a%20b+c&d"));
}

#[test]
fn clause_3_what_is_special_is_encoded() {
    let file = FilePath::new("/a %&+=?#ó!(~)".as_bytes()).unwrap();
    let request = UrlRequest { file, ..url_request(ASKED) };
    let query = WireRequest::Url(request.clone()).to_query();
    assert!(
        query.contains("&parsedibiurl.filepath=/a%20%25%26%2B%3D%3F%23%C3%B3!(~)&parsedibiurl.ibi="),
        "{query}"
    );
    assert_eq!(url_request(&query), request);
}

#[test]
fn clause_3_4_what_is_demanded_of_a_url_request() {
    for name in ["servicesubject", "clientinformation.ipaddress", "parsedibiurl.ibi"] {
        for value in [None, Some("")] {
            let error = error(&with(ASKED, name, value));
            assert!(matches!(error, MessageError::Missing { name: missing } if missing == name), "{error}");
        }
    }
    for (name, value) in [
        ("clientinformation.ipaddress", "localhost"),
        ("clientinformation.ipaddress", "1.2.3.4%20unknown"),
        ("parsedibiurl.ibi", "nothing"),
        ("parsedibiurl.ibi", "8JMKD3MGP7W/3EPGUE5%ff"),
        ("parsedibiurl.filepath", "/a/../b"),
        ("parsedibiurl.verblist", "GetMetadata%20GetLastEdition"),
    ] {
        let error = error(&with(ASKED, name, Some(value)));
        assert!(
            error.to_string().starts_with(&format!("{name}: ")) && error.code() == "bad-value",
            "{error}"
        );
    }
    let many = vec!["::1"; 33].join("+");
    assert!(
        error(&with(ASKED, "clientinformation.ipaddress", Some(&many))).to_string().contains("more than 32")
    );
    assert!(matches!(error(&format!("{ASKED}&{ASKED}")), MessageError::Twice { name: "servicesubject" }));
}

#[test]
fn clause_3_5_what_is_demanded_of_an_acknowledgment() {
    assert!(matches!(WireRequest::parse(ACKNOWLEDGED), Ok(WireRequest::Acknowledgment(_))));
    for name in ["clientinformation.ipaddress", "contenttype", "url", "url.persistent", "urlkey"] {
        assert_eq!(error(&with(ACKNOWLEDGED, name, None)).code(), "missing-pair", "{name}");
    }
    assert!(WireRequest::parse(&with(ACKNOWLEDGED, "state", None)).is_ok(), "D19");
    for (name, value) in [
        ("state", "Deleted"),
        ("state", "copy"),
        ("contenttype", "Text"),
        ("urlkey", "1"),
        ("ibi", "rep"),
        ("ibi", "rep%20x"),
    ] {
        assert_eq!(error(&with(ACKNOWLEDGED, name, Some(value))).code(), "bad-value", "{name} {value}");
    }
}

#[test]
fn clause_d25_a_url_is_matched_decoded_once_or_not_at_all() {
    let url = "http://a.br/x%20y?a=b+c";
    for (sent, same) in [
        ("http://a.br/x%2520y%3Fa%3Db%2Bc", true),
        ("http://a.br/x%20y?a=b+c", true),
        ("http://a.br/x%252520y%3Fa%3Db%2Bc", false),
    ] {
        let query = with(ACKNOWLEDGED, "url", Some(sent));
        let Ok(WireRequest::Acknowledgment(found)) = WireRequest::parse(&query) else { panic!() };
        assert_eq!(found.url.matches_url(url), same, "{sent}");
        assert!(WireRequest::Acknowledgment(found).to_query().contains(&format!("&url={sent}&")));
    }
}

#[test]
fn clause_3_3_what_is_demanded_of_an_archive() {
    assert!(matches!(WireRequest::parse(INCLUDED), Ok(WireRequest::Exclusion(_))));
    for pair in INCLUDED.split('&') {
        let name = pair.split_once('=').unwrap().0;
        assert_eq!(error(&with(INCLUDED, name, None)).code(), "missing-pair", "{name}");
    }
    for (name, value) in [
        ("archiveserviceibi", "x"),
        ("archiveip", "a.br"),
        ("archiveprotocol", "FTP"),
        ("registrationkey", "1"),
        ("archiveadmemailaddress", "nobody"),
        ("archiveadmemailaddress", "a@b%0D%0ABcc:c@d"),
        ("archiveplatformversion", "%00"),
    ] {
        assert_eq!(error(&with(INCLUDED, name, Some(value))).code(), "bad-value", "{name} {value}");
    }
}

/// The standard has `HTTP`; our Archives say `HTTPS` when they serve TLS.
#[test]
fn clause_3_3_the_protocol_is_read_in_either_case() {
    for (word, read) in
        [("HTTP", WireProtocol::Http), ("http", WireProtocol::Http), ("https", WireProtocol::Https)]
    {
        let query = with(INCLUDED, "archiveprotocol", Some(word));
        let Ok(WireRequest::Exclusion(found)) = WireRequest::parse(&query) else { panic!("{word}") };
        assert_eq!(found.protocol, read);
        let written = format!("&archiveprotocol={}&", read.as_str());
        assert!(WireRequest::Exclusion(found).to_query().contains(&written), "{word}");
    }
}

#[test]
fn clause_3_3_an_address_is_a_host_and_a_port() {
    for address in ["a.br", "localhost:8080", "127.0.0.1:80", "[::1]", "[::1]:8080"] {
        assert!(WireRequest::parse(&with(INCLUDED, "archiveaddress", Some(address))).is_ok(), "{address}");
    }
    for address in [
        "a.br/x",
        "a.br:",
        "a.br:0",
        "a.br:+1",
        "a.br:65536",
        "u@a.br",
        "a..br",
        "::1",
        "[::1]x",
        "[a]",
        "[::1",
        "a.br%23",
        "a b",
        "a.br:80:80",
    ] {
        assert_eq!(
            error(&with(INCLUDED, "archiveaddress", Some(&address.replace('+', "%2B")))).code(),
            "bad-value",
            "{address}"
        );
    }
}

#[test]
fn clause_d15_the_key_is_never_shown_and_may_come_in_a_header() {
    let request = WireRequest::parse(INCLUDED).unwrap();
    assert!(!format!("{request:?}").contains("1234567890"));
    let without = request.to_query_without_key();
    assert!(
        !without.contains("registrationkey") && request.to_query().ends_with("&registrationkey=1234567890")
    );
    assert_eq!(error(&without).code(), "missing-pair");
    let Ok(WireRequest::Exclusion(found)) = WireRequest::parse_with_key(&without, Some("1234567890")) else {
        panic!()
    };
    assert_eq!(found.key.reveal(), "1234567890");
    assert!(WireRequest::parse_with_key(INCLUDED, Some("1234567890")).is_ok());
    let differ = WireRequest::parse_with_key(INCLUDED, Some("9876543210")).unwrap_err();
    assert!(matches!(differ, MessageError::Twice { .. }) && !differ.to_string().contains("98765"));
    let wrong = error(&with(INCLUDED, "registrationkey", Some("secret123")));
    assert!(!format!("{wrong:?}{wrong}").contains("secret"), "{wrong}");
}

#[test]
fn clause_3_6_errors_are_pairs() {
    let error = error("servicesubject=give{me}");
    assert_eq!(
        error.to_pairs().to_string(),
        "error unknown-servicesubject\r\nmessage {`give%7Bme%7D` is not a servicesubject: use one of \
         inclusionConfirmationRequest, urlRequest, acknowledgment, inclusionRequest, exclusionRequest}"
    );
    assert_eq!(self::error(&"x".repeat(40_000)).code(), "too-long");
}

#[test]
fn clause_d20_a_path_has_one_leading_slash_and_never_leads_up() {
    for spelling in ["reference.bib", "/reference.bib", "///reference.bib"] {
        assert_eq!(FilePath::from_url(spelling).unwrap().unwrap().as_str(), Some("/reference.bib"));
    }
    for nothing in ["", "/", "//"] {
        assert_eq!(FilePath::from_url(nothing), Ok(None));
    }
    let many = format!("/%{}2e./x", "25".repeat(20));
    for up in [
        "..",
        "/../x",
        "x/..",
        "/%2e%2e/x",
        "/%252e%252E/x",
        "/..%2fx",
        "/..%5cx",
        "/x\\..",
        "/%25252e./x",
        &many,
    ] {
        assert_eq!(FilePath::from_url(up).err(), Some(FilePathError::LeadsUp), "{up}");
    }
    for fine in ["/..x", "/x..", "/...", "/a..b/c", "/100%", "/a%2520b", "/."] {
        assert!(FilePath::from_url(fine).is_ok(), "{fine}");
    }
    assert_eq!(FilePath::from_url("/a%00b"), Err(FilePathError::Zero));
    assert_eq!(FilePath::from_url(&"a".repeat(4096)), Err(FilePathError::TooLong));
}

#[test]
fn clause_d23_a_path_keeps_bytes_that_are_not_utf_8() {
    let file = FilePath::from_url("/Relat%f3rio.pdf").unwrap();
    assert_eq!(file.as_ref().unwrap().as_bytes(), b"/Relat\xf3rio.pdf");
    assert_eq!(file.as_ref().unwrap().as_str(), None);
    let query = WireRequest::Url(UrlRequest { file: file.clone(), ..url_request(ASKED) }).to_query();
    assert!(query.contains("/Relat%F3rio.pdf"));
    assert_eq!(url_request(&query).file, file);
}
