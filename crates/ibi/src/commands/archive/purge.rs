//! `ibi archive purge`.

use ibi_archive::Holdings;
use ibi_id::Instant;
use ibi_mint::trusted_clock::TrustedClock;

use crate::cli::archive::PurgeArgs;
use crate::commands::archive::{item_output, open_to_free_room, operator_of, pluralize};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// Items read per page.
const PURGE_PAGE_SIZE: usize = 100;

const SECONDS_IN_DAY: i64 = 24 * 60 * 60;

pub(crate) fn run(command: &PurgeArgs) -> Result<CommandOutcome, CommandError> {
    let data = command.data.folder()?;
    let mut archive = open_to_free_room(&data)?;
    let clock = TrustedClock::new(&data);
    if clock.is_refused() {
        let what = "the clock is ahead of the minter's clock, so nothing was destroyed: correct the clock, or run \
                    `ibi minter recover` if it is correct";
        return Err(CommandError::NotSure(what.to_owned()));
    }
    let now = clock.unix_seconds();
    // An instant before the first possible one matches nothing.
    let until =
        Instant::new(now - i64::from(command.older_than) * SECONDS_IN_DAY, 0).map(|until| until.to_string());
    let over = purgeable_items(archive.holdings(), &until.unwrap_or_default())?;
    for path in &over {
        if command.yes {
            let reason = format!("removed more than {} ago", pluralize(command.older_than.into(), "day"));
            let change = archive.prepare_removal(path, &reason, &operator_of(&data), true)?;
            archive.commit(vec![change]).into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        let holding = archive.holdings().item(path)?;
        item_output::print(archive.holdings(), &holding, command.json)?;
    }
    match (over.len(), command.yes) {
        (0, _) => say(format_args!("no removed item has bytes older than the grace period")),
        (1, true) => say(format_args!("destroyed the bytes of 1 item; its tombstone stays")),
        (number, true) => {
            say(format_args!("destroyed the bytes of {number} items; their tombstones stay"));
        }
        (number, false) => say(format_args!(
            "this would destroy the bytes of {}. This is permanent. Pass --yes to confirm",
            pluralize(number as u64, "item")
        )),
    }
    Ok(CommandOutcome::Yes)
}

/// Removed items that still have bytes and were removed before a time.
fn purgeable_items(holdings: &Holdings, until: &str) -> Result<Vec<String>, CommandError> {
    let (mut over, mut after) = (Vec::new(), String::new());
    loop {
        let page = holdings.list(&after, PURGE_PAGE_SIZE)?;
        let Some(last) = page.last() else { return Ok(over) };
        after.clone_from(&last.path);
        let is_over =
            |removed: &ibi_archive::item::ItemRemoval| !removed.purged && removed.at.as_str() <= until;
        let items = page.iter().filter(|holding| holding.item.removed.as_ref().is_some_and(is_over));
        over.extend(items.map(|holding| holding.path.clone()));
    }
}
