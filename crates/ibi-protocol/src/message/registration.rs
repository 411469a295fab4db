//! What an Archive says of itself when it goes on or off line (3.3).

use std::net::{IpAddr, Ipv6Addr};

use super::MessageError;
use super::query::{Given, Query};
use crate::key::Key;
use crate::shown::shown;

/// An Archive that asks to be included or excluded. `Debug` does not show the key.
#[derive(Debug, Clone)]
pub struct Registration {
    /// `archiveaddress`: a host, and a port after `:` if needed.
    pub address: String,
    /// `archiveserviceibi`: the label of the Archive service, in the spelling that came.
    pub service: String,
    /// `archiveip`.
    pub ip: IpAddr,
    /// `archiveprotocol`.
    pub protocol: Protocol,
    /// `archiveplatformversion`.
    pub platform_version: String,
    /// `archiveadmemailaddress`: whom to write to.
    pub email: String,
    /// `registrationkey`.
    pub key: Key,
}

/// How an Archive is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// The norm has no other.
    Http,
}

impl Protocol {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
        }
    }
}

impl Registration {
    pub(super) fn read(given: &Given<'_>, header: Option<&str>) -> Result<Self, MessageError> {
        Ok(Self {
            address: address(given)?,
            service: given.label("archiveserviceibi")?,
            ip: given.read("archiveip")?,
            protocol: match given.text("archiveprotocol")?.as_str() {
                "HTTP" => Protocol::Http,
                other => {
                    let why = format!("`{}` is not spoken here: use HTTP", shown(other));
                    return Err(MessageError::value("archiveprotocol", why));
                }
            },
            platform_version: given.line("archiveplatformversion")?,
            email: email(given)?,
            key: key(given, header)?,
        })
    }

    pub(super) fn write(&self, query: &mut Query, with_key: bool) {
        query.push("archiveaddress", &self.address);
        query.push("archiveserviceibi", &self.service);
        query.push("archiveip", &self.ip.to_string());
        query.push("archiveprotocol", self.protocol.as_str());
        query.push("archiveplatformversion", &self.platform_version);
        query.push("archiveadmemailaddress", &self.email);
        if with_key {
            query.push("registrationkey", self.key.reveal());
        }
    }
}

fn email(given: &Given<'_>) -> Result<String, MessageError> {
    let name = "archiveadmemailaddress";
    let email = given.line(name)?;
    match email.split_once('@') {
        Some((who, host)) if !who.is_empty() && !host.is_empty() && !email.contains(char::is_whitespace) => {
            Ok(email)
        }
        _ => Err(MessageError::value(name, format!("`{}` is no e-mail address", shown(&email)))),
    }
}

/// From the header or the query. Both may have it, if they agree: they came from one sender, so there is no secret
/// between them that the time of this comparison could betray.
fn key(given: &Given<'_>, header: Option<&str>) -> Result<Key, MessageError> {
    let name = "registrationkey";
    let in_query = given.optional(name)?;
    let text = match (header, &in_query) {
        (Some(header), Some(query)) if header != query => return Err(MessageError::Twice { name }),
        (Some(key), _) => key,
        (None, Some(key)) => key,
        (None, None) => return Err(MessageError::Missing { name }),
    };
    text.parse().map_err(|why| MessageError::value(name, why))
}

/// `host[:port]`. The resolver calls this address, so that nothing else may hide in it.
fn address(given: &Given<'_>) -> Result<String, MessageError> {
    let name = "archiveaddress";
    let text = given.text(name)?;
    if is_address(&text) {
        return Ok(text);
    }
    let why =
        format!("`{}` is no address: write host or host:port, as in archive.example.org:8080", shown(&text));
    Err(MessageError::value(name, why))
}

fn is_address(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((host, "")) => return is_ipv6(host),
            Some((host, port)) if is_ipv6(host) => match port.strip_prefix(':') {
                Some(port) => return is_port(port),
                None => return false,
            },
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = host.len() <= 253
        && host.split('.').all(|word| {
            (1..=63).contains(&word.len())
                && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
        });
    is_name && port.is_none_or(is_port)
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}
