//! Global uniqueness of hosts and addresses (1.6).
//!
//! Labels under non-unique ones exist and are parsed, but may collide: `LK47B6W` is 127.0.0.1,
//! which every machine has.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Host;

/// Why a host name or an address is not globally unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotUnique {
    /// The loopback address.
    Loopback,
    /// A private address (RFC 1918, RFC 4193, RFC 6598).
    Private,
    /// A link-local address (RFC 3927, RFC 4291).
    LinkLocal,
    /// Reserved for documentation and tests (RFC 5737, RFC 3849, RFC 9637, RFC 2544).
    Documentation,
    /// A multicast address.
    Multicast,
    /// An IPv4 address embedded in IPv6, or a tunnel: it stands for another address.
    Translated,
    /// Not assigned by IANA.
    Reserved,
    /// A name with a local meaning (RFC 6761, RFC 6762, RFC 8375 and `.internal`).
    LocalName,
    /// A name reserved for documentation and tests (RFC 6761).
    ReservedName,
}

impl NotUnique {
    /// The reason as text.
    pub const fn reason(self) -> &'static str {
        match self {
            NotUnique::Loopback => "it is the loopback address, which every machine has",
            NotUnique::Private => "it is a private address, which many networks use",
            NotUnique::LinkLocal => "it is a link-local address, which many networks use",
            NotUnique::Documentation => "it is an address kept for documentation and tests",
            NotUnique::Multicast => "it is a multicast address, which stands for many machines",
            NotUnique::Translated => "it stands for another address (mapped, translated or tunnelled)",
            NotUnique::Reserved => "it is a reserved address, which no machine was given",
            NotUnique::LocalName => "it is a local name, which many networks use",
            NotUnique::ReservedName => {
                "it is a name kept for documentation, for tests or for the Internet's own use"
            }
        }
    }
}

impl fmt::Display for NotUnique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// Why an address is not globally unique, by the IANA special-purpose registries. For IPv6 that
/// includes everything outside of 2000::/3, the only space assigned so far.
pub fn ip_not_unique(ip: IpAddr) -> Option<NotUnique> {
    match ip {
        IpAddr::V4(ip) => v4_not_unique(ip),
        IpAddr::V6(ip) => v6_not_unique(ip),
    }
}

fn v4_not_unique(ip: Ipv4Addr) -> Option<NotUnique> {
    match ip.octets() {
        [127, ..] => Some(NotUnique::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(NotUnique::Private),
        [169, 254, ..] => Some(NotUnique::LinkLocal),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18..=19, ..] => {
            Some(NotUnique::Documentation)
        }
        [224..=239, ..] => Some(NotUnique::Multicast),
        // Anycast (AS112, AMT, 6to4): many machines share one address.
        [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] | [192, 88, 99, _] => {
            Some(NotUnique::Reserved)
        }
        [0, ..] | [192, 0, 0, _] | [240..=255, ..] => Some(NotUnique::Reserved),
        _ => None,
    }
}

fn v6_not_unique(ip: Ipv6Addr) -> Option<NotUnique> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(NotUnique::Loopback),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(NotUnique::Private),
        [0xfe80..=0xfebf, ..] => Some(NotUnique::LinkLocal),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 2, 0, ..] => Some(NotUnique::Documentation),
        [0xff00..=0xffff, ..] => Some(NotUnique::Multicast),
        // Mapped, NAT64, Teredo, 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, ..] | [0x2001, 0, ..] | [0x2002, ..] => {
            Some(NotUnique::Translated)
        }
        // 2001::/23 and AS112: protocols and anycast, no single machine.
        [0x2001, 0..=0x1ff, ..] | [0x2620, 0x4f, 0x8000, ..] => Some(NotUnique::Reserved),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(NotUnique::Reserved),
    }
}

/// Why a host name is not globally unique; `None` if it is.
pub fn host_not_unique(host: Host<'_>) -> Option<NotUnique> {
    const LOCAL_DOMAINS: [&str; 11] = [
        "localhost",
        "localdomain",
        "local",
        "internal",
        "intranet",
        "private",
        "corp",
        "home",
        "lan",
        "alt",
        "workgroup",
    ];
    const RESERVED_DOMAINS: [&str; 5] = ["test", "example", "invalid", "arpa", "onion"];
    let mut words = host.words_from_the_end();
    let (last, before) = (words.next()?, words.next());
    let is = |word: &str, list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
    let below = |word| before.is_some_and(|before| before.eq_ignore_ascii_case(word));
    if is(last, &LOCAL_DOMAINS) || (is(last, &["arpa"]) && below("home")) {
        Some(NotUnique::LocalName)
    } else if is(last, &RESERVED_DOMAINS) || (is(last, &["com", "net", "org"]) && below("example")) {
        Some(NotUnique::ReservedName)
    } else {
        None
    }
}
