//! Connections and descriptors: a client that holds all of them shuts nobody else out, least of all
//! the operator.

use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use tokio::time::Instant;

use super::bare::{BareServer, answer, connect_from};
use crate::online::Folder;
use crate::online::client::ask;
use crate::online::server::Server;

const HEAD: &str = "GET /livez HTTP/1.1\r\nHost: x\r\n";

/// More connections than a server with 256 descriptors can have, from ten addresses: idle ones,
/// incomplete heads, missing bodies.
fn hoard(at: &str) -> Vec<TcpStream> {
    let slow_body = "POST /api/v1/links HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{";
    let sent = ["", HEAD, slow_body];
    let connect = |number: usize| connect_from(2 + (number % 10) as u8, at, sent[number % 3].as_bytes());
    (0..400).filter_map(connect).collect()
}

fn folder_with_item() -> (Folder, String) {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"index.html", b"one")], &[]);
    (folder, rep)
}

/// Regression: with 256 descriptors and more connections than that, commands could not reach the
/// server until it was restarted, and no client was served.
#[test]
fn with_few_descriptors_operator_and_others_are_served_while_clients_hoard() {
    let (folder, rep) = folder_with_item();
    let server = BareServer::start("ulimit -n 256", "archive serve", &folder.data(), "", Stdio::null());
    let hoarded = hoard(&server.at);
    assert!(hoarded.len() > 100, "{}", hoarded.len());
    for round in 0..3 {
        let begun = Instant::now();
        assert_eq!(server.get("/livez").text(), "alive\n");
        assert_eq!(server.get(&format!("/col/{rep}/doc/index.html")).text(), "one");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let run = folder.archive("update", &[&rep, "--dc", &format!("title={round}")]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }
    assert!(server.figure("ibi_connections") <= 104.0);
    assert!(server.figure("ibi_connections_evicted_total") > 0.0);
    drop(hoarded);
    assert_eq!(server.get("/readyz").text(), "ready\n");
}

/// The same for a resolver.
#[test]
fn a_resolver_with_few_descriptors_answers_while_clients_hoard() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("resolver").display().to_string();
    let made =
        crate::binary::ibi(&["resolver", "init", "--data", &data, "--public-url", "http://urlib.test"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let server = BareServer::start("ulimit -n 256", "resolver serve", data.as_ref(), "", Stdio::null());
    let hoarded = hoard(&server.at);
    let begun = Instant::now();
    assert_eq!(server.get("/livez").text(), "alive\n");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(hoarded);
}

/// The soft limit is raised to the hard one: the shell's default is no bound.
#[test]
fn the_limit_of_descriptors_is_raised_to_what_it_may_be() {
    let (folder, _) = folder_with_item();
    let server = BareServer::start(
        "ulimit -n 1024; ulimit -Sn 128",
        "archive serve",
        &folder.data(),
        "",
        Stdio::null(),
    );
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = open_files.split_whitespace().skip(3).collect();
    assert_eq!(numbers[..2], ["1024", "1024"]);
}

/// A connection that is evicted is closed after its current request was answered.
#[test]
fn a_request_that_is_carried_out_is_answered_while_clients_hoard() {
    let (folder, _) = folder_with_item();
    let token = folder.token("minter");
    let server = BareServer::start("ulimit -n 256", "archive serve", &folder.data(), "", Stdio::null());
    let mut held = Vec::new();
    for round in 0..20 {
        held.extend(hoard_some(&server.at, 40));
        let minted = server.post(&token, "/api/v1/labels", b"{\"count\": 50}");
        assert_eq!(minted.status, 201, "{round}: {}", minted.text());
        assert_eq!(minted.json()["labels"].as_array().unwrap().len(), 50);
    }
}

fn hoard_some(at: &str, count: usize) -> Vec<TcpStream> {
    (0..count).filter_map(|number| connect_from(20 + (number % 5) as u8, at, b"GET /")).collect()
}

/// A client keeps an idle connection as long as nobody needs its place.
#[test]
fn idle_connections_stay_while_there_is_room() {
    let (folder, _) = folder_with_item();
    let server: Server = folder.serve();
    let mut idle: Vec<TcpStream> = (0..200).filter_map(|_| connect_from(2, &server.at, b"")).collect();
    assert_eq!(idle.len(), 200);
    assert_eq!(ask(&server.at, "GET", "/livez", "", b"").status, 200);
    for stream in &mut idle {
        use std::io::Write as _;
        stream.write_all(format!("{HEAD}Connection: close\r\n\r\n").as_bytes()).unwrap();
        assert!(answer(stream).starts_with("HTTP/1.1 200"));
    }
}
