//! `ibi archive stats`.

use ibi_archive::service::Statistics;
use serde::Serialize;

use crate::cli::serve::Stats;
use crate::commands::archive::open_to_read;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

#[derive(Serialize)]
struct Shown<'a> {
    item: &'a str,
    days: Vec<Day>,
}

#[derive(Serialize)]
struct Day {
    day: String,
    what: String,
    robots: bool,
    times: u64,
}

pub(crate) fn run(command: &Stats) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let (holding, _) = holdings.find(&command.ibi)?;
    let counted = Statistics::open(&data, [0; 32])?.of(&holding.path)?;
    let days: Vec<Day> = counted
        .into_iter()
        .map(|count| Day { day: count.day, what: count.what, robots: count.robots, times: count.times })
        .collect();
    let mut output = Output::new();
    if command.json {
        output.json(&Shown { item: holding.item.labels.primary(), days })?;
    } else {
        if days.is_empty() {
            say(format_args!("nobody has asked for it on line yet, or within the last seconds"));
        }
        for Day { day, what, robots, times } in &days {
            let who = if *robots { "robots" } else { "people" };
            output.text(format_args!("{day}\t{what}\t{who}\t{times}\n"))?;
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
