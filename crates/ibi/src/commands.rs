//! One file a command.

mod completions;
mod id;
mod man;

use crate::cli::{Command, Id};
use crate::exit::{Answer, Failure};

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Id(Id::Parse(command)) => id::parse::run(command),
        Command::Id(Id::Equal(command)) => id::equal::run(&command),
        Command::Id(Id::Encode(command)) => id::encode::run(&command),
        Command::Id(Id::Distribute(command)) => id::distribute::run(&command),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(dir),
    }
}
