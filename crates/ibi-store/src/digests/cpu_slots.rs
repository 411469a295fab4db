//! Limits concurrent hashing to the number of cores, so that many deposits do not delay a single
//! request. The scheduler gives every runnable thread a slice, however low its priority.

use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

struct CpuSlots {
    free: Mutex<usize>,
    freed: Condvar,
}

static CPU_SLOTS: LazyLock<CpuSlots> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    CpuSlots { free: Mutex::new(cores), freed: Condvar::new() }
});

/// Runs the work while holding a CPU slot.
pub(super) fn run_in_slot<T>(work: impl FnOnce() -> T) -> T {
    let _turn = CpuSlot::acquire_slot();
    work()
}

struct CpuSlot;

impl CpuSlot {
    fn acquire_slot() -> Self {
        let free = CPU_SLOTS.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = CPU_SLOTS.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Self
    }
}

impl Drop for CpuSlot {
    fn drop(&mut self) {
        *CPU_SLOTS.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        CPU_SLOTS.freed.notify_one();
    }
}
