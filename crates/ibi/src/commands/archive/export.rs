//! `ibi archive export`.

use serde::Serialize;

use crate::cli::archive::ExportArgs;
use crate::commands::archive::{open_to_read, pluralize, progress_bar};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Size from which a progress bar is shown.
const EXPORT_PROGRESS_MIN_BYTES: u64 = 8 << 20;

#[derive(Serialize)]
struct ExportOutput<'a> {
    rep: Option<&'a str>,
    ibip: Option<&'a str>,
    state: &'static str,
    out: String,
    files: u64,
    bytes: u64,
}

pub(crate) fn run(command: &ExportArgs) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder_to_publish_from()?)?;
    let (holding, _) = holdings.find(&command.ibi)?;
    let progress = progress_bar(holdings.size(&holding.path)?, EXPORT_PROGRESS_MIN_BYTES);
    let exported = holdings.export(&holding, &command.out, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    for name in &exported.renamed {
        say(format_args!("renamed, because file names in a bag must be UTF-8: {}", printable(name)));
    }
    for name in &exported.unusual {
        say(format_args!("valid file name that some BagIt programs cannot read: {}", printable(name)));
    }
    if command.json {
        let labels = &holding.item.labels;
        let mut output = StdoutWriter::new();
        output.json(&ExportOutput {
            rep: labels.rep.as_deref(),
            ibip: labels.ibip.as_deref(),
            state: holding.state.name(),
            out: command.out.display().to_string(),
            files: exported.files,
            bytes: exported.bytes,
        })?;
        output.flush()?;
    }
    say(format_args!(
        "exported: {}, {}, all verified",
        pluralize(exported.files, "file"),
        pluralize(exported.bytes, "byte")
    ));
    Ok(CommandOutcome::Yes)
}
