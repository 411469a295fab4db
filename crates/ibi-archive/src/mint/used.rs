//! The dates that were given out, as runs: needed where some lie ahead of the clock.
//!
//! A clock that stood in the future leaves labels there. Once it is right again, `recover` goes on from now, and when
//! time comes to those labels they are passed over. A maximum alone could not tell them from the free dates before
//! them; a set can, and a few runs are set enough.

use std::time::Duration;

use ibi_id::Instant;
use ibi_store::Run;

use crate::mint::clock::between;

/// Dates no further apart than this are one run: what lies between them is given up.
const NEAR: Duration = Duration::from_secs(60);
/// So many runs are told apart. When there are more, the two oldest become one, and the dates between them, which only a
/// clock set far back could ask for, are never used: a loss, not a danger.
const MOST_RUNS: usize = 32;

/// The next run that ends after `last`: where it begins, dates have to pass over it.
pub(crate) fn next_after(used: &[Run], last: Instant) -> Option<Run> {
    used.iter().copied().find(|run| run.last > last)
}

/// Where minting can go on when it is to go on after `last`: after the run that has `last` in it, if one has.
pub(crate) fn past_runs(used: &[Run], last: Instant) -> Instant {
    match next_after(used, last) {
        Some(run) if run.first <= last => run.last,
        _ => last,
    }
}

/// Adds a run of dates: to the run before it, if that is near, or as a run of its own. It never grows towards a later
/// run that it does not touch: the dates between them are still to come.
pub(crate) fn add(used: &mut Vec<Run>, new: Run) {
    let mut at = used.partition_point(|run| run.first <= new.first);
    match at.checked_sub(1) {
        Some(before) if between(used[before].last, new.first) <= NEAR => {
            at = before;
            used[at].last = used[at].last.max(new.last);
        }
        _ => used.insert(at, new),
    }
    while used.get(at + 1).is_some_and(|next| next.first <= used[at].last) {
        join(used, at);
    }
    while used.len() > MOST_RUNS {
        join(used, 0);
    }
}

/// Makes one of a run and the next.
fn join(used: &mut Vec<Run>, at: usize) {
    let next = used.remove(at + 1);
    used[at].last = used[at].last.max(next.last);
}
