//! The suite for [`MarkStorage`].

use ibi_id::Instant;

use crate::{BootTime, IssuedRange, MarkStorage, MarkStorageError, MintMark};

/// The first mark for a store under test.
pub fn first_mark() -> MintMark {
    let at = Instant::new(1_800_000_000, 0).unwrap();
    let boot = BootTime { machine: "machine".into(), id: "boot".into(), nanos: 1 };
    MintMark { sequence: 1, last: at, used: Vec::new(), wall: at, boot }
}

/// A successor of this mark that differs in every field.
pub fn next_mark(mark: &MintMark) -> MintMark {
    let later = |at: Instant| Instant::new(at.seconds() + 1, at.picos() + 1_000).unwrap();
    let mut used = mark.used.clone();
    used.push(IssuedRange { first: mark.last, last: later(mark.last) });
    if used.len() > 8 {
        used.remove(0);
    }
    let boot = BootTime { nanos: mark.boot.nanos + 7, ..mark.boot.clone() };
    MintMark { sequence: mark.sequence + 1, last: later(mark.last), used, wall: later(mark.wall), boot }
}

/// Runs the suite on a store that was created with [`first_mark`]. `reopen` closes it and opens it
/// again from its durable state; a store without durable state is returned as is.
///
/// # Panics
///
/// If the store violates the contract.
pub fn marks<M: MarkStorage>(mut store: M, mut reopen: impl FnMut(M) -> M) {
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
        let refused = store.advance(MintMark { sequence: wrong, ..next_mark(&last) });
        assert!(matches!(refused, Err(MarkStorageError::OutOfOrder { .. })), "marks follow each other");
        assert_eq!(store.mark(), &last, "a refused mark changes nothing");
    }
    store.advance(next_mark(&last)).unwrap();
}
