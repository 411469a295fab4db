//! SHA-512 whose state can be seen on the way. What it was at some places lets who reads the same bytes again hash several
//! stretches at once ([`lanes`]), and still know the digest of the whole: each stretch must end as the next one begins.

mod lanes;

use sha2::block_api::compress512;

use crate::text::hex;

/// Between two stations.
pub(super) const STRETCH: usize = 4 << 20;

/// Bytes of a station: the state of SHA-512 (eight words, the first byte of each first).
pub(super) const STATION: usize = 64;

/// What SHA-512 takes at a time.
const PIECE: usize = 128;

type State = [u64; 8];

/// FIPS 180-4, 5.3.5.
const START: State = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// A SHA-512 that is on its way, with a station after each stretch.
pub(super) struct Sha512<const STRETCH: usize> {
    state: State,
    length: u64,
    /// The begun piece.
    rest: Vec<u8>,
    stations: Vec<u8>,
}

impl<const STRETCH: usize> Sha512<STRETCH> {
    pub(super) fn new() -> Self {
        Self { state: START, length: 0, rest: Vec::with_capacity(PIECE), stations: Vec::new() }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // At most a stretch: fits.
            let passed = (self.length % STRETCH as u64) as usize;
            if passed == 0 && self.length > 0 {
                self.stop();
            }
            let (now, later) = bytes.split_at(bytes.len().min(STRETCH - passed));
            self.compress(now);
            bytes = later;
        }
    }

    /// A station: some more bytes follow it.
    fn stop(&mut self) {
        self.stations.extend(self.state.iter().flat_map(|word| word.to_be_bytes()));
    }

    fn compress(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.rest.len()));
            self.rest.extend_from_slice(now);
            if self.rest.len() < PIECE {
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

    /// Whether the next stretches can be hashed at once: it is said where all of them begin.
    pub(super) fn can_go_along(&self, said: &[u8]) -> bool {
        let needed = (self.length / STRETCH as u64).saturating_add(LANES as u64 - 1);
        self.length.is_multiple_of(STRETCH as u64)
            && (said.len() / STATION) as u64 >= needed
            && lanes::are_fast()
    }

    /// Hashes the next stretches at once, by where each is said to begin. What is said decides how fast this is, and nothing else:
    /// a stretch that begins otherwise is hashed again from where the one before it ended.
    ///
    /// `stretches` are whole ones, each in parts that are alike; `said` are all stations.
    pub(super) fn stretches(&mut self, stretches: [&[&[u8]]; LANES], said: &[u8]) {
        // Stations are counted from the end of the first stretch, and fit into memory.
        let before = (self.length / STRETCH as u64) as usize;
        let begins: [State; LANES] = std::array::from_fn(|lane| match lane {
            0 => self.state,
            _ => station(said, before + lane - 1).unwrap_or(START),
        });
        let mut ends = begins;
        let parts = stretches[0].len();
        for part in 0..parts {
            let parts = stretches.map(|stretch| stretch[part]);
            super::turns::take(|| lanes::compress(&mut ends, parts));
        }
        for lane in 0..LANES {
            if self.length > 0 {
                self.stop();
            }
            if self.state == begins[lane] {
                self.state = ends[lane];
                self.length += STRETCH as u64;
            } else {
                stretches[lane].iter().for_each(|part| super::turns::take(|| self.compress(part)));
            }
        }
    }

    /// The digest in hex, and the stations.
    pub(super) fn finish(mut self) -> (String, Vec<u8>) {
        // FIPS 180-4, 5.1.2: a bit that is set, zeros, and the length in bits, in 16 bytes at the end of a piece.
        let bits = u128::from(self.length) * 8;
        let mut end = std::mem::take(&mut self.rest);
        end.push(0x80);
        end.resize((end.len() + 16).next_multiple_of(PIECE) - 16, 0);
        end.extend(bits.to_be_bytes());
        compress512(&mut self.state, end.as_chunks().0);
        let digest: Vec<u8> = self.state.iter().flat_map(|word| word.to_be_bytes()).collect();
        (hex(&digest), self.stations)
    }
}

pub(super) use lanes::LANES;

fn station(said: &[u8], number: usize) -> Option<State> {
    let (words, _) = said.get(number.checked_mul(STATION)?..)?.get(..STATION)?.as_chunks();
    let mut state = START;
    state.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_be_bytes(*bytes));
    Some(state)
}

#[cfg(test)]
mod tests;
