//! The standard's worked examples (`tests/fixtures/`), run through the library. The system tests
//! run them through the binary.

use std::net::IpAddr;
use std::num::NonZeroU16;

use ibi_id::{
    Granularity, Host, IbipPrefix, Instant, Label, RepositoryPrefix, distributor, ibip, repository,
};
use serde_json::Value;

use crate::norm;

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn identifiers() -> Value {
    fixture(include_str!("../../../../tests/fixtures/identifiers.json"))
}

fn rows<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let rows = value[name].as_array().unwrap();
    assert!(!rows.is_empty());
    rows
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

fn port(row: &Value) -> Option<NonZeroU16> {
    NonZeroU16::new(row["port"].as_u64().unwrap().try_into().unwrap())
}

#[test]
fn table_7_2_and_7_3_conversions() {
    // The transcription must reproduce them too, to be a valid reference.
    for row in rows(&identifiers(), "to_decimal") {
        let table = if text(row, "table") == "ipv4" { norm::DECIM_TO_IPV4 } else { norm::DECIM_TO_IPV6 };
        assert_eq!(norm::convert_to_decimal(text(row, "text"), table), text(row, "decimal"));
        let ip: IpAddr = text(row, "text").parse().unwrap();
        let coded = norm::convert_from_decimal(text(row, "decimal"), norm::DECIM_TO_IBIP);
        let mark = if ip.is_ipv4() { "W" } else { "X" };
        let prefix = IbipPrefix::new(ip, None);
        assert_eq!(prefix.as_str(), format!("{coded}{mark}"));
    }
    for row in rows(&identifiers(), "from_decimal") {
        let (decimal, coded) = (text(row, "decimal"), text(row, "ibip"));
        assert_eq!(norm::convert_from_decimal(decimal, norm::DECIM_TO_IBIP), coded);
        if let Ok(seconds) = decimal.parse::<i64>()
            && let Some(at) = Instant::new(seconds + ibip::IBIP_EPOCH_SECONDS, 0)
        {
            assert_eq!(ibip::suffix(at).unwrap().as_str(), coded);
        }
    }
}

#[test]
fn minted_labels() {
    for row in rows(&identifiers(), "mint") {
        let at: Instant = text(row, "unix").parse().unwrap();
        if let Some(host) = row["host"].as_str() {
            let prefix = RepositoryPrefix::new(Host::parse(host).unwrap(), port(row));
            assert_eq!(prefix.label(at).unwrap(), text(row, "rep"));
        } else {
            let prefix = IbipPrefix::new(text(row, "ip").parse().unwrap(), port(row));
            assert_eq!(prefix.label(at).unwrap(), text(row, "ibip"));
        }
    }
}

#[test]
fn decoded_prefixes() {
    for row in rows(&identifiers(), "decode_prefix") {
        let label = format!("{}/34PGRBS", text(row, "prefix"));
        let label = Label::parse(&label).unwrap();
        assert_eq!(label.ip().unwrap().to_string(), text(row, "ip"));
        assert_eq!(label.port(), port(row).map(NonZeroU16::get));
    }
}

#[test]
fn two_forms_of_one_item_tell_one_minute() {
    for row in rows(&identifiers(), "two_forms_of_one_item") {
        let rep = Label::parse(text(row, "rep")).unwrap();
        let ibip = Label::parse(text(row, "ibip")).unwrap();
        let minute = |label: &Label<&str>| label.instant().floor(Granularity::MINUTE);
        assert_eq!(minute(&rep), minute(&ibip), "{row}");
        assert_ne!(rep, ibip, "1.3: only a record ties two forms");
    }
}

#[test]
fn valid_equal_and_invalid() {
    let identifiers = identifiers();
    for label in rows(&identifiers, "valid_rep") {
        assert_eq!(Label::parse(label.as_str().unwrap()).unwrap().form().name(), "rep");
    }
    for group in rows(&identifiers, "equal") {
        let group: Vec<_> = group.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
        for (a, b) in group.iter().flat_map(|a| group.iter().map(move |b| (a, b))) {
            assert_eq!(Label::parse(a).unwrap(), Label::parse(b).unwrap());
        }
    }
    for label in rows(&identifiers, "invalid") {
        let label = label.as_str().unwrap();
        let error = Label::parse(label).unwrap_err();
        assert!(error.position() <= label.len(), "{label}: {error}");
        assert_eq!(norm::read(label), None, "{label}");
    }
}

#[test]
fn legacy_labels() {
    for row in rows(&identifiers(), "legacy") {
        let label = Label::parse(text(row, "ibi")).unwrap();
        assert_eq!(label.form().name(), "legacy");
        assert_eq!(label.instant().unix().to_string(), text(row, "unix"));
    }
}

#[test]
fn fractions() {
    for row in rows(&identifiers(), "fraction") {
        let at: Instant = text(row, "unix").parse().unwrap();
        assert_eq!(repository::suffix(at).as_str(), text(row, "rep"));
        assert_eq!(ibip::suffix(at).unwrap().as_str(), text(row, "ibip"));
    }
}

#[test]
fn table_6_2_the_2015_distributor() {
    let table = &fixture(include_str!("../../../../tests/fixtures/distributor.json"))["2015"];
    let r: Granularity = text(table, "granularity").parse().unwrap();
    let mut last = None;
    for row in rows(table, "rows") {
        let turn = distributor::next(last, text(row, "requested").parse().unwrap(), r).unwrap();
        assert_eq!(turn.date.unix().to_string(), text(row, "date"));
        assert_eq!(repository::suffix(turn.date).as_str(), text(row, "suffix"));
        last = Some(turn.mark);
    }
}

#[test]
fn table_4_2_the_2011_distributor() {
    let table = &fixture(include_str!("../../../../tests/fixtures/distributor.json"))["2011"];
    let mut last: Option<Instant> = None;
    for row in rows(table, "rows") {
        let turn = distributor::next_2011(last, text(row, "requested").parse().unwrap()).unwrap();
        let previous = last.map_or("0".to_owned(), |last| last.unix().to_string());
        assert_eq!(row["pair"], serde_json::json!([turn.creation.unix().to_string(), previous]));
        assert_eq!(repository::suffix(turn.date).as_str(), text(row, "suffix"));
        last = Some(turn.mark);
    }
}
