//! The Archive service over the wire (clauses 3.1 to 3.6).

use super::{Folder, Reply, Server};

fn url_request(server: &Server, folder: &Folder, ibi: &str, more: &str) -> Reply {
    let query = format!(
        "servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={ibi}{more}"
    );
    let reply = server.service(folder, &query);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

/// An acknowledgment of an answer (clause 3.5), with another key if one is given.
fn acknowledge(server: &Server, folder: &Folder, answer: &Reply, key: &str, url: &str) {
    let encode = |text: &str| text.replace('%', "%25").replace(' ', "%20");
    let query = format!(
        "servicesubject=acknowledgment&clientinformation.ipaddress=192.0.2.1&contenttype=Data&ibi={}&state=Original\
         &url={}&url.persistent=http://urlib.net/x&urlkey={key}",
        encode(&answer.pair("ibi")),
        encode(url),
    );
    let reply = server.service(folder, &query);
    assert_eq!((reply.status, reply.text().as_str()), (200, "notice {acknowledgment received}"));
}

fn resolutions(server: &Server, ibi: &str) -> u64 {
    let statistics = server.api("", "GET", &format!("/items/{ibi}/statistics"), b"").json();
    assert_eq!(statistics["totals"]["resolutions"]["robots"], 0);
    statistics["totals"]["resolutions"]["people"].as_u64().unwrap()
}

/// Clause 3.3.
#[test]
fn the_archive_confirms_its_inclusion() {
    let folder = Folder::new();
    let server = folder.serve();
    let reply = server.service(&folder, "servicesubject=inclusionConfirmationRequest");
    assert_eq!((reply.status, reply.text().as_str()), (200, "confirmation yes"));
    assert_eq!(reply.header("cache-control"), "no-store");
}

/// Clause 3.6: pairs come in any order, and a label in any spelling. The fast path for resolvers
/// and the regular routes give the same answers.
#[test]
fn however_the_service_is_asked_the_answer_is_the_same() {
    let folder = Folder::new();
    let server = folder.serve();
    let subject = "servicesubject=inclusionConfirmationRequest";
    let usual = server.service(&folder, subject);
    let otherwise = [
        format!("/{}?x=1&{subject}", folder.service),
        format!("//{}/?{subject}", folder.service),
        format!("/{}?{subject}", folder.service.replacen('.', "%2E", 1)),
        format!("/{}?{subject}", folder.service.to_uppercase()),
    ];
    for path in &otherwise {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.text()), (200, usual.text()), "{path}");
        assert_eq!(reply.lasting_headers(), usual.lasting_headers(), "{path}");
    }
    let head = server.raw(
        format!("HEAD /{}?{subject} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", folder.service)
            .as_bytes(),
    );
    assert!(
        head.starts_with(b"HTTP/1.1 200 OK\r\n") && head.ends_with(b"\r\n\r\n"),
        "{}",
        head.escape_ascii()
    );
    let figures = server.get("/metrics").text();
    assert!(figures.contains(r#"ibi_requests_total{route="other",status="200"} 6"#), "{figures}");
    assert!(figures.contains("# HELP ibi_requests_total Requests, by route and status.\n"), "{figures}");
}

/// Clause 3.4: the answer has the relation, its URL, and a key.
#[test]
fn a_url_request_is_answered_with_the_pairs_of_the_item() {
    let folder = Folder::new();
    let rep = folder.deposit(
        &[(b"a b.txt", b"one"), (b"c.txt", b"two")],
        &["--alias", "8JMKD3MGP8W/34PGRBS", "--target", "a b.txt"],
    );
    let server = folder.serve_with(&["--address", "archive.test:8080"]);
    let answer = url_request(&server, &folder, &rep, "");
    let names: Vec<String> = answer.pairs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "archiveaddress",
            "contenttype",
            "ibi",
            "ibi.archiveservice",
            "ibi.platformsoftware",
            "state",
            "timestamp",
            "url",
            "urlkey"
        ]
    );
    assert_eq!(answer.pair("archiveaddress"), "archive.test:8080");
    assert_eq!(answer.pair("ibi"), format!("rep {rep}"));
    assert_eq!(answer.pair("ibi.archiveservice"), format!("rep {}", folder.service));
    assert_eq!((answer.pair("state").as_str(), answer.pair("contenttype").as_str()), ("Original", "Data"));
    let url = answer.pair("url");
    assert_eq!(url, format!("http://archive.test:8080/col/{rep}/doc/a%20b.txt"));
    assert_eq!(server.get(url.strip_prefix("http://archive.test:8080").unwrap()).body, b"one");
    let alias = url_request(&server, &folder, "8JMKD3MGP8W/34PGRBS", "&parsedibiurl.filepath=/c.txt");
    assert_eq!(alias.pair("ibi.alias"), "8JMKD3MGP8W/34PGRBS");
    assert!(alias.pair("url").ends_with("/doc/c.txt"));
    let none = url_request(&server, &folder, &rep, "&parsedibiurl.filepath=/missing");
    assert_eq!((none.pair("url"), none.pair("urlkey")), (String::new(), String::new()));
    let list = url_request(&server, &folder, &rep, "&parsedibiurl.verblist=GetFileList");
    assert!(list.pair("url").ends_with(&format!("/col/{rep}/files")));
    let metadata = url_request(&server, &folder, &rep, "&parsedibiurl.verblist=GetMetadata");
    assert_eq!(metadata.pair("contenttype.metadata"), "Metadata");
    assert_eq!(metadata.pair("url"), "", "filtered by the verbs");
}

