//! One test per rule, named after its clause in `docs/formats/labels.md`.

use std::collections::HashSet;
use std::net::IpAddr;
use std::num::NonZeroU16;

use ibi_id::{
    Host, Ibip, IbipPrefix, Instant, Label, Legacy, NotUnique, Repository, RepositoryPrefix, Rule,
    host_not_unique, ibip, ip_not_unique, repository,
};

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn port(port: u16) -> Option<NonZeroU16> {
    NonZeroU16::new(port)
}

#[track_caller]
fn refused(label: &str, rule: Rule, position: usize) {
    let error = Label::parse(label).unwrap_err();
    assert_eq!((error.rule(), error.position()), (rule, position), "{label}: {error}");
}

#[track_caller]
fn canonical(label: &str, expected: &str) {
    assert_eq!(Label::parse(label).unwrap().to_string(), expected);
}

#[test]
fn clause_1_1_building_a_repository_name() {
    let prefix = |host, number| RepositoryPrefix::new(Host::parse(host).unwrap(), port(number));
    assert_eq!(prefix("mtc-m18.sid.inpe.br", 80).as_str(), "sid.inpe.br/mtc-m18");
    assert_eq!(prefix("MTC-m18.sid.INPE.br.", 8080).as_str(), "sid.inpe.br/mtc-m18.8080");
    assert_eq!(prefix("a.b", 80).label(at("2026-01-02T03:04:00Z")).unwrap(), "b/a/2026/01.02.03.04");
    assert_eq!(repository::suffix(at("2026-01-02T03:04:00.5Z")).as_str(), "2026/01.02.03.04.00.5");
    assert_eq!(repository::suffix(at("0001-01-01T00:00:09Z")).as_str(), "0001/01.01.00.00.09");
}

#[test]
fn clause_1_1_the_grammar() {
    refused("sid..br/m/2009/02.16.17.46", Rule::HostWord, 4);
    refused("sid.inpe.br/-m18/2009/02.16.17.46", Rule::HostWord, 12);
    refused("sid.inpe.br/m18-/2009/02.16.17.46", Rule::HostWord, 15);
    refused("sid.inpe.br/mtc_m18/2009/02.16.17.46", Rule::HostWord, 15);
    refused("sid.inpe.br/mtc m18/2009/02.16.17.46", Rule::Invisible, 15);
    refused("sid.inpe.9r/mtc-m18/2009/02.16.17.46", Rule::HostLastWord, 9);
    refused("sid.inpe.br/mtc-m18.8o/2009/02.16.17.46", Rule::Port, 21);
    refused("sid.inpe.br/mtc-m18@/2009/02.16.17.46", Rule::Port, 20);
    refused("sid.inpe.br", Rule::RepositoryParts, 11);
    refused("-sid.br/m/2009", Rule::HostWord, 0);
    refused("sid.inpe.br/mtc-m18", Rule::RepositoryParts, 19);
    refused("sid.inpe.br/mtc-m18/2009", Rule::RepositoryParts, 24);
    refused("sid.inpe.br/mtc-m18/", Rule::RepositoryParts, 20);
    refused("sid.inpe.br/mtc-m18/2009/", Rule::RepositoryParts, 25);
    refused("mtc-m18.sid.inpe.br/2009/02.16.17.46", Rule::RepositoryParts, 36);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17", Rule::DateShape, 33);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46.", Rule::DateShape, 37);
    refused("sid.inpe.br/mtc-m18/209/02.16.17.46", Rule::Year, 20);
    refused("sid.inpe.br/mtc-m18/2x09/02.16.17.46", Rule::DateShape, 21);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46/doc", Rule::Extra, 36);
    refused("sid.inpe.br/mtc-m18/2009/02-16.17.46", Rule::DateShape, 27);
    refused("sid.inpe.br/mtc-m18/2009/2.16.17.46", Rule::DateShape, 26);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46.1", Rule::DateShape, 38);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46x", Rule::DateShape, 36);
    assert!(Label::parse("x.y.z-9.a1/9/2009/02.16.17.46").is_ok());
}

