//! `ibi archive purge`.

use ibi_archive::Holdings;
use ibi_archive::mint::clock::{Clock as _, SystemClock};
use ibi_id::Instant;

use crate::cli::archive::Purge;
use crate::commands::archive::{open, shown, who};
use crate::exit::{Answer, Failure};
use crate::io::say;

/// Items that are looked at at a time.
const PAGE: usize = 100;

const DAY: i64 = 24 * 60 * 60;

pub(crate) fn run(command: &Purge) -> Result<Answer, Failure> {
    let mut archive = open(&command.data.folder()?)?;
    let now = SystemClock::new().read().wall.seconds();
    // Before the first time there is, nothing was removed.
    let until = Instant::new(now - i64::from(command.older_than) * DAY, 0).map(|until| until.to_string());
    let over = over(archive.holdings(), &until.unwrap_or_default())?;
    for path in &over {
        if command.yes {
            let reason = format!("removed more than {} days ago", command.older_than);
            let change = archive.prepare_removal(path, &reason, &who(), true)?;
            archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        let holding = archive.holdings().item(path)?;
        shown::print(archive.holdings(), &holding, command.json)?;
    }
    match (over.len(), command.yes) {
        (0, _) => say(format_args!("no removed item has bytes that are older")),
        (number, true) => {
            say(format_args!("the bytes of {number} items are destroyed; their tombstones stay"));
        }
        (number, false) => say(format_args!(
            "the bytes of {number} items would be destroyed; it cannot be undone. If that is meant, say --yes"
        )),
    }
    Ok(Answer::Yes)
}

/// The removed items that still have bytes, and were removed before a time.
fn over(holdings: &Holdings, until: &str) -> Result<Vec<String>, Failure> {
    let (mut over, mut after) = (Vec::new(), String::new());
    loop {
        let page = holdings.list(&after, PAGE)?;
        let Some(last) = page.last() else { return Ok(over) };
        after.clone_from(&last.path);
        let is_over = |removed: &ibi_archive::item::Removed| !removed.purged && removed.at.as_str() <= until;
        let items = page.iter().filter(|holding| holding.item.removed.as_ref().is_some_and(is_over));
        over.extend(items.map(|holding| holding.path.clone()));
    }
}
