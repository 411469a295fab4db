//! Numeric encoding of IP addresses: the text read as a number, in base 11 for IPv4 and base 17 for
//! IPv6 (1.2, D4).

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::digits::{digit_27, meaning};

/// IPv4 texts have at most 15 characters, so their numbers are below 11^15: at most 11 base-27
/// digits.
pub(crate) const V4_DIGITS: usize = 11;
/// IPv6 texts have at most 39 characters, so their numbers are below 17^39: at most 34 base-27
/// digits.
pub(crate) const V6_DIGITS: usize = 34;

/// Encodes the text of an IPv4 address as a number: digits `0`-`9`, and `.` as 10 (Table 7.4).
pub(crate) fn v4_number(ip: Ipv4Addr) -> u64 {
    let mut text = [0; 15];
    let length = write_text(&mut text, format_args!("{ip}"));
    text[..length].iter().fold(0, |n, &c| n * 11 + u64::from(if c == b'.' { 10 } else { c - b'0' }))
}

/// Decodes an IPv4 address from its number; on failure, retries with a leading `0` (D4).
#[inline]
pub(crate) fn v4_from_number(number: u64) -> Option<Ipv4Addr> {
    const POW_6: u64 = 11_u64.pow(6);
    const POW_9: u64 = 11_u64.pow(9);
    if number >= 11_u64.pow(15) {
        return None;
    }
    // Fifteen characters, three at a time, one nibble each: `.` is 0xA. A lost leading `0` is a
    // nibble 0.
    let (high, low) = (number / POW_9, number % POW_9);
    let (middle, last) = (low / POW_6, low % POW_6);
    let triple = |n: u64| u64::from(DIGIT_TRIPLES[n as usize]);
    let text = triple(high / 1331) << 48
        | triple(high % 1331) << 36
        | triple(middle) << 24
        | triple(last / 1331) << 12
        | triple(last % 1331);

    // Only 0xA has bits 3 and 1 set: this leaves the dots, as the lowest bit of their nibbles.
    let mut dots = (text >> 3) & (text >> 1) & 0x0111_1111_1111_1111;
    if dots.count_ones() != 3 {
        return None;
    }
    let mut octets = [0; 4];
    let (mut from, mut valid) = (0, true);
    for octet in octets[1..].iter_mut().rev() {
        let dot = dots.trailing_zeros();
        dots &= dots - 1;
        let (bits, nibbles) = (dot - from, (text >> from) & ((1 << (dot - from)) - 1));
        // Some parsers read a leading zero as octal; no canonical text has one.
        valid &= bits == 4 || (bits > 4 && nibbles >> (bits - 4) != 0);
        valid &= nibbles <= LARGEST_OCTET;
        *octet = octet_of(nibbles);
        from = dot + 4;
    }
    // Leading zeros before the first dot are not visible, and an empty octet there is a lost `0`.
    let nibbles = text >> from;
    octets[0] = octet_of(nibbles);
    (valid && nibbles <= LARGEST_OCTET).then_some(Ipv4Addr::from(octets))
}

/// 255 in nibbles. Decimal digits compare in the same order as their nibbles.
const LARGEST_OCTET: u64 = 0x255;

/// The value of up to three decimal digits in nibbles, at most [`LARGEST_OCTET`].
#[inline]
fn octet_of(nibbles: u64) -> u8 {
    ((nibbles & 0xF) + 10 * ((nibbles >> 4) & 0xF) + 100 * ((nibbles >> 8) & 0xF)) as u8
}

/// The three base-11 digits of each number below 11^3, as nibbles.
const DIGIT_TRIPLES: [u16; 1331] = {
    let mut triples = [0; 1331];
    let mut n = 0;
    while n < 1331 {
        triples[n as usize] = (n / 121) << 8 | (n / 11 % 11) << 4 | (n % 11);
        n += 1;
    }
    triples
};

/// Writes the base-27 digits of an IPv6 address. Its RFC 5952 text is read as a number with digits
/// `0`-`9`, `a`-`f`, and `:` as 16 (Table 7.5). IPv4-mapped addresses are written in hex too (D4).
pub(crate) fn encode_v6(ip: Ipv6Addr, out: &mut impl FnMut(u8)) {
    let mut text = [0; 39];
    let length = match ip.to_ipv4_mapped() {
        None => write_text(&mut text, format_args!("{ip}")),
        Some(_) => {
            let [.., high, low] = ip.segments();
            write_text(&mut text, format_args!("::ffff:{high:x}:{low:x}"))
        }
    };
    let mut number = Uint192::ZERO;
    for &c in &text[..length] {
        let digit = match c {
            b'0'..=b'9' => c - b'0',
            b':' => 16,
            letter => letter - b'a' + 10,
        };
        number.multiply_add(17, digit.into());
    }
    let mut digits = [0; V6_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = digit_27(number.divide(27) as u8);
    }
    // Never 0: the shortest text is `::`.
    digits.into_iter().skip_while(|&digit| digit == digit_27(0)).for_each(out);
}

/// Decodes an IPv6 address from base-27 digits; on failure, retries with a leading `0` (D4).
/// Accepts any RFC 4291 text, as RFC 5952 requires of readers.
pub(crate) fn decode_v6(digits: &[u8]) -> Option<Ipv6Addr> {
    // 27^13 < 2^64: thirteen digits in one step.
    let mut number = Uint192::ZERO;
    for chunk in digits.chunks(13) {
        let (scale, value) =
            chunk.iter().fold((1, 0), |(scale, value), &c| (scale * 27, value * 27 + u64::from(meaning(c))));
        number.multiply_add(scale, value);
    }
    // Forty characters: the longest text with a leading `0`.
    let mut text = [b'0'; 40];
    let mut start = text.len();
    while number != Uint192::ZERO {
        start = start.checked_sub(1)?;
        text[start] = b"0123456789abcdef:"[number.divide(17) as usize];
    }
    let parse = |from: usize| std::str::from_utf8(text.get(from..)?).ok()?.parse().ok();
    parse(start).or_else(|| parse(start.checked_sub(1)?))
}

/// A number below 2^192; 160 bits are needed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Uint192([u64; 3]);

impl Uint192 {
    const ZERO: Self = Self([0; 3]);

    /// `self * factor + addend`, low limb first.
    fn multiply_add(&mut self, factor: u64, addend: u64) {
        let mut carry = u128::from(addend);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
    }

    /// Divides and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut remainder = 0;
        for limb in self.0.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64;
            remainder = dividend % u128::from(divisor);
        }
        remainder as u64
    }
}

/// Formats into a buffer that is large enough, and returns the length.
fn write_text(buffer: &mut [u8], text: std::fmt::Arguments<'_>) -> usize {
    let capacity = buffer.len();
    let mut rest = buffer;
    // A slice rejects only what does not fit, and the callers' buffers hold the longest address.
    let written = rest.write_fmt(text);
    debug_assert!(written.is_ok(), "an address longer than its buffer");
    capacity - rest.len()
}
