//! Hashing in turns: never more at a time than there are cores, so that many who deposit do not keep one who asks waiting
//! behind all of them. The system lets each that can run have its slice, however low its priority.

use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

struct Turns {
    free: Mutex<usize>,
    freed: Condvar,
}

static TURNS: LazyLock<Turns> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Turns { free: Mutex::new(cores), freed: Condvar::new() }
});

/// Works in its turn.
pub(super) fn take<T>(work: impl FnOnce() -> T) -> T {
    let _turn = Turn::wait();
    work()
}

struct Turn;

impl Turn {
    fn wait() -> Self {
        let free = TURNS.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = TURNS.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TURNS.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        TURNS.freed.notify_one();
    }
}
