//! Durable minting against a bare loop of one append and fdatasync a label; the generator against
//! uuid v7.

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ibi_id::{Granularity, Host, Suffix, distributor, ibip};
use ibi_mint::clock::SystemClock;
use ibi_mint::{ClockLimits, DistributorEdition, MintRequest, Minter};

use crate::median;

const TURNS: usize = 9;
const TURN: Duration = Duration::from_millis(700);
const CALLERS: usize = 64;
const ONE: MintRequest =
    MintRequest { count: 1, granularity: Granularity::NANOSECOND, max_wait: Duration::from_secs(1) };

pub fn compare(folder: &str) -> ExitCode {
    let folder = Path::new(folder).join(format!("ibi-benches-{}", std::process::id()));
    let minter = start(&folder.join("minter"));
    let mut bare = File::create(folder.join("bare")).expect("room");
    let mut turns = Vec::new();
    for _ in 0..=TURNS {
        turns.push((bare_loop(&mut bare), callers(&minter, 1), callers(&minter, CALLERS)));
    }
    // The first turn warms up.
    turns.remove(0);
    drop(minter);
    std::fs::remove_dir_all(&folder).expect("ours");
    for claims in ["/run/lock", "/var/tmp"] {
        let _ = std::fs::remove_file(format!("{claims}/ibi-bench.test+b{}", std::process::id()));
    }

    let rate = |of: fn(&(f64, f64, f64)) -> f64| median(turns.iter().map(of));
    println!("bare loop      {:>9.0} labels/s, one append and fdatasync each", rate(|turn| turn.0));
    let one = judge("one caller", rate(|turn| turn.1), rate(|turn| turn.1 / turn.0), 0.8);
    let many = judge("64 callers", rate(|turn| turn.2), rate(|turn| turn.2 / turn.0), 8.0);
    let generators: Vec<(f64, f64)> = (0..TURNS).map(|_| (generate(), uuid_v7())).collect();
    let ours = median(generators.iter().map(|turn| turn.0));
    println!("uuid v7 text   {:>9.0} a second", median(generators.iter().map(|turn| turn.1)));
    let alone = judge("generator", ours, median(generators.iter().map(|turn| turn.0 / turn.1)), 1.0);
    if one && many && alone { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(name: &str, rate: f64, ratio: f64, bar: f64) -> bool {
    let verdict = if ratio >= bar { "met" } else { "MISSED" };
    println!("{name:<14} {rate:>9.0} labels/s, ratio {ratio:.2}, bar {bar}: {verdict}");
    ratio >= bar
}

fn start(folder: &Path) -> Minter {
    std::fs::create_dir_all(folder).expect("room");
    let host = format!("b{}.bench.test", std::process::id());
    let from = ibi_mint::MinterConfig {
        host: Some((Host::parse(&host).expect("a host"), None)),
        ip: None,
        edition: DistributorEdition::Rtc2015,
        allow_private: true,
    };
    ibi_mint::init(folder, &from, [7; 16], &SystemClock::new()).expect("a prefix of this process");
    ibi_mint::open(folder, SystemClock::new(), ClockLimits::default()).expect("just started")
}

/// The least that durability costs, without any code of ours.
fn bare_loop(file: &mut File) -> f64 {
    let (start, mut labels) = (Instant::now(), 0);
    while start.elapsed() < TURN {
        file.write_all(b"sid.inpe.br/mtc-m18/2009/02.16.17.46.59.123456789 and some more\n").expect("room");
        file.sync_data().expect("a disk");
        labels += 1;
    }
    f64::from(labels) / start.elapsed().as_secs_f64()
}

fn callers(minter: &Minter, callers: usize) -> f64 {
    let (stop, labels, start) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let mut minted = 0;
                while !stop.load(Ordering::Relaxed) {
                    minted += minter.mint(ONE).expect("a label").labels().count() as u64;
                }
                labels.fetch_add(minted, Ordering::Relaxed);
            });
        }
        std::thread::sleep(TURN);
        stop.store(true, Ordering::Relaxed);
    });
    labels.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// Labels of one form as a batch makes them: the distributor and the text.
fn generate() -> f64 {
    const LABELS: u32 = 2_000_000;
    let now: ibi_id::Instant = "2026-11-15T18:03:20.123456789Z".parse().expect("a time");
    let (start, mut last, mut label) = (Instant::now(), now, Suffix::EMPTY);
    let mut text = [0; 64];
    text[..12].copy_from_slice(b"8JMKD3MGP8W/");
    for _ in 0..LABELS {
        let turn =
            distributor::next(Some(last), now, Granularity::NANOSECOND).expect("far from the year 9999");
        last = turn.mark;
        ibip::write_suffix(turn.date, &mut label).expect("after 1995");
        text[12..12 + label.len()].copy_from_slice(label.as_bytes());
        black_box(&text);
    }
    f64::from(LABELS) / start.elapsed().as_secs_f64()
}

fn uuid_v7() -> f64 {
    const IDS: u32 = 2_000_000;
    let (start, mut text) = (Instant::now(), [0; 36]);
    for _ in 0..IDS {
        black_box(uuid::Uuid::now_v7().hyphenated().encode_lower(&mut text));
    }
    f64::from(IDS) / start.elapsed().as_secs_f64()
}
