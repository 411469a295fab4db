//! Processes of the built binary.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that ends with its owner.
pub struct RunningServer(pub Child);

impl RunningServer {
    /// Starts a server, and waits until it prints where it listens.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self, String> {
        let said = File::create(log).map_err(|why| format!("{}: {why}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
        let mut child = command.spawn().map_err(|why| format!("{command:?}: {why}"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let server = Self(child);
        if line.is_empty() {
            return Err(format!("it does not start: {}", fs::read_to_string(log).unwrap_or_default()));
        }
        Ok(server)
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<String> {
        self.0.try_wait().ok().flatten().map(|status| status.to_string())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command that must be done: what it printed.
pub fn must(command: &mut Command) -> Result<String, String> {
    command.env("IBI_ALLOW_PRIVATE", "yes").stdin(Stdio::null());
    let output = command.output().map_err(|why| format!("{command:?}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
