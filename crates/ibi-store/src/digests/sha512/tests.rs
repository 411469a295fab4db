use proptest::prelude::*;
use sha2::Digest as _;

use super::*;

fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut chance = seed | 1;
    let mut next = || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// A segment short enough for tests.
const TEST_SEGMENT_BYTES: usize = 4 * SHA512_BLOCK_BYTES;

fn plain(bytes: &[u8]) -> (String, Vec<u8>) {
    let mut hash = MidstateSha512::<TEST_SEGMENT_BYTES>::new();
    hash.update(bytes);
    hash.finish()
}

/// FIPS 180-4 by the examples of NIST, and all lengths around block boundaries by another
/// implementation.
#[test]
fn the_digest_is_that_of_the_standard() {
    let abc = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
    assert_eq!(plain(b"abc").0, abc);
    let all = bytes(1300, 1);
    for length in 0..all.len() {
        assert_eq!(plain(&all[..length]).0, hex(&sha2::Sha512::digest(&all[..length])), "{length}");
    }
}

/// Four lanes give the same result as one.
#[test]
fn lanes_are_as_one_after_the_other() {
    let inputs: [Vec<u8>; LANES] = std::array::from_fn(|lane| bytes(128 * 37, lane as u64));
    let mut states: [Sha512State; LANES] =
        std::array::from_fn(|lane| [lane as u64 ^ 0x0123_4567_89ab_cdef; 8]);
    let mut expected = states;
    for (state, input) in expected.iter_mut().zip(&inputs) {
        compress512(state, input.as_chunks().0);
    }
    lanes::compress(&mut states, std::array::from_fn(|lane| &inputs[lane][..]));
    assert_eq!(states, expected);
}

/// There is a midstate only where more bytes follow.
#[test]
fn midstates_are_between_segments() {
    let all = bytes(2 * TEST_SEGMENT_BYTES + 1, 7);
    for (length, midstates) in [
        (0, 0),
        (1, 0),
        (TEST_SEGMENT_BYTES, 0),
        (TEST_SEGMENT_BYTES + 1, 1),
        (2 * TEST_SEGMENT_BYTES, 1),
        (2 * TEST_SEGMENT_BYTES + 1, 2),
    ] {
        let (_, found) = plain(&all[..length]);
        assert_eq!(found.len(), midstates * MIDSTATE_BYTES, "{length}");
        for number in 0..midstates {
            let mut state = SHA512_INITIAL_STATE;
            compress512(&mut state, all[..(number + 1) * TEST_SEGMENT_BYTES].as_chunks().0);
            assert_eq!(midstate(&found, number), Some(state));
        }
    }
}

/// Only once all the needed midstates are given.
#[test]
fn segments_are_parallel_once_all_midstates_are_known() {
    let mut hash = MidstateSha512::<TEST_SEGMENT_BYTES>::new();
    let claimed = vec![0; 4 * MIDSTATE_BYTES];
    assert_eq!(hash.can_hash_segments(&claimed), lanes::is_simd_available());
    assert!(!hash.can_hash_segments(&claimed[..3 * MIDSTATE_BYTES - 1]));
    hash.update(&[0; TEST_SEGMENT_BYTES]);
    assert_eq!(hash.can_hash_segments(&claimed), lanes::is_simd_available());
    hash.update(&[0]);
    assert!(!hash.can_hash_segments(&claimed), "within a segment");
    hash.update(&[0; TEST_SEGMENT_BYTES - 1]);
    assert!(!hash.can_hash_segments(&claimed), "the last midstate is missing");
}

proptest! {
    #[test]
    fn the_digest_does_not_depend_on_the_split(length in 0_usize..3000, cuts in prop::collection::vec(0_usize..3000, 0..8), seed: u64) {
        let all = bytes(length, seed);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(length)).chain([0, length]).collect();
        cuts.sort_unstable();
        let mut hash = MidstateSha512::<TEST_SEGMENT_BYTES>::new();
        cuts.windows(2).for_each(|pair| hash.update(&all[pair[0]..pair[1]]));
        prop_assert_eq!(hash.finish().0, hex(&sha2::Sha512::digest(&all)));
    }

    /// However the input is split, and whatever midstates are claimed, digest and midstates are
    /// those of the bytes.
    #[test]
    fn wrong_midstates_change_only_the_time(
        seed: u64,
        before in 0_usize..4,
        after in 0_usize..2 * TEST_SEGMENT_BYTES,
        wrong in prop::collection::vec((0_usize..8 * MIDSTATE_BYTES, 1_u8..), 0..3),
        cut in 0_usize..9,
    ) {
        let all = bytes((before + LANES) * TEST_SEGMENT_BYTES + after, seed);
        let (digest, midstates) = plain(&all);
        let mut claimed = midstates.clone();
        for (index, bits) in wrong {
            if let Some(byte) = claimed.get_mut(index) {
                *byte ^= bits;
            }
        }
        claimed.truncate(claimed.len().saturating_sub(cut * MIDSTATE_BYTES / 2));
        let mut hash = MidstateSha512::<TEST_SEGMENT_BYTES>::new();
        hash.update(&all[..before * TEST_SEGMENT_BYTES]);
        let segment = |lane: usize| all[(before + lane) * TEST_SEGMENT_BYTES..][..TEST_SEGMENT_BYTES].chunks(TEST_SEGMENT_BYTES / 4).collect();
        let segments: [Vec<&[u8]>; LANES] = std::array::from_fn(segment);
        hash.hash_segments(std::array::from_fn(|lane| &segments[lane][..]), &claimed);
        hash.update(&all[(before + LANES) * TEST_SEGMENT_BYTES..]);
        prop_assert_eq!(hash.finish(), (digest, midstates));
    }
}
