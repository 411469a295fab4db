//! Lines for the person at the terminal.

use std::borrow::Cow;
use std::fmt;

use ibi_http::telemetry;
use ibi_protocol::untrusted_text::is_terminal_control;

/// Says a line to the person at the terminal. Nobody listening is no reason to stop.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    telemetry::print_line(line);
}

/// Text of strangers, made safe to print: characters that steer a terminal are escaped.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_terminal_control) {
        return Cow::Borrowed(text);
    }
    let escape =
        |c: char| if is_terminal_control(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}
