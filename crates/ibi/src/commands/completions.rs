//! `ibi completions`: what a shell needs to complete our commands.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{Answer, Failure};

pub(super) fn run(shell: clap_complete::Shell) -> Result<Answer, Failure> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ibi", &mut script);
    std::io::stdout().write_all(&script).map_err(Failure::Write)?;
    Ok(Answer::Yes)
}
