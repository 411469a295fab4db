//! `ibi archive copy` and `refresh`.

use ibi_archive::holders::collection::{self, Which};
use ibi_archive::holders::copy::Source;

use crate::cli::holders::{Copy, Refresh};
use crate::commands::archive::holders::{bring, peer, token, waiting};
use crate::commands::archive::open_to_read;
use crate::exit::{Answer, Failure};
use crate::io::say;

pub(crate) fn copy(command: &Copy) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    // Before anything is asked for.
    open_to_read(&data)?;
    let peer = peer(&command.from, &command.theirs)?;
    let which = match (&command.ibi, &command.prefix, &command.since, &command.list) {
        (Some(item), ..) => Which::These(vec![item.clone()]),
        (_, Some(prefix), ..) => Which::Prefix(prefix.clone()),
        (_, _, Some(since), _) => Which::Since(since.clone()),
        (.., Some(list)) => {
            let text = std::fs::read_to_string(list).map_err(|error| {
                Failure::Usage(format!("cannot read the list {}: {error}", list.display()))
            })?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            Which::These(lines.map(str::to_owned).collect())
        }
        _ => Which::These(Vec::new()),
    };
    waiting(async {
        let items = collection::list(&peer, which).await?;
        if items.is_empty() {
            say(format_args!("{} has no such item", peer.url()));
            // Of a prefix there should be some; since a date, there may be nothing new.
            return Ok(Answer::from(command.prefix.is_none()));
        }
        // Of one that is named, every byte that is here is looked at, too.
        let source = Source { thorough: command.ibi.is_some(), ..Source::new(peer) };
        bring(&data, items.into_iter().map(|item| (item, source.clone())).collect(), command.json).await
    })
}

pub(crate) fn refresh(command: &Refresh) -> Result<Answer, Failure> {
    let data = command.data.folder()?;
    let holdings = open_to_read(&data)?;
    let copies = match &command.ibi {
        Some(label) => {
            let (holding, _) = holdings.find(label)?;
            vec![(label.clone(), holdings.source(&holding.path)?)]
        }
        None => collection::copies(&holdings)?,
    };
    drop(holdings);
    if let (Some(label), None, [(_, None)]) = (&command.ibi, &command.from, &copies[..]) {
        return Err(Failure::Usage(format!(
            "{label} did not come from another Archive: say --from, the URL of one that has it"
        )));
    }
    let (word, thorough) = (command.from.is_some(), command.ibi.is_some());
    let overwrite = command.overwrite;
    let source = |peer| Source { overwrite, word, thorough, follows: !word, ..Source::new(peer) };
    let token = token(&command.theirs)?;
    let items = collection::from_sources(copies, command.from.as_deref(), token.as_deref(), source)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    waiting(bring(&data, items, command.json))
}
