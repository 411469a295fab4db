use super::sha512::STATION;
use super::*;

/// `docs/formats/item.md`, from another implementation: the station after 4 MiB of zeros.
const AFTER_ZEROS: &str = "988f6ba360aa9ed0f088a4cf4435d208282300cb49865498f2985be207e4decdb55bc2ca48281a8c741f1e1af2b625fe449d80ae67b2e04b48d4e57c43dc84e7";

#[test]
fn stations_are_written_as_the_format_says() {
    assert_eq!(hex(&Digests::of(&vec![0; STRETCH + 1]).stations), AFTER_ZEROS);
}

/// Whatever is said of a file's stations, its copy and its digests are right: also where the last stretches are fewer than go
/// together.
#[test]
fn a_copy_is_the_same_with_stations_and_without() {
    let bytes: Vec<u8> =
        (0..5 * STRETCH + 5 * BLOCK + 77).map(|place| ((place >> 7) ^ (place * 31)) as u8).collect();
    let expected = Digests::of(&bytes);
    assert_eq!(expected.stations.len(), 6 * STATION);
    let mut wrong = expected.stations.clone();
    wrong[2 * STATION] ^= 1;
    for said in [&[][..], &expected.stations, &expected.stations[..3 * STATION + 1], &wrong] {
        let mut copied = Vec::new();
        let digests = copy_along(&mut &bytes[..], &mut copied, said).unwrap();
        assert!(digests == expected && copied == bytes, "with {} bytes of stations", said.len());
    }
}
