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

/// Asks; nothing if there was no whole answer.
pub fn ask(port: u16, method: &str, path: &str, token: &str, body: &str) -> Option<Answer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
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
    (length.unwrap_or(0) == body.len()).then(|| Answer { status, body: body.to_owned() })
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
