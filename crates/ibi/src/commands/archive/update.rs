//! `ibi archive update`.

use ibi_archive::deposit::Source;
use ibi_archive::keep::Role;

use crate::cli::archive::Update;
use crate::commands::archive::{bar, notes, open, shown, who};
use crate::exit::{Answer, Failure};
use crate::io::say;

/// Bytes from which on a person wants to see progress.
const LONG: u64 = 8 << 20;

pub(crate) fn run(command: Update) -> Result<Answer, Failure> {
    let changes = command.description.changes()?;
    if changes.is_empty() && command.path.is_none() && !command.original {
        return Err(ibi_archive::ArchiveError::NothingToChange.into());
    }
    let source = command.path.as_deref().map(Source::at).transpose()?;
    let mut archive = open(&command.data.folder()?)?;
    if command.original {
        archive.declare_original(&command.ibi, &who())?;
        say(format_args!("it is the Original from now on"));
    }
    if !changes.is_empty() || source.is_some() {
        let progress = bar(source.as_ref().map_or(0, Source::size), LONG);
        let tell = |bytes| progress.inc(bytes);
        let change = archive.prepare_update(&command.ibi, source.as_ref(), changes, &who(), &tell)?;
        progress.finish_and_clear();
        match change {
            None => say(format_args!("nothing is different: no new version was made")),
            Some(change) => {
                archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
            }
        }
    }
    let (holding, role) = archive.holdings().find(&command.ibi)?;
    if role == Role::Metadata {
        say(format_args!("{} are metadata: the item that they describe has the new version", command.ibi));
    }
    notes(archive.holdings(), &holding, true)?;
    shown::print(archive.holdings(), &holding, command.json)?;
    say(format_args!("version {} of {}", holding.version, holding.item.labels.primary()));
    Ok(Answer::Yes)
}
