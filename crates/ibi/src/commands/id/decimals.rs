//! The decimal numbers that an opaque label encodes (000 Tables 5.2 and 5.3).

use ibi_id::{Form, Label};
use serde::Serialize;

/// The digits of an `ibip` in order of their values (1.2).
const IBIP_DIGITS: &str = "23456789ABCDEFGHJKLMNPQRSTU";
/// The digits of a legacy suffix (1.3).
const LEGACY_DIGITS: &str = "23456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUV";

/// The parts of a label as decimal numbers. As text, because an IPv6 address has up to 48 digits.
#[derive(Serialize)]
pub(super) struct LabelDecimals {
    /// The text of the IP address, read in base 11 or 17.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The port, unless it is the default, 800.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    /// Seconds since 1995-08-01.
    seconds: String,
    /// The digits after `W`, without leading zeros of the fraction (D3).
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<String>,
}

impl LabelDecimals {
    /// The numbers of a label; `None` for a `rep`, which is decimal already.
    pub(super) fn of<S: AsRef<str>>(label: &Label<S>) -> Option<Self> {
        let decimal = |word: &str| decimal(&word.to_ascii_uppercase(), IBIP_DIGITS);
        match label.form() {
            Form::Repository => None,
            Form::Legacy => Some(Self {
                address: None,
                port: None,
                seconds: self::decimal(label.suffix(), LEGACY_DIGITS),
                fraction: None,
            }),
            Form::Ibip => {
                let (address, port) = label.prefix().split_once(['W', 'w', 'X', 'x'])?;
                let (seconds, fraction) = match label.suffix().split_once(['W', 'w']) {
                    Some((seconds, fraction)) => (seconds, Some(fraction)),
                    None => (label.suffix(), None),
                };
                Some(Self {
                    address: Some(decimal(address)),
                    port: Some(port).filter(|port| !port.is_empty()).map(decimal),
                    seconds: decimal(seconds),
                    fraction: fraction.map(decimal),
                })
            }
        }
    }

    /// The numbers with their names.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("address", self.address.as_deref()),
            ("port", self.port.as_deref()),
            ("seconds since 1995-08-01", Some(self.seconds.as_str())),
            ("fraction", self.fraction.as_deref()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Converts a word to a decimal number of any length. Other characters count as zero; a valid label
/// has none.
fn decimal(word: &str, digits: &str) -> String {
    let base = digits.len() as u32;
    // Decimal digits, least significant first.
    let mut number = vec![0_u8];
    for c in word.chars() {
        // At most 53 digits, which fits.
        let mut carry = digits.find(c).unwrap_or(0) as u32;
        for digit in &mut number {
            let value = u32::from(*digit) * base + carry;
            (*digit, carry) = ((value % 10) as u8, value / 10);
        }
        while carry > 0 {
            number.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    number.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}
