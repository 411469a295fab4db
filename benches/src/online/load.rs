//! Load: a few connections, each asking again as soon as it is answered.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a load measured.
pub(super) struct Measured {
    pub(super) a_second: f64,
    pub(super) p99: Duration,
    /// Bytes of the last body.
    pub(super) body: usize,
}

/// Asks over so many connections for so long; `request` makes the next one.
pub(super) fn run(
    address: &str,
    connections: usize,
    long: Duration,
    request: impl FnMut() -> String + Clone + 'static,
) -> Measured {
    run_for(address, connections, long, &["HTTP/1.1 200"], request)
}

/// The same, where redirects and what is not there are answers, too.
pub(super) fn run_any(
    address: &str,
    connections: usize,
    long: Duration,
    request: impl FnMut() -> String + Clone + 'static,
) -> Measured {
    run_for(address, connections, long, &["HTTP/1.1 302", "HTTP/1.1 404"], request)
}

fn run_for(
    address: &str,
    connections: usize,
    long: Duration,
    statuses: &'static [&'static str],
    mut request: impl FnMut() -> String + Clone + 'static,
) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        // Without anything else to do it looks for answers again instead of going to sleep.
        // Otherwise the faster server finds it awake, and the slower one pays for waking it with
        // every answer: a cost that grows with the difference measured.
        let awake = tokio::task::spawn_local(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        let begun = Instant::now();
        let mut tasks = Vec::new();
        for number in 0..connections {
            let (address, mut request) = (address.to_owned(), request.clone());
            // Each connection asks for others.
            (0..number * 1000).for_each(|_| drop(request()));
            tasks.push(tokio::task::spawn_local(async move {
                one(&address, begun + long, statuses, request).await
            }));
        }
        let (mut times, mut body) = (Vec::new(), 0);
        for task in tasks {
            let (mut more, last) = task.await.expect("a connection");
            times.append(&mut more);
            body = last;
        }
        awake.abort();
        let _ = &mut request;
        let seconds = begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let p99 = times[times.len() * 99 / 100];
        Measured { a_second: times.len() as f64 / seconds, p99, body }
    })
}

async fn one(
    address: &str,
    until: Instant,
    statuses: &[&str],
    mut request: impl FnMut() -> String,
) -> (Vec<Duration>, usize) {
    let mut stream = TcpStream::connect(address).await.expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let mut times = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut body = 0;
    while Instant::now() < until {
        let asked = Instant::now();
        stream.write_all(request().as_bytes()).await.expect("a server that listens");
        let mut filled = 0;
        loop {
            let read = stream.read(&mut buffer[filled..]).await.expect("an answer");
            assert!(read > 0, "the server hung up");
            filled += read;
            if let Some((head, length)) = head(&buffer[..filled])
                && filled >= head + length
            {
                let is_answer = statuses.iter().any(|status| buffer.starts_with(status.as_bytes()));
                assert!(is_answer, "{}", String::from_utf8_lossy(&buffer[..head]));
                body = length;
                break;
            }
        }
        times.push(asked.elapsed());
    }
    (times, body)
}

/// The length of a head, and of the body that it tells of.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    })?;
    Some((end, length.parse().ok()?))
}
