//! How commands end, and what their exit status means.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use ibi_archive::ArchiveError;
use ibi_archive::replication::ReplicationError;
use ibi_archive::replication::peer::PeerError;
use ibi_archive::store::StorageError;
use ibi_http::token_store::TokenStoreError;
use ibi_id::ParseError;
use ibi_mint::MintError;
use ibi_resolver::ResolverRegistryError;

use crate::shell_hints::{archive_hint, mint_hint};

/// Exit statuses, shown in the help and in the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit status:
  0  success, or the answer is yes
  1  the answer is no: a label is invalid, labels differ, a line cannot be parsed, an item is not
     found, a row is refused, an audit found damage
  2  usage error: an unknown option, or an invalid value
  3  input/output error, or damaged data
  4  refused: nothing was minted or changed; the message names the next step

A closed pipe is not an error. Set NO_COLOR to disable colours.";

/// The answer of a command that completed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Yes,
    No,
    /// Part of the data could not be read; a message was printed.
    Unread,
}

impl From<bool> for CommandOutcome {
    fn from(yes: bool) -> Self {
        if yes { CommandOutcome::Yes } else { CommandOutcome::No }
    }
}

/// Why a command failed, with the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("`{}` is not a valid label: {error}", crate::terminal::printable(label))]
    Label { label: String, error: ParseError },
    #[error("cannot build a label: {}", .0.rule().message())]
    Build(ParseError),
    #[error("the 2011 edition counts whole seconds: omit --granularity, or use --edition 2015")]
    Granularity2011,
    #[error("{0}")]
    Refused(#[from] MintError),
    #[error("{}", crate::terminal::printable(&.0.to_string()))]
    Archive(#[from] ArchiveError),
    #[error("{}", crate::terminal::printable(&.0.to_string()))]
    Holder(#[from] ReplicationError),
    #[error("{}", crate::terminal::printable(&.0.to_string()))]
    Peer(#[from] PeerError),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotSure(String),
    #[error("no home folder to store data in: pass --data DIR, or set IBI_DATA")]
    NoDataFolder,
    #[error("cannot serve: {0}")]
    Serve(#[source] std::io::Error),
    #[error("cannot listen on {}: {error}{}", crate::terminal::printable(address), listen_hint(error))]
    Listen { address: String, error: std::io::Error },
    #[error(transparent)]
    Tokens(#[from] TokenStoreError),
    #[error("{}", crate::terminal::printable(&.0.to_string()))]
    Registry(#[from] ResolverRegistryError),
    #[error("the server of {} does not give access to it: {error}. Run the command as the user that the server runs as, or stop the server", .data.display())]
    NotLent { data: std::path::PathBuf, error: std::io::Error },
    #[error("cannot get random numbers from the system: {0}")]
    Random(getrandom::Error),
    #[error("cannot read standard input: {0}")]
    Read(#[source] std::io::Error),
    #[error("cannot write to standard output: {0}")]
    Write(#[source] std::io::Error),
    #[error("cannot write manual pages into {}: {error}", .dir.display())]
    WriteFile { dir: std::path::PathBuf, error: std::io::Error },
}

impl CommandError {
    /// What to run or pass next, if the message does not say it.
    fn hint(&self) -> Option<String> {
        match self {
            CommandError::Archive(error) | CommandError::Holder(ReplicationError::Archive(error)) => {
                archive_hint(error)
            }
            CommandError::Refused(error) => mint_hint(error).map(str::to_owned),
            _ => None,
        }
    }

    fn status(&self) -> u8 {
        match self {
            CommandError::Label { .. }
            | CommandError::Build(_)
            | CommandError::Granularity2011
            | CommandError::NoDataFolder => 2,
            CommandError::Read(_)
            | CommandError::Write(_)
            | CommandError::WriteFile { .. }
            | CommandError::Random(_) => 3,
            CommandError::Listen { error, .. } if is_taken(error) => 3,
            CommandError::Listen { .. } => 2,
            CommandError::Serve(_) => 3,
            CommandError::Tokens(TokenStoreError::Unknown { .. }) => 1,
            CommandError::Tokens(_) => 3,
            CommandError::Registry(error) => registry_exit_status(error),
            CommandError::Refused(_) | CommandError::NotSure(_) | CommandError::NotLent { .. } => 4,
            CommandError::Usage(_) => 2,
            CommandError::Archive(error) | CommandError::Holder(ReplicationError::Archive(error)) => {
                archive_exit_status(error)
            }
            CommandError::Peer(PeerError::Url { .. })
            | CommandError::Holder(ReplicationError::Peer(PeerError::Url { .. })) => 2,
            CommandError::Holder(_) | CommandError::Peer(_) => 3,
        }
    }
}

/// Whether an address is valid, but cannot be bound.
fn is_taken(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied)
}

/// The next step after a failure to listen.
fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            ". Another program uses this port: stop it, or choose another port with --listen"
        }
        ErrorKind::AddrNotAvailable => {
            ". This machine does not have that address: choose one of its addresses with --listen"
        }
        ErrorKind::PermissionDenied => {
            ". Ports below 1024 are privileged: choose another with --listen, or grant this program \
             CAP_NET_BIND_SERVICE"
        }
        _ => "",
    }
}

fn registry_exit_status(error: &ResolverRegistryError) -> u8 {
    match error {
        ResolverRegistryError::Unknown { .. } => 1,
        ResolverRegistryError::Label
        | ResolverRegistryError::PublicUrl { .. }
        | ResolverRegistryError::Address(_)
        | ResolverRegistryError::Host { .. }
        | ResolverRegistryError::ManyHosts { .. }
        | ResolverRegistryError::Import(_) => 2,
        error if error.is_refusal() => 4,
        _ => 3,
    }
}

fn archive_exit_status(error: &ArchiveError) -> u8 {
    match error {
        ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Ambiguous { .. } => 1,
        ArchiveError::Label { .. } | ArchiveError::Value(_) | ArchiveError::NothingToChange => 2,
        ArchiveError::Io { .. }
        | ArchiveError::SourceChanged { .. }
        | ArchiveError::Lost { .. }
        | ArchiveError::DamagedObject { .. }
        | ArchiveError::Stopped => 3,
        ArchiveError::Storage(
            StorageError::Occupied { .. } | StorageError::NewerFormat { .. } | StorageError::Full { .. },
        ) => 4,
        ArchiveError::Storage(_) => 3,
        ArchiveError::Batch(error) => archive_exit_status(error),
        _ => 4,
    }
}

/// Prints the error, if any, and maps the result to the exit status.
pub(crate) fn report(result: Result<CommandOutcome, CommandError>) -> ExitCode {
    match result {
        Ok(CommandOutcome::Yes) => ExitCode::SUCCESS,
        Ok(CommandOutcome::No) => ExitCode::from(1),
        Ok(CommandOutcome::Unread) => ExitCode::from(3),
        // The reader closed the pipe: it has read enough.
        Err(CommandError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            crate::terminal::say(format_args!("error: {failure}"));
            if let Some(hint) = failure.hint() {
                crate::terminal::say(format_args!("hint: {}", crate::terminal::printable(&hint)));
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Prints requested help, or the usage error.
pub(crate) fn report_usage(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !message.use_stderr() => report(Err(CommandError::Write(error))),
        // 0 for help, 2 for a mistake.
        _ => ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2)),
    }
}
