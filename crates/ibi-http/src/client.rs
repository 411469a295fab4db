//! Who asks: the address at the other end of the connection, or what a trusted proxy says.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

/// Which addresses are proxies that may be believed.
#[derive(Clone)]
pub struct Proxies(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Proxies {
    /// Those for which this holds.
    pub fn new(trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(trusted))
    }

    /// The client of a request: the address of the socket, or, if that is a trusted proxy, the last address in
    /// `X-Forwarded-For` that is not one. What a client writes there itself stands before what a proxy adds, and is never
    /// reached.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // There always is a peer.
        self.way(peer, headers).first().copied().unwrap_or(peer)
    }

    /// The client and the trusted proxies between it and us, the client first.
    pub fn way(&self, peer: IpAddr, headers: &HeaderMap) -> Vec<IpAddr> {
        let mut client = peer.to_canonical();
        let mut way = vec![client];
        let lines = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let mut hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
        while (self.0)(client) {
            let Some(hop) = hops.pop() else { break };
            match hop.parse::<IpAddr>() {
                Ok(hop) => {
                    client = hop.to_canonical();
                    way.push(client);
                }
                // Whatever stands before nonsense was not said by a proxy.
                Err(_) => break,
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
        assert_eq!(client("127.0.0.1", &["1.2.3.4, nonsense"]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
    }
}
