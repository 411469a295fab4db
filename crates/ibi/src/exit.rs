//! How commands end, and what the exit status says.

use std::io::Write as _;
use std::process::ExitCode;

use ibi_archive::holders::HolderError;
use ibi_archive::holders::peer::PeerError;
use ibi_archive::keep::KeepError;
use ibi_archive::{ArchiveError, Refusal};
use ibi_http::tokens::TokensError;
use ibi_id::ParseError;
use ibi_resolver::RegistryError;

/// For the help and the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit status:
  0  done; the answer is yes
  1  done; the answer is no: a label is not valid, two labels differ, a line could not be read, no item has the label, a row
     was refused, an audit found damage
  2  the command cannot be understood: unknown options, or values that are not what they should be
  3  reading or writing failed, or what was to be read is damaged
  4  refused: nothing was minted or changed; the message names the next step

A reader that closes the pipe early is no error. Colours follow NO_COLOR.";

/// A command that did its work: its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// Part of it could not be read, as was said.
    Unread,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}

/// A command that could not do its work, with the reason and the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{}` is not a valid label: {error}", crate::io::printable(label))]
    Label { label: String, error: ParseError },
    #[error("no label can be built: {}", .0.rule().message())]
    Build(ParseError),
    #[error("the 2011 edition counts whole seconds: leave --granularity out, or take --edition 2015")]
    Granularity2011,
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("{}", crate::io::printable(&.0.to_string()))]
    Archive(#[from] ArchiveError),
    #[error("{}", crate::io::printable(&.0.to_string()))]
    Holder(#[from] HolderError),
    #[error("{}", crate::io::printable(&.0.to_string()))]
    Peer(#[from] PeerError),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotSure(String),
    #[error("there is no home folder to keep data in: say --data DIR, or set IBI_DATA")]
    NoDataFolder,
    #[error("cannot serve: {0}")]
    Serve(#[source] std::io::Error),
    #[error(transparent)]
    Tokens(#[from] TokensError),
    #[error("{}", crate::io::printable(&.0.to_string()))]
    Registry(#[from] RegistryError),
    #[error("the server of {} does not lend it: {error}. Stop the server, or run this as the user that it runs as", .data.display())]
    NotLent { data: std::path::PathBuf, error: std::io::Error },
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    #[error("cannot read standard input: {0}")]
    Read(#[source] std::io::Error),
    #[error("cannot write to standard output: {0}")]
    Write(#[source] std::io::Error),
    #[error("cannot write manual pages into {}: {error}", .dir.display())]
    WriteFile { dir: std::path::PathBuf, error: std::io::Error },
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Failure::Label { .. } | Failure::Build(_) | Failure::Granularity2011 | Failure::NoDataFolder => 2,
            Failure::Read(_) | Failure::Write(_) | Failure::WriteFile { .. } | Failure::Random(_) => 3,
            Failure::Serve(_) => 3,
            Failure::Tokens(TokensError::Unknown { .. }) => 1,
            Failure::Tokens(_) => 3,
            Failure::Registry(error) => of_registry(error),
            Failure::Refused(_) | Failure::NotSure(_) | Failure::NotLent { .. } => 4,
            Failure::Usage(_) => 2,
            Failure::Archive(error) | Failure::Holder(HolderError::Archive(error)) => of_archive(error),
            Failure::Peer(PeerError::Url { .. })
            | Failure::Holder(HolderError::Peer(PeerError::Url { .. })) => 2,
            Failure::Holder(_) | Failure::Peer(_) => 3,
        }
    }
}

fn of_registry(error: &RegistryError) -> u8 {
    match error {
        RegistryError::Unknown { .. } => 1,
        RegistryError::Label
        | RegistryError::PublicUrl { .. }
        | RegistryError::Address(_)
        | RegistryError::Host { .. }
        | RegistryError::ManyHosts { .. }
        | RegistryError::Import(_) => 2,
        error if error.is_refusal() => 4,
        _ => 3,
    }
}

fn of_archive(error: &ArchiveError) -> u8 {
    match error {
        ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Ambiguous { .. } => 1,
        ArchiveError::Label { .. } | ArchiveError::Value(_) | ArchiveError::NothingToChange => 2,
        ArchiveError::Io { .. }
        | ArchiveError::SourceChanged { .. }
        | ArchiveError::Lost { .. }
        | ArchiveError::DamagedObject { .. }
        | ArchiveError::Stopped => 3,
        ArchiveError::Keep(
            KeepError::Occupied { .. } | KeepError::NewerFormat { .. } | KeepError::Full { .. },
        ) => 4,
        ArchiveError::Keep(_) => 3,
        ArchiveError::Together(error) => of_archive(error),
        _ => 4,
    }
}

/// Says what went wrong, if anything did, and turns it into the exit status.
pub(crate) fn report(result: Result<Answer, Failure>) -> ExitCode {
    match result {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Unread) => ExitCode::from(3),
        // Whoever read has seen enough.
        Err(Failure::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            crate::io::say(format_args!("error: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

/// Prints help that was asked for, or what was wrong with the command line.
pub(crate) fn report_usage(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !message.use_stderr() => report(Err(Failure::Write(error))),
        // 0 for help, 2 for a mistake.
        _ => ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2)),
    }
}
