//! What the hostile Archive sends to the resolver, and the framing of its answers.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::identity::HostileIdentity;

/// For an answer of the resolver, which calls back first.
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(20);

/// Says to the resolver that it goes online or offline (clause 3.3): the resolver's answer.
pub fn announce(me: &HostileIdentity, subject: &str) -> io::Result<String> {
    announce_as(me, subject, &me.service, &me.key, &me.address)
}

/// The same in the name of any service, with any key and from any address.
pub fn announce_as(
    me: &HostileIdentity,
    subject: &str,
    service: &str,
    key: &str,
    address: &str,
) -> io::Result<String> {
    send(me, &inclusion_query(me, subject, service, key, address))
}

fn inclusion_query(me: &HostileIdentity, subject: &str, service: &str, key: &str, address: &str) -> String {
    format!(
        "servicesubject={subject}&archiveaddress={address}&archiveserviceibi={service}&archiveip={}\
         &archiveprotocol=HTTP&archiveplatformversion=hostile&archiveadmemailaddress=nobody@hostile.test\
         &registrationkey={key}",
        me.host()
    )
}

/// Goes online with a token for its feed (clause 4.4).
pub fn announce_feed(me: &HostileIdentity) -> io::Result<String> {
    let query = inclusion_query(me, "inclusionRequest", &me.service, &me.key, &me.address);
    send_with(me, &query, "ibi-follow-token: follow-hostile\r\n")
}

/// Sends a query to the resolver's service.
pub fn send(me: &HostileIdentity, query: &str) -> io::Result<String> {
    send_with(me, query, "")
}

fn send_with(me: &HostileIdentity, query: &str, headers: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(&me.resolver)?;
    stream.set_read_timeout(Some(RESOLVER_TIMEOUT))?;
    let head = format!("Host: {}\r\n{headers}Connection: close\r\n\r\n", me.resolver);
    write!(stream, "GET /{}?{query} HTTP/1.1\r\n{head}", me.resolver_service)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or("no status").to_owned();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(format!("{status} {body}"))
}

/// A well framed answer with this status line and these header lines.
pub fn framed(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A well framed answer as the standard has it.
pub fn good(body: &str) -> Vec<u8> {
    framed("200 OK", "", body.as_bytes())
}
