//! `ibi archive salvage`.

use std::collections::BTreeMap;

use ibi_archive::salvage::{self, SalvageReport};
use ibi_archive::store::JournalLineSource;
use serde::Serialize;

use crate::cli::archive::SalvageArgs;
use crate::commands::archive::{lease_from_server, operator_of, pluralize, progress_counter, rebuild};
use crate::commands::minter::shell_quoted;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

#[derive(Serialize)]
struct SalvageOutput<'a> {
    lines: Vec<SalvageLineOutput>,
    title_damaged: bool,
    unacknowledged_lines: u64,
    damaged_journal: Option<String>,
    from_tree: Vec<SalvageTreeOutput<'a>>,
    in_doubt: bool,
}

#[derive(Serialize)]
struct SalvageLineOutput {
    line: u64,
    from: &'static str,
}

#[derive(Serialize)]
struct SalvageTreeOutput<'a> {
    item: &'a str,
    state: &'static str,
}

pub(crate) fn run(command: &SalvageArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let _lease = lease_from_server(&data)?;
    let progress = progress_counter("items");
    let salvage =
        salvage::salvage(&data, command.from.as_deref(), &operator_of(&data), &|items| progress.inc(items))?;
    progress.finish_and_clear();
    if command.json {
        let from_tree =
            salvage.from_tree.iter().map(|(item, state)| SalvageTreeOutput { item, state: state.name() });
        let mut output = StdoutWriter::new();
        output.json(&SalvageOutput {
            lines: lines(&salvage.lines).collect(),
            title_damaged: salvage.title,
            unacknowledged_lines: salvage.unacknowledged,
            damaged_journal: salvage.kept.as_ref().map(|kept| kept.display().to_string()),
            from_tree: from_tree.collect(),
            in_doubt: salvage.in_doubt,
        })?;
        output.flush()?;
    }
    report_salvage(&salvage);
    if salvage.in_doubt {
        let data = shell_quoted(&data.display().to_string());
        say(format_args!(
            "transferable Originals are served as Copies until you confirm that none was transferred: ibi archive confirm --data {data}"
        ));
    }
    let rebuilt = salvage.rebuilt.as_ref().map_or(CommandOutcome::Yes, rebuild::report_rebuild);
    let is_lost = salvage.lines.values().any(|source| *source == JournalLineSource::Lost);
    Ok(if is_lost { CommandOutcome::No } else { rebuilt })
}

fn report_salvage(salvage: &SalvageReport) {
    let Some(kept) = &salvage.kept else {
        say(format_args!("the journal is intact: nothing to salvage"));
        return;
    };
    if salvage.title {
        say(format_args!("line 1 of the journal: the title was damaged, and was rewritten"));
    }
    report_lines(&salvage.lines);
    if salvage.unacknowledged > 0 {
        let lines = pluralize(salvage.unacknowledged, "line");
        say(format_args!(
            "left out: {lines} at the end of the journal that cannot be read; no change that was acknowledged is there"
        ));
    }
    for (item, state) in &salvage.from_tree {
        let item = printable(item);
        say(format_args!(
            "{item} is known only from the tree: recorded as {}{}",
            state.name(),
            if state.name() == "Copy" {
                "; if it is the Original, run `ibi archive update --original`"
            } else {
                ""
            }
        ));
    }
    say(format_args!("kept the damaged journal: {}", kept.display()));
}

/// Reports the source of each line.
pub(crate) fn report_lines(found: &BTreeMap<u64, JournalLineSource>) {
    for SalvageLineOutput { line, from } in lines(found) {
        match from {
            "lost" => {
                say(format_args!("line {line} of the journal is lost: not in a backup or in the index"));
            }
            from => say(format_args!("line {line} of the journal is recovered: {from}")),
        }
    }
}

/// Numbers lines as editors do: the title is line 1.
fn lines(found: &BTreeMap<u64, JournalLineSource>) -> impl Iterator<Item = SalvageLineOutput> {
    found.iter().map(|(number, source)| SalvageLineOutput { line: number + 1, from: source.name() })
}
