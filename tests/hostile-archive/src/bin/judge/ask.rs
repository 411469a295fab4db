//! What a reader asks, and is told.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longer than anybody may have to wait.
const READER_PATIENCE: Duration = Duration::from_secs(20);

/// A response to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderReply {
    pub status: u16,
    pub location: String,
    /// All of it, for what should not be there.
    pub whole: String,
}

/// Only for what is measured here.
#[expect(clippy::disallowed_methods, reason = "it is for waiting, and no test stops it")]
pub fn now() -> Instant {
    Instant::now()
}

/// GETs a path, and tells how long that took.
pub fn get(address: &str, path: &str, headers: &str) -> (io::Result<ReaderReply>, Duration) {
    let since = now();
    (exchange(address, path, headers), since.elapsed())
}

fn exchange(address: &str, path: &str, headers: &str) -> io::Result<ReaderReply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(READER_PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let whole = String::from_utf8_lossy(&answer).into_owned();
    let (head, _) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("no answer"))?;
    let is_location = |line: &&str| line.to_ascii_lowercase().starts_with("location:");
    let location = head.lines().find(is_location).and_then(|line| line.split_once(':'));
    let location = location.map_or("", |(_, value)| value.trim()).to_owned();
    Ok(ReaderReply { status, location, whole })
}
