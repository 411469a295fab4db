mod addresses;
mod names;

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that is told what to do with each question on each connection.
struct Played {
    address: String,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// What a server does next on a connection.
enum Act {
    Say(Vec<u8>),
    /// Says that, and hangs up.
    SayAndLeave(Vec<u8>),
    /// Says that, and nothing more.
    SayAndHang(Vec<u8>),
}

fn answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// `act` gets the number of the connection, the number of the question on it, both from 1 on, and the question.
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
                let mut question = 0;
                let mut read = Vec::new();
                'open: loop {
                    while !read.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                            break 'open;
                        }
                    }
                    question += 1;
                    let asked = String::from_utf8(std::mem::take(&mut read)).unwrap();
                    match act(connection, question, &asked) {
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

async fn get(asker: &Asker, target: &Target, path: &str) -> Result<String, AskError> {
    asker.get(target, path.to_owned()).await.map(|(_, body)| String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = play(|_, question, asked| Act::Say(answer(&format!("{question} {asked}")))).await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    for question in 1..=3 {
        let said = get(&asker, &target, "/a.br/b?c=d%20e").await.unwrap();
        let host = &server.address;
        assert_eq!(said, format!("{question} GET /a.br/b?c=d%20e HTTP/1.1\r\nhost: {host}\r\n\r\n"));
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn as_many_connections_as_questions_at_once_and_then_again() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    for _ in 0..3 {
        let asked: Vec<_> = (0..10).map(|_| tokio::spawn(asker.get(&target, "/".to_owned()))).collect();
        for asked in asked {
            assert_eq!(asked.await.unwrap().unwrap().1, "yes");
        }
    }
    assert!(server.connections() <= 10, "{}", server.connections());
}

#[tokio::test]
async fn bodies_of_every_kind() {
    let server = play(|_, _, asked| {
        Act::Say(match asked.split(' ').nth(1).unwrap() {
            "/chunked" => {
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                    .to_vec()
            }
            "/empty" => answer(""),
            "/longest" => answer(&"x".repeat(LONGEST)),
            _ => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        })
    })
    .await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    assert_eq!(get(&asker, &target, "/chunked").await.unwrap(), "abcde");
    assert_eq!(get(&asker, &target, "/empty").await.unwrap(), "");
    assert_eq!(get(&asker, &target, "/longest").await.unwrap().len(), LONGEST);
    assert_eq!(asker.get(&target, "/none".to_owned()).await.unwrap().0, StatusCode::NO_CONTENT);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn nobody_is_followed_elsewhere() {
    let server = play(|_, _, _| {
        Act::Say(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n".to_vec())
    })
    .await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    assert_eq!(asker.get(&target, "/".to_owned()).await.unwrap().0, StatusCode::FOUND);
}

#[tokio::test]
async fn who_hung_up_is_asked_on_a_new_connection() {
    // Seen before asking, and seen only after it.
    let left = play(|_, _, _| Act::SayAndLeave(answer("yes"))).await;
    let late = play(|_, question, _| match question {
        1 => Act::Say(answer("yes")),
        _ => Act::SayAndLeave(Vec::new()),
    })
    .await;
    let asker = Asker::new(true);
    for server in [left, late] {
        let target = asker.target(&server.address).unwrap();
        for _ in 0..3 {
            assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes");
        }
        assert_eq!(server.connections(), 3);
    }
}

#[tokio::test]
async fn a_new_connection_is_not_tried_twice() {
    let server = play(|_, _, _| Act::SayAndLeave(Vec::new())).await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    assert!(matches!(get(&asker, &target, "/").await, Err(AskError::Silent(_))));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_is_too_long_or_cut_off_or_no_http_is_no_answer() {
    let server = play(|_, _, asked| match asked.split(' ').nth(1).unwrap() {
        "/told" => Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nx".to_vec()),
        "/untold" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            bytes.resize(LONGEST + 100, b'x');
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
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    for path in ["/told", "/untold"] {
        assert_eq!(get(&asker, &target, path).await, Err(AskError::TooLong { most: LONGEST }), "{path}");
        assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes");
    }
    for path in ["/head", "/cut", "/chunk", "/nonsense"] {
        assert!(matches!(get(&asker, &target, path).await, Err(AskError::Silent(_))), "{path}");
        assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes");
    }
    // None of these connections was used again, and none was tried twice.
    assert_eq!(server.connections(), 7);
    assert!(matches!(get(&asker, &target, "no path").await, Err(AskError::Path(_))));
}

#[tokio::test]
async fn who_gives_up_closes_the_connection() {
    let server = play(|connection, _, _| match connection {
        1 => Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec()),
        2 => Act::SayAndHang(Vec::new()),
        _ => Act::Say(answer("yes")),
    })
    .await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    for _ in 0..2 {
        let asked = asker.get(&target, "/".to_owned());
        assert!(tokio::time::timeout(Duration::from_millis(50), asked).await.is_err());
        server.all_closed().await;
    }
    assert_eq!(get(&asker, &target, "/").await.unwrap(), "yes");
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn questions_beyond_the_bound_wait() {
    let server = play(|_, _, _| Act::SayAndHang(Vec::new())).await;
    let asker = Asker::new(true);
    let target = asker.target(&server.address).unwrap();
    let asked: Vec<_> = (0..100).map(|_| tokio::spawn(asker.get(&target, "/".to_owned()))).collect();
    while server.connections() < 64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.connections(), 64);
    asked[..10].iter().for_each(|asked| asked.abort());
    while server.connections() < 74 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    asked.iter().for_each(|asked| asked.abort());
}

#[tokio::test]
async fn a_connection_does_not_wait_for_long() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let asker = Asker::new(true);
    let (target, other) = (asker.target(&server.address).unwrap(), asker.target(&server.address).unwrap());
    let later = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    get(&asker, &target, "/").await.unwrap();
    later(4).await;
    get(&asker, &target, "/").await.unwrap();
    assert_eq!(server.connections(), 1);
    later(6).await;
    // Closed also where nobody asks any more.
    get(&asker, &other, "/").await.unwrap();
    while server.open.load(Ordering::SeqCst) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    get(&asker, &target, "/").await.unwrap();
    assert_eq!(server.connections(), 3);
}
