//! What is told of a label: one JSON object, or some lines for people. `docs/formats/id-json.md` describes it.

use std::fmt::Display;
use std::net::IpAddr;

use ibi_id::{Host, Instant, Label, NotUnique, ParseError, Unix};
use serde::{Serialize, Serializer};

use crate::exit::Failure;
use crate::io::{Output, printable};

/// A label that was read, or the reason why it was not.
pub(super) struct Record<'a> {
    input: &'a str,
    label: Result<Label<&'a str>, ParseError>,
}

impl<'a> Record<'a> {
    pub(super) fn of(input: &'a str) -> Self {
        Self { input, label: Label::parse(input) }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.label.is_ok()
    }

    pub(super) fn write_json(&self, output: &mut Output) -> Result<(), Failure> {
        match &self.label {
            Ok(label) => {
                let unique = label.globally_unique();
                output.json(&Valid {
                    input: self.input,
                    valid: true,
                    form: label.form().name(),
                    canonical: label,
                    host: label.host(),
                    ip: label.ip(),
                    port: label.port(),
                    instant: label.instant(),
                    unix: label.instant().unix(),
                    globally_unique: unique.map(|unique| unique.is_ok()),
                    not_unique_because: unique.and_then(Result::err).map(NotUnique::reason),
                })
            }
            Err(error) => {
                output.json(&Invalid { input: self.input, valid: false, error: ErrorRecord::of(error) })
            }
        }
    }

    pub(super) fn write_text(&self, output: &mut Output) -> Result<(), Failure> {
        output.text(format_args!("{}\n", printable(self.input)))?;
        let label = match &self.label {
            Ok(label) => label,
            Err(error) => return self.write_error(error, output),
        };
        let mut line = |name, value: &dyn Display| output.text(format_args!("  {name:<10} {value}\n"));
        line("form", &label.form().name())?;
        if let Some(host) = label.host() {
            line("host", &host)?;
        }
        if let Some(ip) = label.ip() {
            line("ip", &ip)?;
        }
        if let Some(port) = label.port() {
            line("port", &port)?;
        }
        line("instant", &label.instant())?;
        line("canonical", label)?;
        match label.globally_unique() {
            Some(Ok(())) => line("unique", &"yes, in the whole world"),
            Some(Err(reason)) => line("unique", &format_args!("no: {reason}")),
            None => line("unique", &"not known: the prefix of a legacy label does not tell"),
        }
    }

    /// The rule, and a mark under the character that breaks it.
    fn write_error(&self, error: &ParseError, output: &mut Output) -> Result<(), Failure> {
        output.text(format_args!("  {:<10} {}\n", "invalid", error.rule().message()))?;
        let (before, after) = self.input.split_at_checked(error.position()).unwrap_or((self.input, ""));
        // Long lines are not repeated: the position tells.
        if self.input.len() <= 100 {
            let (before, after) = (printable(before), printable(after));
            output.text(format_args!("  {:<10} {before}{after}\n", "at"))?;
            output.text(format_args!("  {:<10} {:width$}^\n", "", "", width = before.chars().count()))?;
        }
        output.text(format_args!(
            "  {:<10} {} (clause {}), byte {} from 0\n",
            "rule",
            error.rule().code(),
            error.rule().clause(),
            error.position()
        ))
    }
}

#[derive(Serialize)]
struct Valid<'a> {
    input: &'a str,
    valid: bool,
    form: &'static str,
    #[serde(serialize_with = "shown")]
    canonical: &'a Label<&'a str>,
    #[serde(serialize_with = "shown_if_some", skip_serializing_if = "Option::is_none")]
    host: Option<Host<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(serialize_with = "shown")]
    instant: Instant,
    #[serde(serialize_with = "shown")]
    unix: Unix,
    globally_unique: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_unique_because: Option<&'static str>,
}

#[derive(Serialize)]
struct Invalid<'a> {
    input: &'a str,
    valid: bool,
    error: ErrorRecord,
}

/// A broken rule, for programs and people.
#[derive(Serialize)]
pub(super) struct ErrorRecord {
    rule: &'static str,
    position: usize,
    message: &'static str,
}

impl ErrorRecord {
    pub(super) fn of(error: &ParseError) -> Self {
        Self { rule: error.rule().code(), position: error.position(), message: error.rule().message() }
    }
}

fn shown<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn shown_if_some<S: Serializer>(value: &Option<impl Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
