//! `ibi resolver index`.

use ibi_resolver::live_status::index_status;
use ibi_resolver::location_index::{ArchiveIndexStatus, IndexStatus};

use crate::cli::resolver::ResolverIndexArgs;
use crate::commands::resolver::{clock, folder, open};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

pub(crate) fn run(command: &ResolverIndexArgs) -> Result<CommandOutcome, CommandError> {
    let registry = open(&command.data)?;
    let Some(status) = index_status(&folder(&command.data)?, &registry, clock()())? else {
        say(format_args!("the server has not reported its index: try again in a second, or see its log"));
        return Ok(CommandOutcome::No);
    };
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&status)?;
        output.flush()?;
        return Ok(CommandOutcome::Yes);
    }
    let IndexStatus { archives, labels, items, bytes } = status;
    for archive in &archives {
        let ArchiveIndexStatus { service, labels, items, bytes, .. } = archive;
        let following = match (archive.current, archive.followed) {
            (true, _) => "current",
            (false, true) => "followed",
            (false, false) => "asked",
        };
        let position = archive.position.as_deref().unwrap_or("-");
        let age = archive.age_seconds.map_or_else(|| "-".to_owned(), |age| format!("{age:.1}"));
        let error = printable(archive.error.as_deref().unwrap_or("-"));
        output.text(format_args!(
            "{service}\t{following}\t{}\t{age}\t{labels}\t{items}\t{bytes}\t{error}\n",
            printable(position)
        ))?;
    }
    output.text(format_args!("total\t-\t-\t-\t{labels}\t{items}\t{bytes}\t-\n"))?;
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
