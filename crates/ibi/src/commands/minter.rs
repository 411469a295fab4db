//! `ibi minter`: start a prefix, look at it, set it right.

use std::fmt::Display;
use std::path::Path;

use ibi_archive::mint::clock::SystemClock;
use ibi_archive::mint::{self, Run, host_check};
use ibi_id::{Host, host_not_unique};
use serde::Serialize;

use crate::cli::continuity::MinterSet;
use crate::cli::{Edition, MinterInit, MinterRecover, MinterShow};
use crate::commands::archive::borrowed;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

pub(super) fn init(command: &MinterInit) -> Result<Answer, Failure> {
    let folder = command.data.folder()?;
    if command.host.is_none() && command.ip.is_none() {
        return Err(Failure::Usage(propose_host()));
    }
    let host = command.host.as_deref().map(Host::parse).transpose().map_err(Failure::Build)?;
    let from = mint::From {
        host: host.map(|host| (host, command.port)),
        ip: command.ip.map(|ip| (ip, command.ip_port)),
        edition: match command.edition {
            Edition::Rtc2015 => mint::Edition::Rtc2015,
            Edition::Nbr2011 => mint::Edition::Nbr2011,
        },
        allow_private: command.allow_private,
    };
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Failure::Random)?;
    let subsystem = mint::init(&folder, &from, random, &SystemClock::new())?;
    for prefix in [subsystem.rep, subsystem.ibip].into_iter().flatten() {
        say(format_args!("labels will begin with {prefix}/"));
    }
    warn_of_host(&folder);
    say(format_args!("next: ibi mint --data {}", quoted(&folder.display().to_string())));
    Ok(Answer::Yes)
}

/// What to say to whoever names no host: the machine's own name (D36).
pub(super) fn propose_host() -> String {
    let need = "say which name only this machine has: --host NAME";
    match host_check::machine_name() {
        Some(name) if Host::parse(&name).is_ok_and(|host| host_not_unique(host).is_none()) => {
            format!("{need}. This machine calls itself {name}; if DNS does too, say --host {name}")
        }
        Some(name) => format!(
            "{need}. This machine calls itself {name}, which is no name in the world: ask its network's operator"
        ),
        None => need.to_owned(),
    }
}

/// Warns if the prefixes of a data folder do not look like this machine's own (D36).
pub(super) fn warn_of_host(data: &Path) {
    let Ok(state) = mint::look(data) else { return };
    for doubt in host_check::doubts(&state.subsystem) {
        say(format_args!("warning: {doubt}"));
    }
}

/// Sets what all calls to come go by.
pub(super) fn set(command: &MinterSet) -> Result<Answer, Failure> {
    let folder = command.data.folder()?;
    mint::set_granularity(&folder, command.granularity)?;
    say(format_args!(
        "labels are minted {} s apart at the least, unless a call says otherwise",
        command.granularity
    ));
    Ok(Answer::Yes)
}

/// A word for the shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[derive(Serialize)]
struct Shown {
    folder: String,
    rep: Option<String>,
    ibip: Option<String>,
    edition: &'static str,
    granularity: String,
    state: &'static str,
    last: Option<String>,
    used: Vec<[String; 2]>,
}

pub(super) fn show(command: &MinterShow) -> Result<Answer, Failure> {
    let folder = command.data.folder()?;
    let state = mint::look(&folder)?;
    let mark = match &state.mark {
        Ok(mark) => Some(mark),
        Err(damage) => damage.readable.last(),
    };
    let granularity = mint::granularity(&folder, state.subsystem.edition)?.to_string();
    let pair = |run: &Run| [run.first.to_string(), run.last.to_string()];
    let shown = Shown {
        folder: folder.display().to_string(),
        rep: state.subsystem.rep,
        ibip: state.subsystem.ibip,
        edition: state.subsystem.edition.name(),
        granularity,
        state: if state.mark.is_ok() { "whole" } else { "damaged" },
        last: mark.map(|mark| mark.last.to_string()),
        used: mark.map(|mark| mark.used.iter().map(pair).collect()).unwrap_or_default(),
    };
    let mut output = Output::new();
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
    Ok(Answer::from(state.mark.is_ok()))
}

#[derive(Serialize)]
struct Recovered {
    now: String,
    last: String,
    ahead: usize,
}

pub(super) fn recover(command: &MinterRecover) -> Result<Answer, Failure> {
    let folder = command.data.folder()?;
    let _borrowed = borrowed(&folder)?;
    let recovered = mint::recover(&folder, &SystemClock::new())?;
    let (now, last) = (recovered.now, recovered.last);
    if command.json {
        let mut output = Output::new();
        output.json(&Recovered { now: now.to_string(), last: last.to_string(), ahead: recovered.ahead })?;
        output.flush()?;
    }
    say(format_args!("labels are minted again, after {last}"));
    if last > now {
        say(format_args!(
            "the clock says {now}: labels up to then are used, so nothing can be minted before"
        ));
    }
    if recovered.ahead > 0 {
        say(format_args!("labels minted ahead of the clock are remembered and will be passed over"));
    }
    Ok(Answer::Yes)
}
