//! `ibi backup`, `ibi restore` and `ibi archive confirm`.

use std::path::Path;

use ibi_archive::backup::{self, TreeCopyReport};
use ibi_archive::replication::outgoing_transfer::OutgoingTransfer;
use ibi_archive::service;
use serde::Serialize;

use crate::cli::archive::{BackupArgs, ConfirmArgs, RestoreArgs};
use crate::commands::archive::{
    lease_from_server, open_to_read, operator_of, pluralize, progress_counter, rebuild, salvage,
};
use crate::commands::minter::shell_quoted;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{StdoutWriter, printable, say};

#[derive(Serialize)]
struct BackupOutput<'a> {
    items: u64,
    files: u64,
    bytes: u64,
    damaged: Vec<&'a str>,
}

pub(super) fn backup(command: &BackupArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let progress = progress_counter("bytes copied");
    let copied = backup::backup(&data, &command.out, &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    report_copied(&copied, command.json)?;
    if let Some(damage) = &copied.journal_damage {
        say(format_args!("warning: the journal is damaged and was copied unchanged: {}", printable(damage)));
    } else if copied.damaged.is_empty() {
        let out = shell_quoted(&command.out.display().to_string());
        say(format_args!("to restore: ibi restore --from {out} --data NEW_FOLDER"));
    }
    Ok(CommandOutcome::from(copied.damaged.is_empty() && copied.journal_damage.is_none()))
}

pub(super) fn restore(command: &RestoreArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let progress = progress_counter("bytes copied");
    let restoration =
        backup::restore(&command.from, &data, &operator_of(&command.from), &|bytes| progress.inc(bytes))?;
    progress.finish_and_clear();
    report_copied(&restoration.copied, command.json)?;
    salvage::report_lines(&restoration.salvaged);
    let whole = rebuild::report_rebuild(&restoration.rebuilt);
    let data = shell_quoted(&data.display().to_string());
    say(format_args!("restored the Archive as of {}", restoration.made));
    say(format_args!("minting is off until you run: ibi minter recover --data {data}"));
    say(format_args!(
        "Originals are served as Copies, and tokens are refused, until you run: ibi archive confirm --data {data}"
    ));
    Ok(if restoration.copied.damaged.is_empty() { whole } else { CommandOutcome::No })
}

pub(super) fn confirm(command: &ConfirmArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    OutgoingTransfer::check_no_open_transfers(&open_to_read(&data)?)?;
    let _lease = lease_from_server(&data)?;
    let tokens_in_doubt = backup::has_tokens_in_doubt(&data);
    if backup::confirm_restored(&data)? {
        say(format_args!("confirmed: the Originals are served as Originals again"));
        if tokens_in_doubt {
            report_tokens(&data)?;
        }
    } else {
        say(format_args!("nothing to confirm: this Archive was not restored from a backup"));
    }
    Ok(CommandOutcome::Yes)
}

/// The backup may predate the revocation of a token, so the operator reviews the tokens.
fn report_tokens(data: &Path) -> Result<(), CommandError> {
    for token in service::open_tokens(data).list()? {
        let (id, role, name) = (&token.id, token.role.name(), printable(&token.name));
        say(format_args!(
            "this token of the backup is valid again, unless it has expired: {id} {role} {name}"
        ));
    }
    say(format_args!("revoke the tokens that were revoked since the backup: ibi archive token revoke ID"));
    Ok(())
}

fn report_copied(copied: &TreeCopyReport, json: bool) -> Result<(), CommandError> {
    if json {
        let damaged = copied.damaged.iter().map(|(item, _)| item.as_str()).collect();
        let mut output = StdoutWriter::new();
        output.json(&BackupOutput {
            items: copied.items,
            files: copied.files,
            bytes: copied.bytes,
            damaged,
        })?;
        output.flush()?;
    }
    for (item, what) in &copied.damaged {
        say(format_args!("not copied, damaged: {}: {}", printable(item), printable(what)));
    }
    say(format_args!(
        "{}; {} copied, {}",
        pluralize(copied.items, "item"),
        pluralize(copied.files, "file"),
        pluralize(copied.bytes, "byte")
    ));
    Ok(())
}
