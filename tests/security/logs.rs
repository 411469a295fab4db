//! A log that cannot be written fails no request and loses no response.

use std::fs::File;
use std::io::{PipeReader, pipe};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::bare::BareServer;
use crate::online::Folder;

/// A disk that is full, a pipe that was closed, a pipe that nobody reads.
fn unwritable() -> Vec<(&'static str, Stdio, Option<PipeReader>)> {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (_, closed) = pipe().unwrap();
    let (reader, unread) = pipe().unwrap();
    vec![
        ("a full disk", full.into(), None),
        ("a closed pipe", closed.into(), None),
        ("a pipe that nobody reads", unread.into(), Some(reader)),
    ]
}

/// How many requests it takes to fill a pipe with lines of the log, and then some.
const REQUESTS: usize = 1_000;

/// Stops it; it does not wait for its log.
fn stops(mut server: BareServer) {
    server.signal("-TERM");
    let begun = Instant::now();
    assert!(server.child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Seen before: labels were minted, and whoever asked for them got no answer.
#[test]
fn an_archive_answers_whatever_becomes_of_its_log() {
    for (name, stderr, reader) in unwritable() {
        let folder = Folder::new();
        let token = folder.token("minter");
        let server = BareServer::start("", "archive serve", &folder.data(), "", stderr);
        for _ in 0..REQUESTS {
            assert_eq!(server.get("/none").status, 404, "{name}");
        }
        for _ in 0..10 {
            let minted = server.post(&token, "/api/v1/labels", b"{}");
            assert_eq!(minted.status, 201, "{name}: {}", minted.text());
        }
        if reader.is_none() {
            assert!(server.figure("ibi_log_lines_lost_total") > 0.0, "{name}");
        }
        stops(server);
        drop(reader);
    }
}

#[test]
fn a_resolver_answers_whatever_becomes_of_its_log() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("resolver").display().to_string();
    let made =
        crate::binary::ibi(&["resolver", "init", "--data", &data, "--public-url", "http://urlib.test"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    for (name, stderr, reader) in unwritable() {
        let server = BareServer::start("", "resolver serve", data.as_ref(), "", stderr);
        for _ in 0..REQUESTS {
            assert_eq!(server.get("/nothing/that/is/a/label").status, 400, "{name}");
        }
        stops(server);
        drop(reader);
    }
}

#[test]
fn both_in_one_process_answer_whatever_becomes_of_their_log() {
    for (name, stderr, reader) in unwritable() {
        let place = tempfile::tempdir().unwrap();
        let server = BareServer::start("", "serve", &place.path().join("data"), "", stderr);
        for _ in 0..REQUESTS {
            assert_eq!(server.get("/api/v1/none").status, 404, "{name}");
        }
        stops(server);
        drop(reader);
    }
}

/// Standard output is data, and of a server it is one line: without it, the server serves.
#[test]
fn a_server_whose_standard_output_is_gone_serves() {
    let folder = Folder::new();
    // An address that no other test uses: a free port may be taken by the time it is used.
    let process = std::process::id();
    let at = format!("127.93.{}.{}:8643", process / 250 % 250, 1 + process % 250);
    let mut child = Command::new(crate::binary::IBI)
        .args(["archive", "serve", "--listen", &at, "--data"])
        .arg(folder.data())
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::online::until("it listens", || std::net::TcpStream::connect(&at).is_ok());
    assert_eq!(crate::online::client::ask(&at, "GET", "/livez", "", b"").status, 200);
    child.kill().unwrap();
    child.wait().unwrap();
}
