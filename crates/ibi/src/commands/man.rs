//! `ibi man`: the manual pages.

use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{Answer, Failure};

pub(super) fn run(dir: Option<PathBuf>) -> Result<Answer, Failure> {
    let Some(dir) = dir else {
        clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout()).map_err(Failure::Write)?;
        return Ok(Answer::Yes);
    };
    std::fs::create_dir_all(&dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
        .map_err(|error| Failure::WriteFile { dir, error })?;
    Ok(Answer::Yes)
}
