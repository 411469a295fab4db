//! `ibi archive remove`.

use crate::cli::archive::Remove;
use crate::commands::archive::{open, shown, who};
use crate::exit::{Answer, Failure};
use crate::io::{printable, say};

pub(crate) fn run(command: &Remove) -> Result<Answer, Failure> {
    let mut archive = open(&command.data.folder()?)?;
    let (holding, _) = archive.holdings().find(&command.ibi)?;
    if !command.yes {
        let bytes = if command.purge { ", and destroy the bytes of all its versions" } else { "" };
        return Err(Failure::NotSure(format!(
            "this would remove {} ({}){bytes}; it cannot be undone. If that is meant, say --yes",
            holding.item.labels.primary(),
            printable(shown::title(&holding))
        )));
    }
    let change = archive.prepare_removal(&command.ibi, &command.reason, &who(), command.purge)?;
    archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
    let holding = archive.holdings().item(&holding.path)?;
    shown::print(archive.holdings(), &holding, command.json)?;
    say(format_args!(
        "removed: a tombstone with its last metadata stays, and its labels are never used again"
    ));
    Ok(Answer::Yes)
}
