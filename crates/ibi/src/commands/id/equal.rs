//! `ibi id equal`.

use ibi_id::Label;
use ibi_protocol::LabelLink;
use serde::Serialize;

use crate::cli::IdEqualArgs;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::StdoutWriter;

#[derive(Serialize)]
struct EqualOutput<'a> {
    a: &'a str,
    b: &'a str,
    equal: bool,
}

pub(in crate::commands) fn run(command: &IdEqualArgs) -> Result<CommandOutcome, CommandError> {
    let (a, b) = (command.a.to_string_lossy(), command.b.to_string_lossy());
    let equal = read(&a)? == read(&b)?;
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&EqualOutput { a: &a, b: &b, equal })?;
    } else {
        output.text(format_args!("{}\n", if equal { "equal" } else { "different" }))?;
    }
    output.flush()?;
    Ok(CommandOutcome::from(equal))
}

/// Parses a label, or a link with a label.
fn read(text: &str) -> Result<Label, CommandError> {
    match Label::parse(text) {
        Ok(label) => Ok(label.into_owned()),
        Err(error) => {
            let link = LabelLink::parse(text).ok().filter(|_| LabelLink::is_link(text));
            link.map(|link| link.url.label).ok_or(CommandError::Label { label: text.to_owned(), error })
        }
    }
}
