//! Low-priority threads.

use rustix::process::setpriority_process;
use rustix::thread::gettid;

/// The nice value of threads for heavy work: under contention such a thread gets about a thirtieth
/// of the CPU time of one that answers requests.
const HEAVY_WORK_NICE: i32 = 15;

/// Lowers the priority of this thread and of those that it starts.
pub(crate) fn lower_priority() {
    // On Linux this applies per thread. If the system refuses it, only the priority is lost.
    let _ = setpriority_process(Some(gettid()), HEAVY_WORK_NICE);
}
