//! `ibi archive rebuild`.

use ibi_archive::rebuild::{self, RebuildReport};
use serde::Serialize;

use crate::cli::archive::RebuildArgs;
use crate::commands::archive::{lease_from_server, operator_of, pluralize, progress_counter};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

#[derive(Serialize)]
struct RebuildOutput<'a> {
    items: u64,
    adopted: &'a [String],
    missing: &'a [String],
    damaged: Vec<RebuildDamageOutput<'a>>,
}

#[derive(Serialize)]
struct RebuildDamageOutput<'a> {
    item: &'a str,
    what: &'a str,
}

pub(crate) fn run(command: &RebuildArgs) -> Result<CommandOutcome, CommandError> {
    let progress = progress_counter("items");
    let data = command.data.folder()?;
    let _lease = lease_from_server(&data)?;
    let rebuilt = rebuild::rebuild(&data, &operator_of(&data), &|items| progress.inc(items))?;
    progress.finish_and_clear();
    if command.json {
        let damaged = rebuilt.damaged.iter().map(|(item, what)| RebuildDamageOutput { item, what }).collect();
        let mut output = StdoutWriter::new();
        let RebuildReport { items, adopted, missing, .. } = &rebuilt;
        output.json(&RebuildOutput { items: *items, adopted, missing, damaged })?;
        output.flush()?;
    }
    Ok(report_rebuild(&rebuilt))
}

/// Prints the findings and returns whether the Archive is intact.
pub(crate) fn report_rebuild(rebuilt: &RebuildReport) -> CommandOutcome {
    for path in &rebuilt.adopted {
        say(format_args!("adopted from the tree, which differs from the journal: {}", printable(path)));
    }
    for path in &rebuilt.missing {
        say(format_args!(
            "missing: {} is in the journal but not in the tree: restore it from a backup",
            printable(path)
        ));
    }
    for (path, what) in &rebuilt.damaged {
        say(format_args!("damaged: {}: {}", printable(path), printable(what)));
    }
    say(format_args!("rebuilt the index: {}", pluralize(rebuilt.items, "item")));
    CommandOutcome::from(rebuilt.missing.is_empty() && rebuilt.damaged.is_empty())
}
