//! One large file: beside hashing it, and beside copying it with a sync, whichever is slower.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha512};

use crate::archive::{Place, judge, median, settle};

const SIZE: u64 = 4 << 30;
const TURNS: usize = 3;

pub(super) fn compare(place: &Place) -> bool {
    let file = place.path("large");
    make(&file, SIZE);
    let mut ratios = Vec::new();
    let mut details = String::new();
    for _ in 0..TURNS {
        place.init();
        settle();
        let hash = hashed(&file);
        settle();
        let copy = copied(&file, &place.path("copy"));
        settle();
        let deposit = place.archive(&["deposit", &file.display().to_string()]);
        let peer = hash.max(copy);
        ratios.push(peer.as_secs_f64() / deposit.as_secs_f64());
        let rate = |time: Duration| (SIZE >> 20) as f64 / time.as_secs_f64();
        details = format!(
            "4 GiB: deposit {:.0} MiB/s, SHA-512 {:.0}, synced copy {:.0}",
            rate(deposit),
            rate(hash),
            rate(copy)
        );
    }
    let _ = fs::remove_file(&file);
    judge("large", median(ratios), 0.8, &details)
}

/// Makes a file of so many bytes that do not repeat.
pub(crate) fn make(path: &Path, size: u64) {
    let mut file = File::create(path).expect("room for a file");
    let mut state = 1_u64;
    let mut block = vec![0_u8; 1 << 20];
    for _ in 0..size >> 20 {
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block).expect("room for it");
    }
    file.sync_all().expect("a sync");
}

fn hashed(path: &Path) -> Duration {
    let start = Instant::now();
    let (mut file, mut hash, mut buffer) = (File::open(path).expect("made"), Sha512::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).expect("readable") {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    std::hint::black_box(hash.finalize());
    start.elapsed()
}

fn copied(from: &Path, to: &Path) -> Duration {
    let start = Instant::now();
    fs::copy(from, to).expect("room for a copy");
    File::open(to).and_then(|copy| copy.sync_all()).expect("a sync");
    let took = start.elapsed();
    fs::remove_file(to).expect("just made");
    took
}
