//! `ibi archive links check`.

use ibi_archive::target_check::{
    CheckedTarget, TargetCheckOptions, TargetCheckProgress, TargetOutcome, check_targets,
};

use crate::cli::links_check::LinksCheckArgs;
use crate::commands::archive::{open_to_read, peers, pluralize};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

pub(crate) fn check(command: &LinksCheckArgs) -> Result<CommandOutcome, CommandError> {
    command.trust.apply()?;
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let mut progress = TargetCheckProgress::open(&data, command.restart)?;
    let before = progress.earlier_results().to_vec();
    if !before.is_empty() {
        let targets = pluralize(before.len() as u64, "target");
        say(format_args!("resuming an interrupted check: {targets} were checked before"));
    }
    let options = TargetCheckOptions {
        pause: command.pause,
        timeout: command.timeout,
        allow_private: command.allow_private,
    };
    let mut output = StdoutWriter::new();
    let mut tally = LinksCheckTally::default();
    let mut written = Ok(());
    let mut tell = |checked: &CheckedTarget| {
        tally.add(checked);
        written = print(&mut output, checked, command.json);
        written.is_ok()
    };
    // Reports the whole check, including the part before an interruption.
    let goes_on = before.iter().all(&mut tell);
    if goes_on {
        peers::block_on_network(async {
            Ok(check_targets(&holdings, &options, &mut progress, &mut tell).await?)
        })?;
    }
    written?;
    output.flush()?;
    tally.say();
    Ok(CommandOutcome::from(tally.failed == 0))
}

fn print(output: &mut StdoutWriter, checked: &CheckedTarget, json: bool) -> Result<(), CommandError> {
    if json {
        output.json(checked)?;
        return output.flush();
    }
    let CheckedTarget { item, url, outcome, status, note, .. } = checked;
    let status = status.map(|status| status.to_string()).unwrap_or_default();
    let note = printable(note.as_deref().unwrap_or_default());
    output.text(format_args!("{}\t{status}\t{item}\t{}\t{note}\n", outcome.name(), printable(url)))?;
    output.flush()
}

#[derive(Default)]
struct LinksCheckTally {
    answered: u64,
    moved: u64,
    failed: u64,
    skipped: u64,
}

impl LinksCheckTally {
    fn add(&mut self, checked: &CheckedTarget) {
        *match checked.outcome {
            TargetOutcome::Ok => &mut self.answered,
            TargetOutcome::Moved => &mut self.moved,
            TargetOutcome::Failed => &mut self.failed,
            TargetOutcome::Skipped => &mut self.skipped,
        } += 1;
    }

    fn say(&self) {
        let Self { answered, moved, failed, skipped } = self;
        say(format_args!("{answered} ok, {moved} moved, {failed} failed, {skipped} skipped"));
    }
}
