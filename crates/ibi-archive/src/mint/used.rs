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
const NEAR: Duration = Duration::from_secs(300);
/// So many runs are told apart. When there are more, the two closest are made one, and the dates between them are
/// never used: a loss, not a danger.
const MOST_RUNS: usize = 16;

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

/// Adds a run of dates.
pub(crate) fn add(used: &mut Vec<Run>, new: Run) {
    let at = used.partition_point(|run| run.first <= new.first);
    used.insert(at, new);
    // Runs that touch or nearly touch become one, but never across a free stretch that is worth keeping.
    let mut i = at.saturating_sub(1);
    while i + 1 < used.len() && i <= at {
        if between(used[i].last, used[i + 1].first) <= NEAR {
            join(used, i);
        } else {
            i += 1;
        }
    }
    if used.len() > MOST_RUNS {
        let gap = |i: &usize| between(used[*i].last, used[*i + 1].first);
        if let Some(closest) = (0..used.len() - 1).min_by_key(gap) {
            join(used, closest);
        }
    }
}

/// Makes one of a run and the next.
fn join(used: &mut Vec<Run>, i: usize) {
    let next = used.remove(i + 1);
    used[i].last = used[i].last.max(next.last);
}
