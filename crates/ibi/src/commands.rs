//! The commands, one file each.

mod archive;
mod backup;
mod completions;
mod data;
mod id;
mod man;
mod mint;
mod minter;
mod quotas;
mod resolver;
mod serve;
mod server_setup;

use crate::cli::archive::ArchiveCommand;
use crate::cli::resolver::{ResolverCommand, ResolverTokenCommand as ResolverToken};
use crate::cli::serve::TokenCommand;
use crate::cli::{CliCommand, IdCommand, MinterCommand};
use crate::exit::{CommandError, CommandOutcome};

/// Runs a command.
pub(crate) fn run(command: CliCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        CliCommand::Id(IdCommand::Parse(command)) => id::parse::run(command),
        CliCommand::Id(IdCommand::Equal(command)) => id::equal::run(&command),
        CliCommand::Id(IdCommand::Encode(command)) => id::encode::run(&command),
        CliCommand::Id(IdCommand::Distribute(command)) => id::distribute::run(&command),
        CliCommand::Minter(MinterCommand::Init(command)) => minter::init(&command),
        CliCommand::Minter(MinterCommand::Show(command)) => minter::show(&command),
        CliCommand::Minter(MinterCommand::Set(command)) => minter::set(&command),
        CliCommand::Minter(MinterCommand::Recover(command)) => minter::recover(&command),
        CliCommand::Mint(command) => mint::run(&command),
        CliCommand::Archive(ArchiveCommand::Init(command)) => archive::init::run(&command),
        CliCommand::Archive(ArchiveCommand::Settings(command)) => archive::settings::run(&command),
        CliCommand::Archive(ArchiveCommand::Import(command)) => archive::import::run(&command),
        CliCommand::Archive(ArchiveCommand::PlainTree(command)) => archive::plain_tree::run(&command),
        CliCommand::Archive(ArchiveCommand::Deposit(command)) => archive::deposit::run(*command),
        CliCommand::Archive(ArchiveCommand::Update(command)) => archive::update::run(*command),
        CliCommand::Archive(ArchiveCommand::Show(command)) => archive::show::run(&command),
        CliCommand::Archive(ArchiveCommand::List(command)) => archive::list::run(&command),
        CliCommand::Archive(ArchiveCommand::Remove(command)) => archive::remove::run(&command),
        CliCommand::Archive(ArchiveCommand::Purge(command)) => archive::purge::run(&command),
        CliCommand::Archive(ArchiveCommand::Copy(command)) => archive::copy::copy(&command),
        CliCommand::Archive(ArchiveCommand::Refresh(command)) => archive::copy::refresh(&command),
        CliCommand::Archive(ArchiveCommand::Transfer(command)) => archive::transfer::transfer(&command),
        CliCommand::Archive(ArchiveCommand::Drop(command)) => archive::transfer::drop_copy(&command),
        CliCommand::Archive(ArchiveCommand::Givers(command)) => archive::givers::run(&command),
        CliCommand::Archive(ArchiveCommand::Links(command)) => archive::links::run(&command),
        CliCommand::Archive(ArchiveCommand::Export(command)) => archive::export::run(&command),
        CliCommand::Archive(ArchiveCommand::Audit(command)) => archive::audit::run(&command),
        CliCommand::Archive(ArchiveCommand::Rebuild(command)) => archive::rebuild::run(&command),
        CliCommand::Archive(ArchiveCommand::Salvage(command)) => archive::salvage::run(&command),
        CliCommand::Archive(ArchiveCommand::Confirm(command)) => backup::confirm(&command),
        CliCommand::Archive(ArchiveCommand::Serve(command)) => archive::serve::run(&command),
        CliCommand::Archive(ArchiveCommand::Token(TokenCommand::Create(command))) => {
            archive::token::create(&command)
        }
        CliCommand::Archive(ArchiveCommand::Token(TokenCommand::List(command))) => {
            archive::token::list(&command)
        }
        CliCommand::Archive(ArchiveCommand::Token(TokenCommand::Set(command))) => {
            archive::token::set(&command)
        }
        CliCommand::Archive(ArchiveCommand::Token(TokenCommand::Renew(command))) => {
            archive::token::renew(&command)
        }
        CliCommand::Archive(ArchiveCommand::Token(TokenCommand::Revoke(command))) => {
            archive::token::revoke(&command)
        }
        CliCommand::Archive(ArchiveCommand::Stats(command)) => archive::stats::run(&command),
        CliCommand::Resolver(ResolverCommand::Init(command)) => resolver::archives::init(&command),
        CliCommand::Resolver(ResolverCommand::Register(command)) => resolver::archives::register(&command),
        CliCommand::Resolver(ResolverCommand::Retire(command)) => resolver::archives::retire(&command),
        CliCommand::Resolver(ResolverCommand::Archives(command)) => resolver::archives::list(&command),
        CliCommand::Resolver(ResolverCommand::Index(command)) => resolver::index::run(&command),
        CliCommand::Resolver(ResolverCommand::Serve(command)) => resolver::serve::run(&command),
        CliCommand::Resolver(ResolverCommand::Alerts(command)) => resolver::alerts::run(&command),
        CliCommand::Resolver(ResolverCommand::Resolve(command)) => resolver::resolve::run(&command),
        CliCommand::Resolver(ResolverCommand::Export(command)) => resolver::registry::export(&command),
        CliCommand::Resolver(ResolverCommand::Import(command)) => resolver::registry::import(&command),
        CliCommand::Resolver(ResolverCommand::Token(ResolverToken::Create(command))) => {
            resolver::token::create(&command)
        }
        CliCommand::Resolver(ResolverCommand::Token(ResolverToken::List(command))) => {
            resolver::token::list(&command)
        }
        CliCommand::Resolver(ResolverCommand::Token(ResolverToken::Revoke(command))) => {
            resolver::token::revoke(&command)
        }
        CliCommand::Serve(command) => serve::run(&command),
        CliCommand::Backup(command) => backup::backup(&command),
        CliCommand::Restore(command) => backup::restore(&command),
        CliCommand::Completions { shell } => completions::run(shell),
        CliCommand::Man { dir } => man::run(dir),
    }
}
