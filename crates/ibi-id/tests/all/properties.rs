//! Properties, compared with the slow transcription in [`crate::norm`].

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use ibi_id::{
    Granularity, Host, IbipPrefix, Instant, Label, RepositoryPrefix, distributor, ibip, repository,
};
use proptest::prelude::*;

use crate::judge::judge;
use crate::norm::{self, ONE_SECOND, Rational};

fn rational(at: Instant) -> Rational {
    Rational::from(at.seconds()) * ONE_SECOND + Rational::from(at.picos())
}

fn granularity() -> impl Strategy<Value = Granularity> {
    (0..11_usize).prop_map(|i| Granularity::all().nth(i).unwrap())
}

/// Instants with fractions of every length.
fn instant(from: i64) -> impl Strategy<Value = Instant> {
    let seconds = prop_oneof![from..=Instant::MAX.seconds(), from.max(0)..=4_000_000_000];
    (seconds, 0..1_000_000_000_000_u64, 0..=12_u32).prop_map(|(seconds, picos, digits)| {
        let unit = 10_u64.pow(12 - digits);
        Instant::new(seconds, picos / unit * unit).unwrap()
    })
}

fn ip() -> impl Strategy<Value = IpAddr> {
    let sparse = prop::array::uniform8(prop_oneof![Just(0), any::<u16>(), 0..16_u16]);
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
        prop::array::uniform4(prop_oneof![Just(0_u8), any::<u8>()])
            .prop_map(|octets| IpAddr::V4(octets.into())),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
        sparse.prop_map(|groups| IpAddr::V6(Ipv6Addr::from(groups))),
        any::<u32>().prop_map(|bits| IpAddr::V6(Ipv4Addr::from(bits).to_ipv6_mapped())),
    ]
}

fn port() -> impl Strategy<Value = NonZeroU16> {
    prop_oneof![Just(80), Just(800), 1..=u16::MAX].prop_map(|port| NonZeroU16::new(port).unwrap())
}

const HOST: &str = "([a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?\\.){1,4}[a-z]([a-z0-9-]{0,5}[a-z0-9])?";

/// Canonical labels of the two forms that can be constructed.
fn canonical() -> impl Strategy<Value = String> {
    prop_oneof![
        (HOST, port(), instant(Instant::MIN.seconds())).prop_map(|(host, port, at)| {
            RepositoryPrefix::new(Host::parse(&host).unwrap(), Some(port)).label(at).unwrap()
        }),
        (ip(), port(), instant(ibip::IBIP_EPOCH_SECONDS)).prop_map(|(ip, port, at)| IbipPrefix::new(
            ip,
            Some(port)
        )
        .label(at)
        .unwrap()),
        "[2-9A-HJ-NP-Ua-km-z]{0,9}Z[2-9A-HJ-NP-Ua-km-z]{0,6}/[2-9a-km-zA-HJ-NP-V]{1,6}",
    ]
}