/// Clause 3.4.
#[test]
fn an_item_that_is_not_here_is_an_empty_body() {
    let folder = Folder::new();
    let server = folder.serve();
    for unknown in ["8JMKD3MGP8W/34PGRBS", "sid.inpe.br/mtc-m18/2009/02.16.17.46"] {
        let answer = url_request(&server, &folder, unknown, "&parsedibiurl.verblist=GetMetadata");
        assert_eq!(answer.body, b"", "{unknown}");
    }
}

/// Clause 3.4: whatever the verbs.
#[test]
fn a_removed_item_answers_exactly_its_pairs() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &["--alias", "8JMKD3MGP8W/34PGRBS"]);
    let server = folder.serve();
    assert_eq!(folder.archive("remove", &[&rep, "--reason", "by law", "--yes"]).status, 0);
    for asked in [rep.as_str(), "8JMKD3MGP8W/34PGRBS"] {
        for verbs in ["", "GetMetadata", "GetLastEdition", "GetFileList"] {
            let answer = url_request(&server, &folder, asked, &format!("&parsedibiurl.verblist={verbs}"));
            let names: Vec<String> = answer.pairs().into_iter().map(|(name, _)| name).collect();
            let expected =
                ["archiveaddress", "ibi", "ibi.archiveservice", "ibi.platformsoftware", "state", "timestamp"];
            assert_eq!(names, expected, "{asked} {verbs}");
            assert_eq!(answer.pair("state"), "Deleted");
        }
    }
    let page = server.get(&format!("/col/{rep}/doc/a.txt"));
    assert_eq!(page.status, 410);
    assert!(page.text().contains("by law"), "the tombstone");
}

/// Clause 3.6.
#[test]
fn what_is_malformed_is_told_in_pairs() {
    let folder = Folder::new();
    let server = folder.serve();
    let ip = "clientinformation.ipaddress=192.0.2.1";
    for query in [
        "servicesubject=",
        "servicesubject=nonsense",
        "servicesubject=urlRequest",
        "servicesubject=urlRequest&parsedibiurl.ibi=",
        &format!("servicesubject=urlRequest&{ip}&parsedibiurl.ibi=not a label").replace(' ', "%20"),
        &format!(
            "servicesubject=urlRequest&{ip}&parsedibiurl.ibi=8JMKD3MGP8W/34PGRBS&parsedibiurl.verblist=GetLost"
        ),
        &format!(
            "servicesubject=urlRequest&{ip}&parsedibiurl.ibi=8JMKD3MGP8W/34PGRBS&parsedibiurl.ibi=8JMKD3MGP8W/34PGRBS"
        ),
        "servicesubject=acknowledgment",
        "servicesubject=acknowledgment&urlkey=x",
        "servicesubject=inclusionRequest",
        "servicesubject=exclusionRequest",
        "servicesubject=urlRequest&servicesubject=acknowledgment",
    ] {
        let reply = server.service(&folder, query);
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
        assert!(
            !reply.pair("error").is_empty() && !reply.pair("message").is_empty(),
            "{query}: {}",
            reply.text()
        );
        assert_eq!(reply.pairs().len(), 2, "{query}");
    }
}

