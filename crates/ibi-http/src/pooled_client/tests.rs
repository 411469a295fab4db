mod addresses;
mod names;
mod secure;

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::connection::MAX_INTERIM_RESPONSES;
use super::*;

/// A scripted server.
struct Played {
    address: String,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// What the server does next on a connection.
enum Act {
    Say(Vec<u8>),
    /// Responds and closes the connection.
    SayAndLeave(Vec<u8>),
    /// Responds and then hangs.
    SayAndHang(Vec<u8>),
}

fn answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// `act` gets the number of the connection, the number of the request on it (both from 1), and the
/// request.
async fn play(act: impl Fn(usize, usize, &str) -> Act + Send + Sync + 'static) -> Played {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let played = Played { address, connections: Arc::default(), open: Arc::default() };
    let (connections, open, act) = (played.connections.clone(), played.open.clone(), Arc::new(act));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let connection = connections.fetch_add(1, Ordering::SeqCst) + 1;
            open.fetch_add(1, Ordering::SeqCst);
            let (act, open) = (act.clone(), open.clone());
            tokio::spawn(async move {
                let mut number = 0;
                let mut read = Vec::new();
                'open: loop {
                    while !read.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                            break 'open;
                        }
                    }
                    number += 1;
                    let request = String::from_utf8(std::mem::take(&mut read)).unwrap();
                    match act(connection, number, &request) {
                        Act::Say(bytes) => stream.write_all(&bytes).await.unwrap(),
                        Act::SayAndLeave(bytes) => {
                            stream.write_all(&bytes).await.unwrap();
                            break;
                        }
                        Act::SayAndHang(bytes) => {
                            stream.write_all(&bytes).await.unwrap();
                            while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {}
                            break;
                        }
                    }
                }
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    played
}

