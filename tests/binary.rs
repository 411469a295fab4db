//! Running the built binary.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

/// The binary under test.
pub(crate) const IBI: &str = env!("CARGO_BIN_EXE_ibi");

/// The result of a run.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// One JSON value per line.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs `ibi` with arguments and nothing on standard input.
pub(crate) fn ibi(arguments: &[&str]) -> Run {
    ibi_with(arguments, b"")
}

/// Runs `ibi` with arguments and standard input.
pub(crate) fn ibi_with(arguments: &[&str], input: &[u8]) -> Run {
    let (child, writer) = feed(arguments, input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        status: status.code().unwrap(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Starts `ibi` and writes to its standard input on a separate thread, because all pipes may fill.
/// A command that does not read to the end is not an error.
pub(crate) fn feed(arguments: &[&str], input: &[u8]) -> (Child, JoinHandle<()>) {
    let mut child = Command::new(IBI)
        .args(arguments)
        // All servers of the tests are on this machine.
        .env("IBI_ALLOW_PRIVATE", "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    (child, std::thread::spawn(move || drop(stdin.write_all(&input))))
}
