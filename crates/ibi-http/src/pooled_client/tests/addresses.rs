//! Which addresses are permitted (threat K5).

use super::*;

/// Refused whatever the operator permits.
#[rustfmt::skip]
const ALWAYS_REFUSED_ADDRESSES: &[&str] = &[
    // This network, and broadcast.
    "0.0.0.0", "0.0.0.1", "0.1.2.3", "0.255.255.255", "255.255.255.255",
    // Link-local and cloud metadata services.
    "169.254.0.0", "169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.255.255", "168.63.129.16",
    "100.100.100.200", "192.0.0.192", "fd00:ec2::254",
    // Protocol assignments, documentation, relays, benchmarking.
    "192.0.0.0", "192.0.0.8", "192.0.0.170", "192.0.2.0", "192.0.2.1", "192.0.2.255", "198.51.100.0", "198.51.100.77",
    "198.51.100.255", "203.0.113.0", "203.0.113.9", "203.0.113.255", "192.88.99.1", "198.18.0.0", "198.18.0.1",
    "198.19.255.255",
    // Multicast and reserved.
    "224.0.0.0", "224.0.0.1", "224.0.0.251", "232.1.1.1", "239.255.255.250", "239.255.255.255", "240.0.0.0", "240.0.0.1",
    "250.1.2.3", "255.0.0.1",
    // The same in IPv6.
    "::", "::2", "ff00::1", "ff02::1", "ff02::fb", "ff05::2", "fe80::", "fe80::1", "fe80::1ff:fe23:4567:890a", "febf::1",
    "fec0::1", "feff::1", "2001:db8::", "2001:db8::1", "2001:db8:ffff::1", "3fff::1", "3fff:fff::1", "2001:2::1",
    "2001:10::1", "2001:20::1", "2001:2f::1", "100::1", "5f00::1", "4000::1", "8000::1", "1::1",
    // Embedded IPv4: compatible, and wrapped for a gateway.
    "::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:0.0.0.0", "::ffff:169.254.169.254", "::ffff:224.0.0.1",
    "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::192.168.1.1",
    "64:ff9b:1::8.8.8.8", "64:ff9b:1::10.0.0.1", "2002:7f00:1::", "2002:7f00:1::1", "2002:a00:1::1", "2002:c0a8:101::",
    "2002:a9fe:a9fe::1", "2002:e000:1::", "2001:0:7f00:1::", "2001:0:a00:1:0:0:f7f7:f7f7",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
];

/// Permitted only if the operator allows private addresses.
#[rustfmt::skip]
const PRIVATE_ADDRESSES: &[&str] = &[
    "127.0.0.0", "127.0.0.1", "127.0.0.53", "127.1.2.3", "127.255.255.255", "10.0.0.0", "10.0.0.1", "10.255.255.255",
    "172.16.0.0", "172.16.0.1", "172.20.10.5", "172.31.255.255", "192.168.0.0", "192.168.0.1", "192.168.255.255",
    "100.64.0.0", "100.64.0.1", "100.127.255.255", "::1", "fc00::", "fc00::1", "fd00::1", "fd12:3456:789a::1",
    "fdff:ffff::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:192.168.1.1", "::ffff:172.16.0.1", "::ffff:100.64.0.1",
    "::ffff:7f00:1",
];

/// Ordinary addresses.
#[rustfmt::skip]
const PUBLIC_ADDRESSES: &[&str] = &[
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
    "150.163.34.1", "168.63.129.17", "169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.1", "191.255.255.255",
    "192.0.1.1", "192.0.3.1", "192.88.98.1", "192.167.255.255", "192.169.0.1", "198.17.255.255", "198.20.0.1",
    "198.51.99.1", "198.51.101.1", "203.0.112.1", "203.0.114.1", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888",
    "2606:4700::1111", "2800:3f0::1", "2a00:1450::1", "3ffe::1", "3fff:1000::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2002:808:808::1", "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
];

#[test]
fn k5_each_address_is_judged() {
    let judged = |text: &&str| address_refusal(text.parse().unwrap());
    for text in ALWAYS_REFUSED_ADDRESSES {
        assert!(judged(text).is_some_and(|refusal| !refusal.is_private()), "{text}: {:?}", judged(text));
    }
    for text in PRIVATE_ADDRESSES {
        assert!(judged(text).is_some_and(GuardRefusal::is_private), "{text}: {:?}", judged(text));
    }
    for text in PUBLIC_ADDRESSES {
        assert_eq!(judged(text), None, "{text}");
    }
    assert!(ALWAYS_REFUSED_ADDRESSES.len() + PRIVATE_ADDRESSES.len() + PUBLIC_ADDRESSES.len() > 150);
}

#[test]
fn addresses_are_read_in_one_way() {
    for (text, printed) in [
        ("archive.example.org", "archive.example.org"),
        ("Archive.Example.ORG:80", "archive.example.org"),
        ("archive.example.org:8080", "archive.example.org:8080"),
        ("localhost:65535", "localhost:65535"),
        ("1e100.net", "1e100.net"),
        ("my_host-1", "my_host-1"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[::1]", "[::1]"),
        ("[2001:DB8:0::7]:8080", "[2001:db8::7]:8080"),
        ("[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]"),
    ] {
        let address = ServerAddress::parse(text).unwrap();
        assert_eq!(address.to_string(), printed);
        assert_eq!(ServerAddress::parse(printed), Ok(address));
    }
}

#[test]
#[rustfmt::skip]
fn k5_spellings_that_others_read_differently_are_no_addresses() {
    let long = format!("{}.org", "a".repeat(250));
    for text in [
        // Disguised numbers.
        "2130706433", "0x7f000001", "0x7f.1", "0X7F.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "127.0.0.01",
        "0127.0.0.1", "1.2.3.4.5", "256.0.0.1", "127.0.0.0x1", "a.127", "example.1", "1.0x7f", "017700000001", "0",
        // Invalid hosts.
        "", ".", "a..b", ".a", "a.", "-a b", "a b", "a/b", "a@b", "user@host", "a?b", "a#b", "a\\b", "ä.org", "a%2eb", "a,b",
        "①.①.①.①", "127。0。0。1", "[", "[]", "[::1", "::1", "[127.0.0.1]", "[fe80::1%eth0]", "[::1]x", "[::1]80", "[v1.a]",
        &long,
        // Invalid ports.
        "a:", "a:0", "a:65536", "a:+80", "a:80:80", "a: 80", "a:8o", "[::1]:", "[::1]:0", ":80", "http://a", "a:99999999999",
    ] {
        assert_eq!(ServerAddress::parse(text), Err(ServerAddressError), "{text}");
    }
}
