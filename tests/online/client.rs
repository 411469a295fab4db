//! A minimal HTTP client: sends the bytes that it is given, and keeps the response.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Parses the first response in some bytes, if there is one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let reply = Self { status, headers: lines.map(header).collect(), body: bytes[end + 4..].to_vec() };
        Some(reply)
    }

    /// The value of a header, if present. A repeated header fails the test.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        let first = found.next();
        assert!(found.next().is_none(), "two of {name}");
        first.map_or("", String::as_str)
    }

    /// The headers without those that vary with time.
    pub(crate) fn lasting_headers(&self) -> Vec<(String, String)> {
        let mut lasting = self.headers.clone();
        lasting.retain(|(name, _)| name != "date");
        lasting.sort();
        lasting
    }

    /// Whether the body has the announced length.
    pub(crate) fn is_whole(&self) -> bool {
        self.header("content-length").parse() == Ok(self.body.len())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert!(self.header("content-type").ends_with("json"), "{}: {}", self.status, self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks a problem body (RFC 9457), and returns its status.
    pub(crate) fn problem(&self) -> u16 {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        for name in ["type", "title", "detail"] {
            assert!(problem[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {problem}");
        }
        assert!(problem["type"].as_str().unwrap().starts_with("urn:ibi:problem:"));
        self.status
    }

    /// The pairs of an answer of the Archive service.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        assert_eq!(self.header("content-type"), "text/plain; charset=utf-8");
        let text = self.text();
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ').unwrap();
            (name.to_owned(), value.trim_matches(['{', '}']).to_owned())
        };
        text.split_terminator("\r\n").map(pair).collect()
    }

    /// The value of a pair, if present.
    pub(crate) fn pair(&self, name: &str) -> String {
        let found = self.pairs().into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }
}

/// Timeout for a response, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects.
pub(crate) fn connect(at: &str) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes and reads until the server closes the connection or stops sending after a response.
/// The server may close before it has read everything.
pub(crate) fn exchange(at: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(at);
    let _ = stream.write_all(bytes);
    let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let answered = Reply::read(&answer).is_some_and(|reply| reply.is_whole());
        let patience = if answered { Duration::from_millis(300) } else { PATIENCE };
        stream.set_read_timeout(Some(patience)).unwrap();
        match stream.read(&mut piece) {
            Ok(many @ 1..) => answer.extend_from_slice(&piece[..many]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(answered, "neither an answer nor an end: {:?}", String::from_utf8_lossy(bytes));
                return answer;
            }
            Ok(0) | Err(_) => return answer,
        }
    }
}

/// A well-formed request. `headers` are whole lines. What is read is what is true now: a resolver
/// asks its Archives' feeds first.
pub(crate) fn ask(at: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
    let length = match (method, body.len()) {
        ("GET" | "HEAD", 0) if headers.contains("Cache-Control") => String::new(),
        ("GET" | "HEAD", 0) => "Cache-Control: no-cache\r\n".to_owned(),
        (_, length) => format!("Content-Length: {length}\r\n"),
    };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{length}{headers}\r\n");
    let bytes = [head.as_bytes(), body].concat();
    // On a loaded machine a connection may be reset before it is served; a server that panics is
    // found out by its log.
    let mut reply = Reply::read(&exchange(at, &bytes));
    if reply.is_none() && method == "GET" {
        reply = Reply::read(&exchange(at, &bytes));
    }
    assert!(reply.is_some(), "no answer to {method} {path}");
    reply.unwrap()
}
