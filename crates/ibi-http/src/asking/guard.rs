//! Addresses to which nothing is sent (threat K5), by the registries of special-purpose addresses (RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why nothing is sent to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// This machine.
    Loopback,
    /// A private network, that of a provider (100.64.0.0/10) included.
    Private,
    /// The local link, where clouds tell their secrets.
    LinkLocal,
    /// Nobody's, everybody's or reserved.
    Special,
}

impl Refusal {
    /// Whether the operator can allow it.
    pub const fn is_private(self) -> bool {
        matches!(self, Refusal::Loopback | Refusal::Private)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Loopback => "this machine itself (`--allow-private` allows it)",
            Refusal::Private => "on a private network (`--allow-private` allows it)",
            Refusal::LinkLocal => "on the local link",
            Refusal::Special => "reserved",
        })
    }
}

/// Why nothing is sent to this address; nothing if it is an ordinary one.
pub fn refusal(ip: IpAddr) -> Option<Refusal> {
    match ip {
        IpAddr::V4(ip) => refusal_v4(ip),
        IpAddr::V6(ip) => refusal_v6(ip),
    }
}

fn refusal_v4(ip: Ipv4Addr) -> Option<Refusal> {
    match ip.octets() {
        // Metadata services of clouds on addresses that look like others.
        [168, 63, 129, 16] | [100, 100, 100, 200] => Some(Refusal::LinkLocal),
        [127, ..] => Some(Refusal::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(Refusal::Private),
        [169, 254, ..] => Some(Refusal::LinkLocal),
        // This network, protocol assignments, documentation, 6to4 relays, benchmarking, and from multicast on upwards.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => Some(Refusal::Special),
        _ => None,
    }
}

fn refusal_v6(ip: Ipv6Addr) -> Option<Refusal> {
    let s = ip.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        refusal_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Refusal::Loopback),
        // Mapped: connecting to it is connecting to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        // NAT64 and 6to4: a gateway may unwrap them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low).map(wrapped),
        // Teredo: server, and the client with its bits turned round.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            embedded(high, low).or(embedded(!client_high, !client_low)).map(wrapped)
        }
        // Unique local; what clouds put there is told apart by nobody else.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Some(Refusal::LinkLocal),
        [0xfc00..=0xfdff, ..] => Some(Refusal::Private),
        [0xfe80..=0xfeff, ..] => Some(Refusal::LinkLocal),
        // Within global unicast: benchmarking, ORCHID, documentation.
        [0x2001, 2, 0, ..] | [0x2001, 0x10..=0x3f, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some(Refusal::Special)
        }
        [0x2000..=0x3fff, ..] => None,
        // Unspecified, IPv4-compatible, local NAT64, discard, multicast, and what nobody was given yet.
        _ => Some(Refusal::Special),
    }
}

/// No honest Archive is behind a wrapped private address: it cannot be allowed.
const fn wrapped(_: Refusal) -> Refusal {
    Refusal::Special
}
