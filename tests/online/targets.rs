//! Kinds of items (clause 2.2): records without files, and items with a target URL.

use std::fs;

use serde_json::{Value, json};

use super::client::{Reply, ask};
use super::{Folder, Server, rep};

const PERSON: &str = "Accept: text/html\r\n";

fn deposited(folder: &Folder, arguments: &[&str]) -> Value {
    let run = folder.archive("deposit", arguments);
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.json().remove(0)
}

fn asked(server: &Server, folder: &Folder, label: &str, more: &str) -> Reply {
    let who = format!("clientinformation.ipaddress=198.51.100.1&parsedibiurl.ibi={label}");
    server.service(folder, &format!("servicesubject=urlRequest&{who}{more}"))
}

/// The target of a redirect, in one safe header line.
fn led(server: &Server, path: &str) -> (u16, String) {
    let reply = server.get(path);
    (reply.status, reply.header("location").to_owned())
}

#[test]
fn clause_2_2_the_persistent_url_of_a_record_opens_its_metadata() {
    let folder = Folder::new();
    let nothing_said = folder.archive("deposit", &["--record"]);
    assert_eq!(nothing_said.status, 4, "{}", nothing_said.stderr);
    let item = deposited(&folder, &["--record", "--dc", "title=Globe of 1622"]);
    let (label, metadata) = (rep(&item), item["metadata"]["rep"].as_str().unwrap().to_owned());
    assert_eq!((&item["files"], item.get("target")), (&json!([]), None));
    let server = folder.serve();
    let answer = asked(&server, &folder, &label, "");
    assert_eq!(answer.pair("contenttype"), "Metadata");
    assert_eq!(answer.pair("url"), format!("http://{}/col/{metadata}/", server.at));
    assert_eq!(led(&server, &format!("/{label}")), (302, format!("/col/{metadata}/")));
    assert!(server.get(&format!("/col/{metadata}/")).text().contains("Globe of 1622"));
    assert_eq!(server.get(&format!("/col/{label}/")).status, 200);
    // Also over the API, and back from a bag.
    let token = folder.token("depositor");
    let body = json!({ "metadata": [{ "element": "title", "value": "A stone" }] }).to_string();
    let draft = server.api(&token, "POST", "/drafts", body.as_bytes()).json();
    let id = draft["id"].as_str().unwrap();
    let made = server.api(&token, "POST", &format!("/drafts/{id}/publish"), b"");
    assert_eq!((made.status, made.json()["files"].clone()), (201, json!([])));
    let bag = folder.place.path().join("bag").display().to_string();
    assert_eq!(folder.archive("export", &[&label, "--out", &bag]).status, 0);
    let again = deposited(&folder, &[&bag]);
    assert_eq!((&again["metadata"]["dc"], &again["files"]), (&item["metadata"]["dc"], &json!([])));
}

/// Clause 2.2, D31; 003 §6.1: the query pairs belong to the item.
#[test]
fn clause_2_2_an_item_leads_to_its_url_with_the_pairs_of_the_query() {
    let folder = Folder::new();
    let item = deposited(&folder, &["--url", "https://maps.test/wms?service=WMS", "--dc", "title=Maps"]);
    let label = rep(&item);
    assert_eq!(item["url"], "https://maps.test/wms?service=WMS");
    let server = folder.serve();
    let at = |pairs: &str| (302, format!("https://maps.test/wms?service=WMS{pairs}"));
    for (path, pairs) in [
        ("".to_owned(), ""),
        ("?layer=roads&bbox=1,2%2B3".to_owned(), "&layer=roads&bbox=1,2%2B3"),
        ("?ibiurl.requireditemstatus=Original&x=1".to_owned(), "&x=1"),
        ("?ibiurl.unknown=1&a&b=".to_owned(), "&a&b="),
    ] {
        assert_eq!(led(&server, &format!("/{label}{path}")), at(pairs), "{path}");
        assert_eq!(ask(&server.at, "HEAD", &format!("/{label}{path}"), "", b"").status, 302);
    }
    // 4.2 step 2: a resolver gets an address of this Archive, which redirects.
    let answer = asked(&server, &folder, &label, "");
    let own = format!("/col/{label}/doc/");
    assert_eq!(answer.pair("url"), format!("http://{}{own}", server.at));
    assert_eq!((answer.pair("contenttype"), answer.pair("state")), ("Data".into(), "Original".into()));
    assert_eq!(led(&server, &format!("{own}?a=%20b&c")), at("&a=%20b&c"));
    // A path behind the label is one below the target, as in a PURL server's partial redirects.
    let below = asked(&server, &folder, &label, "&parsedibiurl.filepath=/x/%C3%B3+y").pair("url");
    assert_eq!(below, format!("http://{}{own}x/%C3%B3%20y", server.at));
    let there = (302, "https://maps.test/wms/x/%C3%B3%20y?service=WMS&z=1".to_owned());
    for path in [format!("{own}x/%C3%B3%20y?z=1"), format!("/{label}/x/%C3%B3%20y?z=1")] {
        assert_eq!(led(&server, &path), there, "{path}");
    }
    assert_eq!(led(&server, &format!("{own}x/")).1, "https://maps.test/wms/x/?service=WMS");
    for path in [format!("{own}x/%2e%2e/y"), format!("/{label}/{}", "x".repeat(3000))] {
        assert_eq!(led(&server, &path), (400, String::new()), "{path}");
    }
    // No header line can be injected.
    assert_eq!(led(&server, &format!("{own}?a=%0d%0aSet-Cookie:x")), at("&a=%0d%0aSet-Cookie:x"));
    // It is shown, and counted.
    let page = server.get(&format!("/col/{label}/")).text();
    assert!(page.contains("https://maps.test/wms?service=WMS"), "{page}");
    let counts = server.api("", "GET", &format!("/items/{label}/statistics"), b"").json();
    assert!(counts["totals"]["downloads"]["robots"].as_u64().unwrap() > 0, "{counts}");
}

