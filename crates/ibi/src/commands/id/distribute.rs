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
        let columns = DistributorColumns::of(command.edition, last, turn, granularity);
        last = Some(turn.mark);
        write(&line, turn, &columns, command.json, &mut output)?;
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

/// The columns `t'(i)` and `r` of the standard's tables (000 Table 4.2, 004 Table 6.2).
struct DistributorColumns {
    /// The creation date, and the date before it.
    pair: [String; 2],
    /// The coarsest step that the date could be cut to.
    r: Granularity,
}

impl DistributorColumns {
    fn of(edition: Edition, last: Option<Instant>, turn: Turn, granularity: Granularity) -> Self {
        let previous = match (edition, last) {
            (Edition::Rtc2015, Some(last)) => last.floor(granularity).unix().to_string(),
            // Algorithm 4, line 3: one step before.
            (Edition::Rtc2015, None) => one_step_before(turn.creation, granularity),
            (Edition::Nbr2011, Some(last)) => last.unix().to_string(),
            (Edition::Nbr2011, None) => "0".to_owned(),
        };
        // A coarser step counts while it still gives a date after the last one (1.5, step 5).
        let is_after_last = |step: &Granularity| {
            let date = turn.creation.floor(*step);
            last.map_or(date == turn.creation, |last| date > last.floor(granularity))
        };
        let coarser = std::iter::successors(granularity.coarser(), |step| step.coarser());
        let r = match edition {
            Edition::Rtc2015 => coarser.take_while(is_after_last).last().unwrap_or(granularity),
            Edition::Nbr2011 if turn.date == turn.creation.floor(Granularity::MINUTE) => Granularity::MINUTE,
            Edition::Nbr2011 => Granularity::SECOND,
        };
        Self { pair: [turn.creation.unix().to_string(), previous], r }
    }
}

/// One step before a date, in Unix seconds. Before the year 1 there is no instant, and none is
/// needed to print it.
fn one_step_before(at: Instant, granularity: Granularity) -> String {
    const PICOS_PER_SECOND: u64 = 1_000_000_000_000;
    let Some(step) = Instant::new(0, 0).and_then(|zero| zero.plus(granularity)) else { return String::new() };
    let borrow = u64::from(at.picos() < step.picos());
    let seconds = at.seconds() - step.seconds() - i64::from(borrow > 0);
    let picos = at.picos() + borrow * PICOS_PER_SECOND - step.picos();
    Instant::new(seconds, picos).map_or_else(|| seconds.to_string(), |before| before.unix().to_string())
}

#[derive(Serialize)]
struct Row<'a> {
    requested: &'a str,
    date: String,
    creation: String,
    suffix: &'a str,
    /// An IBIp cannot tell an instant before 1995-08-01.
    ibip_suffix: Option<&'a str>,
    pair: &'a [String; 2],
    r: String,
}

#[derive(Serialize)]
struct Refused<'a> {
    requested: &'a str,
    error: ErrorRecord,
}

fn write(
    requested: &str,
    turn: Turn,
    columns: &DistributorColumns,
    json: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let (suffix, opaque) = (repository::suffix(turn.date), ibip::suffix(turn.date).ok());
    let opaque = opaque.as_deref();
    if json {
        let (date, creation) = (turn.date.unix().to_string(), turn.creation.unix().to_string());
        let (pair, r) = (&columns.pair, columns.r.to_string());
        return output.json(&Row {
            requested,
            date,
            creation,
            suffix: &suffix,
            ibip_suffix: opaque,
            pair,
            r,
        });
    }
    let ([creation, previous], r) = (&columns.pair, columns.r);
    let (date, opaque) = (turn.date.unix(), opaque.unwrap_or("-"));
    output.text(format_args!("{date}\t{suffix}\t{opaque}\t({creation}, {previous})\t{r}\n"))
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
