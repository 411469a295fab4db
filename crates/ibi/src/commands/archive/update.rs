//! `ibi archive update`.

use std::path::Path;
use std::time::Duration;

use ibi_archive::deposit::DepositSource;
use ibi_archive::replication::peer::{PeerArchive, PeerError};
use ibi_archive::store::{LabelRole, State};

use crate::cli::archive::UpdateArgs;
use crate::commands::archive::{
    item_output, open, open_to_read, operator_of, peers, print_notes, progress_bar,
};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// Size from which a progress bar is shown.
const UPDATE_PROGRESS_MIN_BYTES: u64 = 8 << 20;

/// Timeout for asking another Archive.
const ORIGINAL_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(command: UpdateArgs) -> Result<CommandOutcome, CommandError> {
    command.outgoing.apply()?;
    let changes = command.description.changes()?;
    if changes.is_empty() && command.path.is_none() && !command.original {
        return Err(ibi_archive::ArchiveError::NothingToChange.into());
    }
    let source = command.path.as_deref().map(DepositSource::at).transpose()?;
    let data = command.data.folder()?;
    if command.original && !command.yes {
        check_no_other_original(&data, &command.ibi)?;
    }
    let mut archive = open(&data)?;
    if command.original {
        archive.declare_original(&command.ibi, &operator_of(&data))?;
        say(format_args!("this copy is now the Original"));
    }
    if !changes.is_empty() || source.is_some() {
        let progress =
            progress_bar(source.as_ref().map_or(0, DepositSource::size), UPDATE_PROGRESS_MIN_BYTES);
        let tell = |bytes| progress.inc(bytes);
        let change =
            archive.prepare_update(&command.ibi, source.as_ref(), changes, &operator_of(&data), &tell)?;
        progress.finish_and_clear();
        match change {
            None => say(format_args!("nothing changed: no new version was created")),
            Some(change) => {
                archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
            }
        }
    }
    let (holding, role) = archive.holdings().find(&command.ibi)?;
    if role == LabelRole::Metadata {
        say(format_args!(
            "{} is a metadata label: the item that it describes got the new version",
            command.ibi
        ));
    }
    print_notes(archive.holdings(), &holding, true)?;
    item_output::print(archive.holdings(), &holding, command.json)?;
    say(format_args!("version {} of {}", holding.version, holding.item.labels.primary()));
    Ok(CommandOutcome::Yes)
}

/// Asks the Archive that the copy came from, or that the item was transferred to, whether it has
/// the Original: there is only one (clause 2.1).
fn check_no_other_original(data: &Path, label: &str) -> Result<(), CommandError> {
    let holdings = open_to_read(data)?;
    let (holding, _) = holdings.find(label)?;
    let Some(url) = holdings.replica_source(&holding.path)?.filter(|_| holding.state == State::Copy) else {
        return Ok(());
    };
    let peer = PeerArchive::new(&url, None)?;
    match peers::block_on_network(async {
        Ok(peer.describe_object_within(ORIGINAL_CHECK_TIMEOUT, label).await)
    })? {
        Ok(held) if held.state == State::Original => Err(CommandError::NotSure(format!(
            "{url} claims the Original of {label}, and there can be only one: its operator can transfer it with `ibi archive \
             transfer`. If that Archive is wrong, pass --yes"
        ))),
        Ok(_) | Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => Ok(()),
        Err(_) => Err(CommandError::NotSure(format!(
            "{url} does not say whether it has the Original of {label}, and there can be only one: try again when it is online. If it \
             does not have it, pass --yes"
        ))),
    }
}
