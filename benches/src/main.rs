//! The identifiers against the `uuid` and `ulid` crates, in one run.
//!
//! `ibi-benches` times each operation beside its peer, in turns, and judges the median of the ratios.
//! `ibi-benches count OPERATION ROUNDS` runs one operation so often that valgrind can count its instructions
//! (`./bench` does).

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ibi_id::{Host, IbipPrefix, Label, RepositoryPrefix, Suffix, ibip};

/// How many different inputs each operation runs over, so that no branch is learned by heart.
const INPUTS: usize = 1024;
/// Turns of each pair; odd, so that the median is one of them.
const TURNS: usize = 31;
/// How often the inputs are gone through in a turn: some milliseconds.
const ROUNDS_A_TURN: usize = 100;

fn main() -> ExitCode {
    let inputs = Inputs::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(&inputs),
        ["count", operation, rounds] => {
            let Some(operation) = OPERATIONS.iter().find(|known| known.name == operation) else {
                eprintln!("no operation is named {operation}");
                return ExitCode::from(2);
            };
            for _ in 0..rounds.parse().unwrap_or(0_usize) {
                (operation.run)(&inputs);
            }
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: ibi-benches [count OPERATION ROUNDS]");
            ExitCode::from(2)
        }
    }
}

struct Operation {
    name: &'static str,
    run: fn(&Inputs),
}

const OPERATIONS: [Operation; 5] = [
    Operation { name: "uuid-parse", run: |inputs| each(&inputs.uuids, |text| uuid::Uuid::parse_str(text)) },
    Operation { name: "ulid-encode", run: encode_ulids },
    Operation { name: "ibip-parse", run: |inputs| each(&inputs.ibips, |text| Label::parse(text)) },
    Operation { name: "rep-parse", run: |inputs| each(&inputs.reps, |text| Label::parse(text)) },
    Operation { name: "suffix-encode", run: encode_suffixes },
];

fn encode_ulids(inputs: &Inputs) {
    let mut text = [0; ulid::ULID_LEN];
    for id in &inputs.ulids {
        black_box::<&str>(black_box(id).array_to_str(&mut text));
    }
}

fn encode_suffixes(inputs: &Inputs) {
    let mut text = Suffix::EMPTY;
    for at in &inputs.instants {
        ibip::write_suffix(*black_box(at), &mut text).expect("after 1995");
        black_box::<&[u8]>(text.as_bytes());
    }
}

/// Operation, peer, and how many times the peer's time it may take.
const BARS: [(&str, &str, f64); 3] = [
    ("ibip-parse", "uuid-parse", 2.5),
    ("rep-parse", "uuid-parse", 4.0),
    ("suffix-encode", "ulid-encode", 1.0),
];

fn each<'a, T, R>(inputs: &'a [T], operation: impl Fn(&'a T) -> R) {
    for input in inputs {
        black_box(operation(black_box(input)));
    }
}

fn compare(inputs: &Inputs) -> ExitCode {
    let named =
        |name| OPERATIONS.iter().find(|operation| operation.name == name).expect("named in the table");
    let mut all = true;
    println!("{:<14} {:>9} {:<12} {:>9} {:>7} {:>6}", "operation", "ns", "peer", "ns", "ratio", "bar");
    for (name, peer_name, bar) in BARS {
        let (ours, peer) = (named(name), named(peer_name));
        let mut turns: Vec<(f64, f64)> =
            (0..TURNS + 1).map(|_| (nanos(ours, inputs), nanos(peer, inputs))).collect();
        // The first turn warms up.
        turns.remove(0);
        let ratio = median(turns.iter().map(|(ours, peer)| ours / peer));
        let verdict = if ratio <= bar { "met" } else { "MISSED" };
        all &= ratio <= bar;
        println!(
            "{name:<14} {:>9.1} {peer_name:<12} {:>9.1} {ratio:>7.2} {bar:>6} {verdict}",
            median(turns.iter().map(|turn| turn.0)),
            median(turns.iter().map(|turn| turn.1)),
        );
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn nanos(operation: &Operation, inputs: &Inputs) -> f64 {
    let start = Instant::now();
    for _ in 0..ROUNDS_A_TURN {
        (operation.run)(inputs);
    }
    let time: Duration = start.elapsed();
    time.as_nanos() as f64 / (ROUNDS_A_TURN * INPUTS) as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Labels as the field has them: IPv4 with port 800, hosts of three to five words, whole seconds of 2009 to 2026.
struct Inputs {
    uuids: Vec<String>,
    ulids: Vec<ulid::Ulid>,
    ibips: Vec<String>,
    reps: Vec<String>,
    instants: Vec<ibi_id::Instant>,
}

impl Inputs {
    fn new() -> Self {
        let mut random = SplitMix(20_090_216);
        let mut inputs = Self { uuids: vec![], ulids: vec![], ibips: vec![], reps: vec![], instants: vec![] };
        let port = |port| std::num::NonZeroU16::new(port).expect("not zero");
        for _ in 0..INPUTS {
            let wide = u128::from(random.next()) << 64 | u128::from(random.next());
            inputs.uuids.push(uuid::Uuid::from_u128(wide).to_string());
            inputs.ulids.push(ulid::Ulid(wide));
            let seconds = 1_230_768_000 + (random.next() % 567_993_600) as i64;
            let at = ibi_id::Instant::new(
                seconds - seconds % if random.next().is_multiple_of(2) { 60 } else { 1 },
                0,
            )
            .expect("in range");
            inputs.instants.push(at);
            let ip = std::net::Ipv4Addr::from(random.next() as u32);
            inputs.ibips.push(IbipPrefix::new(ip.into(), port(800)).label(at).expect("after 1995"));
            let host = [
                "mtc-m18.sid.inpe.br",
                "banon.dpi.inpe.br",
                "archive.lib.physics.example.edu",
                "m.iconet.com.br",
            ][(random.next() % 4) as usize];
            let prefix = RepositoryPrefix::new(Host::parse(host).expect("a host"), port(80)).expect("short");
            inputs.reps.push(prefix.label(at));
        }
        inputs
    }
}

/// A small generator with a fixed seed: the same inputs in every run.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
