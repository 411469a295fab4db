//! Client address: the peer of the connection, or the address that a trusted proxy reports.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::HeaderMap;

pub use crate::connection_slots::client_network;
use crate::forwarded::{self, ForwardedHops};

/// Placeholder for a client whose address is unknown. Only address rules that match everything
/// apply to it.
pub const UNKNOWN_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The proxies whose forwarding headers are trusted.
#[derive(Clone)]
pub struct TrustedProxies(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl TrustedProxies {
    /// Trusts the addresses for which the predicate returns true.
    pub fn new(trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(trusted))
    }

    /// The client of a request: the peer address of the socket, or, if that is a trusted proxy, the
    /// last address in `X-Forwarded-For` or `Forwarded` that is not one. Whatever the client itself
    /// writes there comes before what a proxy appends, so it is never reached. Returns
    /// [`UNKNOWN_CLIENT`] if the headers cannot be parsed or contradict each other.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // The path always contains at least the peer.
        self.client_path(peer, headers).first().copied().unwrap_or(peer)
    }

    /// The client and the trusted proxies between it and this server, client first.
    pub fn client_path(&self, peer: IpAddr, headers: &HeaderMap) -> Vec<IpAddr> {
        let peer = peer.to_canonical();
        if !(self.0)(peer) {
            return vec![peer];
        }
        let reported = [forwarded::x_forwarded_for(headers), forwarded::forwarded(headers)];
        let mut paths = reported.into_iter().flatten().map(|hops| self.path_through_proxies(peer, hops));
        match (paths.next(), paths.next()) {
            (None, _) => vec![peer],
            (Some(way), None) => way,
            // A proxy writes only one of the two headers; the other may come from the client.
            (Some(way), Some(other)) if way == other => way,
            (Some(_), Some(_)) => vec![UNKNOWN_CLIENT, peer],
        }
    }

    fn path_through_proxies(&self, peer: IpAddr, hops: ForwardedHops) -> Vec<IpAddr> {
        let mut way = vec![peer];
        // A header without any address is malformed too.
        let hops = if hops.is_empty() { vec![None] } else { hops };
        for hop in hops {
            // Anything before a malformed entry was not written by a proxy, and its author is not
            // the proxy itself.
            way.push(hop.unwrap_or(UNKNOWN_CLIENT));
            if !hop.is_some_and(|hop| (self.0)(hop)) {
                break;
            }
        }
        way.reverse();
        way
    }
}

impl fmt::Debug for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxies(…)")
    }
}

/// The peer address of the connection, stored in the request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionPeer(pub IpAddr);

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(|ip| ip.is_loopback() || ip == IpAddr::from([10, 0, 0, 1]));
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    /// Threat K6: the rightmost address that is not a trusted proxy.
    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(client("192.0.2.9", &["198.51.100.1"]), "192.0.2.9");
        assert_eq!(client("127.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("127.0.0.1", &["1.2.3.4, 198.51.100.1, 10.0.0.1"]), "198.51.100.1");
        assert_eq!(client("127.0.0.1", &["1.2.3.4", "198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("::ffff:127.0.0.1", &["::ffff:198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &[" , "]), "0.0.0.0");
        assert_eq!(client("127.0.0.1", &["10.0.0.1"]), "10.0.0.1");
    }

    #[test]
    fn some_proxies_write_ports() {
        assert_eq!(client("127.0.0.1", &["192.0.2.7:4711"]), "192.0.2.7");
        assert_eq!(client("127.0.0.1", &["192.0.2.7:4711, 10.0.0.1:80"]), "192.0.2.7");
        assert_eq!(client("127.0.0.1", &["[2001:db8::1]:4711"]), "2001:db8::1");
        assert_eq!(client("127.0.0.1", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(client("127.0.0.1", &["2001:db8::1, "]), "2001:db8::1");
    }

    /// A malformed header makes the client unknown; it is never attributed to the forwarding proxy.
    #[test]
    fn nonsense_is_nobody() {
        for hop in [
            "nonsense",
            "1.2.3.4, nonsense",
            "unknown",
            "_hidden",
            "192.0.2.7:99999",
            "[1.2.3.4]",
            "1.2.3.4 5",
            "?",
        ] {
            assert_eq!(client("127.0.0.1", &[hop]), "0.0.0.0", "{hop}");
        }
        assert_eq!(client("127.0.0.1", &["1.2.3.4, nonsense, 10.0.0.1"]), "0.0.0.0");
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(
            TrustedProxies::new(|_| true).client(IpAddr::from([10, 0, 0, 1]), &headers),
            UNKNOWN_CLIENT
        );
    }

    /// RFC 7239, with its own examples.
    #[test]
    fn forwarded_is_read_too() {
        let of = |lines: &[(&'static str, &str)]| {
            let proxies = TrustedProxies::new(|ip| ip.is_loopback() || ip == IpAddr::from([203, 0, 113, 43]));
            let mut headers = HeaderMap::new();
            for (name, line) in lines {
                headers.append(*name, line.parse().unwrap());
            }
            proxies.client(IpAddr::from([127, 0, 0, 1]), &headers).to_string()
        };
        for (line, client) in [
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("for=192.0.2.43, for=198.51.100.17", "198.51.100.17"),
            ("for=192.0.2.43, for=203.0.113.43", "192.0.2.43"),
            ("for=\"192.0.2.43:47011\";host=\"a,b;c\"", "192.0.2.43"),
            ("for=\"_gazonk\"", "0.0.0.0"),
            ("for=unknown", "0.0.0.0"),
            ("proto=http", "0.0.0.0"),
            ("for=1.2.3.4;for=1.2.3.5", "0.0.0.0"),
        ] {
            assert_eq!(of(&[("forwarded", line)]), client, "{line}");
        }
        assert_eq!(
            of(&[("forwarded", "for=192.0.2.43"), ("forwarded", "for=198.51.100.17")]),
            "198.51.100.17"
        );
        // A proxy that writes one header passes the client's other header through.
        let both = |other| of(&[("forwarded", other), ("x-forwarded-for", "192.0.2.43")]);
        assert_eq!(
            (both("for=192.0.2.43").as_str(), both("for=10.0.0.1").as_str()),
            ("192.0.2.43", "0.0.0.0")
        );
    }
}
