//! `ibi archive links`.

use ibi_archive::links::{LinkDecision, LinkStatus, LinkView, trust};
use ibi_archive::opening;
use serde_json::json;

use crate::cli::links::{
    LinkArgs, LinkStatusArg, LinksCommand, LinksDistrustArgs, LinksListArgs, LinksTrustArgs, LinksTrustedArgs,
};
use crate::commands::archive::{links_check, open, open_to_read, operator_of};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

pub(crate) fn run(command: &LinksCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        LinksCommand::List(command) => list(command),
        LinksCommand::Accept(command) => decide(&command.link, LinkDecision::Accept),
        LinksCommand::Refuse(command) => decide(&command.link, LinkDecision::Refuse),
        LinksCommand::Withdraw(command) => decide(&command.link, LinkDecision::Withdraw),
        LinksCommand::Trust(LinksTrustArgs { data, service }) => set_trusted(data, service, true),
        LinksCommand::Distrust(LinksDistrustArgs { data, service }) => set_trusted(data, service, false),
        LinksCommand::Trusted(command) => trusted(command),
        LinksCommand::Check(command) => links_check::check(command),
    }
}

fn list(command: &LinksListArgs) -> Result<CommandOutcome, CommandError> {
    let status = command.status.map(|status| match status {
        LinkStatusArg::Proposed => LinkStatus::Proposed,
        LinkStatusArg::Accepted => LinkStatus::Accepted,
        LinkStatusArg::Refused => LinkStatus::Refused,
        LinkStatusArg::Withdrawn => LinkStatus::Withdrawn,
    });
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = StdoutWriter::new();
    let waiting = if status.is_none() { holdings.waiting_links()? } else { Vec::new() };
    for link in waiting.into_iter().chain(holdings.all_links(status)?) {
        print(&mut output, &link, command.json)?;
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

fn print(output: &mut StdoutWriter, link: &LinkView, json: bool) -> Result<(), CommandError> {
    if json {
        return output.json(link);
    }
    let LinkView { kind, older, newer, status, archive, .. } = link;
    let archive = archive.as_deref().unwrap_or("-");
    let (older, newer, archive) = (printable(older), printable(newer), printable(archive));
    output.text(format_args!("{status}\t{kind}\t{older}\t{newer}\t{archive}\n"))
}

fn decide(command: &LinkArgs, decision: LinkDecision) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let mut archive = open(&data)?;
    let link = archive.decide_link(&command.newer, command.of.as_deref(), decision, &operator_of(&data))?;
    let mut output = StdoutWriter::new();
    print(&mut output, &link, command.json)?;
    output.flush()?;
    Ok(CommandOutcome::Yes)
}

fn set_trusted(
    data: &crate::cli::DataArgs,
    service: &str,
    trust: bool,
) -> Result<CommandOutcome, CommandError> {
    let data = data.folder()?;
    opening::open_to_read(&data)?;
    let changed = trust::set_trusted(&data, service, trust)?;
    say(format_args!(
        "links from {} {}{}",
        printable(service),
        if trust { "are accepted automatically" } else { "wait for your decision" },
        if changed { " from now on" } else { ", as before" }
    ));
    Ok(CommandOutcome::Yes)
}

fn trusted(command: &LinksTrustedArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    opening::open_to_read(&data)?;
    let mut output = StdoutWriter::new();
    for service in trust::trusted_archives(&data)? {
        match command.json {
            true => output.json(&json!({ "service": service }))?,
            false => output.text(format_args!("{}\n", printable(&service)))?,
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
