//! Asynchronous log queue: no caller blocks on standard error.
//!
//! Standard error may be a full disk, a closed pipe, or a pipe that nobody reads. A dedicated
//! thread writes to it. Lines that cannot be written, or that arrive while the queue is full, are
//! dropped and counted.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Maximum number of queued bytes.
const MAX_QUEUED_LOG_BYTES: usize = 1 << 20;

/// Maximum length of one line; the rest is truncated.
const MAX_LOG_LINE_BYTES: usize = 64 << 10;

/// How long the process waits at exit for queued lines to be written.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static LOG_QUEUE: OnceLock<LogQueue> = OnceLock::new();

#[derive(Debug, Default)]
struct LogQueueState {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    is_writing: bool,
    /// Set once the queue is closed: lines then go directly to standard error, or nowhere if it
    /// does not accept them.
    closed: Option<LogCloseMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogCloseMode {
    Written,
    Dropped,
}

/// The queue of pending log lines.
#[derive(Debug, Default)]
pub(crate) struct LogQueue {
    state: Mutex<LogQueueState>,
    arrived: Condvar,
    written: Condvar,
}

impl LogQueue {
    /// Starts the writer thread. Returns `None` if one is running already or cannot be started.
    pub(crate) fn start() -> Option<&'static Self> {
        LOG_QUEUE.set(Self::default()).ok()?;
        let queue = LOG_QUEUE.get()?;
        let started =
            std::thread::Builder::new().name("log".to_owned()).spawn(|| queue.run(&mut io::stderr()));
        started.ok().map(|_| queue)
    }

    /// A line to write into; it is queued on drop.
    pub(crate) fn line(&'static self) -> LogLine {
        LogLine { queue: self, bytes: Vec::new() }
    }

    fn state(&self) -> MutexGuard<'_, LogQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: Vec<u8>) {
        let mut state = self.state();
        match state.closed {
            Some(LogCloseMode::Written) => drop(io::stderr().write_all(&line)),
            Some(LogCloseMode::Dropped) => {}
            None if state.bytes + line.len() > MAX_QUEUED_LOG_BYTES => {
                drop(state);
                count_lost(1);
            }
            None => {
                state.bytes += line.len();
                state.lines.push_back(line);
                drop(state);
                self.arrived.notify_one();
            }
        }
    }

    /// Writes lines as they arrive, for the lifetime of the process.
    fn run(&self, to: &mut impl Write) {
        loop {
            let mut state = self.state();
            while state.lines.is_empty() {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            // Lines count as queued until they are written, so that memory stays bounded.
            let lines = std::mem::take(&mut state.lines);
            state.is_writing = true;
            drop(state);
            for line in lines {
                if to.write_all(&line).is_err() {
                    count_lost(1);
                }
                self.state().bytes -= line.len();
            }
            self.state().is_writing = false;
            self.written.notify_all();
        }
    }

    /// Waits until all lines are written or the timeout expires. Returns whether all were written.
    fn close(&self, timeout: Duration) -> bool {
        let is_open = |state: &mut LogQueueState| state.is_writing || !state.lines.is_empty();
        let waited = self.written.wait_timeout_while(self.state(), timeout, is_open);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_written = !waited.timed_out();
        state.closed = Some(if is_written { LogCloseMode::Written } else { LogCloseMode::Dropped });
        is_written
    }
}

fn count_lost(lines: u64) {
    metrics::counter!("ibi_log_lines_lost_total").increment(lines);
}

/// A line under construction.
#[derive(Debug)]
pub(crate) struct LogLine {
    queue: &'static LogQueue,
    bytes: Vec<u8>,
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_LOG_LINE_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let mut line = std::mem::take(&mut self.bytes);
        if line.len() == MAX_LOG_LINE_BYTES {
            line.push(b'\n');
        }
        if !line.is_empty() {
            self.queue.push(line);
        }
    }
}

/// Prints a line for the user, through the log queue if there is one. Never blocks or fails because
/// nobody reads it.
pub fn print_line(line: fmt::Arguments<'_>) {
    match LOG_QUEUE.get() {
        Some(queue) => queue.push(format!("{line}\n").into_bytes()),
        None => drop(writeln!(io::stderr(), "{line}")),
    }
}

/// Waits briefly until the log is flushed, before the process exits.
pub fn flush_log() {
    if let Some(queue) = LOG_QUEUE.get() {
        queue.close(LOG_FLUSH_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A writer that accepts nothing until it is released, or fails.
    struct StuckWriter(mpsc::Receiver<()>);

    impl Write for StuckWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_pipe_blocks_nobody_and_uses_bounded_memory() {
        let queue: &'static LogQueue = Box::leak(Box::default());
        let (go, wait) = mpsc::channel();
        std::thread::spawn(move || queue.run(&mut StuckWriter(wait)));
        for _ in 0..100_000 {
            let mut line = queue.line();
            writeln!(line, "a line of the log that has some length").unwrap();
        }
        let state = queue.state();
        assert!(state.bytes <= MAX_QUEUED_LOG_BYTES && state.bytes > MAX_QUEUED_LOG_BYTES / 2);
        drop(state);
        assert!(!queue.close(Duration::from_millis(10)), "closing does not wait for it");
        drop(go);
    }

    #[test]
    fn a_long_line_is_truncated_and_ends_with_a_newline() {
        let queue: &'static LogQueue = Box::leak(Box::default());
        queue.line().write_all(&vec![b'x'; 2 * MAX_LOG_LINE_BYTES]).unwrap();
        let line = queue.state().lines.pop_front().unwrap();
        assert_eq!((line.len(), line.last()), (MAX_LOG_LINE_BYTES + 1, Some(&b'\n')));
    }
}
