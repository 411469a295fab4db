//! `ibi id distribute`.

use ibi_id::distributor::{self, DateGrant};
use ibi_id::{Granularity, Instant, ParseError, ibip, repository};
use serde::Serialize;

use crate::cli::{EditionArg, IdDistributeArgs};
use crate::commands::id::record::LabelErrorOutput;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{LineReader, StdoutWriter, printable, say};

pub(in crate::commands) fn run(command: &IdDistributeArgs) -> Result<CommandOutcome, CommandError> {
    let granularity = granularity(command)?;
    let mut output = StdoutWriter::new();
    let mut lines = LineReader::stdin("times of requests");
    let (mut last, mut number, mut all) = (None, 0_u64, true);
    while let Some(line) = lines.next(&mut output)? {
        number += 1;
        let turn = line.parse::<Instant>().and_then(|now| {
            let turn = match command.edition {
                EditionArg::Rtc2015 => distributor::next(last, now, granularity),
                EditionArg::Nbr2011 => distributor::next_2011(last, now),
            };
            turn.ok_or(ParseError::NO_DATE_LEFT)
        });
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                all = false;
                print_error(&line, number, error, command.json, &mut output)?;
                continue;
            }
        };
        let columns = DistributorColumns::of(command.edition, last, turn, granularity);
        last = Some(turn.mark);
        write(&line, turn, &columns, command.json, &mut output)?;
    }
    output.flush()?;
    Ok(CommandOutcome::from(all))
}

fn granularity(command: &IdDistributeArgs) -> Result<Granularity, CommandError> {
    match (command.edition, command.granularity) {
        (EditionArg::Rtc2015, given) => Ok(given.unwrap_or(Granularity::NANOSECOND)),
        (EditionArg::Nbr2011, None | Some(Granularity::SECOND)) => Ok(Granularity::SECOND),
        (EditionArg::Nbr2011, Some(_)) => Err(CommandError::Granularity2011),
    }
}

/// The columns `t'(i)` and `r` of the standard's tables (000 Table 4.2, 004 Table 6.2).
struct DistributorColumns {
    /// The creation date, and the date before it.
    pair: [String; 2],
    /// The coarsest step that the date could be truncated to.
    r: Granularity,
}

impl DistributorColumns {
    fn of(edition: EditionArg, last: Option<Instant>, turn: DateGrant, granularity: Granularity) -> Self {
        let previous = match (edition, last) {
            (EditionArg::Rtc2015, Some(last)) => last.floor(granularity).unix().to_string(),
            // Algorithm 4, line 3: one step before.
            (EditionArg::Rtc2015, None) => one_step_before(turn.creation, granularity),
            (EditionArg::Nbr2011, Some(last)) => last.unix().to_string(),
            (EditionArg::Nbr2011, None) => "0".to_owned(),
        };
        // A coarser step counts while it still gives a date after the last one (1.5, step 5).
        let is_after_last = |step: &Granularity| {
            let date = turn.creation.floor(*step);
            last.map_or(date == turn.creation, |last| date > last.floor(granularity))
        };
        let coarser = std::iter::successors(granularity.coarser(), |step| step.coarser());
        let r = match edition {
            EditionArg::Rtc2015 => coarser.take_while(is_after_last).last().unwrap_or(granularity),
            EditionArg::Nbr2011 if turn.date == turn.creation.floor(Granularity::MINUTE) => {
                Granularity::MINUTE
            }
            EditionArg::Nbr2011 => Granularity::SECOND,
        };
        Self { pair: [turn.creation.unix().to_string(), previous], r }
    }
}

/// One step before a date, in Unix seconds. The result may lie before the year 1, where `Instant`
/// ends.
fn one_step_before(at: Instant, granularity: Granularity) -> String {
    const PICOS_PER_SECOND: u64 = 1_000_000_000_000;
    let Some(step) = Instant::new(0, 0).and_then(|zero| zero.plus(granularity)) else { return String::new() };
    let borrow = u64::from(at.picos() < step.picos());
    let seconds = at.seconds() - step.seconds() - i64::from(borrow > 0);
    let picos = at.picos() + borrow * PICOS_PER_SECOND - step.picos();
    Instant::new(seconds, picos).map_or_else(|| seconds.to_string(), |before| before.unix().to_string())
}

#[derive(Serialize)]
struct DistributeOutput<'a> {
    requested: &'a str,
    date: String,
    creation: String,
    suffix: &'a str,
    /// `None` before 1995-08-01, which an IBIp cannot encode.
    ibip_suffix: Option<&'a str>,
    pair: &'a [String; 2],
    r: String,
}

#[derive(Serialize)]
struct DistributeErrorOutput<'a> {
    requested: &'a str,
    error: LabelErrorOutput,
}

fn write(
    requested: &str,
    turn: DateGrant,
    columns: &DistributorColumns,
    json: bool,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    let (suffix, opaque) = (repository::suffix(turn.date), ibip::suffix(turn.date).ok());
    let opaque = opaque.as_deref();
    if json {
        let (date, creation) = (turn.date.unix().to_string(), turn.creation.unix().to_string());
        let (pair, r) = (&columns.pair, columns.r.to_string());
        return output.json(&DistributeOutput {
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

fn print_error(
    requested: &str,
    number: u64,
    error: ParseError,
    json: bool,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    if json {
        return output.json(&DistributeErrorOutput { requested, error: LabelErrorOutput::of(&error) });
    }
    say(format_args!("line {number}: `{}`: {error}", printable(requested)));
    Ok(())
}
