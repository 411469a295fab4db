//! Destination addresses that are refused (threat K5), by the special-purpose address registries
//! (RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuardRefusal {
    /// This machine.
    Loopback,
    /// A private network, including carrier-grade NAT (100.64.0.0/10).
    Private,
    /// Link-local, where cloud metadata services expose credentials.
    LinkLocal,
    /// Unspecified, multicast, broadcast or reserved.
    Special,
    /// A port of another protocol than HTTP.
    Port,
}

impl GuardRefusal {
    /// Whether the operator can permit it.
    pub const fn is_private(self) -> bool {
        matches!(self, GuardRefusal::Loopback | GuardRefusal::Private)
    }
}

impl fmt::Display for GuardRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GuardRefusal::Loopback => "this machine itself (`--allow-private` allows it)",
            GuardRefusal::Private => "on a private network (`--allow-private` allows it)",
            GuardRefusal::LinkLocal => "on the local link",
            GuardRefusal::Special => "reserved",
            GuardRefusal::Port => "a port of another protocol",
        })
    }
}

/// Refuses ports of mail, shell, file and database protocols, where a line of a request could be
/// taken for a command. Browsers refuse most of them (Fetch, "bad port"). An Archive may have any
/// other port (clause 2).
pub const fn port_refusal(port: u16) -> Option<GuardRefusal> {
    match port {
        0
        | 7
        | 9
        | 11
        | 13
        | 15
        | 17
        | 19..=23
        | 25
        | 37
        | 42
        | 43
        | 53
        | 69
        | 77
        | 79
        | 87
        | 95
        | 101..=104
        | 109..=111
        | 113
        | 115
        | 117
        | 119
        | 123
        | 135
        | 137..=139
        | 143
        | 161
        | 179
        | 389
        | 427
        | 445
        | 465
        | 512..=515
        | 526
        | 530..=532
        | 540
        | 548
        | 554
        | 556
        | 563
        | 587
        | 601
        | 636
        | 989
        | 990
        | 993
        | 995
        | 1433
        | 1521
        | 1719
        | 1720
        | 1723
        | 2049
        | 3306
        | 3389
        | 3659
        | 4045
        | 4190
        | 5060
        | 5061
        | 5432
        | 6000
        | 6379
        | 6566
        | 6665..=6669
        | 6697
        | 10080
        | 11211 => Some(GuardRefusal::Port),
        _ => None,
    }
}

/// Why an address is refused; `None` for an ordinary address.
pub fn address_refusal(ip: IpAddr) -> Option<GuardRefusal> {
    match ip {
        IpAddr::V4(ip) => refusal_v4(ip),
        IpAddr::V6(ip) => refusal_v6(ip),
    }
}

fn refusal_v4(ip: Ipv4Addr) -> Option<GuardRefusal> {
    match ip.octets() {
        // Cloud metadata services on ordinary-looking addresses.
        [168, 63, 129, 16] | [100, 100, 100, 200] => Some(GuardRefusal::LinkLocal),
        [127, ..] => Some(GuardRefusal::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(GuardRefusal::Private),
        [169, 254, ..] => Some(GuardRefusal::LinkLocal),
        // This network, protocol assignments, documentation, 6to4 relays, benchmarking, and from
        // multicast on upwards.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => Some(GuardRefusal::Special),
        _ => None,
    }
}

fn refusal_v6(ip: Ipv6Addr) -> Option<GuardRefusal> {
    let s = ip.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        refusal_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(GuardRefusal::Loopback),
        // IPv4-mapped: connecting to it connects to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        // NAT64 and 6to4: a gateway may unwrap them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low).map(refusal_when_embedded)
        }
        // Teredo: the server, and the client with inverted bits.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            embedded(high, low).or(embedded(!client_high, !client_low)).map(refusal_when_embedded)
        }
        // Unique local; the cloud metadata address within it is refused as link-local.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Some(GuardRefusal::LinkLocal),
        [0xfc00..=0xfdff, ..] => Some(GuardRefusal::Private),
        [0xfe80..=0xfeff, ..] => Some(GuardRefusal::LinkLocal),
        // Within global unicast: benchmarking, ORCHID, documentation.
        [0x2001, 2, 0, ..] | [0x2001, 0x10..=0x3f, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some(GuardRefusal::Special)
        }
        [0x2000..=0x3fff, ..] => None,
        // Unspecified, IPv4-compatible, local NAT64, discard, multicast, and unassigned.
        _ => Some(GuardRefusal::Special),
    }
}

/// No legitimate Archive uses an embedded private address: the operator cannot permit it.
const fn refusal_when_embedded(_: GuardRefusal) -> GuardRefusal {
    GuardRefusal::Special
}
