//! `ibi archive stats`.

use ibi_archive::service::{Statistics, StatisticsDay, StatisticsReport, statistics_subject};

use crate::cli::serve::StatsArgs;
use crate::commands::archive::open_to_read;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

pub(crate) fn run(command: &StatsArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let (labels, kind) = statistics_subject(&holding, role);
    let counted = Statistics::open(&data, [0; 32])?.item_counts(&holding.path, kind)?;
    let counts = StatisticsReport::new(labels.primary(), kind, counted);
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&counts)?;
    } else {
        if counts.days.is_empty() {
            say(format_args!("no usage recorded yet; the last seconds may be missing"));
        }
        for StatisticsDay { day, what, robots, times } in &counts.days {
            let who = if *robots { "robots" } else { "people" };
            output.text(format_args!("{day}\t{what}\t{who}\t{times}\n"))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
