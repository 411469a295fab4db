//! Standard streams: input by line in constant memory, data on output, messages on error.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, BufWriter, IsTerminal as _, Read, Stdin, StdoutLock, Write};

use ibi_protocol::untrusted_text::is_terminal_control;
use serde::Serialize;

use crate::exit::CommandError;
pub(crate) use crate::terminal::{printable, say};

/// Writes JSON on one line, with terminal control characters escaped.
struct OneLineJson;

impl serde_json::ser::Formatter for OneLineJson {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.contains('\u{7f}') {
            return writer.write_all(fragment.as_bytes());
        }
        fragment.chars().try_for_each(|c| match is_terminal_control(c) {
            // All control characters are below U+10000.
            true => write!(writer, "\\u{:04x}", u32::from(c)),
            false => write!(writer, "{c}"),
        })
    }
}

/// Standard output, buffered.
pub(crate) struct StdoutWriter(BufWriter<StdoutLock<'static>>);

impl StdoutWriter {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout().lock()))
    }

    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), CommandError> {
        self.0.write_fmt(text).map_err(CommandError::Write)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.0.write_all(bytes).map_err(CommandError::Write)
    }

    /// Writes one JSON object on a line of its own.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CommandError> {
        let mut serializer = serde_json::Serializer::with_formatter(&mut self.0, OneLineJson);
        value.serialize(&mut serializer).map_err(|error| CommandError::Write(error.into()))?;
        self.0.write_all(b"\n").map_err(CommandError::Write)
    }

    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        self.0.flush().map_err(CommandError::Write)
    }
}

/// Maximum bytes kept of a line; the rest is skipped. Every label is shorter.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Reads lines of any length in constant memory, without their ends (LF or CR LF).
pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    /// Bytes of the reader's buffer that the last line used.
    taken: usize,
    /// Buffer for a line that does not fit into the reader's buffer.
    line: Vec<u8>,
    first: bool,
}

impl LineReader<Stdin> {
    /// Standard input; prints a prompt if it is a terminal.
    pub(crate) fn stdin(expected: &str) -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            say(format_args!("reading {expected}, one per line; end with Ctrl-D"));
        }
        Self::new(stdin)
    }
}

impl<R: Read> LineReader<R> {
    fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(MAX_LINE_BYTES, reader),
            taken: 0,
            line: Vec::new(),
            first: true,
        }
    }

    /// The next line, with invalid UTF-8 replaced. Flushes the output before it blocks for more
    /// input, so that an interactive user or a program at the other end gets an answer to each
    /// line.
    pub(crate) fn next(&mut self, output: &mut StdoutWriter) -> Result<Option<Cow<'_, str>>, CommandError> {
        self.reader.consume(std::mem::take(&mut self.taken));
        if self.reader.buffer().is_empty() {
            output.flush()?;
        }
        let first = std::mem::take(&mut self.first);
        let Some(line) = self.next_bytes().map_err(CommandError::Read)? else { return Ok(None) };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Some editors start a file with a byte order mark.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| first).unwrap_or(line);
        Ok(Some(String::from_utf8_lossy(line)))
    }

    fn next_bytes(&mut self) -> io::Result<Option<&[u8]>> {
        if fill(&mut self.reader)?.is_empty() {
            return Ok(None);
        }
        if let Some(end) = newline(self.reader.buffer()) {
            self.taken = end + 1;
            return Ok(Some(&self.reader.buffer()[..end]));
        }
        self.line.clear();
        loop {
            let buffer = fill(&mut self.reader)?;
            let end = newline(buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = MAX_LINE_BYTES - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let (used, last) = (part.len() + usize::from(end.is_some()), end.is_some() || buffer.is_empty());
            self.reader.consume(used);
            if last {
                return Ok(Some(&self.line));
            }
        }
    }
}

/// Fills the buffer if it is empty; retries when interrupted by a signal.
fn fill<R: Read>(reader: &mut BufReader<R>) -> io::Result<&[u8]> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(reader.buffer())
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&c| c == b'\n')
}
