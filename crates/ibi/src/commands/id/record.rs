//! The description of a label, as one JSON object or as readable lines: see
//! `docs/formats/id-json.md`.

use std::fmt::Display;
use std::net::IpAddr;

use ibi_id::{Host, Instant, Label, NotUnique, ParseError, UnixSeconds};
use ibi_protocol::{FilePath, LabelLink, LinkError, PersistentUrlError};
use serde::{Serialize, Serializer};

use crate::commands::id::decimals::LabelDecimals;
use crate::exit::CommandError;
use crate::io::{StdoutWriter, printable};

/// The result of parsing a label or a link.
pub(super) struct ParsedLabelRecord<'a> {
    input: &'a str,
    read: Result<InputLabel<'a>, LabelErrorOutput>,
}

enum InputLabel<'a> {
    Plain(Label<&'a str>),
    Linked(Box<LabelLink>),
}

impl<'a> ParsedLabelRecord<'a> {
    pub(super) fn of(input: &'a str) -> Self {
        let read = match Label::parse(input) {
            Ok(label) => Ok(InputLabel::Plain(label)),
            Err(_) if LabelLink::is_link(input) => LabelLink::parse(input)
                .map(|link| InputLabel::Linked(Box::new(link)))
                .map_err(|error| LabelErrorOutput::of_link(&error)),
            Err(error) => Err(LabelErrorOutput::of(&error)),
        };
        Self { input, read }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.read.is_ok()
    }

    pub(super) fn write_json(&self, verbose: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
        match &self.read {
            Ok(InputLabel::Plain(label)) => self.write_valid(label, None, verbose, output),
            Ok(InputLabel::Linked(link)) => self.write_valid(&link.url.label, Some(link), verbose, output),
            Err(error) => output.json(&InvalidLabelOutput { input: self.input, valid: false, error }),
        }
    }

    fn write_valid<S: AsRef<str>>(
        &self,
        label: &Label<S>,
        link: Option<&LabelLink>,
        verbose: bool,
        output: &mut StdoutWriter,
    ) -> Result<(), CommandError> {
        let unique = label.globally_unique();
        output.json(&ValidLabelOutput {
            input: self.input,
            valid: true,
            form: label.form().name(),
            canonical: label.to_string(),
            host: label.host(),
            ip: label.ip(),
            port: label.port(),
            instant: label.instant(),
            unix: label.instant().unix(),
            globally_unique: unique.map(|unique| unique.is_ok()),
            not_unique_because: unique.and_then(Result::err).map(NotUnique::reason),
            decimals: verbose.then(|| LabelDecimals::of(label)).flatten(),
            link: link.map(LinkMembers::of),
        })
    }

    pub(super) fn write_text(&self, verbose: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
        output.text(format_args!("{}\n", printable(self.input)))?;
        match &self.read {
            Ok(InputLabel::Plain(label)) => write_lines(label, None, verbose, output),
            Ok(InputLabel::Linked(link)) => write_lines(&link.url.label, Some(link), verbose, output),
            Err(error) => self.write_error(error, output),
        }
    }

    /// Prints the rule, and a mark under the character that breaks it.
    fn write_error(&self, error: &LabelErrorOutput, output: &mut StdoutWriter) -> Result<(), CommandError> {
        output.text(format_args!("  {:<10} {}\n", "invalid", error.message))?;
        let (before, after) = self.input.split_at_checked(error.position).unwrap_or((self.input, ""));
        // Long input is not repeated; the position is enough.
        if self.input.len() <= 100 {
            let (before, after) = (printable(before), printable(after));
            output.text(format_args!("  {:<10} {before}{after}\n", "at"))?;
            output.text(format_args!("  {:<10} {:width$}^\n", "", "", width = before.chars().count()))?;
        }
        output.text(format_args!(
            "  {:<10} {} (clause {}), byte {} from 0\n",
            "rule", error.rule, error.clause, error.position
        ))
    }
}

fn write_lines<S: AsRef<str>>(
    label: &Label<S>,
    link: Option<&LabelLink>,
    verbose: bool,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    let mut line = |name, value: &dyn Display| output.text(format_args!("  {name:<10} {value}\n"));
    if let Some(link) = link.map(LinkMembers::of) {
        line("label", &link.label)?;
        let named = [("modifiers", Some(link.modifiers)), ("file", link.file), ("query", Some(link.query))];
        for (name, value) in named {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                line(name, &printable(&value))?;
            }
        }
    }
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
        Some(Ok(())) => line("unique", &"yes, globally")?,
        Some(Err(reason)) => line("unique", &format_args!("no: {reason}"))?,
        None => line("unique", &"unknown: the prefix of a legacy label does not show it")?,
    }
    let decimals = LabelDecimals::of(label).filter(|_| verbose);
    for (name, value) in decimals.iter().flat_map(LabelDecimals::named) {
        line("decimal", &format_args!("{value} ({name})"))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct ValidLabelOutput<'a> {
    input: &'a str,
    valid: bool,
    form: &'static str,
    canonical: String,
    #[serde(serialize_with = "shown_if_some", skip_serializing_if = "Option::is_none")]
    host: Option<Host<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(serialize_with = "shown")]
    instant: Instant,
    #[serde(serialize_with = "shown")]
    unix: UnixSeconds,
    globally_unique: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_unique_because: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decimals: Option<LabelDecimals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkMembers>,
}

/// The parts of a link besides the label.
#[derive(Serialize)]
struct LinkMembers {
    label: String,
    modifiers: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    query: String,
}

impl LinkMembers {
    fn of(link: &LabelLink) -> Self {
        let url = &link.url;
        let file = |file: &FilePath| String::from_utf8_lossy(file.as_bytes()).into_owned();
        Self {
            label: url.label.spelling().to_owned(),
            modifiers: url.verbs.relation.modifiers(),
            file: url.file.as_ref().map(file),
            query: url.passed_on.clone(),
        }
    }
}

#[derive(Serialize)]
struct InvalidLabelOutput<'a> {
    input: &'a str,
    valid: bool,
    error: &'a LabelErrorOutput,
}

/// A broken rule, for JSON and for text.
#[derive(Serialize)]
pub(super) struct LabelErrorOutput {
    rule: &'static str,
    #[serde(skip)]
    clause: &'static str,
    position: usize,
    message: String,
}

impl LabelErrorOutput {
    pub(super) fn of(error: &ParseError) -> Self {
        let rule = error.rule();
        Self {
            rule: rule.code(),
            clause: rule.clause(),
            position: error.position(),
            message: rule.message().to_owned(),
        }
    }

    fn of_link(error: &LinkError) -> Self {
        let (clause, message) = match &error.error {
            PersistentUrlError::Label { rule, .. } => (rule.clause(), rule.message().to_owned()),
            other => ("4.1", other.to_string()),
        };
        Self { rule: error.error.code(), clause, position: error.position, message }
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
