//! `ibi resolver export` and `import`.

use std::io::Read as _;

use ibi_resolver::api_view::ResolverArchiveView;
use serde_json::json;

use crate::cli::resolver::{ResolverExportArgs, ResolverImportArgs};
use crate::commands::archive::pluralize;
use crate::commands::resolver::open;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

pub(crate) fn export(command: &ResolverExportArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let mut output = StdoutWriter::new();
    if command.json {
        for archive in registry.archives().iter() {
            output.json(&ResolverArchiveView::new(&registry, archive))?;
        }
    } else {
        output.bytes(registry.export()?.as_bytes())?;
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

pub(crate) fn import(command: &ResolverImportArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let mut text = String::new();
    if command.file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(CommandError::Read)?;
    } else {
        text = std::fs::read_to_string(&command.file).map_err(|error| {
            CommandError::Usage(format!("cannot read {}: {error}", command.file.display()))
        })?;
    }
    let report = registry.import(&text)?;
    if command.json {
        let mut output = StdoutWriter::new();
        output.json(&json!({ "added": report.added, "replaced": report.replaced, "kept": report.kept }))?;
        output.flush()?;
    }
    say(format_args!(
        "{} added, {} replaced, {} kept",
        pluralize(report.added as u64, "Archive"),
        report.replaced,
        report.kept
    ));
    Ok(CommandOutcome::Yes)
}
