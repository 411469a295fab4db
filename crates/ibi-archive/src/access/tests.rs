use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn rule(text: &str) -> AccessRule {
    text.parse().unwrap()
}

fn error(text: &str) -> String {
    text.parse::<AccessRule>().unwrap_err().to_string()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn clause_2_2_a_public_item_is_open_to_everybody() {
    assert!(rule("public").allows(ip("192.0.2.7"), 0) && rule("public").allows(ip("::1"), i64::MIN));
}

#[test]
fn clause_2_2_a_range_lets_in_its_clients_and_nobody_else() {
    let access = rule("ip:192.0.2.0/24,198.51.100.7,2001:db8::/32");
    for inside in ["192.0.2.0", "192.0.2.255", "198.51.100.7", "2001:db8:ffff::1"] {
        assert!(access.allows(ip(inside), 0), "{inside}");
    }
    for outside in ["192.0.3.0", "192.0.1.255", "198.51.100.8", "2001:db9::", "::1", "::192.0.2.7"] {
        assert!(!access.allows(ip(outside), 0), "{outside}");
    }
}

#[test]
fn clause_2_2_an_embargo_ends_when_its_day_begins_in_utc() {
    let (access, begin) = (rule("until:2030-01-31"), 1_896_048_000);
    assert!(!access.allows(ip("192.0.2.7"), begin - 1) && access.allows(ip("192.0.2.7"), begin));
    assert!(!rule("until:1970-01-01").allows(ip("::1"), -1) && rule("until:1970-01-01").allows(ip("::1"), 0));
}

#[test]
fn an_ipv4_client_of_a_system_with_both_counts_as_ipv4() {
    let access = rule("ip:192.0.2.0/24");
    assert!(access.allows(ip("::ffff:192.0.2.7"), 0) && !access.allows(ip("::ffff:192.0.3.7"), 0));
    assert!(!rule("ip:::/0").allows(ip("::ffff:192.0.2.7"), 0), "all of IPv6 is nothing of IPv4");
    assert!(rule("ip:0.0.0.0/0").allows(ip("::ffff:192.0.2.7"), 0));
}

#[test]
fn the_whole_of_a_range_is_written_without_a_slash_only_for_one_address() {
    for (given, written) in [
        ("ip:192.0.2.7/32", "ip:192.0.2.7"),
        ("ip:2001:DB8:0::/32 , ::1/128", "ip:2001:db8::/32,::1"),
        ("ip:0.0.0.0/00", "ip:0.0.0.0/0"),
        ("until:0001-01-01", "until:0001-01-01"),
    ] {
        assert_eq!(rule(given).to_string(), written);
    }
}

#[test]
fn a_range_that_begins_inside_is_an_error_that_shows_the_right_one() {
    assert!(
        error("ip:10.1.2.3/8")
            .contains("write 10.0.0.0/8 for the whole range, or 10.1.2.3 for the one address")
    );
    assert!(error("ip:2001:db8::7/64").contains("write 2001:db8::/64"));
    assert!(error("ip:1.2.3.4/0").contains("write 0.0.0.0/0"));
    assert!(error("ip:::ffff:10.1.2.3/104").ends_with("write it as IPv4, 10.0.0.0/8"));
    assert!(error("ip:::ffff:10.1.2.3").ends_with("write it as IPv4, 10.1.2.3"));
    assert_eq!(rule("ip:::/8").to_string(), "ip:::/8", "more than what stands for IPv4");
}

#[test]
fn errors_say_what_was_given_and_what_would_do() {
    for text in ["", "Public", "public:", "ip", "private", "open until 2030"] {
        assert!(
            error(text).starts_with(&format!("`{text}` is not an access rule: write `public`")),
            "{text}"
        );
    }
    for text in ["ip:", "ip:10.0.0.0/8,", "ip:10.0.0", "ip:example.org", "ip:fe80::1%eth0", "ip:010.0.0.1"] {
        assert!(error(text).contains("is not an IP address or range"), "{text}");
    }
    for text in [
        "ip:10.0.0.0/33",
        "ip:::/129",
        "ip:10.0.0.0/",
        "ip:10.0.0.0/+8",
        "ip:10.0.0.0/8/8",
        "ip:10.0.0.0/256",
    ] {
        assert!(error(text).contains("the prefix length must be"), "{text}");
    }
    for day in
        ["2030-02-29", "2100-02-29", "2030-00-01", "2030-13-01", "2030-04-31", "2030-01-00", "0000-01-01"]
    {
        assert!(error(&format!("until:{day}")).starts_with(&format!("`{day}` is not a day")), "{day}");
    }
    for day in ["", "2030-1-31", "30-01-31", "2030-01-31T00:00", "+203-01-31", "2030/01/31", "２０３０-01-31"]
    {
        assert!(error(&format!("until:{day}")).contains("is not a day"), "{day}");
    }
    assert!(error(&format!("ip:{}\u{1b}", "9".repeat(100_000))).len() < 300);
}

#[test]
fn there_are_64_ranges_at_most() {
    let ranges = |count: usize| format!("ip:{}", vec!["::1"; count].join(","));
    assert_eq!(rule(&ranges(64)).to_string(), ranges(64));
    assert_eq!(error(&ranges(65)), "65 ranges are too many for one access rule: join them to 64 at most");
}

#[test]
fn json_has_the_text_and_checks_it() {
    let access = rule("ip:192.0.2.0/24");
    assert_eq!(serde_json::to_string(&access).unwrap(), r#""ip:192.0.2.0/24""#);
    assert_eq!(serde_json::from_str::<AccessRule>(r#""ip:192.0.2.0/24""#).unwrap(), access);
    assert!(serde_json::from_str::<AccessRule>(r#""ip:192.0.2.1/24""#).is_err());
}

prop_compose! {
    fn a_range()(four in any::<Option<u32>>(), six in any::<u128>(), prefix in 0..=128_u8) -> AddressRange {
        match four {
            Some(bits) => {
                let prefix = prefix % 33;
                AddressRange { first: network_address(IpAddr::V4(Ipv4Addr::from_bits(bits)), prefix), prefix }
            }
            None => AddressRange { first: network_address(IpAddr::V6(Ipv6Addr::from_bits(six)), prefix), prefix },
        }
    }
}

fn an_access() -> impl Strategy<Value = AccessRule> {
    let date = (1..=9999_u16, 1..=12_u8, 1..=31_u8).prop_map(|(year, month, day)| {
        AccessRule::Until(CalendarDate { year, month, day: day.min(days_in(year, month)) })
    });
    prop_oneof![
        Just(AccessRule::Public),
        prop::collection::vec(a_range(), 1..=64).prop_map(AccessRule::Ip),
        date
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(access in an_access()) {
        prop_assert_eq!(access.to_string().parse(), Ok(access));
    }

    #[test]
    fn what_is_read_is_written_so_that_it_reads_the_same(text in "\\PC*|(ip|until):[0-9a-f.:,/-]{0,20}") {
        if let Ok(access) = text.parse::<AccessRule>() {
            prop_assert_eq!(access.to_string().parse(), Ok(access));
        }
    }

    #[test]
    fn a_range_has_the_addresses_that_share_its_bits(range in a_range(), bits in any::<u128>()) {
        let size = u32::from(bits_of(range.first));
        let shift = size - u32::from(range.prefix);
        let number = |address: IpAddr| match address {
            IpAddr::V4(four) => u128::from(four.to_bits()),
            IpAddr::V6(six) => six.to_bits(),
        };
        // An address of the same family, most often near the range.
        let near = number(range.first) ^ (bits >> (128 - size) >> (bits % u128::from(size)));
        let address = match range.first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(near as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(near)),
        };
        prop_assume!(address.to_canonical() == address);
        let same = (0..size).rev().take_while(|bit| number(address) >> bit & 1 == number(range.first) >> bit & 1).count();
        prop_assert_eq!(range.contains(address), same >= (size - shift) as usize);
    }

    #[test]
    fn days_follow_each_other(year in 1..9999_u16, month in 1..=12_u8, day in 1..=31_u8) {
        let date = CalendarDate { year, month, day: day.min(days_in(year, month)) };
        let next = if date.day < days_in(year, month) {
            CalendarDate { day: date.day + 1, ..date }
        } else if month < 12 {
            CalendarDate { year, month: month + 1, day: 1 }
        } else {
            CalendarDate { year: year + 1, month: 1, day: 1 }
        };
        prop_assert_eq!(date.unix_seconds() + 86_400, next.unix_seconds());
    }
}
