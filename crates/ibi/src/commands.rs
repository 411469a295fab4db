//! One file a command.

mod completions;
mod data;
mod id;
mod man;
mod mint;
mod minter;

use crate::cli::{Command, Id, Minter};
use crate::exit::{Answer, Failure};

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Id(Id::Parse(command)) => id::parse::run(command),
        Command::Id(Id::Equal(command)) => id::equal::run(&command),
        Command::Id(Id::Encode(command)) => id::encode::run(&command),
        Command::Id(Id::Distribute(command)) => id::distribute::run(&command),
        Command::Minter(Minter::Init(command)) => minter::init(&command),
        Command::Minter(Minter::Show(command)) => minter::show(&command),
        Command::Minter(Minter::Recover(command)) => minter::recover(&command),
        Command::Mint(command) => mint::run(&command),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(dir),
    }
}
