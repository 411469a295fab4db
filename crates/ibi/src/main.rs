//! `ibi`: persistent identifiers without a registrar.
//!
//! [`cli`] defines every command once: help, shell completions and manual pages are generated from
//! it. Each command has one file under [`commands`]; the rules of identifiers are in the crate
//! `ibi-id`. Data goes to standard output, messages to standard error. [`exit`] defines the exit
//! statuses.

mod cli;
mod commands;
mod exit;
mod io;
mod shell_hints;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

/// A server allocates on one thread and frees on another for years, which the system's allocator
/// handles badly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => exit::report(commands::run(cli.command)),
        Err(message) => exit::report_usage(&message),
    }
}
