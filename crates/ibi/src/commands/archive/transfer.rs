//! `ibi archive transfer` and `drop`.

use std::sync::Mutex;
use std::time::Duration;

use ibi_archive::engine::lease;
use ibi_archive::replication::custody_json;
use ibi_archive::replication::outgoing_transfer::{OutgoingTransfer, TransferRequest};
use ibi_mint::clock::{MintClock as _, SystemClock};

use crate::cli::replication::{DropArgs, KeepArg, TransferArgs};
use crate::commands::archive::{open, open_to_read, operator_of, peers};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

/// Interval between checks of the progress.
const TRANSFER_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn transfer(command: &TransferArgs) -> Result<CommandOutcome, CommandError> {
    command.peer_args.outgoing.apply()?;
    let data = command.data.folder()?;
    let Some(to) = &command.to else { return apply_operator_decision(command) };
    // Checks the Archive before the network is used.
    let here = Mutex::new(open_to_read(&data)?);
    if !lease::is_served(&data) {
        return Err(CommandError::NotSure(format!(
            "this Archive is not online, but the recipient fetches the item from it: run `ibi archive serve --data {}`, then \
             try again",
            data.display()
        )));
    }
    let now = SystemClock::new().read().wall;
    let now = ibi_id::Instant::new(now.seconds(), 0).unwrap_or(now).to_string();
    let token = peers::token(&command.peer_args)?;
    let keep = command.keep == KeepArg::Copy;
    let request =
        TransferRequest { item: command.ibi.clone(), to: to.clone(), token, keep, by: operator_of(&data) };
    peers::block_on_network(async { Ok(OutgoingTransfer::check_taker_change(&here, &request).await?) })?;
    drop(here);
    // Leased only briefly, so that a running server goes on.
    let transfer = OutgoingTransfer::begin(open(&data)?.holdings(), request, now)?;
    say(format_args!(
        "transferring to {}; if you stop this command, the transfer continues in the background",
        transfer.to
    ));
    let mut said = None;
    loop {
        match OutgoingTransfer::for_item(&data, &transfer.path)? {
            Some(now) if now.handover == transfer.handover => {
                if now.failed {
                    now.end(&data)?;
                    let why = now.said.unwrap_or_default();
                    return Err(CommandError::NotSure(format!("nothing was transferred: {why}")));
                }
                if now.said != said {
                    said = now.said;
                    said.iter().for_each(|said| say(format_args!("{}", printable(said))));
                }
            }
            _ => break,
        }
        std::thread::sleep(TRANSFER_POLL_INTERVAL);
    }
    let holdings = open_to_read(&data)?;
    if !transfer.is_done(&holdings)? {
        return Err(CommandError::NotSure(
            "the transfer was cancelled, or replaced by another one".to_owned(),
        ));
    }
    print_status(command, "transferred")
}

/// Cancels a transfer, or reclaims the Original; needs no network.
fn apply_operator_decision(command: &TransferArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let archive = &mut open(&data)?;
    if command.cancel {
        OutgoingTransfer::cancel(archive.holdings(), &command.ibi)?;
        return print_status(command, "cancelled: nothing was transferred");
    }
    archive.reclaim_original(&command.ibi, &operator_of(&data))?;
    OutgoingTransfer::forget(archive.holdings(), &command.ibi)?;
    print_status(
        command,
        "the Original is here again. If the recipient returns, make sure that it does not claim the Original",
    )
}

fn print_status(command: &TransferArgs, what: &str) -> Result<CommandOutcome, CommandError> {
    let holdings = open_to_read(&command.data.folder()?)?;
    let mut output = StdoutWriter::new();
    let custody = custody_json(&holdings, &command.ibi)?;
    if command.json {
        output.json(&custody)?;
    } else {
        output.text(format_args!("{}\t{}\n", custody["state"].as_str().unwrap_or("nothing"), command.ibi))?;
    }
    output.flush()?;
    say(format_args!("{what}"));
    Ok(CommandOutcome::Yes)
}

pub(crate) fn drop_copy(command: &DropArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let mut archive = open(&data)?;
    if !command.yes {
        archive.holdings().find(&command.ibi)?;
        return Err(CommandError::NotSure(format!(
            "this would remove the copy of {} from this Archive. Pass --yes to confirm",
            command.ibi
        )));
    }
    archive.drop_copy(&command.ibi, &operator_of(&data), None)?;
    let mut output = StdoutWriter::new();
    if command.json {
        output.json(&serde_json::json!({ "item": command.ibi, "dropped": true }))?;
    } else {
        output.text(format_args!("{}\n", command.ibi))?;
    }
    output.flush()?;
    say(format_args!("removed the copy from this Archive; `ibi archive copy` fetches it again"));
    Ok(CommandOutcome::Yes)
}
