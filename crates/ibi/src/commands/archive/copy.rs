//! `ibi archive copy` and `refresh`.

use std::collections::HashMap;

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
        }
        let source = Source::new(peer);
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
    let (mut items, mut sources) = (Vec::new(), std::collections::BTreeSet::new());
    for (item, source) in copies {
        match command.from.clone().or(source) {
            Some(url) => {
                sources.insert(url.clone());
                items.push((item, url));
            }
            None if command.ibi.is_some() => {
                return Err(Failure::Usage(format!(
                    "{item} did not come from another Archive: say --from, the URL of one that has it"
                )));
            }
            None => {}
        }
    }
    drop(holdings);
    // A token is a secret between two.
    if sources.len() > 1 && token(&command.theirs)?.is_some() {
        return Err(Failure::Usage(format!(
            "the copies come from {} Archives, and a token is for one of them: name that with --from",
            sources.len()
        )));
    }
    let (word, thorough) = (command.from.is_some(), command.ibi.is_some());
    let source = |url: &String| -> Result<(String, Source), Failure> {
        let peer = peer(url, &command.theirs)?;
        Ok((url.clone(), Source { overwrite: command.overwrite, word, thorough, ..Source::new(peer) }))
    };
    let sources = sources.iter().map(source).collect::<Result<HashMap<_, _>, _>>()?;
    let items = items.into_iter().filter_map(|(item, url)| Some((item, sources.get(&url)?.clone())));
    waiting(bring(&data, items.collect(), command.json))
}
