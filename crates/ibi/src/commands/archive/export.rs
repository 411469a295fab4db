//! `ibi archive export`.

use serde::Serialize;

use crate::cli::archive::Export;
use crate::commands::archive::{bar, open_to_read};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

/// Bytes from which on a person wants to see progress.
const LONG: u64 = 8 << 20;

#[derive(Serialize)]
struct Exported<'a> {
    rep: Option<&'a str>,
    ibip: Option<&'a str>,
    state: &'static str,
    out: String,
    files: u64,
    bytes: u64,
}

pub(crate) fn run(command: &Export) -> Result<Answer, Failure> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let (holding, _) = holdings.find(&command.ibi)?;
    let progress = bar(holdings.size(&holding.path)?, LONG);
    let exported = holdings.export(&holding, &command.out, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    for name in &exported.renamed {
        say(format_args!("a name that is not UTF-8 cannot stand in a bag: {}", printable(name)));
    }
    for name in &exported.unusual {
        say(format_args!(
            "some programs cannot read this name in a bag, though it is right: {}",
            printable(name)
        ));
    }
    if command.json {
        let labels = &holding.item.labels;
        let mut output = Output::new();
        output.json(&Exported {
            rep: labels.rep.as_deref(),
            ibip: labels.ibip.as_deref(),
            state: holding.state.name(),
            out: command.out.display().to_string(),
            files: exported.files,
            bytes: exported.bytes,
        })?;
        output.flush()?;
    }
    say(format_args!("exported: {} files, {} bytes, every one checked", exported.files, exported.bytes));
    Ok(Answer::Yes)
}
