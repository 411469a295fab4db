//! Recovers lines from damaged bytes: the checksum confirms the correction of a single bit.

use sha2::{Digest as _, Sha256};

use super::line;
use crate::text_block::hex;

/// Maximum length of a line that is corrected, in bytes: a line with all the usual fields. The work
/// grows quadratically with the length.
const MAX_CORRECTED_BYTES: usize = 20 << 10;

/// The field name before the checksum.
const CHECKSUM_FIELD: &[u8] = b" sha256=";

/// Number of hex digits of a checksum.
const CHECKSUM_DIGITS: usize = 16;

/// The original lines of damaged bytes, as far as a single flipped bit in each explains the damage.
pub(crate) fn correct_lines(damaged: &[u8], first: u64, next: Option<u64>) -> Vec<(u64, Vec<u8>)> {
    let is_missing = |number: u64| number >= first && next.is_none_or(|next| number < next);
    let mut lines = Vec::new();
    let mut push = |line: Vec<u8>| {
        let number = line::parse(&line).map(|(number, ..)| number).filter(|number| is_missing(*number));
        number.is_some_and(|number| {
            lines.push((number, line));
            true
        })
    };
    // A bit flip that creates a newline splits a line in two, so try all bytes as one line first.
    let one = damaged.strip_suffix(b"\n").unwrap_or(damaged);
    if correct_one_bit(one).is_some_and(&mut push) {
        return lines;
    }
    for mut rest in damaged.split_inclusive(|byte| *byte == b'\n') {
        // A bit flip in a newline joins two lines.
        while let Some(end) = end_of_line(rest) {
            push([&rest[..end], b"\n"].concat());
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        if let Some(line) = correct_one_bit(rest.strip_suffix(b"\n").unwrap_or(rest)) {
            push(line);
        }
    }
    lines
}

/// The end of the line that these bytes begin with, found by its checksum.
fn end_of_line(bytes: &[u8]) -> Option<usize> {
    let marks =
        bytes.windows(CHECKSUM_FIELD.len()).enumerate().filter(|(_, window)| *window == CHECKSUM_FIELD);
    let mut ends =
        marks.map(|(at, _)| at + CHECKSUM_FIELD.len() + CHECKSUM_DIGITS).filter(|end| *end <= bytes.len());
    ends.find(|end| line::parse(&[&bytes[..*end], b"\n"].concat()).is_some())
}

/// The line that differs from these bytes in one bit.
fn correct_one_bit(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = bytes.len().checked_sub(CHECKSUM_FIELD.len() + CHECKSUM_DIGITS)?;
    if bytes.len() > MAX_CORRECTED_BYTES {
        return None;
    }
    let (text, found) = bytes.split_at(length);
    let finished = |text: &[u8], digest: &[u8]| [text, CHECKSUM_FIELD, digest, b"\n"].concat();
    let expected = checksum(Sha256::new(), text);
    let differing: u32 = found
        .iter()
        .zip([CHECKSUM_FIELD, expected.as_bytes()].concat())
        .map(|(a, b)| (a ^ b).count_ones())
        .sum();
    if differing <= 1 {
        return Some(finished(text, expected.as_bytes()));
    }
    let digest = found.strip_prefix(CHECKSUM_FIELD)?;
    let mut text = text.to_vec();
    let mut before = Sha256::new();
    for at in 0..text.len() {
        for bit in 0..8 {
            text[at] ^= 1_u8 << bit;
            if checksum(before.clone(), &text[at..]).as_bytes() == digest {
                return Some(finished(&text, digest));
            }
            text[at] ^= 1_u8 << bit;
        }
        before.update(&text[at..=at]);
    }
    None
}

fn checksum(mut before: Sha256, rest: &[u8]) -> String {
    before.update(rest);
    hex(&before.finalize()[..CHECKSUM_DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever bit of a line is flipped, the line is recovered.
    #[test]
    fn every_single_bit_flip_is_corrected() {
        let text = "7 2026-11-15T21:27:00Z void batch=7 lines=5,6";
        let line = format!("{text} sha256={}\n", checksum(Sha256::new(), text.as_bytes())).into_bytes();
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut damaged = line.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(correct_lines(&damaged, 7, Some(8)), [(7, line.clone())], "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn lines_joined_by_a_flipped_newline_are_split_again() {
        let line = |number: u64| {
            let text = format!("{number} 2026-11-15T21:27:00Z void batch=7 lines=5,6");
            format!("{text} sha256={}\n", checksum(Sha256::new(), text.as_bytes())).into_bytes()
        };
        let mut damaged = [line(7), line(8)].concat();
        let end = line(7).len() - 1;
        damaged[end] ^= 4;
        assert_eq!(correct_lines(&damaged, 7, Some(9)), [(7, line(7)), (8, line(8))]);
    }
}
