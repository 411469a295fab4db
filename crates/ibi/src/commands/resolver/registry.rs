//! `ibi resolver export` and `import`.

use std::io::Read as _;

use ibi_resolver::shown::ArchiveShown;
use serde_json::json;

use crate::cli::resolver::{Export, Import};
use crate::commands::resolver::open;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

pub(crate) fn export(command: &Export) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let mut output = Output::new();
    if command.json {
        for archive in registry.archives().iter() {
            output.json(&ArchiveShown::new(&registry, archive))?;
        }
    } else {
        output.bytes(registry.export()?.as_bytes())?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}

pub(crate) fn import(command: &Import) -> Result<Answer, Failure> {
    let registry = open(&command.data)?;
    let mut text = String::new();
    if command.file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(Failure::Read)?;
    } else {
        text = std::fs::read_to_string(&command.file)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", command.file.display())))?;
    }
    let report = registry.import(&text)?;
    if command.json {
        let mut output = Output::new();
        output.json(&json!({ "added": report.added, "replaced": report.replaced, "kept": report.kept }))?;
        output.flush()?;
    }
    say(format_args!("{} Archives added, {} replaced, {} kept", report.added, report.replaced, report.kept));
    Ok(Answer::Yes)
}
