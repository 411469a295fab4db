//! `ibi archive givers`.

use ibi_archive::replication::trusted_givers::TrustedGiver;

use crate::cli::givers::{GiverArgs, GiversCommand, GiversListArgs};
use crate::commands::archive::{open, open_to_read};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

pub(crate) fn run(command: &GiversCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        GiversCommand::Trust(command) => set(&command.choice, true),
        GiversCommand::Distrust(command) => set(&command.choice, false),
        GiversCommand::List(command) => list(command),
    }
}

fn set(GiverArgs { data, giver, ibi }: &GiverArgs, trust: bool) -> Result<CommandOutcome, CommandError> {
    let data = data.folder()?;
    let given = TrustedGiver::new(giver, ibi.as_deref())?;
    // The lock prevents concurrent changes of the list.
    let archive = open(&data)?;
    let changed = given.clone().set(archive.holdings().data(), trust)?;
    let what = given.item.as_deref().unwrap_or("items that nobody else can confirm");
    say(format_args!(
        "{} from {}: {}{}",
        printable(what),
        printable(&given.giver),
        if trust { "trusted" } else { "not trusted" },
        if changed { "" } else { ", as before" }
    ));
    Ok(CommandOutcome::Yes)
}

fn list(command: &GiversListArgs) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = StdoutWriter::new();
    for known in TrustedGiver::all(holdings.data())? {
        if command.json {
            output.json(&known)?;
        } else {
            let item = known.item.as_deref().unwrap_or("-");
            output.text(format_args!("{}\t{}\n", printable(&known.giver), printable(item)))?;
        }
    }
    output.flush()?;
    Ok(CommandOutcome::Yes)
}
