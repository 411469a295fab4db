//! Asking an Archive over HTTP, as little of it as is needed here.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than a server makes anybody wait while a command has its Archive.
const PATIENCE: Duration = Duration::from_secs(40);

pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Where a resolver sends who asks.
pub struct Led {
    pub status: u16,
    pub location: String,
}

/// Asks an Archive's API; nothing if there was no whole answer.
pub fn ask(port: u16, method: &str, path: &str, token: &str, body: &str) -> Option<Answer> {
    let length = body.len();
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    exchange(port, &request).map(|(_, answer)| answer)
}

/// Asks a resolver for a persistent URL.
pub fn follow(port: u16, url: &str) -> Option<Led> {
    let request = format!(
        "GET /{url} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/plain\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
    );
    let (head, Answer { status, .. }) = exchange(port, &request)?;
    let is_location = |line: &&str| line.to_ascii_lowercase().starts_with("location: ");
    let location = head.lines().find(is_location).and_then(|line| line.split_once(": "));
    Some(Led { status, location: location.map_or_else(String::new, |(_, url)| url.to_owned()) })
}

/// The head of an answer, and the answer.
fn exchange(port: u16, request: &str) -> Option<(String, Answer)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    // One that was killed in the middle of its answer has not answered.
    (length.unwrap_or(0) == body.len()).then(|| (head.to_owned(), Answer { status, body: body.to_owned() }))
}

/// The text that stands first under a name in JSON of ours, which has no spaces.
pub fn text<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    rest.split('"').next()
}

/// The number that does.
pub fn number(json: &str, name: &str) -> Option<u64> {
    let (_, rest) = json.split_once(&format!("\"{name}\":"))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
