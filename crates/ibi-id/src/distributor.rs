//! The temporal distributor: chooses the date of the next label (1.5).
//!
//! Pure: the caller stores the mark, reads the clock and waits. Two labels of one prefix never get
//! the same date, for any clock and any sequence of granularities, as long as each call receives
//! the mark that the previous one returned.
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

/// The result of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateGrant {
    /// The date encoded in the label's suffix.
    pub date: Instant,
    /// The creation time: the label must not be issued earlier. Never before `date`.
    pub creation: Instant,
    /// The mark to pass to the next call, and to make durable before the label is issued.
    pub mark: Instant,
}

/// The 2015 edition (RTC-10-I, algorithm 4): the date for a request at `now`, given the last used
/// one.
///
/// Nothing once the dates have run out, at the end of the year 9999.
#[inline]
pub fn next(last: Option<Instant>, now: Instant, r: Granularity) -> Option<DateGrant> {
    // Step 1.
    let rounded = now.floor(r);
    // Step 2. With `last = rounded - r`, step 4 gives `rounded`, and step 5 finds no coarser date
    // after `rounded - r` unless it equals `rounded`. This form needs no date before the year 1.
    let Some(last) = last else {
        return Some(DateGrant { date: rounded, creation: rounded, mark: rounded });
    };
    // Step 3: the granularity may have changed.
    let last = last.floor(r);
    // Step 4.
    let creation = last.plus(r)?.max(rounded);
    // Step 5: floors only decrease as the step grows, so the first failure ends the search.
    let (mut date, mut step) = (creation, r);
    while let Some(coarser) = step.coarser() {
        let shorter = creation.floor(coarser);
        if shorter <= last {
            break;
        }
        (date, step) = (shorter, coarser);
    }
    // Step 6.
    Some(DateGrant { date, creation, mark: date })
}

/// The 2011 edition, for strict conformance to NBR 16066:2012: whole seconds, and the mark is the
/// last *creation*, not the last date.
///
/// Nothing once the dates have run out, at the end of the year 9999.
pub fn next_2011(last: Option<Instant>, now: Instant) -> Option<DateGrant> {
    let now = now.floor(Granularity::SECOND);
    let creation = match last {
        None => now,
        Some(last) => last.floor(Granularity::SECOND).plus(Granularity::SECOND)?.max(now),
    };
    let minute = creation.floor(Granularity::MINUTE);
    // The standard's "previous" of the first item is 0: before any minute.
    let free = last.is_none_or(|last| last < minute);
    Some(DateGrant { date: if free { minute } else { creation }, creation, mark: creation })
}
