//! `ibi archive stats`.

use ibi_archive::service::{Counts, Day, Statistics, counted_as};

use crate::cli::serve::Stats;
use crate::commands::archive::open_to_read;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

pub(crate) fn run(command: &Stats) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let (holding, role) = holdings.find(&command.ibi)?;
    let (labels, kind) = counted_as(&holding, role);
    let counted = Statistics::open(&data, [0; 32])?.of(&holding.path, kind)?;
    let counts = Counts::new(labels.primary(), kind, counted);
    let mut output = Output::new();
    if command.json {
        output.json(&counts)?;
    } else {
        if counts.days.is_empty() {
            say(format_args!("nobody has asked for it on line yet, or within the last seconds"));
        }
        for Day { day, what, robots, times } in &counts.days {
            let who = if *robots { "robots" } else { "people" };
            output.text(format_args!("{day}\t{what}\t{who}\t{times}\n"))?;
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