impl Played {
    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn all_closed(&self) {
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn get(client: &PooledClient, target: &HttpTarget, path: &str) -> Result<String, PooledClientError> {
    client.get(target, path.to_owned()).await.map(|(_, body)| String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_connection_is_reused() {
    let server = play(|_, number, request| Act::Say(answer(&format!("{number} {request}")))).await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    for number in 1..=3 {
        let body = get(&client, &target, "/a.br/b?c=d%20e").await.unwrap();
        let host = &server.address;
        assert_eq!(body, format!("{number} GET /a.br/b?c=d%20e HTTP/1.1\r\nhost: {host}\r\n\r\n"));
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn concurrent_requests_get_connections_that_are_reused() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    for _ in 0..3 {
        let request: Vec<_> = (0..10).map(|_| tokio::spawn(client.get(&target, "/".to_owned()))).collect();
        for request in request {
            assert_eq!(request.await.unwrap().unwrap().1, "yes");
        }
    }
    assert!(server.connections() <= 10, "{}", server.connections());
}

#[tokio::test]
async fn all_body_framings_are_read() {
    let server = play(|_, _, request| {
        Act::Say(match request.split(' ').nth(1).unwrap() {
            "/chunked" => {
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                    .to_vec()
            }
            "/empty" => answer(""),
            "/longest" => answer(&"x".repeat(MAX_RESPONSE_BYTES)),
            _ => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        })
    })
    .await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    assert_eq!(get(&client, &target, "/chunked").await.unwrap(), "abcde");
    assert_eq!(get(&client, &target, "/empty").await.unwrap(), "");
    assert_eq!(get(&client, &target, "/longest").await.unwrap().len(), MAX_RESPONSE_BYTES);
    assert_eq!(client.get(&target, "/none".to_owned()).await.unwrap().0, StatusCode::NO_CONTENT);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = play(|_, _, _| {
        Act::Say(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n".to_vec())
    })
    .await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    assert_eq!(client.get(&target, "/".to_owned()).await.unwrap().0, StatusCode::FOUND);
}

#[tokio::test]
async fn a_closed_connection_is_replaced() {
    // The closed connection is noticed before the request in one case, and only after it in the
    // other.
    let left = play(|_, _, _| Act::SayAndLeave(answer("yes"))).await;
    let late = play(|_, number, _| match number {
        1 => Act::Say(answer("yes")),
        _ => Act::SayAndLeave(Vec::new()),
    })
    .await;
    let client = PooledClient::new(true);
    for server in [left, late] {
        let target = client.target(&server.address).unwrap();
        for _ in 0..3 {
            assert_eq!(get(&client, &target, "/").await.unwrap(), "yes");
        }
        assert_eq!(server.connections(), 3);
    }
}

#[tokio::test]
async fn a_new_connection_is_not_retried() {
    let server = play(|_, _, _| Act::SayAndLeave(Vec::new())).await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    assert!(matches!(get(&client, &target, "/").await, Err(PooledClientError::Silent(_))));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn long_truncated_or_invalid_responses_are_errors() {
    let server = play(|_, _, request| match request.split(' ').nth(1).unwrap() {
        "/declared" => Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nx".to_vec()),
        "/undeclared" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            bytes.resize(MAX_RESPONSE_BYTES + 100, b'x');
            Act::SayAndHang(bytes)
        }
        "/head" => Act::SayAndHang(format!("HTTP/1.1 200 OK\r\na: {}\r\n", "x".repeat(100_000)).into_bytes()),
        "/cut" => Act::SayAndLeave(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec()),
        "/chunk" => {
            Act::SayAndLeave(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab".to_vec())
        }
        "/nonsense" => Act::SayAndLeave(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()),
        _ => Act::Say(answer("yes")),
    })
    .await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    for path in ["/declared", "/undeclared"] {
        assert_eq!(
            get(&client, &target, path).await,
            Err(PooledClientError::TooLong { most: MAX_RESPONSE_BYTES }),
            "{path}"
        );
        assert_eq!(get(&client, &target, "/").await.unwrap(), "yes");
    }
    for path in ["/head", "/cut", "/chunk", "/nonsense"] {
        assert!(matches!(get(&client, &target, path).await, Err(PooledClientError::Silent(_))), "{path}");
        assert_eq!(get(&client, &target, "/").await.unwrap(), "yes");
    }
    // None of these connections was reused, and none was tried twice.
    assert_eq!(server.connections(), 7);
    assert!(matches!(get(&client, &target, "no path").await, Err(PooledClientError::Path(_))));
}

/// Threat R8: each interim response costs as much as a head.
#[tokio::test]
async fn some_interim_responses_are_passed_over_and_a_flood_is_no_answer() {
    let server = play(|_, _, asked| {
        let count = if asked.starts_with("GET /flood") { 5000 } else { MAX_INTERIM_RESPONSES };
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(count);
        Act::Say([interim, answer("yes")].concat())
    })
    .await;
    let asker = PooledClient::new(true);
    let target = asker.target(&server.address).unwrap();
    assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes");
    let flooded = get(&asker, &target, "/flood").await;
    assert!(
        matches!(&flooded, Err(PooledClientError::Silent(why)) if why.contains("exceeds its size limit")),
        "{flooded:?}"
    );
    assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes", "on another connection");
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    let server = play(|connection, _, _| match connection {
        1 => Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec()),
        2 => Act::SayAndHang(Vec::new()),
        _ => Act::Say(answer("yes")),
    })
    .await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    for _ in 0..2 {
        let request = client.get(&target, "/".to_owned());
        assert!(tokio::time::timeout(Duration::from_millis(50), request).await.is_err());
        server.all_closed().await;
    }
    assert_eq!(get(&client, &target, "/").await.unwrap(), "yes");
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn requests_beyond_the_limit_wait() {
    let server = play(|_, _, _| Act::SayAndHang(Vec::new())).await;
    let client = PooledClient::new(true);
    let target = client.target(&server.address).unwrap();
    let request: Vec<_> = (0..100).map(|_| tokio::spawn(client.get(&target, "/".to_owned()))).collect();
    while server.connections() < 64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.connections(), 64);
    request[..10].iter().for_each(|request| request.abort());
    while server.connections() < 74 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    request.iter().for_each(|request| request.abort());
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let client = PooledClient::new(true);
    let (target, other) = (client.target(&server.address).unwrap(), client.target(&server.address).unwrap());
    let later = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    get(&client, &target, "/").await.unwrap();
    later(4).await;
    get(&client, &target, "/").await.unwrap();
    assert_eq!(server.connections(), 1);
    later(6).await;
    // Also closed in pools that are no longer used.
    get(&client, &other, "/").await.unwrap();
    while server.open.load(Ordering::SeqCst) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    get(&client, &target, "/").await.unwrap();
    assert_eq!(server.connections(), 3);
}
