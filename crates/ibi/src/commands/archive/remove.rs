//! `ibi archive remove`.

use crate::cli::archive::RemoveArgs;
use crate::commands::archive::{item_output, open_to_free_room, operator_of};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::{printable, say};

pub(crate) fn run(command: &RemoveArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let mut archive = open_to_free_room(&data)?;
    let (holding, _) = archive.holdings().find(&command.ibi)?;
    if !command.yes {
        let bytes = if command.purge { ", and destroy the bytes of all its versions" } else { "" };
        return Err(CommandError::NotSure(format!(
            "this would remove {} ({}){bytes}. This is permanent. Pass --yes to confirm",
            holding.item.labels.primary(),
            printable(item_output::title(&holding))
        )));
    }
    let change =
        archive.prepare_removal(&command.ibi, &command.reason, &operator_of(&data), command.purge)?;
    archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
    let holding = archive.holdings().item(&holding.path)?;
    item_output::print(archive.holdings(), &holding, command.json)?;
    say(format_args!("removed: a tombstone with the last metadata stays; the labels are never reused"));
    Ok(CommandOutcome::Yes)
}