/// A label with a few bytes changed, removed or inserted: near the boundary of validity.
fn nearly() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..3, "[ -~]|[2-9A-Za-z./@-]|\u{e9}");
    (canonical(), prop::collection::vec(edit, 0..4)).prop_map(|(label, edits)| {
        let mut chars: Vec<char> = label.chars().collect();
        for (index, kind, with) in edits {
            let at = index.index(chars.len() + 1);
            let with = with.chars().next().unwrap();
            match kind {
                0 => chars.insert(at, with),
                1 if at < chars.len() => chars[at] = with,
                _ if at < chars.len() => drop(chars.remove(at)),
                _ => {}
            }
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn print_after_parse_is_the_identity_on_canonical_labels(label in canonical()) {
        prop_assert_eq!(Label::parse(&label).unwrap().to_string(), label);
    }

    #[test]
    fn canonical_labels_are_what_the_norm_builds(
        host in HOST, ip in ip(), port in port(), at in instant(ibip::IBIP_EPOCH_SECONDS)
    ) {
        let prefix = RepositoryPrefix::new(Host::parse(&host).unwrap(), Some(port));
        prop_assert_eq!(prefix.as_str(), norm::algorithm_1(&host, port.get().into()));
        prop_assert_eq!(repository::suffix(at).to_string(), norm::algorithm_2(rational(at)));
        let text = match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => norm::ipv6_text(ip),
        };
        let prefix = IbipPrefix::new(ip, Some(port));
        prop_assert_eq!(prefix.as_str(), norm::algorithm_5(&text, port.get().into()));
        prop_assert_eq!(ibip::suffix(at).unwrap().to_string(), norm::algorithm_6(rational(at)));
    }

    #[test]
    fn each_text_has_the_one_reading_of_the_grammar_or_none(text in nearly()) {
        judge(&text);
    }

    #[test]
    fn any_text_is_read_or_refused_within_it(text in "\\PC{0,300}") {
        judge(&text);
    }

    #[test]
    fn encoding_is_injective_over_mixed_granularities(
        base in 900_000_000..900_000_100_i64,
        dates in prop::collection::vec((0..3_i64, 0..1_000_000_000_000_u64, granularity()), 2..40),
    ) {
        let (mut reps, mut ibips) = (HashMap::new(), HashMap::new());
        for (seconds, picos, r) in dates {
            let at = Instant::new(base + seconds, picos).unwrap().floor(r);
            let rep = repository::suffix(at).as_str().to_owned();
            let opaque = ibip::suffix(at).unwrap().as_str().to_owned();
            prop_assert_eq!(*reps.entry(rep).or_insert(at), at);
            prop_assert_eq!(*ibips.entry(opaque).or_insert(at), at);
        }
    }

    #[test]
    fn dates_strictly_increase_for_any_clock_and_any_granularities(
        start in instant(0),
        // Mostly small steps, forward and back, so that the minter is busy; sometimes a large one.
        steps in prop::collection::vec(
            (prop_oneof![-2_000_000_000_000..3_000_000_000_000_i64, Just(0_i64), -1000..1000_i64], granularity()),
            1..60,
        ),
    ) {
        let mut slow = norm::Algorithm4 { last_date_for_suffix: None, r: 0 };
        let (mut now, mut mark, mut before) = (rational(start), None, None);
        for (step, r) in steps {
            now = (now + Rational::from(step)).max(0);
            let at = Instant::new((now / ONE_SECOND) as i64, (now % ONE_SECOND) as u64);
            let Some(turn) = at.and_then(|at| distributor::next(mark, at, r)) else { break };
            slow.r = if r == Granularity::MINUTE { 60 * ONE_SECOND } else { picos_of(r) };
            prop_assert_eq!(slow.create_date(now), (rational(turn.date), rational(turn.creation)));
            prop_assert!(before < Some(turn.date), "{before:?} {turn:?}");
            prop_assert!(turn.date <= turn.creation);
            prop_assert_eq!(turn.date.floor(r), turn.date);
            (mark, before) = (Some(turn.mark), Some(turn.date));
        }
    }

    #[test]
    fn the_2011_edition_agrees_with_the_norm(
        steps in prop::collection::vec(-70_000..90_000_i64, 1..60),
    ) {
        let mut now = 1_287_587_646_394_i64;
        let requests: Vec<i64> = steps.iter().map(|step| { now += step; now }).collect();
        let slow: Vec<_> = requests.iter().map(|ms| Rational::from(*ms) * 1_000_000_000).collect();
        let (mut mark, mut before) = (None, None);
        for (ms, (creation, date)) in requests.into_iter().zip(norm::edition_2011(&slow)) {
            let at = Instant::new(ms.div_euclid(1000), ms.rem_euclid(1000) as u64 * 1_000_000_000).unwrap();
            let turn = distributor::next_2011(mark, at).unwrap();
            prop_assert_eq!((rational(turn.creation), rational(turn.date)), (creation, date));
            prop_assert!(before < Some(turn.date));
            (mark, before) = (Some(turn.mark), Some(turn.date));
        }
    }

    #[test]
    fn instants_print_what_they_read(at in instant(Instant::MIN.seconds())) {
        prop_assert_eq!(at.to_string().parse::<Instant>().unwrap(), at);
        prop_assert_eq!(at.unix().to_string().parse::<Instant>().unwrap(), at);
    }

    #[test]
    fn any_text_is_an_instant_or_refused_within_it(text in "[-+0-9:.TZtz ]{0,40}") {
        if let Err(error) = text.parse::<Instant>() {
            prop_assert!(error.position() <= text.len());
        }
    }
}

fn picos_of(r: Granularity) -> Rational {
    let digits = r.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.len());
    ONE_SECOND / 10_i128.pow(digits as u32)
}
