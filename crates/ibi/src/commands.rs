//! One file a command.

mod archive;
mod backup;
mod completions;
mod data;
mod id;
mod man;
mod mint;
mod minter;
mod resolver;
mod serve;
mod serving;

use crate::cli::archive::Archive;
use crate::cli::resolver::{Resolver, Token as ResolverToken};
use crate::cli::serve::Token;
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
        Command::Minter(Minter::Set(command)) => minter::set(&command),
        Command::Minter(Minter::Recover(command)) => minter::recover(&command),
        Command::Mint(command) => mint::run(&command),
        Command::Archive(Archive::Init(command)) => archive::init::run(&command),
        Command::Archive(Archive::Settings(command)) => archive::settings::run(&command),
        Command::Archive(Archive::Import(command)) => archive::import::run(&command),
        Command::Archive(Archive::PlainTree(command)) => archive::plain_tree::run(&command),
        Command::Archive(Archive::Deposit(command)) => archive::deposit::run(*command),
        Command::Archive(Archive::Update(command)) => archive::update::run(*command),
        Command::Archive(Archive::Show(command)) => archive::show::run(&command),
        Command::Archive(Archive::List(command)) => archive::list::run(&command),
        Command::Archive(Archive::Remove(command)) => archive::remove::run(&command),
        Command::Archive(Archive::Purge(command)) => archive::purge::run(&command),
        Command::Archive(Archive::Copy(command)) => archive::copy::copy(&command),
        Command::Archive(Archive::Refresh(command)) => archive::copy::refresh(&command),
        Command::Archive(Archive::Transfer(command)) => archive::transfer::transfer(&command),
        Command::Archive(Archive::Drop(command)) => archive::transfer::drop_copy(&command),
        Command::Archive(Archive::Links(command)) => archive::links::run(&command),
        Command::Archive(Archive::Export(command)) => archive::export::run(&command),
        Command::Archive(Archive::Audit(command)) => archive::audit::run(&command),
        Command::Archive(Archive::Rebuild(command)) => archive::rebuild::run(&command),
        Command::Archive(Archive::Confirm(command)) => backup::confirm(&command),
        Command::Archive(Archive::Serve(command)) => archive::serve::run(&command),
        Command::Archive(Archive::Token(Token::Create(command))) => archive::token::create(&command),
        Command::Archive(Archive::Token(Token::List(command))) => archive::token::list(&command),
        Command::Archive(Archive::Token(Token::Revoke(command))) => archive::token::revoke(&command),
        Command::Archive(Archive::Stats(command)) => archive::stats::run(&command),
        Command::Resolver(Resolver::Init(command)) => resolver::archives::init(&command),
        Command::Resolver(Resolver::Register(command)) => resolver::archives::register(&command),
        Command::Resolver(Resolver::Retire(command)) => resolver::archives::retire(&command),
        Command::Resolver(Resolver::Archives(command)) => resolver::archives::list(&command),
        Command::Resolver(Resolver::Serve(command)) => resolver::serve::run(&command),
        Command::Resolver(Resolver::Alerts(command)) => resolver::alerts::run(&command),
        Command::Resolver(Resolver::Resolve(command)) => resolver::resolve::run(&command),
        Command::Resolver(Resolver::Export(command)) => resolver::registry::export(&command),
        Command::Resolver(Resolver::Import(command)) => resolver::registry::import(&command),
        Command::Resolver(Resolver::Token(ResolverToken::Create(command))) => {
            resolver::token::create(&command)
        }
        Command::Resolver(Resolver::Token(ResolverToken::List(command))) => resolver::token::list(&command),
        Command::Resolver(Resolver::Token(ResolverToken::Revoke(command))) => {
            resolver::token::revoke(&command)
        }
        Command::Serve(command) => serve::run(&command),
        Command::Backup(command) => backup::backup(&command),
        Command::Restore(command) => backup::restore(&command),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(dir),
    }
}
