//! Forwarding headers written by proxies: `X-Forwarded-For`, and `Forwarded` (RFC 7239).

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

/// The hops of a request, nearest first. `None` stands for a hop that cannot be parsed.
pub(super) type ForwardedHops = Vec<Option<IpAddr>>;

/// The hops in `X-Forwarded-For`; `None` if the header is absent.
pub(super) fn x_forwarded_for(headers: &HeaderMap) -> Option<ForwardedHops> {
    let lines = lines(headers, "x-forwarded-for")?;
    let hops = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    Some(hops.filter(|hop| !hop.is_empty()).map(address).rev().collect())
}

/// The hops in `Forwarded`; `None` if the header is absent.
pub(super) fn forwarded(headers: &HeaderMap) -> Option<ForwardedHops> {
    let lines = lines(headers, "forwarded")?;
    let elements = lines.iter().flat_map(|line| split(line, ','));
    let hops = elements.filter(|element| !element.is_empty()).map(|element| {
        let pairs = split(element, ';').into_iter().filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
        match (named.next(), named.next()) {
            (Some((_, node)), None) => address(unquoted(node.trim())),
            _ => None,
        }
    });
    Some(hops.rev().collect())
}

/// The lines of a header. A line that is not text counts as malformed; it is not skipped.
fn lines<'a>(headers: &'a HeaderMap, name: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?")).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Parses an address with or without a port: some proxies add one.
fn address(hop: &str) -> Option<IpAddr> {
    let inside = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']'));
    let found = match inside {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().ok().map(IpAddr::V6),
        None => hop.parse().ok().or_else(|| Some(hop.parse::<SocketAddr>().ok()?.ip())),
    };
    found.map(|ip| ip.to_canonical())
}

/// Splits at a separator outside of quotes.
fn split(text: &str, sign: char) -> Vec<&str> {
    let mut quoted = false;
    let is_sign = |c: char| {
        quoted ^= c == '"';
        c == sign && !quoted
    };
    text.split(is_sign).map(str::trim).collect()
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}
