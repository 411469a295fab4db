//! `ibi archive links`.

use ibi_archive::archive;
use ibi_archive::links::{LinkDecision, LinkStatus, LinkView, trust};
use serde_json::json;

use crate::cli::links::{
    LinkChoice, LinkStanding, LinksCommand, LinksDistrust, LinksList, LinksTrust, LinksTrusted,
};
use crate::commands::archive::{links_check, open, open_to_read, who};
use crate::exit::{Answer, Failure};
use crate::io::{Output, printable, say};

pub(crate) fn run(command: &LinksCommand) -> Result<Answer, Failure> {
    match command {
        LinksCommand::List(command) => list(command),
        LinksCommand::Accept(command) => decide(&command.link, LinkDecision::Accept),
        LinksCommand::Refuse(command) => decide(&command.link, LinkDecision::Refuse),
        LinksCommand::Withdraw(command) => decide(&command.link, LinkDecision::Withdraw),
        LinksCommand::Trust(LinksTrust { data, service }) => set_trusted(data, service, true),
        LinksCommand::Distrust(LinksDistrust { data, service }) => set_trusted(data, service, false),
        LinksCommand::Trusted(command) => trusted(command),
        LinksCommand::Check(command) => links_check::check(command),
    }
}

fn list(command: &LinksList) -> Result<Answer, Failure> {
    let status = command.status.map(|status| match status {
        LinkStanding::Proposed => LinkStatus::Proposed,
        LinkStanding::Accepted => LinkStatus::Accepted,
        LinkStanding::Refused => LinkStatus::Refused,
        LinkStanding::Withdrawn => LinkStatus::Withdrawn,
    });
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = Output::new();
    for link in holdings.all_links(status)? {
        print(&mut output, &link, command.json)?;
    }
    output.flush()?;
    Ok(Answer::Yes)
}

fn print(output: &mut Output, link: &LinkView, json: bool) -> Result<(), Failure> {
    if json {
        return output.json(link);
    }
    let LinkView { kind, older, newer, status, archive, .. } = link;
    let archive = archive.as_deref().unwrap_or("-");
    let (older, newer, archive) = (printable(older), printable(newer), printable(archive));
    output.text(format_args!("{status}\t{kind}\t{older}\t{newer}\t{archive}\n"))
}

fn decide(command: &LinkChoice, decision: LinkDecision) -> Result<Answer, Failure> {
    let mut archive = open(&command.data.folder()?)?;
    let link = archive.decide_link(&command.newer, command.of.as_deref(), decision, &who())?;
    let mut output = Output::new();
    print(&mut output, &link, command.json)?;
    output.flush()?;
    Ok(Answer::Yes)
}

fn set_trusted(data: &crate::cli::Data, service: &str, trust: bool) -> Result<Answer, Failure> {
    let data = data.folder()?;
    archive::open_to_read(&data)?;
    let changed = trust::set_trusted(&data, service, trust)?;
    say(format_args!(
        "links from {} {}{}",
        printable(service),
        if trust { "are accepted at once" } else { "wait for your word" },
        if changed { " from now on" } else { ", as before" }
    ));
    Ok(Answer::Yes)
}

fn trusted(command: &LinksTrusted) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    archive::open_to_read(&data)?;
    let mut output = Output::new();
    for service in trust::trusted(&data)? {
        match command.json {
            true => output.json(&json!({ "service": service }))?,
            false => output.text(format_args!("{}\n", printable(&service)))?,
        }
    }
    output.flush()?;
    Ok(Answer::Yes)
}
