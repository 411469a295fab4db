//! Issued dates, as runs. Needed when some are ahead of the clock.
//!
//! A clock that was in the future leaves labels there. Once it is correct again, `recover`
//! continues from the current time, and those labels are skipped when their time comes. A maximum
//! could not distinguish them from the free dates before them; a set of a few runs can.

use std::time::Duration;

use ibi_id::Instant;
use ibi_store::IssuedRange;

use crate::clock::duration_between;

/// Dates no further apart than this form one run; the dates between them are not used.
const MAX_RUN_GAP: Duration = Duration::from_secs(60);
/// The most runs. Beyond that, the two closest behind the clock are merged or, if there are none,
/// the two closest ahead of it. The dates between them are never used: a small loss, and no danger.
const MAX_USED_RUNS: usize = 32;

/// The next run that ends after `last`: dates skip it where it begins.
pub(crate) fn next_run_after(used: &[IssuedRange], last: Instant) -> Option<IssuedRange> {
    used.iter().copied().find(|run| run.last > last)
}

/// Where minting can go on when it is to go on after `last`: after the run that has `last` in it,
/// if one has.
pub(crate) fn past_runs(used: &[IssuedRange], last: Instant) -> Instant {
    match next_run_after(used, last) {
        Some(run) if run.first <= last => run.last,
        _ => last,
    }
}

/// Whether all dates of a run are known to be used.
pub(crate) fn covers(used: &[IssuedRange], run: IssuedRange) -> bool {
    used.iter().any(|known| known.first <= run.first && run.last <= known.last)
}

/// Adds a run of dates: extends the previous run if it is near, or inserts a new one. It never
/// grows towards a later run that it does not touch: the dates between them are still to come.
pub(crate) fn add_run(used: &mut Vec<IssuedRange>, new: IssuedRange, now: Instant) {
    let mut at = used.partition_point(|run| run.first <= new.first);
    match at.checked_sub(1) {
        Some(before) if duration_between(used[before].last, new.first) <= MAX_RUN_GAP => {
            at = before;
            used[at].last = used[at].last.max(new.last);
        }
        _ => used.insert(at, new),
    }
    while used.get(at + 1).is_some_and(|next| next.first <= used[at].last) {
        merge_with_next(used, at);
    }
    while used.len() > MAX_USED_RUNS {
        let gap = |at: &usize| duration_between(used[*at].last, used[at + 1].first);
        let behind = used.partition_point(|run| run.first <= now);
        let pairs = if behind > 1 { 0..behind - 1 } else { behind..used.len() - 1 };
        // Of more than 32 runs, there are two behind or two ahead.
        let Some(closest) = pairs.min_by_key(gap) else { return };
        merge_with_next(used, closest);
    }
}

/// Makes one of a run and the next.
fn merge_with_next(used: &mut Vec<IssuedRange>, at: usize) {
    let next = used.remove(at + 1);
    used[at].last = used[at].last.max(next.last);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant::new(1_800_000_000 + seconds, 0).unwrap()
    }

    fn runs(pairs: &[(i64, i64)]) -> Vec<IssuedRange> {
        pairs.iter().map(|&(first, last)| IssuedRange { first: at(first), last: at(last) }).collect()
    }

    fn added(used: &[(i64, i64)], new: (i64, i64)) -> Vec<IssuedRange> {
        let mut used = runs(used);
        add_run(&mut used, runs(&[new])[0], at(0));
        used
    }

    #[test]
    fn near_dates_join_the_run_before_and_never_the_one_after() {
        assert_eq!(added(&[(0, 10)], (70, 80)), runs(&[(0, 80)]));
        assert_eq!(added(&[(0, 10)], (71, 80)), runs(&[(0, 10), (71, 80)]));
        assert_eq!(added(&[(100, 110)], (90, 99)), runs(&[(90, 99), (100, 110)]), "free dates stay free");
        assert_eq!(added(&[(0, 10), (100, 110)], (20, 30)), runs(&[(0, 30), (100, 110)]));
        assert_eq!(added(&[], (5, 6)), runs(&[(5, 6)]));
    }

    #[test]
    fn runs_that_overlap_become_one() {
        assert_eq!(added(&[(0, 10), (100, 110), (300, 310)], (5, 105)), runs(&[(0, 110), (300, 310)]));
        assert_eq!(added(&[(100, 110), (300, 310)], (0, 400)), runs(&[(0, 400)]));
        assert_eq!(added(&[(0, 400)], (100, 110)), runs(&[(0, 400)]));
    }

    #[test]
    fn too_many_runs_lose_the_smallest_gap_behind_the_clock_or_else_ahead() {
        // Gaps of 1000 s, but one of 200 s and one that is large.
        let pairs: Vec<(i64, i64)> = (0..33)
            .map(|n| match n {
                0 => -900_000_000,
                9 => 9000 - 800,
                _ => n * 1000,
            })
            .map(|first| (first, first))
            .collect();
        let fill = |now| {
            let mut used = Vec::new();
            runs(&pairs).into_iter().for_each(|run| add_run(&mut used, run, now));
            used
        };
        for now in [at(1_000_000), at(-1_000_000_000), at(0)] {
            let used = fill(now);
            assert_eq!(used.len(), 32);
            assert_eq!(used[0], runs(&[pairs[0]])[0], "the large gap stays");
            assert!(used.contains(&runs(&[(8000, 8200)])[0]), "the smallest is lost");
            assert!(pairs.iter().all(|pair| covers(&used, runs(&[*pair])[0])), "nothing is forgotten");
        }
    }

    #[test]
    fn minting_goes_on_after_the_run_that_it_would_begin_in() {
        let used = runs(&[(0, 10), (100, 110)]);
        assert_eq!(past_runs(&used, at(5)), at(10));
        assert_eq!(past_runs(&used, at(0)), at(10));
        assert_eq!(past_runs(&used, at(10)), at(10));
        assert_eq!(past_runs(&used, at(50)), at(50));
        assert_eq!(next_run_after(&used, at(10)), Some(used[1]));
        assert_eq!(next_run_after(&used, at(110)), None);
        assert!(covers(&used, runs(&[(2, 10)])[0]) && !covers(&used, runs(&[(2, 11)])[0]));
    }
}
