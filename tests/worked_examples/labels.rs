//! Examples that need no server: labels, the distributor, numbers, lists of pairs.

use ibi_protocol::{Pairs, PairsLimits};
use serde_json::{Value, json};

use super::{each, texts};
use crate::binary::{ibi, ibi_with};

/// The 27 digits, to measure what the binary encodes.
const DIGITS: &str = "23456789ABCDEFGHJKLMNPQRSTU";

/// 1995-08-01, from which the form `ibip` counts.
const FIRST_INSTANT: u64 = 807_235_200;

/// Builds a label, reads it back, and compares it with the one that is printed.
pub(super) fn built(input: &Value) -> Value {
    let (option, from) = match input["host"].as_str() {
        Some(host) => ("--host", host),
        None => ("--ip", input["ip"].as_str().unwrap()),
    };
    let label = encode(&[option, from, "--port", &input["port"].to_string()], input["at"].as_str().unwrap());
    let parsed = ibi(&["id", "parse", "--json", &label]).json().remove(0);
    let printed = input["printed"].as_str().unwrap();
    let equal = ibi(&["id", "equal", &label, printed]).stdout.trim_end().to_owned();
    json!({ "label": label, "compared": equal, "port": parsed["port"], "instant": parsed["instant"],
            "minted_by": if parsed["host"].is_null() { &parsed["ip"] } else { &parsed["host"] } })
}

fn encode(arguments: &[&str], at: &str) -> String {
    let run = ibi(&[&["id", "encode"], arguments, &["--at", at]].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.stdout.trim_end().to_owned()
}

/// The form of each label, or `refused`.
pub(super) fn read(input: &Value) -> Value {
    each(&texts(input), |label| {
        let parsed = ibi(&["id", "parse", "--json", "--", label]).json().remove(0);
        if parsed["valid"] == true { parsed["form"].clone() } else { "refused".into() }
    })
}

/// The rows of a table of the distributor.
pub(super) fn distributed(input: &Value) -> Value {
    let requests = input["requests"].as_array().unwrap();
    let times: String =
        requests.iter().map(|row| format!("{}\n", row["requested"].as_str().unwrap())).collect();
    let edition = input["edition"].as_str().unwrap();
    let arguments = ["id", "distribute", "--granularity", "1", "--json", "--edition", edition];
    let run = ibi_with(&arguments, times.as_bytes());
    assert_eq!(run.status, 0, "{}", run.stderr);
    let rows = run.json().into_iter().zip(requests).map(|(mut row, request)| {
        row["item"] = request["item"].clone();
        row
    });
    rows.collect()
}

/// The number that the text of an address is read as.
pub(super) fn to_decimal(input: &Value) -> Value {
    let texts = texts(input);
    each(&texts, |text| {
        let label = encode(&["--ip", text], "807235200");
        let run = ibi(&["id", "parse", "--verbose", "--json", &label]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json().remove(0)["decimals"]["address"].clone()
    })
}

/// What a number is in base 27: as seconds after the first instant, or as the text of an address.
pub(super) fn from_decimal(input: &Value) -> Value {
    each(&texts(input), |decimal| {
        let number: u128 = decimal.parse().unwrap();
        if number < 250_000_000_000 {
            let at = (u128::from(FIRST_INSTANT) + number).to_string();
            return encode(&["--ip", "8.8.8.8"], &at).split_once('/').unwrap().1.into();
        }
        let written = |digits: &[u8]| {
            let (mut rest, mut text) = (number, Vec::new());
            while rest > 0 {
                text.push(digits[usize::try_from(rest % digits.len() as u128).unwrap()]);
                rest /= digits.len() as u128;
            }
            text.reverse();
            String::from_utf8(text).unwrap()
        };
        let ipv4 = written(b"0123456789.");
        let text =
            if ipv4.parse::<std::net::Ipv4Addr>().is_ok() { ipv4 } else { written(b"0123456789abcdef:") };
        let label = encode(&["--ip", &text], "807235200");
        label.split(['W', 'X']).next().unwrap().into()
    })
}

/// A table of digits, measured: what a number is written as, or what a character counts for.
pub(super) fn digits(input: &Value) -> Value {
    let prefix = |ip: &str| {
        let label = encode(&["--ip", ip], "807235200");
        let digit = |digit| DIGITS.find(digit).unwrap() as u64;
        label.split(['W', 'X']).next().unwrap().chars().fold(0, |number, c| 27 * number + digit(c))
    };
    let values: Vec<(u64, String)> = match input.as_str().unwrap() {
        "IBIp" => (0..27)
            .map(|value| {
                let label = encode(&["--ip", "8.8.8.8"], &(FIRST_INSTANT + value).to_string());
                (value, label.split_once('/').unwrap().1.to_owned())
            })
            .collect(),
        // The last digit of an address alone changes the number, by what it counts for; then the
        // sign follows.
        "IPv4" => {
            let digits =
                (0..10).map(|d| (prefix(&format!("1.1.1.1{d}")) - prefix("1.1.1.10"), d.to_string()));
            // 1.1.1.1 is 1·11^6 + x·11^5 + 1·11^4 + x·11^3 + 1·11^2 + x·11 + 1.
            let [base, dots] =
                [11_u64.pow(6) + 11_u64.pow(4) + 11_u64.pow(2) + 1, 11_u64.pow(5) + 11_u64.pow(3) + 11];
            let dot = (prefix("1.1.1.1") - base) / dots;
            digits.chain([(dot, ".".to_owned())]).collect()
        }
        _ => {
            let digits = "0123456789abcdef"
                .chars()
                .map(|d| (prefix(&format!("1::1{d}")) - prefix("1::10"), d.to_string()));
            // 1::11 is 1·17^4 + x·17^3 + x·17^2 + 1·17 + 1.
            let colon = (prefix("1::11") - 17_u64.pow(4) - 18) / (17_u64.pow(3) + 17_u64.pow(2));
            digits.chain([(colon, ":".to_owned())]).collect()
        }
    };
    values.into_iter().map(|(value, digit)| (value.to_string(), Value::String(digit))).collect()
}

/// The pairs of each text: the library that both servers read with, for the binary adds nothing.
pub(super) fn pairs(input: &Value) -> Value {
    each(&texts(input), |text| match Pairs::read(text.as_bytes(), &PairsLimits::default()) {
        Err(_) => "refused".into(),
        Ok(pairs) => pairs.iter().map(|(name, value)| json!([name, value.as_str()])).collect(),
    })
}
