//! As much of HTTP as clients need here.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a client waits for at most.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CLIENT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
        stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::with_capacity(1 << 16) })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request and reads its answer, of which only the status is kept; whether the
    /// connection can be used again.
    pub(super) fn ask(&mut self, request: &[u8]) -> io::Result<(u16, bool)> {
        self.send(request)?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<(u16, bool)> {
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if self.more()? == 0 || self.buffer.len() > 1 << 16 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).to_ascii_lowercase();
        let status = text.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let stays = !text.contains("\r\nconnection: close");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: Option<usize> = length.and_then(|digits| digits.trim().parse().ok());
        let chunked = text.contains("transfer-encoding: chunked");
        self.buffer.drain(..head);
        match length {
            Some(length) => self.skip(length)?,
            None if chunked => self.skip_chunks()?,
            None => {}
        }
        Ok((status, stays))
    }

    fn skip(&mut self, mut length: usize) -> io::Result<()> {
        loop {
            let now = length.min(self.buffer.len());
            self.buffer.drain(..now);
            length -= now;
            if length == 0 {
                return Ok(());
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn skip_chunks(&mut self) -> io::Result<()> {
        loop {
            let line = loop {
                if let Some(end) = find(&self.buffer, b"\r\n") {
                    break end;
                }
                if self.more()? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            };
            let digits = String::from_utf8_lossy(&self.buffer[..line]).into_owned();
            let length = usize::from_str_radix(digits.trim(), 16);
            let length = length.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            self.buffer.drain(..line + 2);
            self.skip(length + 2)?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    /// A few bytes only, and slowly.
    pub(super) fn sip(&mut self) -> io::Result<usize> {
        let mut few = [0; 64];
        self.stream.read(&mut few)
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut part = [0; 1 << 14];
        let read = self.stream.read(&mut part)?;
        self.buffer.extend_from_slice(&part[..read]);
        Ok(read)
    }
}

pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n").into_bytes()
}

pub(super) fn send(method: &str, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(method, path, token, body.len());
    request.extend_from_slice(body);
    request
}

/// A request without its body.
pub(super) fn head(method: &str, path: &str, token: &str, length: usize) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
