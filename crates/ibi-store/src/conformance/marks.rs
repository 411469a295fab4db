//! What every store of marks must do.

use ibi_id::Instant;

use crate::{Boot, Mark, Marks, Run, StoreError};

/// A first mark to start a store under test with.
pub fn first_mark() -> Mark {
    let at = Instant::new(1_800_000_000, 0).unwrap();
    let boot = Boot { machine: "machine".into(), id: "boot".into(), nanos: 1 };
    Mark { sequence: 1, last: at, used: Vec::new(), wall: at, boot }
}

/// The mark after this one: every part of it differs.
pub fn next_mark(mark: &Mark) -> Mark {
    let later = |at: Instant| Instant::new(at.seconds() + 1, at.picos() + 1_000).unwrap();
    let mut used = mark.used.clone();
    used.push(Run { first: mark.last, last: later(mark.last) });
    if used.len() > 8 {
        used.remove(0);
    }
    let boot = Boot { nanos: mark.boot.nanos + 7, ..mark.boot.clone() };
    Mark { sequence: mark.sequence + 1, last: later(mark.last), used, wall: later(mark.wall), boot }
}

/// Runs the suite on a store that was started with [`first_mark`]. `reopen` takes it down and opens it again from
/// what is durable; a store that outlives nothing hands it back.
///
/// # Panics
///
/// If the store does not do what it must.
pub fn marks<M: Marks>(mut store: M, mut reopen: impl FnMut(M) -> M) {
    assert_eq!(store.mark(), &first_mark(), "a new store has the mark it was started with");
    for round in 0..20 {
        let next = next_mark(store.mark());
        store.advance(next.clone()).unwrap();
        assert_eq!(store.mark(), &next, "an accepted mark is the last one");
        if round % 3 == 0 {
            store = reopen(store);
            assert_eq!(store.mark(), &next, "an accepted mark is durable");
        }
    }
    let last = store.mark().clone();
    for wrong in [last.sequence, last.sequence + 2, 0] {
        let refused = store.advance(Mark { sequence: wrong, ..next_mark(&last) });
        assert!(matches!(refused, Err(StoreError::OutOfOrder { .. })), "marks follow each other");
        assert_eq!(store.mark(), &last, "a refused mark changes nothing");
    }
    store.advance(next_mark(&last)).unwrap();
}
