//! Parsing and writing queries (3, Table 4.1 of the standard).

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

use super::MessageError;
use crate::untrusted_text::quote_untrusted;

/// Characters escaped in a value: the standard's `space % & + = ?`, and those that a request line
/// cannot contain (`#` would end the query; HTTP libraries encode quotes and angle brackets
/// anyway). Non-ASCII is always escaped.
const QUERY_VALUE_ESCAPES: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'=')
    .add(b'?')
    .add(b'#')
    .add(b'"')
    .add(b'<')
    .add(b'>');

pub(super) fn encode(value: &[u8]) -> String {
    percent_encode(value, QUERY_VALUE_ESCAPES).to_string()
}

/// Decodes once. A `%` without two digits after it is literal.
pub(super) fn decode(value: &str) -> Vec<u8> {
    // Fast path: most values need no decoding.
    if !value.contains(['+', '%']) {
        return value.as_bytes().to_owned();
    }
    let spaced: Vec<u8> = value.bytes().map(|c| if c == b'+' { b' ' } else { c }).collect();
    percent_decode(&spaced).collect()
}

/// Builds a query.
#[derive(Default)]
pub(super) struct QueryWriter(String);

impl QueryWriter {
    pub(super) fn push(&mut self, name: &str, value: &str) {
        self.push_encoded(name, &encode(value.as_bytes()));
    }

    pub(super) fn push_encoded(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.extend([name, "=", value]);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// A received query: names decoded, values raw.
pub(super) struct ReceivedQuery<'a>(Vec<(Vec<u8>, &'a str)>);

impl<'a> ReceivedQuery<'a> {
    pub(super) fn new(query: &'a str) -> Self {
        let pairs = query.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), value)
        });
        Self(pairs.collect())
    }

    /// A raw value, if present and not empty.
    pub(super) fn raw(&self, name: &'static str) -> Result<Option<&'a str>, MessageError> {
        let mut values = self.0.iter().filter(|(own, _)| own == name.as_bytes()).map(|(_, value)| *value);
        let first = values.next();
        if values.next().is_some() {
            return Err(MessageError::Twice { name });
        }
        Ok(first.filter(|value| !value.is_empty()))
    }

    /// An optional value, decoded.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<String>, MessageError> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        let text = String::from_utf8(decode(raw))
            .map_err(|_| MessageError::value(name, "it is not UTF-8: encode it as in %C3%B3 for ó"))?;
        Ok(Some(text))
    }

    /// A mandatory value, decoded.
    pub(super) fn text(&self, name: &'static str) -> Result<String, MessageError> {
        self.optional(name)?.ok_or(MessageError::Missing { name })
    }

    /// A mandatory value, decoded and parsed.
    pub(super) fn read<T: FromStr<Err: fmt::Display>>(&self, name: &'static str) -> Result<T, MessageError> {
        self.text(name)?.parse().map_err(|why| MessageError::value(name, why))
    }

    /// A mandatory value, decoded: one line of text to display.
    pub(super) fn line(&self, name: &'static str) -> Result<String, MessageError> {
        let text = self.text(name)?;
        if text.len() > 255 || text.chars().any(char::is_control) {
            let why = format!("`{}` is not one line of at most 255 bytes", quote_untrusted(&text));
            return Err(MessageError::value(name, why));
        }
        Ok(text)
    }

    /// A mandatory label of any form, in the spelling received.
    pub(super) fn label(&self, name: &'static str) -> Result<String, MessageError> {
        let text = self.text(name)?;
        match ibi_id::Label::parse(&text) {
            Ok(_) => Ok(text),
            Err(rule) => Err(MessageError::value(
                name,
                format!("`{}` is not a valid IBI: {rule}", quote_untrusted(&text)),
            )),
        }
    }
}
