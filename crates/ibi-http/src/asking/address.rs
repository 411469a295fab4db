//! `host` or `host:port`, in spellings that everybody reads alike.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where somebody is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host.
    pub host: Host,
    /// The port; 80 if none is written.
    pub port: u16,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// By its number.
    Ip(IpAddr),
    /// By its name, in small letters.
    Name(String),
}

/// A text that is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write host or host:port, as in archive.example.org:8080, 198.51.100.7 or [2001:db8::7]:8080")]
pub struct AddressError;

impl Address {
    /// Reads an address. Spellings that some read as a number and others as a name (`0x7f.1`, `2130706433`, `127.1`) are none
    /// (threat K5).
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (host, port) = match text.strip_prefix('[') {
            Some(inside) => {
                let (ip, port) = inside.split_once(']').ok_or(AddressError)?;
                (Host::Ip(IpAddr::V6(ip.parse::<Ipv6Addr>().map_err(|_| AddressError)?)), port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Self::host(host)?, port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => 80,
            Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(AddressError)?
            }
            _ => return Err(AddressError),
        };
        Ok(Self { host, port })
    }

    fn host(text: &str) -> Result<Host, AddressError> {
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Ip(IpAddr::V4(ip)));
        }
        let is_word = |word: &str| {
            (1..=63).contains(&word.len())
                && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
        };
        // A name whose last word begins with a digit is a number to somebody; no top-level domain does (RFC 3696).
        let last = text.rsplit('.').next().unwrap_or(text);
        let is_number = last.starts_with(|c: char| c.is_ascii_digit());
        if text.len() <= 253 && text.split('.').all(is_word) && !is_number {
            Ok(Host::Name(text.to_ascii_lowercase()))
        } else {
            Err(AddressError)
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]")?,
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}")?,
            Host::Name(name) => f.write_str(name)?,
        }
        if self.port == 80 { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}
