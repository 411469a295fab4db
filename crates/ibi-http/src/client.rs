//! Who asks: the address at the other end of the connection, or what a trusted proxy says.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::HeaderMap;

use crate::forwarded::{self, Hops};

/// A client of whom nothing is known: no rule for addresses holds for it but one for all.
pub const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Which addresses are proxies that may be believed.
#[derive(Clone)]
pub struct Proxies(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Proxies {
    /// Those for which this holds.
    pub fn new(trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(trusted))
    }

    /// The client of a request: the address of the socket, or, if that is a trusted proxy, the last address in
    /// `X-Forwarded-For` or `Forwarded` that is not one. What a client writes there itself stands before what a proxy adds,
    /// and is never reached. [`NOBODY`] where what stands there cannot be read, or both say different things.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // There always is a peer.
        self.way(peer, headers).first().copied().unwrap_or(peer)
    }

    /// The client and the trusted proxies between it and us, the client first.
    pub fn way(&self, peer: IpAddr, headers: &HeaderMap) -> Vec<IpAddr> {
        let peer = peer.to_canonical();
        if !(self.0)(peer) {
            return vec![peer];
        }
        let told = [forwarded::x_forwarded_for(headers), forwarded::forwarded(headers)];
        let mut ways = told.into_iter().flatten().map(|hops| self.through(peer, hops));
        match (ways.next(), ways.next()) {
            (None, _) => vec![peer],
            (Some(way), None) => way,
            // A proxy writes one of them: the other may be the client's own.
            (Some(way), Some(other)) if way == other => way,
            (Some(_), Some(_)) => vec![NOBODY, peer],
        }
    }

    fn through(&self, peer: IpAddr, hops: Hops) -> Vec<IpAddr> {
        let mut way = vec![peer];
        // A header that names nobody is nonsense too.
        let hops = if hops.is_empty() { vec![None] } else { hops };
        for hop in hops {
            // Whatever stands before nonsense was not said by a proxy; and who wrote it is not the proxy itself.
            way.push(hop.unwrap_or(NOBODY));
            if !hop.is_some_and(|hop| (self.0)(hop)) {
                break;
            }
        }
        way.reverse();
        way
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxies(…)")
    }
}

/// The other end of the connection, among a request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let proxies = Proxies::new(|ip| ip.is_loopback() || ip == IpAddr::from([10, 0, 0, 1]));
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

    /// Nonsense makes nobody of the client, and never the proxy that passed it on.
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
        assert_eq!(Proxies::new(|_| true).client(IpAddr::from([10, 0, 0, 1]), &headers), NOBODY);
    }

    /// RFC 7239, with its own examples.
    #[test]
    fn forwarded_is_read_too() {
        let of = |lines: &[(&'static str, &str)]| {
            let proxies = Proxies::new(|ip| ip.is_loopback() || ip == IpAddr::from([203, 0, 113, 43]));
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
        // A proxy that writes one of them passes the other on from the client.
        let both = |other| of(&[("forwarded", other), ("x-forwarded-for", "192.0.2.43")]);
        assert_eq!(
            (both("for=192.0.2.43").as_str(), both("for=10.0.0.1").as_str()),
            ("192.0.2.43", "0.0.0.0")
        );
    }
}
