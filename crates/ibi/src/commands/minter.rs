//! `ibi minter`: create, inspect or repair a minter.

use std::fmt::Display;
use std::path::Path;

use ibi_archive::ArchiveError;
use ibi_id::{Host, host_not_unique};
use ibi_mint::clock::SystemClock;
use ibi_mint::{IssuedRange, host_check};
use serde::Serialize;

use crate::cli::continuity::MinterSetArgs;
use crate::cli::{EditionArg, MinterInitArgs, MinterRecoverArgs, MinterShowArgs};
use crate::commands::archive::lease_from_server;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, say};

pub(super) fn init(command: &MinterInitArgs) -> Result<CommandOutcome, CommandError> {
    let folder = command.data.folder()?;
    if command.host.is_none() && command.ip.is_none() {
        return Err(CommandError::Usage(propose_host()));
    }
    let host = command.host.as_deref().map(Host::parse).transpose().map_err(CommandError::Build)?;
    let config = ibi_mint::MinterConfig {
        host: host.map(|host| (host, command.port)),
        ip: command.ip.map(|ip| (ip, command.ip_port)),
        edition: match command.edition {
            EditionArg::Rtc2015 => ibi_mint::DistributorEdition::Rtc2015,
            EditionArg::Nbr2011 => ibi_mint::DistributorEdition::Nbr2011,
        },
        allow_private: command.allow_private,
    };
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(CommandError::Random)?;
    let subsystem = ibi_mint::init(&folder, &config, random, &SystemClock::new())?;
    for prefix in [subsystem.rep, subsystem.ibip].into_iter().flatten() {
        say(format_args!("labels will begin with {prefix}/"));
    }
    warn_of_host(&folder);
    say(format_args!("next: ibi mint --data {}", shell_quoted(&folder.display().to_string())));
    Ok(CommandOutcome::Yes)
}

/// The message if no host is given: proposes the name of this machine (D36).
pub(super) fn propose_host() -> String {
    let need = "give the host name that only this machine has: --host NAME";
    match host_check::machine_name() {
        Some(name) if Host::parse(&name).is_ok_and(|host| host_not_unique(host).is_none()) => {
            format!("{need}. This machine is called {name}; if DNS agrees, pass --host {name}")
        }
        Some(name) => format!(
            "{need}. This machine is called {name}, which is not globally unique: ask your network administrator for a public name"
        ),
        None => need.to_owned(),
    }
}

/// Warns of lock files of other users in the place of this minter's.
pub(super) fn warn_of_foreign_claims(data: &Path) {
    for path in ibi_mint::foreign_claims(data).unwrap_or_default() {
        let path = crate::io::printable(&path.display().to_string()).to_string();
        say(format_args!("warning: {path} belongs to another user of this machine, and is ignored"));
    }
}

/// Warns if the prefixes of a data folder do not match this machine (D36).
pub(super) fn warn_of_host(data: &Path) {
    warn_of_foreign_claims(data);
    let Ok(state) = ibi_mint::read_state(data) else { return };
    for warning in host_check::host_warnings(&state.subsystem) {
        say(format_args!("warning: {warning}"));
    }
}

/// Sets the default granularity.
pub(super) fn set(command: &MinterSetArgs) -> Result<CommandOutcome, CommandError> {
    let folder = command.data.folder()?;
    ibi_mint::set_granularity(&folder, command.granularity).map_err(ArchiveError::from)?;
    say(format_args!(
        "labels are minted at least {} s apart, unless a call sets its own granularity",
        command.granularity
    ));
    Ok(CommandOutcome::Yes)
}

/// Quotes a word for the shell.
pub(super) fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[derive(Serialize)]
struct MinterShowOutput {
    folder: String,
    rep: Option<String>,
    ibip: Option<String>,
    edition: &'static str,
    granularity: String,
    state: &'static str,
    last: Option<String>,
    used: Vec<[String; 2]>,
}

pub(super) fn show(command: &MinterShowArgs) -> Result<CommandOutcome, CommandError> {
    let folder = command.data.folder()?;
    let state = ibi_mint::read_state(&folder)?;
    warn_of_foreign_claims(&folder);
    let mark = match &state.mark {
        Ok(mark) => Some(mark),
        Err(damage) => damage.readable.last(),
    };
    let granularity =
        ibi_mint::granularity(&folder, state.subsystem.edition).map_err(ArchiveError::from)?.to_string();
    let pair = |run: &IssuedRange| [run.first.to_string(), run.last.to_string()];
    let shown = MinterShowOutput {
        folder: folder.display().to_string(),
        rep: state.subsystem.rep,
        ibip: state.subsystem.ibip,
        edition: state.subsystem.edition.name(),
        granularity,
        state: if state.mark.is_ok() { "whole" } else { "damaged" },
        last: mark.map(|mark| mark.last.to_string()),
        used: mark.map(|mark| mark.used.iter().map(pair).collect()).unwrap_or_default(),
    };
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&shown)?;
    } else {
        let mut line = |name, value: &dyn Display| output.text(format_args!("{name:<10} {value}\n"));
        line("folder", &shown.folder)?;
        for (name, value) in [("rep", &shown.rep), ("ibip", &shown.ibip), ("last", &shown.last)] {
            if let Some(value) = value {
                line(name, value)?;
            }
        }
        line("edition", &shown.edition)?;
        line("granularity", &format_args!("{} s", shown.granularity))?;
        line("state", &shown.state)?;
        for [first, last] in &shown.used {
            line("used", &format_args!("{first} to {last}"))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::from(state.mark.is_ok()))
}

#[derive(Serialize)]
struct MinterRecoverOutput {
    now: String,
    last: String,
    ahead: usize,
}

pub(super) fn recover(command: &MinterRecoverArgs) -> Result<CommandOutcome, CommandError> {
    let folder = command.data.folder()?;
    let _lease = lease_from_server(&folder)?;
    let recovered = ibi_mint::recover(&folder, &SystemClock::new())?;
    let (now, last) = (recovered.now, recovered.last);
    if command.json {
        let mut output = StdoutWriter::new();
        output.json(&MinterRecoverOutput {
            now: now.to_string(),
            last: last.to_string(),
            ahead: recovered.ahead,
        })?;
        output.flush()?;
    }
    say(format_args!("minting resumes after {last}"));
    if last > now {
        say(format_args!("the clock reads {now}: labels up to {last} are used, so minting waits until then"));
    }
    if recovered.ahead > 0 {
        say(format_args!("labels minted ahead of the clock are recorded and will be skipped"));
    }
    Ok(CommandOutcome::Yes)
}
