//! One test per rule about instants and the distributor (clause 1.5), named after its clause in
//! `docs/formats/labels.md`.

use ibi_id::{Granularity, Instant, Rule, distributor, repository};

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

#[test]
fn clause_1_5_granularity_changes_between_calls() {
    let r = |text: &str| text.parse::<Granularity>().unwrap();
    let now = at("2026-11-15T18:03:20.123456789Z");
    let mut mark = None;
    let mut dates = Vec::new();
    for step in ["1e-9", "1e-9", "0.1", "1", "60", "1e-9", "1", "0.001"] {
        let turn = distributor::next(mark, now, r(step)).unwrap();
        dates.push(repository::suffix(turn.date).as_str().to_owned());
        mark = Some(turn.mark);
    }
    assert_eq!(
        dates,
        [
            "2026/11.15.18.03.20.123456789",
            "2026/11.15.18.03.20.12345679",
            "2026/11.15.18.03.20.2",
            "2026/11.15.18.03.21",
            "2026/11.15.18.04",
            "2026/11.15.18.04.00.000000001",
            "2026/11.15.18.04.01",
            "2026/11.15.18.04.01.001",
        ]
    );
}

#[test]
fn clause_1_5_an_idle_minter_gives_short_labels() {
    let mark = Some(at("2026-11-15T18:02:59Z"));
    let turn = distributor::next(mark, at("2026-11-15T18:03:20.5Z"), Granularity::NANOSECOND).unwrap();
    assert_eq!(turn.date, at("2026-11-15T18:03:00Z"));
    assert!(turn.creation <= at("2026-11-15T18:03:20.5Z"), "nobody waits");
}

#[test]
fn clause_1_5_dates_end_with_the_year_9999() {
    assert_eq!(distributor::next(Some(Instant::MAX), Instant::MAX, Granularity::NANOSECOND), None);
    assert_eq!(distributor::next(Some(Instant::MAX), Instant::MIN, Granularity::MINUTE), None);
    assert_eq!(distributor::next_2011(Some(Instant::MAX), Instant::MAX), None);
    let first = distributor::next(None, Instant::MIN, Granularity::MINUTE).unwrap();
    assert_eq!(first.date, Instant::MIN);
}

#[test]
fn clause_1_5_granularities_are_read_and_printed() {
    for (text, printed) in [("60", "60"), ("1", "1"), ("0.1", "0.1"), ("1e-9", "0.000000001"), ("1e-0", "1")]
    {
        assert_eq!(text.parse::<Granularity>().unwrap().to_string(), printed);
    }
    for bad in
        ["", "0", "2", "10", "0.5", "0.", "1e-10", "1e-+1", "0.0000000001", "-1", "1.0", "1e-999999999999"]
    {
        assert_eq!(bad.parse::<Granularity>().unwrap_err().rule(), Rule::Granularity, "{bad}");
    }
    assert_eq!(Granularity::all().count(), 11);
}

#[test]
fn instants_are_read_and_printed() {
    for (text, printed, unix) in [
        ("2009-02-16T17:46:00Z", "2009-02-16T17:46:00Z", "1234806360"),
        ("2009-02-16 14:46:00.500-03:00", "2009-02-16T17:46:00.5Z", "1234806360.5"),
        ("1969-12-31t23:59:59.75z", "1969-12-31T23:59:59.75Z", "-0.25"),
        ("-0.25", "1969-12-31T23:59:59.75Z", "-0.25"),
        ("-1", "1969-12-31T23:59:59Z", "-1"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "-62135596800"),
        (
            "9999-12-31T23:59:59.999999999999Z",
            "9999-12-31T23:59:59.999999999999Z",
            "253402300799.999999999999",
        ),
    ] {
        assert_eq!(
            (at(text).to_string(), at(text).unix().to_string()),
            (printed.into(), unix.into()),
            "{text}"
        );
    }
    for (bad, rule) in [
        ("", Rule::Time),
        ("now", Rule::Time),
        ("1e9", Rule::Time),
        ("1.", Rule::Fraction),
        ("1.1234567890123", Rule::Fraction),
        ("2009-02-16", Rule::Time),
        ("2009-02-16T17:46:00", Rule::Time),
        ("2009-02-16T17:46:00+3", Rule::Time),
        ("2009-02-16T17:46:00+24:00", Rule::Time),
        ("2009-02-16T17:46:00+03:60", Rule::Time),
        ("2009-02-16T17:46:00ZZ", Rule::Time),
        ("2009-02-30T17:46:00Z", Rule::Day),
        ("2016-12-31T23:59:60Z", Rule::Second),
        ("0001-01-01T00:00:00+00:01", Rule::InstantRange),
        ("253402300800", Rule::InstantRange),
        ("99999999999999999999", Rule::InstantRange),
    ] {
        let error = bad.parse::<Instant>().unwrap_err();
        assert_eq!(error.rule(), rule, "{bad}");
        assert!(error.position() <= bad.len(), "{bad}");
    }
}

#[test]
fn an_offset_without_colon_is_refused_where_the_colon_is_missing() {
    let error = "2009-02-16T17:46:00-0300".parse::<Instant>().unwrap_err();
    assert_eq!((error.rule(), error.position()), (Rule::Time, 22));
}

#[test]
fn instants_before_1970_are_floored_downwards() {
    assert_eq!(at("1969-12-31T23:59:30.5Z").floor(Granularity::MINUTE), at("1969-12-31T23:59:00Z"));
    assert_eq!(at("1969-12-31T23:59:30.5Z").floor(Granularity::SECOND), at("1969-12-31T23:59:30Z"));
}