#[test]
fn clause_1_2_building_an_ibip() {
    let prefix = |ip: &str, number| IbipPrefix::new(ip.parse().unwrap(), port(number)).as_str().to_owned();
    assert_eq!(prefix("150.163.34.243", 800), "8JMKD3MGP8W");
    assert_eq!(prefix("150.163.34.243", 802), "8JMKD3MGP8W34M");
    assert_eq!(prefix("2001:252:0:1::2008:6", 800), "7URMDHLL9SSN2D89MX");
    assert_eq!(ibip::suffix(at("1995-08-01T00:00:00Z")).unwrap().as_str(), "2");
    let early = ibip::suffix(at("1995-07-31T23:59:59.999Z")).unwrap_err();
    assert_eq!(early.rule(), Rule::BeforeIbip);
}

#[test]
fn clause_1_2_the_grammar() {
    refused("8JMKD3MGP8/34PGRBS", Rule::IbipMarker, 10);
    refused("8JMKD3MGP8WW/34PGRBS", Rule::IbipMarker, 11);
    refused("W/34PGRBS", Rule::IbipMarker, 0);
    refused("8JMKD3MGP8W/34PGRB0", Rule::IbipCharacter, 18);
    refused("8JMKD3MGPOW/34PGRBS", Rule::IbipCharacter, 9);
    refused("8JMKD3MGP8W/", Rule::IbipSuffix, 12);
    refused("8JMKD3MGP8W/34PGRBSX", Rule::IbipSuffix, 19);
    refused("8JMKD3MGP8W/34PGRBSW", Rule::IbipSuffix, 20);
    refused("8JMKD3MGP8W/34PGRBSW3W3", Rule::IbipSuffix, 21);
    refused("8JMKD3MGP8W/34PGRBS/doc/paper.pdf", Rule::Extra, 19);
    refused("kLwpN6zZ/kfnE/", Rule::Extra, 13);
    refused("8JMKD3MGP8W34PGRBS", Rule::Form, 18);
    refused("8JMKD3MGP8W", Rule::Form, 11);
}

#[test]
fn clause_1_3_spellings_of_one_repository_name() {
    let plain = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    for spelling in [
        "SID.inpe.BR/mtc-M18/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18.80/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18.0080/2009/02.16.17.46",
        "sid.inpe.br./mtc-m18/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46.00",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46.00.000",
    ] {
        let (a, b) = (Label::parse(plain).unwrap(), Label::parse(spelling).unwrap());
        assert_eq!(a, b);
        assert_eq!(HashSet::from([a, b]).len(), 1, "equal labels hash alike");
        assert_eq!(b.spelling(), spelling, "the spelling found is kept");
        assert_eq!(b.to_string(), plain, "the canonical one is printed");
    }
    for other in [
        "sid.inpe.br/mtc-m19/2009/02.16.17.46",
        "inpe.br/mtc-m18/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18.81/2009/02.16.17.46",
        "sid.inpe.br/mtc-m18/2009/02.16.17.46.00.01",
    ] {
        assert_ne!(Label::parse(plain).unwrap(), Label::parse(other).unwrap());
    }
    canonical("sid.inpe.br/m@81/2009/02.16.17.46.07.50", "sid.inpe.br/m.81/2009/02.16.17.46.07.5");
}

#[test]
fn clause_1_3_spellings_of_one_ibip() {
    for spelling in
        ["8jmkd3mgp8w/34pgrbs", "228JMKD3MGP8W/2234PGRBS", "8JMKD3MGP8W34K/34PGRBS", "8JMKD3MGP8W/34PGRBSW2"]
    {
        canonical(spelling, "8JMKD3MGP8W/34PGRBS");
        assert_eq!(Label::parse(spelling).unwrap(), Label::parse("8JMKD3MGP8W/34PGRBS").unwrap());
    }
    assert_ne!(Label::parse("8JMKD3MGP8W/34PGRBS").unwrap(), Label::parse("8JMKD3MGP8W/34PGRBT").unwrap());
    assert_ne!(Label::parse("8JMKD3MGP8W/34PGRBS").unwrap(), Label::parse("8JMKD3MGP8W3/34PGRBS").unwrap());
}

