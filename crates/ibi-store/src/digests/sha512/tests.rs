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

/// A stretch as long as tests have time for.
const SHORT: usize = 4 * PIECE;

fn plain(bytes: &[u8]) -> (String, Vec<u8>) {
    let mut hash = Sha512::<SHORT>::new();
    hash.update(bytes);
    hash.finish()
}

/// FIPS 180-4 by the examples of NIST, and all lengths about the ends of pieces by another implementation.
#[test]
fn the_digest_is_that_of_the_standard() {
    let abc = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
    assert_eq!(plain(b"abc").0, abc);
    let all = bytes(1300, 1);
    for length in 0..all.len() {
        assert_eq!(plain(&all[..length]).0, hex(&sha2::Sha512::digest(&all[..length])), "{length}");
    }
}

/// The four lanes do what one does.
#[test]
fn lanes_are_as_one_after_the_other() {
    let inputs: [Vec<u8>; LANES] = std::array::from_fn(|lane| bytes(128 * 37, lane as u64));
    let mut states: [State; LANES] = std::array::from_fn(|lane| [lane as u64 ^ 0x0123_4567_89ab_cdef; 8]);
    let mut expected = states;
    for (state, input) in expected.iter_mut().zip(&inputs) {
        compress512(state, input.as_chunks().0);
    }
    lanes::compress(&mut states, std::array::from_fn(|lane| &inputs[lane][..]));
    assert_eq!(states, expected);
}

/// Stations stand where more follows, and nowhere else.
#[test]
fn stations_stand_between_stretches() {
    let all = bytes(2 * SHORT + 1, 7);
    for (length, stations) in [(0, 0), (1, 0), (SHORT, 0), (SHORT + 1, 1), (2 * SHORT, 1), (2 * SHORT + 1, 2)]
    {
        let (_, found) = plain(&all[..length]);
        assert_eq!(found.len(), stations * STATION, "{length}");
        for number in 0..stations {
            let mut state = START;
            compress512(&mut state, all[..(number + 1) * SHORT].as_chunks().0);
            assert_eq!(station(&found, number), Some(state));
        }
    }
}

/// Where all is said that is needed, and not before.
#[test]
fn stretches_go_together_where_all_of_them_are_said() {
    let mut hash = Sha512::<SHORT>::new();
    let said = vec![0; 4 * STATION];
    assert_eq!(hash.can_go_along(&said), lanes::are_fast());
    assert!(!hash.can_go_along(&said[..3 * STATION - 1]));
    hash.update(&[0; SHORT]);
    assert_eq!(hash.can_go_along(&said), lanes::are_fast());
    hash.update(&[0]);
    assert!(!hash.can_go_along(&said), "in the middle of one");
    hash.update(&[0; SHORT - 1]);
    assert!(!hash.can_go_along(&said), "the last is not said");
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(length in 0_usize..3000, cuts in prop::collection::vec(0_usize..3000, 0..8), seed: u64) {
        let all = bytes(length, seed);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(length)).chain([0, length]).collect();
        cuts.sort_unstable();
        let mut hash = Sha512::<SHORT>::new();
        cuts.windows(2).for_each(|pair| hash.update(&all[pair[0]..pair[1]]));
        prop_assert_eq!(hash.finish().0, hex(&sha2::Sha512::digest(&all)));
    }

    /// However it is cut, and whatever is said of stations: digest and stations are those of the bytes.
    #[test]
    fn what_is_said_changes_nothing_but_the_time(
        seed: u64,
        before in 0_usize..4,
        after in 0_usize..2 * SHORT,
        wrong in prop::collection::vec((0_usize..8 * STATION, 1_u8..), 0..3),
        cut in 0_usize..9,
    ) {
        let all = bytes((before + LANES) * SHORT + after, seed);
        let (digest, stations) = plain(&all);
        let mut said = stations.clone();
        for (place, bits) in wrong {
            if let Some(byte) = said.get_mut(place) {
                *byte ^= bits;
            }
        }
        said.truncate(said.len().saturating_sub(cut * STATION / 2));
        let mut hash = Sha512::<SHORT>::new();
        hash.update(&all[..before * SHORT]);
        let stretch = |lane: usize| all[(before + lane) * SHORT..][..SHORT].chunks(SHORT / 4).collect();
        let four: [Vec<&[u8]>; LANES] = std::array::from_fn(stretch);
        hash.stretches(std::array::from_fn(|lane| &four[lane][..]), &said);
        hash.update(&all[(before + LANES) * SHORT..]);
        prop_assert_eq!(hash.finish(), (digest, stations));
    }
}
