//! `ibi mint`.

use std::io::IsTerminal as _;
use std::time::Duration;

use ibi_archive::mint::clock::SystemClock;
use ibi_archive::mint::{self, Labels, Limits, Minted, Request};
use ibi_id::{Instant, Suffix, ibip, repository};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::Mint;
use crate::commands::archive::borrowed;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// A wait that a person would notice.
const NOTICED: Duration = Duration::from_millis(500);

pub(super) fn run(command: &Mint) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let _borrowed = borrowed(&data)?;
    let minter = mint::open(&data, SystemClock::new(), Limits::default())?;
    let set = mint::granularity(&data, minter.subsystem().edition)?;
    let (granularity, max_wait) = (command.granularity.unwrap_or(set), command.max_wait);
    let (mut output, progress) = (Output::new(), progress(command.number));
    let mut left = command.number;
    while left > 0 {
        let count = left.min(mint::MOST_LABELS as u64);
        // At most a million: fits.
        let request = Request { count: count as usize, granularity, max_wait };
        let minted = minter.mint_telling(request, |wait| {
            if wait >= NOTICED {
                say(format_args!(
                    "waiting {:.1} s: labels are given out when their time has come",
                    wait.as_secs_f32()
                ));
            }
        });
        let minted = minted.inspect_err(|_| {
            if left < command.number {
                say(format_args!(
                    "{} of {} labels were given out before this:",
                    command.number - left,
                    command.number
                ));
            }
        })?;
        write(&minted, command.json, &progress, &mut output)?;
        output.flush()?;
        left -= count;
    }
    progress.finish_and_clear();
    Ok(Answer::Yes)
}

/// A bar for long work, if a person looks at standard error.
fn progress(number: u64) -> ProgressBar {
    const LONG: u64 = 100_000;
    if number < LONG || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} labels, {eta} left");
    ProgressBar::new(number).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[derive(Serialize)]
struct Label {
    #[serde(skip_serializing_if = "Option::is_none")]
    rep: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ibip: Option<String>,
    instant: String,
}

fn write(minted: &Minted, json: bool, progress: &ProgressBar, output: &mut Output) -> Result<(), Failure> {
    if json {
        return minted.labels().enumerate().try_for_each(|(number, Labels { rep, ibip, instant })| {
            advance(progress, number);
            output.json(&Label { rep, ibip, instant: instant.to_string() })
        });
    }
    minted.dates().iter().enumerate().try_for_each(|(number, &at)| {
        advance(progress, number);
        write_text(minted, at, output)
    })
}

fn advance(progress: &ProgressBar, number: usize) {
    const STEP: usize = 10_000;
    if number % STEP == STEP - 1 {
        progress.inc(STEP as u64);
    }
}

fn write_text(minted: &Minted, at: Instant, output: &mut Output) -> Result<(), Failure> {
    let mut suffix = Suffix::EMPTY;
    let prefixes = minted.prefixes();
    if let Some(prefix) = &prefixes.rep {
        repository::write_suffix(at, &mut suffix);
        write_label(prefix, &suffix, output)?;
    }
    if let Some(prefix) = &prefixes.ibip {
        if prefixes.rep.is_some() {
            output.bytes(b"\t")?;
        }
        ibip::write_suffix(at, &mut suffix).map_err(Failure::Build)?;
        write_label(prefix, &suffix, output)?;
    }
    output.bytes(b"\n")
}

fn write_label(prefix: &str, suffix: &Suffix, output: &mut Output) -> Result<(), Failure> {
    output.bytes(prefix.as_bytes())?;
    output.bytes(b"/")?;
    output.bytes(suffix.as_bytes())
}
