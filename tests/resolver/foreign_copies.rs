//! Copies that are no version of the Original (clause 4.4): no answer, and one alert for each pair
//! of Archives.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::scripted::KEY;
use super::{Resolver, SERVICE, ask, location, until};
use crate::online::Folder;

const FOREIGN: &str = "foreign.test/archive/2001/01.01.01.01";

/// An Archive with a location feed that reports Copies of these items, with an inventory that
/// nobody else has. Returns its address.
fn foreign_archive(items: &[String]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let record = |item: &String| {
        json!({
            "path": item, "labels": [item], "metadata": [], "state": "Copy", "epoch": 1,
            "target": { "file": "a.txt" }, "files": ["a.txt"], "data_time": "2026-11-16T08:05:00Z",
            "inventories": ["00000000000000000000000000000000"],
        })
    };
    let page = |records: Vec<Value>| json!({ "service": [FOREIGN], "next": "1-0000000000000000", "more": false, "records": records });
    let pages = [page(items.iter().map(record).collect()), page(Vec::new())].map(|page| page.to_string());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let pages = pages.clone();
            thread::spawn(move || answer(stream.unwrap(), &pages));
        }
    });
    at
}

fn answer(mut stream: TcpStream, [first, rest]: &[String; 2]) {
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let request = head.first().cloned().unwrap_or_default();
    let body = if request.contains("/api/v1/locations?after=0&") {
        first.as_str()
    } else if request.contains("/api/v1/locations") {
        thread::sleep(Duration::from_millis(200));
        rest.as_str()
    } else if request.contains("inclusionConfirmationRequest") {
        "confirmation yes"
    } else {
        ""
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
}

#[test]
fn clause_4_4_copies_of_no_version_of_the_original_raise_one_alert_for_the_pair() {
    let resolver = Resolver::new();
    let _server = resolver.serve();
    let [a, b] = [Folder::new(), Folder::new()];
    let (online, _other) = (resolver.on_line(&a), resolver.on_line(&b));
    let items: Vec<String> = (0..3).map(|number: u8| a.deposit(&[(b"a.txt", &[number])], &[])).collect();
    // A true copy, also of a version that is not the last one, is none of this.
    let copy = || b.archive("copy", &[&items[0], "--from", &format!("http://{}", online.at)]);
    assert_eq!(copy().status, 0);
    let foreign = foreign_archive(&items);
    resolver.json("register", &["--service", FOREIGN, "--key", KEY]);
    let include = format!(
        "/{SERVICE}?servicesubject=inclusionRequest&archiveaddress={foreign}&archiveserviceibi={FOREIGN}\
         &archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=script\
         &archiveadmemailaddress=ana@library.test&registrationkey={KEY}"
    );
    let told = ask(&resolver.at, "GET", &include, "ibi-follow-token: follow-1\r\n", b"");
    assert!(told.text().contains("successful"), "{}", told.text());
    let alerts = || resolver.json("alerts", &[]);
    until("the alert is raised", || alerts().iter().any(|alert| alert["kind"] == "copies-differ"));
    thread::sleep(Duration::from_secs(1));
    let alerts = alerts();
    assert_eq!(alerts.len(), 1, "{alerts:#?}");
    let claims = alerts[0]["claims"].as_array().unwrap();
    assert_eq!((&claims[0]["archive"], &claims[1]["archive"]), (&json!(a.service), &json!(FOREIGN)));
    assert_eq!(claims[0]["copies"], Value::Null);
    let mut named: Vec<&str> =
        claims[1]["copies"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    let mut expected: Vec<&str> = items.iter().map(String::as_str).collect();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
    let shown = resolver.run("alerts", &[]).stdout;
    assert!(shown.contains(&format!("{FOREIGN} has copies that are no version of them")), "{shown}");
    // Readers go to the Original.
    for item in &items {
        let reply = ask(&resolver.at, "GET", &format!("/{item}"), "", b"");
        assert!(location(&reply).contains(&online.at), "{}", reply.text());
    }
    // It is closed like any other alert.
    let id = alerts[0]["id"].to_string();
    let run = resolver.run("alerts", &["--resolve", &id, "--note", "that Archive was repaired"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(resolver.json("alerts", &[]).is_empty());
}
