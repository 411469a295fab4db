//! `ibi archive update`.

use std::path::Path;
use std::time::Duration;

use ibi_archive::deposit::Source;
use ibi_archive::holders::peer::{Peer, PeerError};
use ibi_archive::keep::{Role, State};

use crate::cli::archive::Update;
use crate::commands::archive::{bar, holders, notes, open, open_to_read, shown, who};
use crate::exit::{Answer, Failure};
use crate::io::say;

/// Bytes from which on a person wants to see progress.
const LONG: u64 = 8 << 20;

/// How long another Archive is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(command: Update) -> Result<Answer, Failure> {
    let changes = command.description.changes()?;
    if changes.is_empty() && command.path.is_none() && !command.original {
        return Err(ibi_archive::ArchiveError::NothingToChange.into());
    }
    let source = command.path.as_deref().map(Source::at).transpose()?;
    let data = command.data.folder()?;
    if command.original && !command.yes {
        nobody_else(&data, &command.ibi)?;
    }
    let mut archive = open(&data)?;
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

/// Asks the Archive that a copy came from, or that the item was given to, whether it has the Original: there is one in the world
/// (clause 2.1).
fn nobody_else(data: &Path, label: &str) -> Result<(), Failure> {
    let holdings = open_to_read(data)?;
    let (holding, _) = holdings.find(label)?;
    let Some(url) = holdings.source(&holding.path)?.filter(|_| holding.state == State::Copy) else {
        return Ok(());
    };
    let peer = Peer::new(&url, None)?;
    match holders::waiting(async { Ok(peer.held_within(PATIENCE, label).await) })? {
        Ok(held) if held.state == State::Original => Err(Failure::NotSure(format!(
            "{url} says that it has the Original of {label}, and there is one in the world: its operator hands it over with `ibi archive \
             transfer`. If that Archive is wrong, say --yes"
        ))),
        Ok(_) | Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => Ok(()),
        Err(_) => Err(Failure::NotSure(format!(
            "{url} does not say whether it has the Original of {label}, and there is one in the world: try again when it is on line. If it \
             has not, say --yes"
        ))),
    }
}
