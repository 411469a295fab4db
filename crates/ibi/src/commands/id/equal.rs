//! `ibi id equal`.

use ibi_id::Label;
use ibi_protocol::LabelLink;
use serde::Serialize;

use crate::cli::Equal;
use crate::exit::{Answer, Failure};
use crate::io::Output;

#[derive(Serialize)]
struct Comparison<'a> {
    a: &'a str,
    b: &'a str,
    equal: bool,
}

pub(in crate::commands) fn run(command: &Equal) -> Result<Answer, Failure> {
    let (a, b) = (command.a.to_string_lossy(), command.b.to_string_lossy());
    let equal = read(&a)? == read(&b)?;
    let mut output = Output::new();
    if command.json {
        output.json(&Comparison { a: &a, b: &b, equal })?;
    } else {
        output.text(format_args!("{}\n", if equal { "equal" } else { "different" }))?;
    }
    output.flush()?;
    Ok(Answer::from(equal))
}

/// A label, by itself or in a link.
fn read(text: &str) -> Result<Label, Failure> {
    match Label::parse(text) {
        Ok(label) => Ok(label.into_owned()),
        Err(error) => {
            let link = LabelLink::parse(text).ok().filter(|_| LabelLink::is_link(text));
            link.map(|link| link.url.label).ok_or(Failure::Label { label: text.to_owned(), error })
        }
    }
}
