//! Honest clients, and who looks whether the server lives.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::holdings::Holdings;
use super::http::{CLIENT_TIMEOUT, Connection, get};
use crate::machine::stopwatch;

/// Connections of honest clients.
const HONEST_CONNECTIONS: usize = 8;
/// Between two looks at `/livez`, each over a new connection.
const LIVEZ_INTERVAL: Duration = Duration::from_millis(50);

/// `capacity`: each connection asks again as soon as it is answered. `open`: so many requests a
/// second whatever becomes of them, each timed from when it should have been sent, so that a server
/// that stalls is not asked less (coordinated omission). Prints figures.
pub fn ask(mode: &str, address: &str, seconds: u64, rate: u64, targets: &Path) {
    let address: SocketAddr = address.parse().expect("an address");
    let holdings = Holdings::read(targets);
    let requests: Vec<Vec<u8>> = holdings
        .small
        .iter()
        .enumerate()
        .map(|(number, label)| match number % 10 {
            0 => get(&format!("/api/v1/items/{label}")),
            _ => get(&format!("/col/{label}/doc/text.txt")),
        })
        .collect();
    let begun = stopwatch();
    let until = begun + Duration::from_secs(seconds);
    let next = AtomicU64::new(0);
    let mut times = Vec::new();
    let (mut failed, mut livez) = (0, Vec::new());
    std::thread::scope(|scope| {
        let alive = scope.spawn(|| look(address, begun, until));
        let clients: Vec<_> = (0..HONEST_CONNECTIONS)
            .map(|_| {
                scope.spawn(|| match mode {
                    "capacity" => closed(address, &requests, until, &next),
                    _ => open(address, &requests, (begun, until), rate, &next),
                })
            })
            .collect();
        for client in clients {
            let (more, errors) = client.join().expect("no client panics");
            times.extend(more);
            failed += errors;
        }
        livez = alive.join().expect("nobody panics");
    });
    let count = times.len() as u64;
    println!("requests {count}");
    println!("failed {failed}");
    println!("a_second {}", count * 1000 / (begun.elapsed().as_millis().max(1) as u64));
    for (name, times) in [("honest", &mut times), ("livez", &mut livez)] {
        times.sort_unstable();
        for (quantile, per_mille) in [("p50", 500), ("p99", 990), ("max", 1000)] {
            let place = (times.len() * per_mille / 1000).min(times.len().saturating_sub(1));
            println!("{name}_{quantile} {}", times.get(place).map_or(0, |time| time.as_micros()));
        }
    }
}

/// A connection that is made again when it is lost.
struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    /// Whether it was answered as it should be.
    fn ask(&mut self, request: &[u8]) -> bool {
        if self.connection.is_none() {
            self.connection = Connection::new(self.address).ok();
        }
        let Some(connection) = &mut self.connection else { return false };
        match connection.ask(request) {
            Ok((status, stays)) => {
                if !stays {
                    self.connection = None;
                }
                status == 200
            }
            Err(_) => {
                self.connection = None;
                false
            }
        }
    }
}

fn closed(
    address: SocketAddr,
    requests: &[Vec<u8>],
    until: Instant,
    next: &AtomicU64,
) -> (Vec<Duration>, u64) {
    let mut client = Client { address, connection: None };
    let (mut times, mut failed) = (Vec::new(), 0);
    while stopwatch() < until {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let asked = stopwatch();
        if client.ask(&requests[number as usize % requests.len()]) {
            times.push(asked.elapsed());
        } else {
            failed += 1;
        }
    }
    (times, failed)
}

fn open(
    address: SocketAddr,
    requests: &[Vec<u8>],
    (begun, until): (Instant, Instant),
    rate: u64,
    next: &AtomicU64,
) -> (Vec<Duration>, u64) {
    let mut client = Client { address, connection: None };
    let (mut times, mut failed) = (Vec::new(), 0);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let due = begun + Duration::from_nanos(number * 1_000_000_000 / rate.max(1));
        if due >= until {
            return (times, failed);
        }
        std::thread::sleep(due.saturating_duration_since(stopwatch()));
        if client.ask(&requests[number as usize % requests.len()]) {
            times.push(due.elapsed());
        } else {
            // One that is not answered has waited for as long as a client waits.
            failed += 1;
            times.push(due.elapsed().max(CLIENT_TIMEOUT));
        }
    }
}

/// How long `/livez` took each time.
fn look(address: SocketAddr, begun: Instant, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0.. {
        let due = begun + LIVEZ_INTERVAL * number;
        if due >= until {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(stopwatch()));
        let alive = Client { address, connection: None }.ask(&get("/livez"));
        let took = due.elapsed();
        times.push(if alive { took } else { took.max(CLIENT_TIMEOUT) });
    }
    times
}
