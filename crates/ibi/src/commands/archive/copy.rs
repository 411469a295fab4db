//! `ibi archive copy` and `refresh`.

use ibi_archive::replication::bulk_replication::{self, ReplicaSelection};
use ibi_archive::replication::copy::ReplicaSource;

use crate::cli::replication::{CopyArgs, RefreshArgs};
use crate::commands::archive::open_to_read;
use crate::commands::archive::peers::{block_on_network, copy_items, peer, token};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

pub(crate) fn copy(command: &CopyArgs) -> Result<CommandOutcome, CommandError> {
    command.peer_args.outgoing.apply()?;
    let data = command.data.folder()?;
    // Checks the Archive before the network is used.
    open_to_read(&data)?;
    let peer = peer(&command.from, &command.peer_args)?;
    let which = match (&command.ibi, &command.prefix, &command.since, &command.list) {
        (Some(item), ..) => ReplicaSelection::These(vec![item.clone()]),
        (_, Some(prefix), ..) => ReplicaSelection::Prefix(prefix.clone()),
        (_, _, Some(since), _) => ReplicaSelection::Since(since.clone()),
        (.., Some(list)) => {
            let text = std::fs::read_to_string(list).map_err(|error| {
                CommandError::Usage(format!("cannot read the list {}: {error}", list.display()))
            })?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            ReplicaSelection::These(lines.map(str::to_owned).collect())
        }
        _ => ReplicaSelection::These(Vec::new()),
    };
    block_on_network(async {
        let items = bulk_replication::list_selected(&peer, which).await?;
        if items.is_empty() {
            say(format_args!("{} has no such item", peer.url()));
            // A prefix without items is probably a mistake; after a date, there may be nothing new.
            return Ok(CommandOutcome::from(command.prefix.is_none()));
        }
        // An item that is named explicitly is also verified byte by byte.
        let source = ReplicaSource { thorough: command.ibi.is_some(), ..ReplicaSource::new(peer) };
        copy_items(&data, items.into_iter().map(|item| (item, source.clone())).collect(), command.json).await
    })
}

pub(crate) fn refresh(command: &RefreshArgs) -> Result<CommandOutcome, CommandError> {
    command.peer_args.outgoing.apply()?;
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let copies = match &command.ibi {
        Some(label) => {
            let (holding, _) = holdings.find(label)?;
            vec![(label.clone(), holdings.replica_source(&holding.path)?)]
        }
        None => bulk_replication::list_copies(&holdings)?,
    };
    drop(holdings);
    if let (Some(label), None, [(_, None)]) = (&command.ibi, &command.from, &copies[..]) {
        return Err(CommandError::Usage(format!(
            "{label} has no source Archive: pass the URL of an Archive that has it with --from"
        )));
    }
    let (word, thorough) = (command.from.is_some(), command.ibi.is_some());
    let overwrite = command.overwrite;
    let source =
        |peer| ReplicaSource { overwrite, word, thorough, follows: !word, ..ReplicaSource::new(peer) };
    let token = token(&command.peer_args)?;
    let items = bulk_replication::refresh_sources(copies, command.from.as_deref(), token.as_deref(), source)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    block_on_network(copy_items(&data, items, command.json))
}
