//! SHA-512 with access to its midstates. With known midstates, several segments of the same bytes
//! can be hashed in parallel ([`lanes`]) and still yield the digest of the whole: each segment must
//! end in the state in which the next one begins.

mod lanes;

use sha2::block_api::compress512;

use crate::text_block::hex;

/// Distance between two midstates.
pub(super) const SEGMENT_BYTES: usize = 4 << 20;

/// Size of a midstate: the state of SHA-512 (eight words, big-endian).
pub(super) const MIDSTATE_BYTES: usize = 64;

/// The block size of SHA-512.
const SHA512_BLOCK_BYTES: usize = 128;

type Sha512State = [u64; 8];

/// FIPS 180-4, 5.3.5.
const SHA512_INITIAL_STATE: Sha512State = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// A SHA-512 in progress, with a midstate after each segment.
pub(super) struct MidstateSha512<const SEGMENT: usize> {
    state: Sha512State,
    length: u64,
    /// The incomplete block.
    rest: Vec<u8>,
    midstates: Vec<u8>,
}

impl<const SEGMENT: usize> MidstateSha512<SEGMENT> {
    pub(super) fn new() -> Self {
        Self {
            state: SHA512_INITIAL_STATE,
            length: 0,
            rest: Vec::with_capacity(SHA512_BLOCK_BYTES),
            midstates: Vec::new(),
        }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // Less than a segment, so the cast is lossless.
            let passed = (self.length % SEGMENT as u64) as usize;
            if passed == 0 && self.length > 0 {
                self.push_midstate();
            }
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT - passed));
            self.compress(now);
            bytes = later;
        }
    }

    /// Records a midstate. More bytes must follow it.
    fn push_midstate(&mut self) {
        self.midstates.extend(self.state.iter().flat_map(|word| word.to_be_bytes()));
    }

    fn compress(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(SHA512_BLOCK_BYTES - self.rest.len()));
            self.rest.extend_from_slice(now);
            if self.rest.len() < SHA512_BLOCK_BYTES {
                return;
            }
            compress512(&mut self.state, self.rest.as_chunks().0);
            self.rest.clear();
            bytes = later;
        }
        let (pieces, rest) = bytes.as_chunks();
        compress512(&mut self.state, pieces);
        self.rest.extend_from_slice(rest);
    }

    /// Whether the next segments can be hashed in parallel: `midstates` must have those at which
    /// they begin.
    pub(super) fn can_hash_segments(&self, midstates: &[u8]) -> bool {
        let needed = (self.length / SEGMENT as u64).saturating_add(LANES as u64 - 1);
        self.length.is_multiple_of(SEGMENT as u64)
            && (midstates.len() / MIDSTATE_BYTES) as u64 >= needed
            && lanes::is_simd_available()
    }

    /// Hashes the next segments in parallel, each from its claimed midstate. The claims affect only
    /// the speed: a segment that begins in another state is hashed again from the end of the one
    /// before.
    ///
    /// `segments` are whole segments, each split into parts in the same way; `midstates` are all
    /// midstates.
    pub(super) fn hash_segments(&mut self, segments: [&[&[u8]]; LANES], midstates: &[u8]) {
        // Midstates are counted from the end of the first segment. They fit into memory, so the
        // cast is lossless.
        let segments_before = (self.length / SEGMENT as u64) as usize;
        let starts: [Sha512State; LANES] = std::array::from_fn(|lane| match lane {
            0 => self.state,
            _ => midstate(midstates, segments_before + lane - 1).unwrap_or(SHA512_INITIAL_STATE),
        });
        let mut ends = starts;
        let parts = segments[0].len();
        for part in 0..parts {
            let parts = segments.map(|segment| segment[part]);
            super::cpu_slots::run_in_slot(|| lanes::compress(&mut ends, parts));
        }
        for lane in 0..LANES {
            if self.length > 0 {
                self.push_midstate();
            }
            if self.state == starts[lane] {
                self.state = ends[lane];
                self.length += SEGMENT as u64;
            } else {
                segments[lane].iter().for_each(|part| super::cpu_slots::run_in_slot(|| self.compress(part)));
            }
        }
    }

    /// The digest in hex, and the midstates.
    pub(super) fn finish(mut self) -> (String, Vec<u8>) {
        // FIPS 180-4, 5.1.2: a set bit, zeros, and the length in bits, in 16 bytes at the end of a
        // block.
        let bits = u128::from(self.length) * 8;
        let mut end = std::mem::take(&mut self.rest);
        end.push(0x80);
        end.resize((end.len() + 16).next_multiple_of(SHA512_BLOCK_BYTES) - 16, 0);
        end.extend(bits.to_be_bytes());
        compress512(&mut self.state, end.as_chunks().0);
        let digest: Vec<u8> = self.state.iter().flat_map(|word| word.to_be_bytes()).collect();
        (hex(&digest), self.midstates)
    }
}

pub(super) use lanes::LANES;

fn midstate(midstates: &[u8], number: usize) -> Option<Sha512State> {
    let (words, _) = midstates.get(number.checked_mul(MIDSTATE_BYTES)?..)?.get(..MIDSTATE_BYTES)?.as_chunks();
    let mut state = SHA512_INITIAL_STATE;
    state.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_be_bytes(*bytes));
    Some(state)
}

#[cfg(test)]
mod tests;
