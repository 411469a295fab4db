//! Speed as ratios against named peers, in one run. `benches/run` calls this.
//!
//! - `ibi-benches ids`: each operation on labels beside its peer of the `uuid` or `ulid` crate, in
//!   turns; the median of the ratios is judged.
//! - `ibi-benches count OPERATION ROUNDS`: one operation so often that valgrind can count its
//!   instructions.
//! - `ibi-benches mint FOLDER`: minting in a folder on a disk, beside a bare loop of append and
//!   fdatasync there.
//! - `ibi-benches archive FOLDER IBI [NAME]`: the built binary keeping items on that disk, beside
//!   hashing, copying, syncing, selecting and walking without it.
//! - `ibi-benches online FOLDER IBI [NAME]`: the built binary online, on one core, asked from the
//!   other, beside bare hyper and nginx.
//! - `ibi-benches resolve FOLDER`: resolving over 1, 10 and 100 Archives, beside a bare hyper
//!   connection to each.
//! - `ibi-benches json IBI`: the built binary reading a million labels, beside `jq -c .` reading
//!   its answer.

#[cfg(feature = "all")]
mod archive;
mod inputs;
#[cfg(feature = "all")]
mod json;
#[cfg(feature = "all")]
mod mint;
#[cfg(feature = "all")]
mod online;
#[cfg(feature = "all")]
mod programs;
#[cfg(feature = "all")]
mod resolve;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ibi_id::{Label, Suffix, ibip};

use crate::inputs::Inputs;

/// How many different inputs each operation runs over, so that no branch is learned by heart.
const INPUTS: usize = 1024;
/// Turns of each pair; odd, so that the median is one of them.
const TURNS: usize = 31;
/// How often the inputs are gone through in a turn: some milliseconds.
const ROUNDS_A_TURN: usize = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ids"] => compare(&Inputs::new(INPUTS)),
        ["count", operation, rounds] => count(operation, rounds.parse().unwrap_or(0)),
        #[cfg(feature = "all")]
        ref arguments if let Some(code) = programs::compare(arguments) => code,
        _ => {
            eprintln!(
                "usage: ibi-benches ids | count OPERATION ROUNDS | mint FOLDER | archive FOLDER IBI [NAME] | online FOLDER IBI [NAME] | resolve FOLDER | json IBI"
            );
            ExitCode::from(2)
        }
    }
}

fn count(operation: &str, rounds: usize) -> ExitCode {
    let Some(operation) = OPERATIONS.iter().find(|known| known.name == operation) else {
        eprintln!("no operation is named {operation}");
        return ExitCode::from(2);
    };
    let inputs = Inputs::new(INPUTS);
    for _ in 0..rounds {
        (operation.run)(&inputs);
    }
    ExitCode::SUCCESS
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

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
