//! `ibi mint`.

use std::io::IsTerminal as _;
use std::time::Duration;

use ibi_archive::ArchiveError;
use ibi_id::{Instant, Suffix, ibip, repository};
use ibi_mint::clock::SystemClock;
use ibi_mint::{ClockLimits, MintBatch, MintRequest, MintedLabels};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::MintArgs;
use crate::commands::archive::lease_from_server;
use crate::commands::minter::warn_of_foreign_claims;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

/// Waits of this length are reported.
const NOTICEABLE_WAIT: Duration = Duration::from_millis(500);

pub(super) fn run(command: &MintArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let _lease = lease_from_server(&data)?;
    warn_of_foreign_claims(&data);
    let minter = ibi_mint::open(&data, SystemClock::new(), ClockLimits::default())?;
    let set = ibi_mint::granularity(&data, minter.subsystem().edition).map_err(ArchiveError::from)?;
    let (granularity, max_wait) = (command.granularity.unwrap_or(set), command.max_wait);
    let (mut output, progress) = (StdoutWriter::new(), progress(command.number));
    let mut left = command.number;
    while left > 0 {
        let count = left.min(ibi_mint::MAX_LABELS_PER_REQUEST as u64);
        // At most a million, which fits.
        let request = MintRequest { count: count as usize, granularity, max_wait };
        let minted = minter.mint_with_notice(request, |wait| {
            if wait >= NOTICEABLE_WAIT {
                say(format_args!(
                    "waiting {:.1} s, until the instants of the labels have passed",
                    wait.as_secs_f32()
                ));
            }
        });
        let minted = minted.inspect_err(|_| {
            if left < command.number {
                say(format_args!(
                    "{} of {} labels were issued before this error:",
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
    Ok(CommandOutcome::Yes)
}

/// A progress bar for long work, if standard error is a terminal.
fn progress(number: u64) -> ProgressBar {
    const PROGRESS_MIN_LABELS: u64 = 100_000;
    if number < PROGRESS_MIN_LABELS || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} labels, {eta} left");
    ProgressBar::new(number).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[derive(Serialize)]
struct MintOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    rep: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ibip: Option<String>,
    instant: String,
}

fn write(
    minted: &MintBatch,
    json: bool,
    progress: &ProgressBar,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    if json {
        return minted.labels().enumerate().try_for_each(|(number, MintedLabels { rep, ibip, instant })| {
            advance(progress, number);
            output.json(&MintOutput { rep, ibip, instant: instant.to_string() })
        });
    }
    minted.dates().iter().enumerate().try_for_each(|(number, &at)| {
        advance(progress, number);
        write_text(minted, at, output)
    })
}

fn advance(progress: &ProgressBar, number: usize) {
    const PROGRESS_STEP_LABELS: usize = 10_000;
    if number % PROGRESS_STEP_LABELS == PROGRESS_STEP_LABELS - 1 {
        progress.inc(PROGRESS_STEP_LABELS as u64);
    }
}

fn write_text(minted: &MintBatch, at: Instant, output: &mut StdoutWriter) -> Result<(), CommandError> {
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
        ibip::write_suffix(at, &mut suffix).map_err(CommandError::Build)?;
        write_label(prefix, &suffix, output)?;
    }
    output.bytes(b"\n")
}

fn write_label(prefix: &str, suffix: &Suffix, output: &mut StdoutWriter) -> Result<(), CommandError> {
    output.bytes(prefix.as_bytes())?;
    output.bytes(b"/")?;
    output.bytes(suffix.as_bytes())
}
