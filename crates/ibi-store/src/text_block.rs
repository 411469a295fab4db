//! Text blocks with a checksum, for the minter's files: `docs/formats/minter-state.md`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::IssuedRange;

/// The size of a block: a page on most disks, so that writing one never touches another.
pub(crate) const TEXT_BLOCK_BYTES: usize = 4096;

/// Lines of `name value`. The last one is a SHA-256 of all before it. Padded with newlines.
pub(crate) struct ChecksummedBlock(String);

impl ChecksummedBlock {
    pub(crate) fn new(title: &str) -> Self {
        let mut text = String::with_capacity(TEXT_BLOCK_BYTES);
        text.push_str(title);
        text.push('\n');
        Self(text)
    }

    /// Adds a line. Values have no newline: they are canonical prefixes, numbers or boot ids.
    pub(crate) fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a `String` does not fail.
        let _ = writeln!(self.0, "{name} {value}");
    }

    /// The bytes of a block of this size; `None` if the text does not fit.
    pub(crate) fn finish(mut self, size: usize) -> Option<Vec<u8>> {
        let digest = hex(&Sha256::digest(self.0.as_bytes()));
        self.line("sha256", digest);
        let mut bytes = self.0.into_bytes();
        if bytes.len() > size {
            return None;
        }
        bytes.resize(size, b'\n');
        Some(bytes)
    }
}

/// The lines of a block without title and checksum; `None` unless both are correct. What follows
/// the checksum is padding, or the remainder of a longer block.
pub(crate) fn parse_block<'a>(block: &'a [u8], title: &str) -> Option<Vec<(&'a str, &'a str)>> {
    const CHECKSUM_PREFIX: &[u8] = b"\nsha256 ";
    let end = block.windows(CHECKSUM_PREFIX.len()).position(|line| line == CHECKSUM_PREFIX)? + 1;
    let digest = block.get(end + CHECKSUM_PREFIX.len() - 1..)?.get(..64)?;
    if hex(&Sha256::digest(&block[..end])).as_bytes() != digest {
        return None;
    }
    let mut lines = std::str::from_utf8(&block[..end]).ok()?.lines();
    if lines.next()? != title {
        return None;
    }
    lines.map(|line| line.split_once(' ')).collect()
}

/// The value of the line with this name; `None` unless there is exactly one.
pub(crate) fn single_value<'a>(lines: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let mut values = lines.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value);
    values.next().filter(|_| values.next().is_none())
}

/// The ranges of dates from all lines named `used`.
pub(crate) fn parse_ranges(lines: &[(&str, &str)]) -> Option<Vec<IssuedRange>> {
    let run = |line: &str| {
        let (first, last) = line.split_once(' ')?;
        Some(IssuedRange { first: first.parse().ok()?, last: last.parse().ok()? })
    };
    lines.iter().filter(|(name, _)| *name == "used").map(|(_, line)| run(line)).collect()
}

/// Bytes as two hex digits each.
pub fn hex(bytes: &[u8]) -> String {
    const HEX_ALPHABET: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(HEX_ALPHABET[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
