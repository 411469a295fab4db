//! The length of labels, and short ASCII texts on the stack, for constructing labels.

use std::fmt;
use std::ops::Deref;

/// Limit on the length of a label (1.4).
pub const MAX_LABEL_BYTES: usize = 255;

/// A suffix as text on the stack, so that minting does not allocate.
#[derive(Clone, Copy)]
pub struct Suffix {
    bytes: [u8; Self::CAPACITY],
    length: u8,
}

impl Suffix {
    /// `9999/12.31.23.59.59.` and twelve digits are 32 bytes; the `ibip` form is shorter.
    const CAPACITY: usize = 32;

    /// An empty text.
    pub const EMPTY: Self = Self { bytes: [0; Self::CAPACITY], length: 0 };

    /// Replaces the text with the first `length` of eight ASCII bytes.
    #[inline]
    pub(crate) fn start(&mut self, ascii: [u8; 8], length: usize) {
        self.bytes[..8].copy_from_slice(&ascii);
        self.length = length as u8;
    }

    /// Appends bytes, which must be ASCII.
    #[inline]
    pub(crate) fn push(&mut self, ascii: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + ascii.len()].copy_from_slice(ascii);
        self.length += ascii.len() as u8;
    }

    /// Appends two decimal digits of a number below 100.
    #[inline]
    pub(crate) fn push_two(&mut self, number: u8) {
        self.push(&[b'0' + number / 10, b'0' + number % 10]);
    }

    /// The text as ASCII bytes: the cheapest form to copy.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever pushed, so the fallback is never used.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl Deref for Suffix {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
