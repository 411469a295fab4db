//! The temporal distributor: which date the next label gets (1.5).
//!
//! Pure: who calls it keeps the mark, reads the clock, and waits. Two labels of one prefix never get one date, for
//! any clock and any sequence of granularities, as long as each call is given the mark that the last one returned.
//!
//! ```
//! use ibi_id::{Granularity, Instant, distributor};
//! let now: Instant = "2010-10-20T15:21:55.186Z".parse()?;
//! let mark: Instant = "2010-10-20T15:20:00Z".parse()?;
//!
//! let first = distributor::next(Some(mark), now, Granularity::SECOND).unwrap();
//! assert_eq!(first.date.to_string(), "2010-10-20T15:21:00Z"); // the minute is free: a short label
//! let second = distributor::next(Some(first.mark), now, Granularity::SECOND).unwrap();
//! assert_eq!(second.date.to_string(), "2010-10-20T15:21:55Z"); // the minute is taken: the second
//! let third = distributor::next(Some(second.mark), now, Granularity::SECOND).unwrap();
//! assert_eq!(third.creation.to_string(), "2010-10-20T15:21:56Z"); // not before its time has come
//! # Ok::<(), ibi_id::ParseError>(())
//! ```

use crate::{Granularity, Instant};

/// What the distributor grants to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The date that the label's suffix tells.
    pub date: Instant,
    /// When the label is created: it must not be given out earlier. Never before `date`.
    pub creation: Instant,
    /// What to hand to the next call, and to keep safe before the label is given out.
    pub mark: Instant,
}

/// The 2015 edition (RTC-10-I, algorithm 4): the date for a request at `now`, when `last` was the last one used.
///
/// Nothing once the dates have run out, at the end of the year 9999.
#[inline]
pub fn next(last: Option<Instant>, now: Instant, r: Granularity) -> Option<Turn> {
    // Step 1.
    let rounded = now.floor(r);
    // Step 2. With `last = rounded - r`, step 4 gives `rounded`, and step 5 finds no coarser date after
    // `rounded - r` unless it equals `rounded`. Said so, no date before the year 1 is needed.
    let Some(last) = last else {
        return Some(Turn { date: rounded, creation: rounded, mark: rounded });
    };
    // Step 3: the granularity may have changed.
    let last = last.floor(r);
    // Step 4.
    let creation = last.plus(r)?.max(rounded);
    // Step 5: floors only fall as the step grows, so the first that fails ends the search.
    let (mut date, mut step) = (creation, r);
    while let Some(coarser) = step.coarser() {
        let shorter = creation.floor(coarser);
        if shorter <= last {
            break;
        }
        (date, step) = (shorter, coarser);
    }
    // Step 6.
    Some(Turn { date, creation, mark: date })
}

/// The 2011 edition, for those who follow NBR 16066:2012 to the letter: whole seconds, and the mark is the last
/// *creation*, not the last date.
///
/// Nothing once the dates have run out, at the end of the year 9999.
pub fn next_2011(last: Option<Instant>, now: Instant) -> Option<Turn> {
    let now = now.floor(Granularity::SECOND);
    let creation = match last {
        None => now,
        Some(last) => last.floor(Granularity::SECOND).plus(Granularity::SECOND)?.max(now),
    };
    let minute = creation.floor(Granularity::MINUTE);
    // The norm's "previous" of the first item is 0: before any minute.
    let free = last.is_none_or(|last| last < minute);
    Some(Turn { date: if free { minute } else { creation }, creation, mark: creation })
}
