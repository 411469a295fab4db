//! `ibi man`: the manual pages.

use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{CommandError, CommandOutcome};

pub(super) fn run(dir: Option<PathBuf>) -> Result<CommandOutcome, CommandError> {
    let Some(dir) = dir else {
        clap_mangen::Man::new(pages()).render(&mut std::io::stdout()).map_err(CommandError::Write)?;
        return Ok(CommandOutcome::Yes);
    };
    std::fs::create_dir_all(&dir)
        .and_then(|()| clap_mangen::generate_to(pages(), &dir))
        .map_err(|error| CommandError::WriteFile { dir, error })?;
    Ok(CommandOutcome::Yes)
}

/// The command tree without `help` subcommands, which have no page of their own.
fn pages() -> clap::Command {
    fn without_help(command: clap::Command) -> clap::Command {
        command.disable_help_subcommand(true).mut_subcommands(without_help)
    }
    without_help(Cli::command())
}