#[test]
fn clause_1_3_legacy_labels_are_case_sensitive() {
    let label = Label::parse("kLwpN6zZ/kfnE").unwrap();
    assert_eq!(label.instant(), at("1995-09-01T10:50:00Z"));
    assert_eq!(label.to_string(), "kLwpN6zZ/kfnE");
    assert_eq!((label.prefix(), label.suffix()), ("kLwpN6zZ", "kfnE"));
    assert_eq!((label.port(), label.ip(), label.host()), (None, None, None));
    assert_ne!(label, Label::parse("klwpN6zZ/kfnE").unwrap());
    assert_ne!(label, Label::parse("kLwpN6zZ/2kfnE").unwrap(), "no folding, not even of leading zeros");
    refused("apm77z/uajft", Rule::LegacyLowerZ, 5);
    refused("83lx3pfwxqzebbx/hwitk", Rule::LegacyLowerZ, 10);
    let without_z = Legacy::parse("kLwpN6/kfnE").unwrap_err();
    assert_eq!((without_z.rule(), without_z.position()), (Rule::LegacyWord, 6));
    refused("kLwpN6zZ/kfnl", Rule::LegacyDigit, 12);
    refused("kLwpN6zZ/", Rule::LegacyDigit, 9);
    refused("kLwpNéZ/kfnE", Rule::LegacyWord, 5);
    refused("kLwpN6zZ/VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV", Rule::InstantRange, 9);
}

#[test]
fn clause_1_4_bounds() {
    refused("", Rule::Empty, 0);
    refused("/", Rule::Form, 0);
    refused("http://urlib.net/8JMKD3MGP8W/34PGRBS", Rule::Scheme, 0);
    refused("ibi:8JMKD3MGP8W/34PGRBS", Rule::Scheme, 0);
    for (invisible, position) in [(" 8JMKD3MGP8W/34PGRBS", 0), ("8JMKD3MGP8W/34PGRBS\t", 19)] {
        refused(invisible, Rule::Invisible, position);
    }
    refused("\u{feff}8JMKD3MGP8W/34PGRBS", Rule::Invisible, 0);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46\u{a0}", Rule::Invisible, 36);
    refused("sid.inpe.br/mtc-m18/0000/02.16.17.46", Rule::Year, 20);
    refused("sid.inpe.br/mtc-m18/20090/02.16.17.46", Rule::Year, 20);
    refused("sid.inpe.br/mtc-m18/2009/13.16.17.46", Rule::Month, 25);
    refused("sid.inpe.br/mtc-m18/2009/00.16.17.46", Rule::Month, 25);
    refused("sid.inpe.br/mtc-m18/2009/02.29.17.46", Rule::Day, 28);
    refused("sid.inpe.br/mtc-m18/1900/02.29.17.46", Rule::Day, 28);
    refused("sid.inpe.br/mtc-m18/2009/02.00.17.46", Rule::Day, 28);
    refused("sid.inpe.br/mtc-m18/2009/02.16.24.00", Rule::Hour, 31);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.60", Rule::Minute, 34);
    refused("sid.inpe.br/mtc-m18/2016/12.31.23.59.60", Rule::Second, 37);
    refused("sid.inpe.br/mtc-m18@0/2009/02.16.17.46", Rule::Port, 20);
    refused("sid.inpe.br/mtc-m18@65536/2009/02.16.17.46", Rule::Port, 20);
    refused("sid.inpe.br/mtc-m18@99999999999999999999/2009/02.16.17.46", Rule::Port, 20);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46.00.", Rule::Fraction, 40);
    refused("sid.inpe.br/mtc-m18/2009/02.16.17.46.00.1234567890123", Rule::Fraction, 52);
    for real in ["2000/02.29.23.59", "9999/12.31.23.59.59.999999999999", "0001/01.01.00.00"] {
        canonical(&format!("inpe.br/m.65535/{real}"), &format!("inpe.br/m.65535/{real}"));
    }
}

#[test]
fn clause_1_4_grammar_first_then_meaning() {
    refused("ABCW/DE0", Rule::IbipCharacter, 7);
    refused("8JMKD3MGP8W2/34PG0", Rule::IbipCharacter, 17);
    refused("ABCW/34W3W3", Rule::IbipSuffix, 9);
    refused("ABCW/", Rule::IbipSuffix, 5);
    refused("8JMKD3MGP8W2/34X", Rule::IbipSuffix, 15);
    refused("sid.inpe.br/m@0/20x9/02.16.17.46", Rule::DateShape, 18);
    refused("sid.inpe.br/m@0/2009/02.30.17.46", Rule::Port, 14);
}

/// Encodes a number in base 27.
fn in_base_27(mut number: u128) -> String {
    let mut digits = String::new();
    while number > 0 {
        digits.insert(0, char::from(b"23456789ABCDEFGHJKLMNPQRSTU"[(number % 27) as usize]));
        number /= 27;
    }
    digits
}

