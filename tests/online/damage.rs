//! Damage on disk: damaged bytes are never served.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use super::{Folder, bytes};

const MIB: usize = 1 << 20;

/// Every block is verified before it is sent, also for ranges.
#[test]
fn a_flipped_byte_is_never_given_out_and_other_blocks_are() {
    let folder = Folder::new();
    let good = bytes(4 * MIB + 99);
    let rep = folder.deposit(&[(b"large.bin", &good), (b"small.txt", b"small")], &[]);
    let server = folder.serve();
    let at = format!("/col/{rep}/doc/large.bin");
    assert!(server.get(&at).body == good);
    let stored = folder.data().join("tree").join(&rep).join("v1/content/doc/large.bin");
    let file = OpenOptions::new().write(true).open(stored).unwrap();
    let flipped = MIB + 12_345;
    file.write_all_at(&[good[flipped] ^ 4], flipped as u64).unwrap();

    let range = |from: usize, to: usize| server.get_with(&at, &format!("Range: bytes={from}-{}\r\n", to - 1));
    for (from, to) in [(flipped, flipped + 1), (MIB, 2 * MIB), (2 * MIB - 1, 4 * MIB), (MIB, MIB + 1)] {
        let refused = range(from, to);
        assert_eq!(refused.status, 500, "{from}-{to}");
        assert!(refused.text().contains("damaged"), "{}", refused.text());
        assert_eq!(refused.header("content-range"), "");
    }
    // A response that began before the damage is cut off before it.
    for (from, cut) in [(0, server.get(&at)), (MIB - 7, range(MIB - 7, 3 * MIB))] {
        assert!(!cut.is_whole(), "from {from}");
        assert!(cut.body.len() <= MIB - from && cut.body == good[from..from + cut.body.len()], "from {from}");
    }
    for (from, to) in [(0, MIB), (2 * MIB, 4 * MIB + 99), (3 * MIB + 5, 3 * MIB + 6)] {
        let other = range(from, to);
        assert!(other.status == 206 && other.is_whole() && other.body == good[from..to], "{from}-{to}");
    }
    assert_eq!(server.get(&format!("/col/{rep}/doc/small.txt")).body, b"small");
    assert!(server.log().contains("a damaged block was not served"));
    let counted = server.get("/metrics").text();
    let count = counted.lines().find_map(|line| line.strip_prefix("ibi_damaged_blocks_total "));
    assert!(count.is_some_and(|count| count != "0"), "{counted}");
}
