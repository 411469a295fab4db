//! `ibi id parse --json` of a million lines against `jq -c .` reading its output.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::inputs::Inputs;
use crate::median;

const LINES: usize = 1_000_000;
const TURNS: usize = 3;
/// At least so many times the lines per second of jq.
const BAR: f64 = 2.0;

pub fn compare(ibi: &str) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("ibi-benches-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the lines");
    let (labels, answers) = (folder.join("labels"), folder.join("answers"));
    let inputs = Inputs::new(LINES / 2);
    let mut file = BufWriter::new(File::create(&labels).expect("room for the lines"));
    for (rep, ibip) in inputs.reps.iter().zip(&inputs.ibips) {
        writeln!(file, "{rep}\n{ibip}").expect("room for the lines");
    }
    file.flush().expect("room for the lines");

    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (ours, memory) = run(
            Command::new(ibi).args(["id", "parse", "--json"]),
            &labels,
            File::create(&answers).expect("room"),
        );
        let nowhere = File::create("/dev/null").expect("/dev/null");
        let (peer, _) = run(Command::new("jq").args(["-c", "."]), &answers, nowhere);
        let rate = |time: Duration| LINES as f64 / time.as_secs_f64();
        println!(
            "json           {:>9.0} lines/s, {memory} kB at most; jq -c . {:>9.0} lines/s",
            rate(ours),
            rate(peer)
        );
        ratios.push(rate(ours) / rate(peer));
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let ratio = median(ratios.into_iter());
    println!(
        "json           {ratio:.2} times jq, bar {BAR}: {}",
        if ratio >= BAR { "met" } else { "MISSED" }
    );
    if ratio >= BAR { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long a command takes, and the most memory it was seen to hold, in kB.
fn run(command: &mut Command, input: &std::path::Path, output: File) -> (Duration, u64) {
    let input = File::open(input).expect("written before");
    let start = Instant::now();
    let mut child = command.stdin(input).stdout(Stdio::from(output)).spawn().expect("installed");
    let mut memory = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        memory = memory.max(peak.unwrap_or(0));
        if let Some(status) = child.try_wait().expect("our child") {
            assert!(status.success(), "{command:?} failed");
            return (start.elapsed(), memory);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
