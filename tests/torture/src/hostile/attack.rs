//! A hostile address: twenty connections, each of which wants something that costs.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::CONNECTIONS_PER_ADDRESS;
use super::holdings::Holdings;
use super::http::{Connection, get, head, send};
use crate::machine::stopwatch;

/// How they attack: connections take turns with these.
const KINDS: [&str; 13] = [
    "inventory",
    "page",
    "older file",
    "metadata",
    "slowly read metadata",
    "drafts",
    "list drafts",
    "slow body",
    "slow head",
    "slow reader",
    "unknown labels",
    "unread feed",
    "labels",
];

/// Between two bytes of what is slow on purpose.
const SLOWLY: Duration = Duration::from_millis(200);

/// Attacks for so many seconds, and prints how often each kind got which answer.
pub fn attack(address: &str, seconds: u64, number: usize, targets: &Path) {
    let address: SocketAddr = address.parse().expect("an address");
    let holdings = Holdings::read(targets);
    // All of them, or only those that are named, to find out which of them costs what.
    let named = std::env::var("HOSTILE_KINDS").unwrap_or_default();
    let is_wanted = |kind: &&str| named.is_empty() || named.split(',').any(|name| name == *kind);
    let kinds: Vec<usize> = (0..KINDS.len()).filter(|&kind| is_wanted(&KINDS[kind])).collect();
    let kinds = &kinds;
    let until = stopwatch() + Duration::from_secs(seconds);
    let answers: Mutex<BTreeMap<(usize, String), u64>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS_PER_ADDRESS {
            let (holdings, answers) = (&holdings, &answers);
            scope.spawn(move || {
                let turn = number * CONNECTIONS_PER_ADDRESS + connection;
                let kind = kinds[turn % kinds.len()];
                let mut round = turn;
                while stopwatch() < until {
                    round += 1;
                    let answer = match once(address, holdings, kind, round, until) {
                        Ok(status) => status.to_string(),
                        Err(error) => format!("{:?}", error.kind()),
                    };
                    let refused = !answer.starts_with('2');
                    *answers.lock().expect("no thread panics").entry((kind, answer)).or_insert(0) += 1;
                    if refused {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            });
        }
    });
    for ((kind, answer), count) in answers.into_inner().expect("no thread panics") {
        println!("{}: {answer} {count}", KINDS[kind]);
    }
}

/// One connection, for as long as it lasts.
fn once(
    address: SocketAddr,
    holdings: &Holdings,
    kind: usize,
    round: usize,
    until: Instant,
) -> io::Result<u16> {
    let mut connection = Connection::new(address)?;
    let Holdings { large, described, long, depositor, minter, .. } = holdings;
    let metadata = described.get(round % described.len().max(1)).unwrap_or(large);
    let request = match KINDS[kind] {
        "inventory" => get(&format!("/api/v1/items/{large}/object")),
        "page" => match round % 3 {
            0 => get(&format!("/api/v1/items/{large}")),
            1 => get(&format!("/col/{large}/")),
            _ => get(&format!("/col/{large}/files")),
        },
        "older file" => get(&format!("/col/{large}/v1/doc/part%20000/page%20number%20000001.txt")),
        "metadata" => get(&match round % 4 {
            0 => format!("/api/v1/items/{metadata}/oai_dc"),
            1 => format!("/api/v1/items/{metadata}"),
            2 => format!("/api/v1/items/{metadata}/relations"),
            _ => format!("/{metadata}:+"),
        }),
        "drafts" => send("POST", "/api/v1/drafts", depositor, &long_description()),
        "list drafts" => send("GET", "/api/v1/drafts", depositor, b""),
        "unknown labels" => get(&format!("/hostile.test/a/2026/01.01.00.{:02}", round % 60)),
        "labels" => send("POST", "/api/v1/labels", minter, br#"{"count": 1000}"#),
        "slow body" => {
            connection.send(&head("POST", "/api/v1/drafts", depositor, 4 << 20))?;
            return drip(&mut connection, until);
        }
        "slow head" => {
            connection.send(b"GET / HTTP/1.1\r\nHost: 10.77.0.1:8080\r\nX: ")?;
            return drip(&mut connection, until);
        }
        "slow reader" | "slowly read metadata" => {
            let path = match KINDS[kind] {
                "slow reader" => format!("/col/{long}/doc/long.bin"),
                _ => format!("/api/v1/items/{metadata}/oai_dc"),
            };
            connection.send(&get(&path))?;
            while stopwatch() < until && connection.sip()? > 0 {
                std::thread::sleep(SLOWLY);
            }
            return Ok(200);
        }
        // Much is asked for, and nothing read.
        _ => {
            for _ in 0..200 {
                connection.send(&get("/api/v1/changes"))?;
            }
            while stopwatch() < until {
                std::thread::sleep(SLOWLY);
            }
            return Ok(200);
        }
    };
    loop {
        let (status, stays) = connection.ask(&request)?;
        if !stays || status >= 400 || stopwatch() > until {
            return Ok(status);
        }
    }
}

fn drip(connection: &mut Connection, until: Instant) -> io::Result<u16> {
    while stopwatch() < until {
        connection.send(b"{")?;
        std::thread::sleep(SLOWLY);
    }
    Ok(200)
}

/// A description of nearly 4 MiB.
fn long_description() -> Vec<u8> {
    let one = format!(r#"{{"element":"description","value":"{}"}}"#, "long ".repeat(200));
    let all = vec![one; ((4 << 20) - 4096) / 1050];
    format!(r#"{{"metadata":[{}]}}"#, all.join(",")).into_bytes()
}
