//! Queries, taken apart and put together (3, Table 4.1 of the norm).

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

use super::MessageError;
use crate::shown::shown;

/// What is encoded in a value: the norm's `space % & + = ?`, what is not ASCII, and what no request line can have (`#`
/// would end the query, quotes and angle brackets are encoded by HTTP libraries in any case).
const IN_QUERIES: &AsciiSet = &CONTROLS
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
    percent_encode(value, IN_QUERIES).to_string()
}

/// Decoded once. A `%` without two digits after it is itself.
pub(super) fn decode(value: &str) -> Vec<u8> {
    // Most have nothing to decode.
    if !value.contains(['+', '%']) {
        return value.as_bytes().to_owned();
    }
    let spaced: Vec<u8> = value.bytes().map(|c| if c == b'+' { b' ' } else { c }).collect();
    percent_decode(&spaced).collect()
}

/// A query being written.
#[derive(Default)]
pub(super) struct Query(String);

impl Query {
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

/// A query that was received: names decoded, values as they came.
pub(super) struct Given<'a>(Vec<(Vec<u8>, &'a str)>);

impl<'a> Given<'a> {
    pub(super) fn new(query: &'a str) -> Self {
        let pairs = query.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), value)
        });
        Self(pairs.collect())
    }

    /// A value as it came, if it is there and not empty.
    pub(super) fn raw(&self, name: &'static str) -> Result<Option<&'a str>, MessageError> {
        let mut values = self.0.iter().filter(|(own, _)| own == name.as_bytes()).map(|(_, value)| *value);
        let first = values.next();
        if values.next().is_some() {
            return Err(MessageError::Twice { name });
        }
        Ok(first.filter(|value| !value.is_empty()))
    }

    /// A value, decoded.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<String>, MessageError> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        let text = String::from_utf8(decode(raw))
            .map_err(|_| MessageError::value(name, "it is not UTF-8: encode it so, as in %C3%B3 for ó"))?;
        Ok(Some(text))
    }

    /// A value that has to be there, decoded.
    pub(super) fn text(&self, name: &'static str) -> Result<String, MessageError> {
        self.optional(name)?.ok_or(MessageError::Missing { name })
    }

    /// A value that has to be there, decoded and read.
    pub(super) fn read<T: FromStr<Err: fmt::Display>>(&self, name: &'static str) -> Result<T, MessageError> {
        self.text(name)?.parse().map_err(|why| MessageError::value(name, why))
    }

    /// A value that has to be there, decoded, one line, as it is to be shown to people.
    pub(super) fn line(&self, name: &'static str) -> Result<String, MessageError> {
        let text = self.text(name)?;
        if text.len() > 255 || text.chars().any(char::is_control) {
            let why = format!("`{}` is not one line of at most 255 bytes", shown(&text));
            return Err(MessageError::value(name, why));
        }
        Ok(text)
    }

    /// A label of any form, in the spelling that came.
    pub(super) fn label(&self, name: &'static str) -> Result<String, MessageError> {
        let text = self.text(name)?;
        match ibi_id::Label::parse(&text) {
            Ok(_) => Ok(text),
            Err(rule) => Err(MessageError::value(name, format!("`{}` is no IBI: {rule}", shown(&text)))),
        }
    }
}
