//! Distinguishes a torn write from damage to a line that was once complete.
//!
//! An append that a crash interrupted leaves a line without its newline, or pages that never
//! reached the disk and read as zeros. A line with its newline and without a hole was written
//! completely: if it is unreadable now, it was damaged, and it may have been acknowledged.

use super::line;

/// The unit that a disk writes atomically, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Minimum number of zeros that count as a hole. A single flipped bit can turn a space into one
/// zero.
const MIN_HOLE_BYTES: usize = 8;

/// What follows the last readable line.
#[derive(Debug, Default)]
pub(super) struct UnreadableTail {
    complete_lines: u64,
    has_hole: bool,
    lost_its_end: bool,
}

impl UnreadableTail {
    /// Adds a line, including its newline if it has one, that begins at offset `place`.
    pub(super) fn add(&mut self, bytes: &[u8], place: u64) {
        self.has_hole |= has_hole(bytes, place);
        if bytes.ends_with(b"\n") {
            self.complete_lines += 1;
        } else if let Some((_, all_but_last)) = bytes.split_last() {
            // The line is complete, but its newline became another byte.
            self.lost_its_end = line::parse(&[all_but_last, b"\n"].concat()).is_some();
        }
    }

    /// Whether a torn write explains it.
    pub(super) fn is_torn(&self) -> bool {
        self.has_hole || (self.complete_lines == 0 && !self.lost_its_end)
    }
}

/// Whether these bytes are all zeros within some sector.
fn has_hole(bytes: &[u8], place: u64) -> bool {
    let first = ((SECTOR_BYTES - place % SECTOR_BYTES) as usize).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let mut sectors = std::iter::once(head).chain(rest.chunks(SECTOR_BYTES as usize));
    sectors.any(|sector| {
        let text = sector.strip_suffix(b"\n").unwrap_or(sector);
        text.len() >= MIN_HOLE_BYTES && text.iter().all(|byte| *byte == 0)
    })
}
