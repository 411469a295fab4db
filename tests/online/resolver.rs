//! The resolver is notified when the Archive goes online or offline (clause 3.3).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::{Folder, ask};

/// The Archive's registration key, which occurs nowhere else as a number.
const KEY: &str = "8675309867-5309867530986753098";

/// A resolver that answers from a list, then always with the last answer; it records the requests.
fn resolver(answers: &'static [&'static str]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (tell, asked) = channel();
    thread::spawn(move || {
        let last = answers.last().unwrap();
        let mut answers = answers.iter().chain(std::iter::repeat(last));
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let Some(request) = lines.next() else { continue };
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            // The standard's resolver has no API.
            if request.contains(" /api/") {
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                continue;
            }
            let answer = answers.next().unwrap();
            let length = answer.len();
            if !answer.is_empty() {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(format!("{head}{answer}").as_bytes());
            }
            if tell.send(request).is_err() {
                return;
            }
        }
    });
    (at, asked)
}

/// The pairs of a request, decoded, and the path that it went to.
fn pairs(request: &str) -> (String, BTreeMap<String, String>) {
    let target = request.split(' ').nth(1).unwrap();
    let (path, query) = target.split_once('?').unwrap();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.replace("%20", " ").replace("%40", "@"))
    };
    (path.to_owned(), query.split('&').map(pair).collect())
}

const INCLUDED: &str = "status.archive included\r\nstatus.confirmation successful\r\n";

#[test]
fn the_resolver_is_told_until_it_has_confirmed_and_again_at_the_end() {
    let folder = Folder::new();
    // First it is silent, then it sends garbage, then it cannot reach us, and then it can.
    let (at, asked) =
        resolver(&["", "{", "status.archive included status.confirmation unsuccessful", INCLUDED]);
    let key = folder.place.path().join("key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    let [url, key] = [format!("http://{at}"), key.display().to_string()];
    let server = folder.serve_with(&["--resolver", &url, "--key-file", &key, "--email", "ana@library.test"]);
    let address = server.at.clone();
    assert_eq!(server.get("/readyz").status, 200, "it does not wait for a resolver");
    for round in 0..4 {
        let (path, pairs) = pairs(&asked.recv().unwrap());
        assert_eq!(path, "/J8LNKB5R7W/3FUQHC5", "the service of the standard's resolver");
        let mut expected = BTreeMap::from(
            [
                ("servicesubject", "inclusionRequest"),
                ("archiveaddress", &*address),
                ("archiveserviceibi", &folder.service),
                ("archiveip", "127.0.0.1"),
                ("archiveprotocol", "HTTP"),
                ("archiveadmemailaddress", "ana@library.test"),
                ("registrationkey", KEY),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let version = pairs["archiveplatformversion"].clone();
        assert!(version.starts_with("ibi-"), "{version}");
        expected.insert("archiveplatformversion".to_owned(), version);
        assert_eq!(pairs, expected, "round {round}");
        // The announced address is correct: the service answers there.
        let back = format!("/{}?servicesubject=inclusionConfirmationRequest", pairs["archiveserviceibi"]);
        assert_eq!(ask(&pairs["archiveaddress"], "GET", &back, "", b"").text(), "confirmation yes");
    }
    super::until("it was heard", || server.log().contains("confirmed by the resolver"));
    assert!(asked.try_recv().is_err(), "heard once is enough");
    let (status, log) = server.stop();
    assert_eq!(status, Some(0));
    let (_, left) = pairs(&asked.recv().unwrap());
    assert_eq!(
        (left["servicesubject"].as_str(), left["registrationkey"].as_str()),
        ("exclusionRequest", KEY)
    );
    assert_eq!(left.len(), 8);
    // Threat K1.
    for part in KEY.split('-') {
        assert!(!log.contains(part), "the key is in the log");
    }
}

#[test]
fn a_resolver_with_a_service_of_its_own_is_asked_there_with_the_key_of_the_environment() {
    let folder = Folder::new();
    let (at, asked) = resolver(&[INCLUDED]);
    let data = folder.data();
    let mut child = std::process::Command::new(crate::binary::IBI)
        .args(["archive", "serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .args(["--allow-private", "--resolver", &format!("http://{at}/LK47B6W/362SFKH/")])
        .env("IBI_KEY", KEY)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let (path, pairs) = pairs(&asked.recv().unwrap());
    assert_eq!((path.as_str(), pairs["registrationkey"].as_str()), ("/LK47B6W/362SFKH", KEY));
    assert!(std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

/// An invalid key is refused before it is sent, and is not repeated.
#[test]
fn a_key_that_is_none_is_refused_and_not_repeated() {
    let folder = Folder::new();
    let key = folder.place.path().join("key");
    std::fs::write(&key, "canary-key").unwrap();
    let data = folder.data().display().to_string();
    let run = crate::binary::ibi(&[
        "archive",
        "serve",
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
        "--resolver",
        "http://127.0.0.1:1",
        "--key-file",
        &key.display().to_string(),
    ]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(!run.stderr.contains("canary"), "{}", run.stderr);
}
