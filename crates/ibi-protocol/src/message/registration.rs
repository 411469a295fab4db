//! What an Archive states about itself when it goes online or offline (3.3).

use std::net::{IpAddr, Ipv6Addr};

use super::MessageError;
use super::query::{QueryWriter, ReceivedQuery};
use crate::key::RegistrationKey;
use crate::untrusted_text::quote_untrusted;

/// A request for inclusion or exclusion. `Debug` hides the key.
#[derive(Debug, Clone)]
pub struct WireRegistration {
    /// `archiveaddress`: `host` or `host:port`.
    pub address: String,
    /// `archiveserviceibi`: the label of the Archive service, in the spelling received.
    pub service: String,
    /// `archiveip`.
    pub ip: IpAddr,
    /// `archiveprotocol`.
    pub protocol: WireProtocol,
    /// `archiveplatformversion`.
    pub platform_version: String,
    /// `archiveadmemailaddress`: the administrator's address.
    pub email: String,
    /// `registrationkey`.
    pub key: RegistrationKey,
}

/// The protocol that an Archive speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireProtocol {
    /// The only one in the standard.
    Http,
    /// The same over TLS: our own Archives may say so.
    Https,
}

impl WireProtocol {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            WireProtocol::Http => "HTTP",
            WireProtocol::Https => "HTTPS",
        }
    }

    /// Reads the word, in either case.
    fn read(word: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|protocol| protocol.as_str().eq_ignore_ascii_case(word))
    }
}

impl WireRegistration {
    pub(super) fn read(query_pairs: &ReceivedQuery<'_>, header: Option<&str>) -> Result<Self, MessageError> {
        Ok(Self {
            address: address(query_pairs)?,
            service: query_pairs.label("archiveserviceibi")?,
            ip: query_pairs.read("archiveip")?,
            protocol: protocol(query_pairs)?,
            platform_version: query_pairs.line("archiveplatformversion")?,
            email: email(query_pairs)?,
            key: key(query_pairs, header)?,
        })
    }

    pub(super) fn write(&self, query: &mut QueryWriter, with_key: bool) {
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

fn protocol(query_pairs: &ReceivedQuery<'_>) -> Result<WireProtocol, MessageError> {
    let name = "archiveprotocol";
    let word = query_pairs.text(name)?;
    WireProtocol::read(&word).ok_or_else(|| {
        let why = format!("`{}` is not supported: use HTTP or HTTPS", quote_untrusted(&word));
        MessageError::value(name, why)
    })
}

fn email(query_pairs: &ReceivedQuery<'_>) -> Result<String, MessageError> {
    let name = "archiveadmemailaddress";
    let email = query_pairs.line(name)?;
    match email.split_once('@') {
        Some((who, host)) if !who.is_empty() && !host.is_empty() && !email.contains(char::is_whitespace) => {
            Ok(email)
        }
        _ => {
            Err(MessageError::value(name, format!("`{}` is not an e-mail address", quote_untrusted(&email))))
        }
    }
}

/// The key from the header or the query. Both may have it if they agree. Both come from one sender,
/// so this comparison need not take constant time.
fn key(query_pairs: &ReceivedQuery<'_>, header: Option<&str>) -> Result<RegistrationKey, MessageError> {
    let name = "registrationkey";
    let in_query = query_pairs.optional(name)?;
    let text = match (header, &in_query) {
        (Some(header), Some(query)) if header != query => return Err(MessageError::Twice { name }),
        (Some(key), _) => key,
        (None, Some(key)) => key,
        (None, None) => return Err(MessageError::Missing { name }),
    };
    text.parse().map_err(|why| MessageError::value(name, why))
}

/// `host[:port]`. Strict, because the resolver connects to this address.
fn address(query_pairs: &ReceivedQuery<'_>) -> Result<String, MessageError> {
    let name = "archiveaddress";
    let text = query_pairs.text(name)?;
    if is_address(&text) {
        return Ok(text);
    }
    let why = format!(
        "`{}` is not an address: write host or host:port, as in archive.example.org:8080",
        quote_untrusted(&text)
    );
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
