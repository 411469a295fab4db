//! Standard input line by line in constant memory, standard output as data, standard error as talk.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, BufWriter, IsTerminal as _, Read, Stdin, StdoutLock, Write};

use ibi_protocol::shown::steers;
use serde::Serialize;

use crate::exit::Failure;

/// Says a line to the person at the terminal. Nobody listening is no reason to stop.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Text of strangers, made safe to print: characters that steer a terminal are escaped.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// JSON on one line, in which characters that steer a terminal are escaped.
struct OneLine;

impl serde_json::ser::Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.contains('\u{7f}') {
            return writer.write_all(fragment.as_bytes());
        }
        fragment.chars().try_for_each(|c| match steers(c) {
            // All of them lie below U+10000.
            true => write!(writer, "\\u{:04x}", u32::from(c)),
            false => write!(writer, "{c}"),
        })
    }
}

/// Standard output, buffered.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout().lock()))
    }

    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        self.0.write_fmt(text).map_err(Failure::Write)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(Failure::Write)
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut serializer = serde_json::Serializer::with_formatter(&mut self.0, OneLine);
        value.serialize(&mut serializer).map_err(|error| Failure::Write(error.into()))?;
        self.0.write_all(b"\n").map_err(Failure::Write)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::Write)
    }
}

/// The longest line that is kept; what is beyond is read over. Every label is shorter.
const LONGEST_LINE: usize = 64 * 1024;

/// Lines of any length, read in constant memory, without their ends (LF or CR LF).
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    /// What the last line took from the reader's buffer.
    taken: usize,
    /// A line that did not lie in the buffer whole.
    line: Vec<u8>,
    first: bool,
}

impl Lines<Stdin> {
    /// Standard input; a person at a terminal is told what is expected.
    pub(crate) fn stdin(expected: &str) -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            say(format_args!("reading {expected}, one a line; end with Ctrl-D"));
        }
        Self::new(stdin)
    }
}

impl<R: Read> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(LONGEST_LINE, reader),
            taken: 0,
            line: Vec::new(),
            first: true,
        }
    }

    /// The next line, with bytes that are no text replaced. Before it waits for more, what was written so far is
    /// sent off, so that a person or a program at the other end gets an answer to each line.
    pub(crate) fn next(&mut self, output: &mut Output) -> Result<Option<Cow<'_, str>>, Failure> {
        self.reader.consume(std::mem::take(&mut self.taken));
        if self.reader.buffer().is_empty() {
            output.flush()?;
        }
        let first = std::mem::take(&mut self.first);
        let Some(line) = self.next_bytes().map_err(Failure::Read)? else { return Ok(None) };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Some editors begin a file with a byte order mark.
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
            let room = LONGEST_LINE - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let (used, last) = (part.len() + usize::from(end.is_some()), end.is_some() || buffer.is_empty());
            self.reader.consume(used);
            if last {
                return Ok(Some(&self.line));
            }
        }
    }
}

/// What is buffered, read anew if there is nothing; a signal is no reason to stop.
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
