use super::sha512::MIDSTATE_BYTES;
use super::*;

/// `docs/formats/item.md`, from another implementation: the midstate after 4 MiB of zeros.
const MIDSTATE_AFTER_ZEROS: &str = "988f6ba360aa9ed0f088a4cf4435d208282300cb49865498f2985be207e4decdb55bc2ca48281a8c741f1e1af2b625fe449d80ae67b2e04b48d4e57c43dc84e7";

#[test]
fn midstates_are_as_specified() {
    assert_eq!(hex(&ContentDigests::of(&vec![0; SEGMENT_BYTES + 1]).stations), MIDSTATE_AFTER_ZEROS);
}

/// Whatever midstates are claimed, the copy and its digests are correct, also where fewer segments
/// remain than are hashed in parallel.
#[test]
fn midstates_do_not_change_a_copy() {
    let bytes: Vec<u8> = (0..5 * SEGMENT_BYTES + 5 * DIGEST_BLOCK_BYTES + 77)
        .map(|place| ((place >> 7) ^ (place * 31)) as u8)
        .collect();
    let expected = ContentDigests::of(&bytes);
    assert_eq!(expected.stations.len(), 6 * MIDSTATE_BYTES);
    let mut wrong = expected.stations.clone();
    wrong[2 * MIDSTATE_BYTES] ^= 1;
    for midstates in [&[][..], &expected.stations, &expected.stations[..3 * MIDSTATE_BYTES + 1], &wrong] {
        let mut copied = Vec::new();
        let digests = copy_with_midstates(&mut &bytes[..], &mut copied, midstates).unwrap();
        assert!(digests == expected && copied == bytes, "with {} bytes of midstates", midstates.len());
    }
}
