//! `host` or `host:port`, in unambiguous spellings only.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// The host.
    pub host: ServerHost,
    /// The port; that of the protocol if none is written.
    pub port: u16,
}

/// How a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HttpScheme {
    /// Without TLS.
    #[default]
    Http,
    /// Over TLS.
    Https,
}

impl HttpScheme {
    /// The port of a server that names none.
    pub const fn default_port(self) -> u16 {
        match self {
            HttpScheme::Http => 80,
            HttpScheme::Https => 443,
        }
    }
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServerHost {
    /// An IP address.
    Ip(IpAddr),
    /// A name in lower case.
    Name(String),
}

/// Not a valid address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write host or host:port, as in archive.example.org:8080, 198.51.100.7 or [2001:db8::7]:8080")]
pub struct ServerAddressError;

impl ServerAddress {
    /// Parses an address; the port is 80 if none is written. Refuses spellings that some parsers
    /// read as a number and others as a name (`0x7f.1`, `2130706433`, `127.1`) (threat K5).
    pub fn parse(text: &str) -> Result<Self, ServerAddressError> {
        Self::parse_for(HttpScheme::Http, text)
    }

    /// The same for a server that is asked in this way.
    pub fn parse_for(scheme: HttpScheme, text: &str) -> Result<Self, ServerAddressError> {
        let (host, port) = match text.strip_prefix('[') {
            Some(inside) => {
                let (ip, port) = inside.split_once(']').ok_or(ServerAddressError)?;
                (ServerHost::Ip(IpAddr::V6(ip.parse::<Ipv6Addr>().map_err(|_| ServerAddressError)?)), port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Self::host(host)?, port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => scheme.default_port(),
            Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(ServerAddressError)?
            }
            _ => return Err(ServerAddressError),
        };
        Ok(Self { host, port })
    }

    /// The address as it stands in a URL of this scheme.
    pub fn authority(&self, scheme: HttpScheme) -> String {
        let host = match &self.host {
            ServerHost::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
            ServerHost::Ip(IpAddr::V4(ip)) => ip.to_string(),
            ServerHost::Name(name) => name.clone(),
        };
        if self.port == scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    fn host(text: &str) -> Result<ServerHost, ServerAddressError> {
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Ok(ServerHost::Ip(IpAddr::V4(ip)));
        }
        let is_word = |word: &str| {
            (1..=63).contains(&word.len())
                && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
        };
        // Some parsers read a name whose last label begins with a digit as a number; no top-level
        // domain does (RFC 3696).
        let last = text.rsplit('.').next().unwrap_or(text);
        let is_number = last.starts_with(|c: char| c.is_ascii_digit());
        if text.len() <= 253 && text.split('.').all(is_word) && !is_number {
            Ok(ServerHost::Name(text.to_ascii_lowercase()))
        } else {
            Err(ServerAddressError)
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority(HttpScheme::Http))
    }
}