/// The number encoded by an address's text in the given base.
fn coded(text: &str, base: u128) -> u128 {
    let digit = |c| "0123456789abcdef".find(c).map_or(base - 1, |digit| digit as u128);
    text.chars().fold(0, |number, c| number * base + digit(c))
}

#[test]
fn clause_1_4_numbers_beyond_every_limit_do_not_wrap_around() {
    for beyond in [1_u128 << 64, 3 << 64, 7 << 64] {
        for port in [1, 800, 65_535] {
            refused(&format!("8JMKD3MGP8W{}/34PGRBS", in_base_27(beyond + port)), Rule::Port, 11);
        }
        for seconds in [5, 427_571_160] {
            refused(&format!("8JMKD3MGP8W/{}", in_base_27(beyond + seconds)), Rule::InstantRange, 12);
        }
        for fraction in [5, 25, 999_999_999_999] {
            refused(&format!("8JMKD3MGP8W/34PGRBSW{}", in_base_27(beyond + fraction)), Rule::Fraction, 20);
        }
        let ip = coded("150.163.34.243", 11);
        refused(&format!("{}W/34PGRBS", in_base_27(beyond + ip)), Rule::IbipAddress, 0);
    }
    refused(&format!("8JMKD3MGP8W/34PGRBSW{}", in_base_27(1_000_000_000_000)), Rule::Fraction, 20);
}

#[test]
fn clause_1_4_texts_that_are_no_address_are_refused() {
    for text in [
        "1.256.2.3",
        "1.2.3.999",
        "256.1.1.1",
        "1000.1.1.1",
        "1.01.1.1",
        "1..1.1",
        "1.1.1.",
        "1.1.1.1.",
        "...",
        "1.1.1",
        "1.1.1.1.1",
        "1111111111111111",
    ] {
        refused(&format!("{}W/34PGRBS", in_base_27(coded(text, 11))), Rule::IbipAddress, 0);
    }
    for text in ["1:2:3", "1:2:3:4:5:6:7:8:9", "::1::", "12345::", ":1:2:3:4:5:6:7:8"] {
        refused(&format!("{}X/34PGRBS", in_base_27(coded(text, 17))), Rule::IbipAddress, 0);
    }
    // Accepted although RFC 5952 writes it differently.
    let label = format!("{}X/34PGRBS", in_base_27(coded("2001:252:0:1:0:0:2008:6", 17)));
    canonical(&label, "7URMDHLL9SSN2D89MX/34PGRBS");
}

#[test]
fn clause_1_4_labels_of_255_and_256_bytes() {
    let labels = |length: usize| {
        let (word, suffix) = ("a".repeat(63), "/2009/02.16.17.46");
        let rep = format!("{word}.{word}.{word}/");
        [
            format!("{rep}{}{suffix}", "b".repeat(length - rep.len() - suffix.len())),
            format!("{}8JMKD3MGP8W/34PGRBS", "2".repeat(length - 19)),
            format!("{}/kfn", "Z".repeat(length - 4)),
        ]
    };
    for label in labels(255) {
        assert!(Label::parse(&label).is_ok(), "{label}");
    }
    refused(&"A".repeat(255), Rule::Form, 255);
    refused(&"A".repeat(256), Rule::LabelLength, 255);
    for label in labels(256) {
        refused(&label, Rule::LabelLength, 255);
        let parsed =
            [Repository::parse(&label).err(), Ibip::parse(&label).err(), Legacy::parse(&label).err()];
        assert!(parsed.iter().all(|error| error.is_some_and(|error| error.rule() == Rule::LabelLength)));
    }
}

#[test]
fn clause_1_4_lengths() {
    let long = "a".repeat(63);
    let label = |word: &str| format!("{word}.br/m/2009/02.16.17.46");
    assert!(Label::parse(&label(&long)).is_ok());
    refused(&label(&format!("{long}a")), Rule::HostWordLength, 63);
    let many = format!("{long}.{long}.{long}");
    refused(&format!("{many}.{long}/m/2009/02.16.17.46"), Rule::LabelLength, 255);
    // 191 + 1 + 63: the longest valid label.
    let longest = format!("{many}/{}/2009/02.16.17.46", "b".repeat(46));
    assert_eq!(Label::parse(&longest).unwrap().spelling().len(), 255);
    assert_eq!(Host::parse(&format!("{many}.{}", "c".repeat(62))).unwrap_err().rule(), Rule::HostLength);
    assert!(Host::parse(&format!("{many}.{}", "c".repeat(61))).is_ok(), "253 characters");
    assert_eq!(Host::parse("localhost").unwrap_err().rule(), Rule::HostTooFewWords);
    let host = format!("{many}.{}", "c".repeat(46));
    let prefix = RepositoryPrefix::new(Host::parse(&host).unwrap(), port(80));
    assert_eq!(prefix.label(at("2009-02-16T17:46:00Z")).unwrap().len(), 255);
    assert_eq!(prefix.label(at("2009-02-16T17:46:01Z")).unwrap_err().rule(), Rule::LabelLength);
}