#[test]
fn clause_2_2_a_change_of_the_url_is_a_version() {
    let folder = Folder::new();
    let label = rep(&deposited(&folder, &["--url", "http://one.test/"]));
    let update = |arguments: &[&str]| {
        let run = folder.archive("update", &[&[label.as_str()], arguments].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json().pop().unwrap()
    };
    let second = update(&["--url", "http://two.test/"]);
    assert_eq!((&second["version"], &second["url"]), (&json!(2), &json!("http://two.test/")));
    assert_eq!(second["metadata"]["dc"][0]["value"], "http://one.test/", "the title stays");
    let file = folder.folder(&[(b"a.txt", b"kept here now")]).display().to_string();
    let third = update(&[&file]);
    assert_eq!((third.get("url"), &third["target"]), (None, &json!("a.txt")), "files take its place");
    let fourth = update(&["--url", "http://four.test/"]);
    assert_eq!((&fourth["files"], fourth.get("target")), (&json!([]), None), "and it takes theirs");
    let server = folder.serve();
    for (version, to) in [("v1/", "http://one.test/"), ("v2/", "http://two.test/"), ("", "http://four.test/")]
    {
        assert_eq!(led(&server, &format!("/col/{label}/{version}doc/")), (302, to.to_owned()), "{version}");
    }
    assert_eq!(server.get(&format!("/col/{label}/v3/doc/a.txt")).text(), "kept here now");
    // Over the API: set, and removed.
    let token = folder.token("operator");
    let patch = |body: Value| {
        let reply = server.api(&token, "PATCH", &format!("/items/{label}"), body.to_string().as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    assert_eq!(patch(json!({ "url": "http://five.test/" }))["url"], "http://five.test/");
    let bare = patch(json!({ "url": null }));
    assert_eq!((bare.get("url"), &bare["version"]), (None, &json!(6)));
    assert_eq!(asked(&server, &folder, &label, "").pair("contenttype"), "Metadata", "a record now");
    assert_eq!(folder.archive("rebuild", &[]).status, 0);
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

#[test]
fn clause_2_2_a_url_without_credentials_or_what_breaks_a_header() {
    let folder = Folder::new();
    for bad in [
        "ftp://a.test/",
        "javascript:alert(1)",
        "//a.test/",
        "http://me:secret@a.test/",
        "http://a.test/\r\nX: y",
        "http://a.test/ x",
        "http:///x",
        "http://a.test:99999/",
        &format!("http://a.test/{}", "x".repeat(3000)),
    ] {
        assert_eq!(folder.archive("deposit", &["--url", bad]).status, 2, "{bad}");
    }
    let both = folder.folder(&[(b"a.txt", b"a")]).display().to_string();
    assert_eq!(folder.archive("deposit", &[&both, "--url", "http://a.test/"]).status, 2);
    assert_eq!(folder.archive("deposit", &[]).status, 2);
    let token = folder.token("depositor");
    let server = folder.serve();
    let refused = server.api(&token, "POST", "/drafts", br#"{"url":"http://me@a.test/"}"#);
    assert_eq!(refused.problem(), 422);
    // A draft with files and a URL.
    let draft = server.api(&token, "POST", "/drafts", br#"{"url":"http://a.test/"}"#).json();
    let id = draft["id"].as_str().unwrap();
    assert!(server.api(&token, "PUT", &format!("/drafts/{id}/files/a.txt"), b"a").status < 300);
    assert_eq!(server.api(&token, "POST", &format!("/drafts/{id}/publish"), b"").problem(), 422);
}

/// Clause 2.2: a closed item's URL is neither shown nor redirected to.
#[test]
fn clause_2_2_the_url_of_a_closed_item_is_told_to_nobody() {
    let folder = Folder::new();
    let canary = "http://canary.test/secret";
    for access in ["ip:192.0.2.0/24", "until:2199-01-01"] {
        let item = deposited(&folder, &["--url", canary, "--dc", "title=Closed", "--access", access]);
        let (label, metadata) = (rep(&item), item["metadata"]["rep"].as_str().unwrap().to_owned());
        let server = folder.serve();
        let answer = asked(&server, &folder, &label, "");
        assert_eq!(answer.pair("contenttype"), "Metadata");
        assert_eq!(led(&server, &format!("/{label}")), (302, format!("/col/{metadata}/")));
        for path in [
            format!("/{label}?x=1"),
            format!("/col/{label}/"),
            format!("/col/{label}/doc/"),
            format!("/col/{label}/v1/doc/"),
            format!("/col/{label}/files"),
            format!("/col/{label}/oai_dc"),
            format!("/col/{metadata}/"),
            format!("/api/v1/items/{label}"),
            format!("/api/v1/items/{label}/object"),
            format!("/api/v1/items/{label}/object/v1/content/item.json"),
            format!("/api/v1/items/{label}/oai_dc"),
            "/api/v1/changes".to_owned(),
            "/api/v1/items".to_owned(),
            "/".to_owned(),
        ] {
            for accept in ["text/html", "application/json"] {
                let reply = server.get_with(&path, &format!("Accept: {accept}\r\n"));
                assert!(!reply.text().contains("canary"), "{path}: {}", reply.text());
                assert!(!reply.header("location").contains("canary"), "{path}");
            }
        }
    }
}

#[test]
fn clause_2_2_a_person_sees_the_target_first_if_the_operator_wants_that() {
    let folder = Folder::new();
    let label = rep(&deposited(&folder, &["--url", "http://a.test/?b=1", "--dc", "title=Service"]));
    let plain = folder.serve();
    assert_eq!(plain.get_with(&format!("/{label}"), PERSON).status, 302);
    drop(plain);
    let server = folder.serve_with(&["--show-targets"]);
    for path in [format!("/{label}?c=%22%3E"), format!("/col/{label}/doc/?c=%22%3E")] {
        let page = server.get_with(&path, PERSON);
        assert_eq!((page.status, page.header("location")), (200, ""));
        assert!(page.text().contains("http://a.test/?b=1&#38;c=%22%3E"), "{}", page.text());
        // Programs are redirected as usual.
        let (status, to) = led(&server, &path);
        assert_eq!((status, to.as_str()), (302, "http://a.test/?b=1&c=%22%3E"));
    }
}

#[test]
fn a_table_has_urls_and_records() {
    let folder = Folder::new();
    let table = folder.place.path().join("table.csv");
    let rows = "url,record,dc.title\nhttp://a.test/,,Service\n,yes,A stone\n,,nothing\nhttp://b.test/,,\nftp://c.test/,,Bad\n";
    fs::write(&table, rows).unwrap();
    let run = folder.archive("deposit", &["--table", &table.display().to_string()]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    let told: Vec<(Value, Value)> =
        run.json().iter().map(|row| (row["status"].clone(), row["url"].clone())).collect();
    let (done, refused) = (json!("deposited"), json!("refused"));
    assert_eq!(
        told,
        [
            (done.clone(), json!("http://a.test/")),
            (done.clone(), Value::Null),
            (refused.clone(), Value::Null),
            (done, json!("http://b.test/")),
            (refused, Value::Null)
        ]
    );
}

/// Copies and hand-overs are byte for byte (clause 2.3), whatever kind of item it is.
#[test]
fn an_item_with_a_url_is_copied_and_kept_as_it_is() {
    let (from, to) = (Folder::new(), Folder::new());
    let label = rep(&deposited(&from, &["--url", "http://a.test/", "--dc", "title=Service"]));
    let server = from.serve();
    let run = to.archive("copy", &[&label, "--from", &format!("http://{}", server.at)]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let copy = to.archive("show", &[&label]).json().pop().unwrap();
    assert_eq!((&copy["url"], &copy["state"]), (&json!("http://a.test/"), &json!("Copy")));
    let file = |folder: &Folder| {
        let path = folder.data().join("tree").join(&label).join("v1/content/item.json");
        fs::read_to_string(path).unwrap()
    };
    assert_eq!(file(&to), file(&from));
    assert!(file(&from).contains("\"format\": 2"));
    // After removal, the URL is gone.
    let removed = from.archive("remove", &[&label, "--reason", "gone", "--yes"]);
    assert_eq!(removed.status, 0, "{}", removed.stderr);
    for path in [format!("/{label}"), format!("/col/{label}/doc/")] {
        let reply = server.get(&path);
        assert_eq!((reply.status, reply.header("location")), (410, ""), "{path}");
        assert!(!reply.text().contains("a.test"), "{}", reply.text());
    }
}
