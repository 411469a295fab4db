//! `ibi`: persistent identifiers without a registrar.
//!
//! [`cli`] defines every command once: help, shell completions and man pages come from it. Each command has one
//! file under [`commands`]; what they know about identifiers is in the crate `ibi-id`. Data goes to standard
//! output, talk to standard error, and [`exit`] says what the exit status means.

mod cli;
mod commands;
mod exit;
mod io;

use std::process::ExitCode;

use clap::Parser;

/// A server gets memory on one thread and gives it back on another, for years: the system's allocator pays for both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => exit::report(commands::run(cli.command)),
        Err(message) => exit::report_usage(&message),
    }
}