#[test]
fn clause_1_4_an_ibip_decodes_to_a_real_address_port_and_instant() {
    refused("ABCW/DEF", Rule::IbipAddress, 0);
    refused("UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUX/34PGRBS", Rule::IbipAddress, 0);
    refused("UUUUUUUUUUUUUUUUUUW/34PGRBS", Rule::IbipAddress, 0);
    refused("8JMKD3MGP8W2/34PGRBS", Rule::Port, 11);
    refused("8JMKD3MGP8WUUUU/34PGRBS", Rule::Port, 11);
    refused("8JMKD3MGP8W3333333333333333/34PGRBS", Rule::Port, 11);
    refused("8JMKD3MGP8W/UUUUUUUUU", Rule::InstantRange, 12);
    refused("8JMKD3MGP8W/UUUUUUUUUUUUUUUUUUUUUUU", Rule::InstantRange, 12);
    refused("8JMKD3MGP8W/34PGRBSWUUUUUUUUUU", Rule::Fraction, 20);
    refused("8JMKD3MGP8W/34PGRBSW2222222222222", Rule::Fraction, 20);
    let last = IbipPrefix::new("150.163.34.243".parse().unwrap(), port(65535)).label(Instant::MAX).unwrap();
    canonical(&last, &last);
}

#[test]
fn d4_addresses_whose_text_begins_with_zero_or_maps_ipv4() {
    for ip in
        ["0.0.0.0", "0.1.2.3", "255.255.255.255", "::", "::1", "0:1::", "0:1:2:3:4:5:6:7", "::ffff:1.2.3.4"]
    {
        let ip: IpAddr = ip.parse().unwrap();
        let label = IbipPrefix::new(ip, port(800)).label(at("2009-02-16T17:46:00Z")).unwrap();
        assert_eq!(Label::parse(&label).unwrap().ip(), Some(ip));
        canonical(&label, &label);
    }
}

#[test]
fn d3_leading_zeros_of_a_fraction_are_told_apart() {
    let suffix = |text: &str| ibip::suffix(at(text)).unwrap().as_str().to_owned();
    assert_eq!(suffix("1287588115.5"), "38EREAMW7");
    assert_eq!(suffix("1287588115.05"), "38EREAMW27");
    assert_eq!(suffix("1287588115.005"), "38EREAMW227");
    canonical("8JMKD3MGP8W/38EREAMW3R", "8JMKD3MGP8W/38EREAMW7");
}

