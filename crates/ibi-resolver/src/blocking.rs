//! Work that blocks on the disk.

use tokio::runtime::{Handle, RuntimeFlavor};

/// The work did not end: it panicked, or the runtime is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was stopped")]
pub(crate) struct BlockingWorkStopped;

/// Runs blocking work on another thread. On a runtime that has only one thread it runs in place:
/// all that happens then has one order, which a simulation can repeat.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingWorkStopped> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Ok(work()),
        _ => tokio::task::spawn_blocking(work).await.map_err(|_| BlockingWorkStopped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_thread_does_it_in_place() {
        let here = std::thread::current().id();
        assert_eq!(run_blocking(|| std::thread::current().id()).await, Ok(here));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn several_threads_leave_it_to_another_one() {
        let task = tokio::spawn(async {
            let here = std::thread::current().id();
            run_blocking(move || std::thread::current().id() != here).await
        });
        assert_eq!(task.await.unwrap(), Ok(true));
        assert_eq!(run_blocking(|| panic!("planned")).await.map(|(): ()| ()), Err(BlockingWorkStopped));
    }
}
