//! `ibi completions`: shell completion scripts.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{CommandError, CommandOutcome};

pub(super) fn run(shell: clap_complete::Shell) -> Result<CommandOutcome, CommandError> {
    // Buffered, because the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ibi", &mut script);
    std::io::stdout().write_all(&script).map_err(CommandError::Write)?;
    Ok(CommandOutcome::Yes)
}
