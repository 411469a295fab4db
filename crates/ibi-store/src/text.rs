//! Blocks of text with a checksum, as the minter's files have them: `docs/formats/minter-state.md`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::Run;

/// One block: a page of most disks, so that writing one never touches another.
pub(crate) const BLOCK: usize = 4096;

/// Lines of `name value`, the last one a SHA-256 of all before it, filled up with newlines.
pub(crate) struct Block(String);

impl Block {
    pub(crate) fn new(title: &str) -> Self {
        let mut text = String::with_capacity(BLOCK);
        text.push_str(title);
        text.push('\n');
        Self(text)
    }

    /// Adds a line. Values have no newline: they are canonical prefixes, numbers, names of boots.
    pub(crate) fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{name} {value}");
    }

    /// The bytes of a block of this size; nothing if it is too small.
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

/// The lines of a block without title and checksum; nothing unless both are right. What follows the checksum is filling,
/// or what a longer block left.
pub(crate) fn read<'a>(block: &'a [u8], title: &str) -> Option<Vec<(&'a str, &'a str)>> {
    const CHECKSUM: &[u8] = b"\nsha256 ";
    let end = block.windows(CHECKSUM.len()).position(|line| line == CHECKSUM)? + 1;
    let digest = block.get(end + CHECKSUM.len() - 1..)?.get(..64)?;
    if hex(&Sha256::digest(&block[..end])).as_bytes() != digest {
        return None;
    }
    let mut lines = std::str::from_utf8(&block[..end]).ok()?.lines();
    if lines.next()? != title {
        return None;
    }
    lines.map(|line| line.split_once(' ')).collect()
}

/// The value of the one line of this name.
pub(crate) fn value<'a>(lines: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let mut values = lines.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value);
    values.next().filter(|_| values.next().is_none())
}

/// The runs of dates of all lines named `used`.
pub(crate) fn runs(lines: &[(&str, &str)]) -> Option<Vec<Run>> {
    let run = |line: &str| {
        let (first, last) = line.split_once(' ')?;
        Some(Run { first: first.parse().ok()?, last: last.parse().ok()? })
    };
    lines.iter().filter(|(name, _)| *name == "used").map(|(_, line)| run(line)).collect()
}

/// Bytes as two hex digits each.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