/// Threat K8; clause 3.5: a key is unique, and counts once, for its own item.
#[test]
fn an_acknowledgment_counts_once_and_a_made_up_key_never() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let other = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let server = folder.serve();
    let answers: Vec<Reply> = (0..50).map(|_| url_request(&server, &folder, &rep, "")).collect();
    let mut keys: Vec<String> = answers.iter().map(|answer| answer.pair("urlkey")).collect();
    for key in &keys {
        let numbers: Vec<&str> = key.split('-').collect();
        let digits = |number: &&str| number.len() >= 10 && number.bytes().all(|byte| byte.is_ascii_digit());
        assert!(numbers.len() <= 2 && numbers.iter().all(digits), "{key}");
    }
    let [first, second] = [keys[0].clone(), keys[1].clone()];
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 50, "fresh for each answer");
    let url = answers[0].pair("url");
    assert_eq!(resolutions(&server, &rep), 0, "nothing is counted before it is acknowledged");
    for _ in 0..3 {
        acknowledge(&server, &folder, &answers[0], &first, &url);
    }
    assert_eq!(resolutions(&server, &rep), 1);
    let (head, tail) = second.split_at(second.len() - 1);
    let changed = format!("{head}{}", (tail.parse::<u8>().unwrap() + 1) % 10);
    for key in [changed.as_str(), "1234567890", "1426203276-5985125171467764", &first.replace('-', "")] {
        acknowledge(&server, &folder, &answers[0], key, &url);
    }
    assert_eq!(resolutions(&server, &rep), 1, "made up");
    acknowledge(&server, &folder, &answers[1], &second, &url.replace(&rep, &other));
    assert_eq!((resolutions(&server, &rep), resolutions(&server, &other)), (1, 0), "of another item");
    acknowledge(&server, &folder, &answers[1], &second, &url);
    assert_eq!(resolutions(&server, &rep), 2);
    drop(server);
    let server = folder.serve();
    acknowledge(&server, &folder, &answers[2], &answers[2].pair("urlkey"), &url);
    assert_eq!(resolutions(&server, &rep), 2, "a key does not outlive the server; what was counted does");
    let counted = folder.archive("stats", &[&rep]).json().pop().unwrap();
    assert_eq!(
        (&counted["days"][0]["what"], &counted["days"][0]["times"]),
        (&"resolution".into(), &2.into())
    );
    assert_eq!(counted["totals"]["resolutions"]["people"], 2);
}

/// Clause 2.4: `.metadata.translation(l)` is the metadata page in l, whichever language that is.
#[test]
fn the_metadata_page_is_in_the_language_that_was_asked_for() {
    let folder = Folder::new();
    let dc = ["--dc", "title=First", "--dc", "title@fr=Premier", "--dc", "title@pt-BR=Primeiro"];
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[&dc[..], &["--language", "en"]].concat());
    let server = folder.serve();
    let verbs = "&parsedibiurl.verblist=GetMetadata%20GetTranslation(fr)";
    let url = url_request(&server, &folder, &rep, verbs).pair("url.metadata.translation(fr)");
    let french = url.split_once(&server.at).unwrap().1;
    for (language, heading) in [("fr", "Premier"), ("pt", "Primeiro"), ("pt-BR", "Primeiro"), ("de", "First")]
    {
        let page = server.get(&french.replace("lang=fr", &format!("lang={language}"))).text();
        let first = page.split("<h1").nth(1).unwrap().split("</h1>").next().unwrap();
        assert!(first.contains(heading), "{language}: {first}");
    }
}