#[test]
fn clause_1_6_prefixes_that_are_not_globally_unique() {
    let ip = |text: &str| ip_not_unique(text.parse().unwrap());
    for unique in
        ["150.163.34.243", "8.8.8.8", "2001:252:0:1::2008:6", "2a00::1", "172.32.0.1", "100.128.0.1"]
    {
        assert_eq!(ip(unique), None, "{unique}");
    }
    for (text, reason) in [
        ("127.0.0.1", NotUnique::Loopback),
        ("::1", NotUnique::Loopback),
        ("10.1.2.3", NotUnique::Private),
        ("172.16.0.1", NotUnique::Private),
        ("172.31.255.255", NotUnique::Private),
        ("192.168.0.1", NotUnique::Private),
        ("100.64.0.1", NotUnique::Private),
        ("fd00::1", NotUnique::Private),
        ("169.254.1.1", NotUnique::LinkLocal),
        ("fe80::1", NotUnique::LinkLocal),
        ("192.0.2.1", NotUnique::Documentation),
        ("198.19.0.1", NotUnique::Documentation),
        ("2001:db8::1", NotUnique::Documentation),
        ("3fff::1", NotUnique::Documentation),
        ("224.0.0.1", NotUnique::Multicast),
        ("ff02::1", NotUnique::Multicast),
        ("::ffff:8.8.8.8", NotUnique::Translated),
        ("64:ff9b::808:808", NotUnique::Translated),
        ("2002:808:808::1", NotUnique::Translated),
        ("0.1.2.3", NotUnique::Reserved),
        ("255.255.255.255", NotUnique::Reserved),
        ("::", NotUnique::Reserved),
        ("4000::1", NotUnique::Reserved),
        ("2001:1::1", NotUnique::Reserved),
        ("192.88.99.1", NotUnique::Reserved),
        ("192.31.196.1", NotUnique::Reserved),
        ("192.52.193.1", NotUnique::Reserved),
        ("192.175.48.1", NotUnique::Reserved),
        ("2620:4f:8000::1", NotUnique::Reserved),
        ("fec0::1", NotUnique::Private),
        ("2001:2::1", NotUnique::Documentation),
        ("2001:0:1::1", NotUnique::Translated),
    ] {
        assert_eq!(ip(text), Some(reason), "{text}");
    }
    let host = |text: &str| host_not_unique(Host::parse(text).unwrap());
    for unique in ["mtc-m18.sid.inpe.br", "local.inpe.br", "example.inpe.br", "home.example-x.com", "a.b"] {
        assert_eq!(host(unique), None, "{unique}");
    }
    for local in ["archive.local", "x.localhost", "x.LAN.", "a.b.internal", "a.home.arpa", "pc.workgroup"] {
        assert_eq!(host(local), Some(NotUnique::LocalName), "{local}");
    }
    for reserved in ["x.test", "archive.example.org", "example.com", "x.invalid", "1.0.0.127.in-addr.arpa"] {
        assert_eq!(host(reserved), Some(NotUnique::ReservedName), "{reserved}");
    }
    let legacy = Label::parse("kLwpN6zZ/kfnE").unwrap();
    assert_eq!(legacy.globally_unique(), None);
    let loopback = Label::parse("LK47B6W/362SFKH").unwrap();
    assert_eq!(loopback.globally_unique(), Some(Err(NotUnique::Loopback)), "read all the same");
}

#[test]
fn the_forms_compare_and_are_kept_by_themselves() {
    let a = Repository::parse("sid.INPE.br/mtc-m18@80/2009/02.16.17.46").unwrap();
    let b = Repository::parse("sid.inpe.br/mtc-m18/2009/02.16.17.46").unwrap();
    assert_eq!(a.into_owned(), b);
    assert_eq!(HashSet::from([a, b]).len(), 1);
    let (a, b) = (Ibip::parse("8jmkd3mgp8w/34pgrbs").unwrap(), Ibip::parse("8JMKD3MGP8W/34PGRBS").unwrap());
    assert_eq!(a.into_owned(), b);
    assert_eq!(HashSet::from([a, b]).len(), 1);
    let a = Legacy::parse("kLwpN6zZ/kfnE").unwrap();
    assert_eq!(a.into_owned(), a);
    assert_ne!(a, Legacy::parse("klwpN6zZ/kfnE").unwrap());
}

#[test]
fn rules_have_distinct_codes() {
    let codes: HashSet<_> = Rule::ALL.iter().map(|rule| rule.code()).collect();
    assert_eq!(codes.len(), Rule::ALL.len());
}

#[test]
fn clause_4_4_labels_of_one_prefix_however_it_is_spelled() {
    let shares = |a: &str, b: &str| Label::parse(a).unwrap().shares_prefix(&Label::parse(b).unwrap());
    let service = "sid.inpe.br/mtc-m18/2008/03.17.15.17";
    assert_eq!(shares("SID.inpe.br/mtc-m18@80/2009/02.16.17.46", service), Some(true));
    assert_eq!(shares("sid.inpe.br/mtc-m18@800/2009/02.16.17.46", service), Some(false));
    assert_eq!(shares("sid.inpe.br/mtc-m19/2009/02.16.17.46", service), Some(false));
    assert_eq!(shares("8JMKD3MGP8W/35MME4E", "8JMKD3MGP8W/34PGRBS"), Some(true));
    assert_eq!(shares("8JMKD3MGP8W/35MME4E", service), None, "different forms do not tell");
    assert_eq!(shares("83LX3pFwXQZeBBx/hwiTk", "83LX3pFwXQZeBBx/hwiTk"), None);
}
