//! `ibi id distribute`.

use ibi_id::distributor::{self, Turn};
use ibi_id::{Granularity, Instant, ParseError, ibip, repository};
use serde::Serialize;

use crate::cli::{Distribute, Edition};
use crate::commands::id::record::ErrorRecord;
use crate::exit::{Answer, Failure};
use crate::io::{Lines, Output, printable, say};

pub(in crate::commands) fn run(command: &Distribute) -> Result<Answer, Failure> {
    let granularity = granularity(command)?;
    let mut output = Output::new();
    let mut lines = Lines::stdin("times of requests");
    let (mut last, mut number, mut all) = (None, 0_u64, true);
    while let Some(line) = lines.next(&mut output)? {
        number += 1;
        let turn = line.parse::<Instant>().and_then(|now| {
            let turn = match command.edition {
                Edition::Rtc2015 => distributor::next(last, now, granularity),
                Edition::Nbr2011 => distributor::next_2011(last, now),
            };
            turn.ok_or(ParseError::NO_DATE_LEFT)
        });
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                all = false;
                refuse(&line, number, error, command.json, &mut output)?;
                continue;
            }
        };
        last = Some(turn.mark);
        write(&line, turn, command.json, &mut output)?;
    }
    output.flush()?;
    Ok(Answer::from(all))
}

fn granularity(command: &Distribute) -> Result<Granularity, Failure> {
    match (command.edition, command.granularity) {
        (Edition::Rtc2015, given) => Ok(given.unwrap_or(Granularity::NANOSECOND)),
        (Edition::Nbr2011, None | Some(Granularity::SECOND)) => Ok(Granularity::SECOND),
        (Edition::Nbr2011, Some(_)) => Err(Failure::Granularity2011),
    }
}

#[derive(Serialize)]
struct Row<'a> {
    requested: &'a str,
    date: String,
    creation: String,
    suffix: &'a str,
    /// An IBIp cannot tell an instant before 1995-08-01.
    ibip_suffix: Option<&'a str>,
}

#[derive(Serialize)]
struct Refused<'a> {
    requested: &'a str,
    error: ErrorRecord,
}

fn write(requested: &str, turn: Turn, json: bool, output: &mut Output) -> Result<(), Failure> {
    let (suffix, opaque) = (repository::suffix(turn.date), ibip::suffix(turn.date).ok());
    let opaque = opaque.as_deref();
    if json {
        let (date, creation) = (turn.date.unix().to_string(), turn.creation.unix().to_string());
        return output.json(&Row { requested, date, creation, suffix: &suffix, ibip_suffix: opaque });
    }
    output.text(format_args!("{}\t{suffix}\t{}\n", turn.date.unix(), opaque.unwrap_or("-")))
}

fn refuse(
    requested: &str,
    number: u64,
    error: ParseError,
    json: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    if json {
        return output.json(&Refused { requested, error: ErrorRecord::of(&error) });
    }
    say(format_args!("line {number}: `{}`: {error}", printable(requested)));
    Ok(())
}
