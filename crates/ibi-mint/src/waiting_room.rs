//! The standard's waiting room: one leader at a time, who also serves everybody who arrived while
//! the previous leader worked.
//!
//! There is no dedicated thread. A caller that finds the room idle leads at once, alone; others
//! queue in order of arrival. When a leader is done, the first in the queue becomes leader, takes
//! all waiting jobs and does them with its own, so they share one sync. No tokio and no clock, so
//! that loom can try every interleaving (`crates/ibi-mint/model`).

use std::collections::VecDeque;

#[cfg(loom)]
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A room where jobs wait to be done together.
#[derive(Debug)]
pub(crate) struct WaitingRoom<J, R> {
    queue: Mutex<MintQueue<J, R>>,
    seats: usize,
}

#[derive(Debug)]
struct MintQueue<J, R> {
    serving: bool,
    waiting: VecDeque<(J, Arc<MintSeat<R>>)>,
}

#[derive(Debug)]
struct MintSeat<R> {
    turn: Mutex<MintSeatState<R>>,
    called: Condvar,
}

#[derive(Debug)]
enum MintSeatState<R> {
    Waiting,
    Lead,
    Done(Option<R>),
}

/// Why a job was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingRoomError {
    /// No seat was free.
    Full,
    /// The leader died.
    Abandoned,
}

impl<J, R> WaitingRoom<J, R> {
    pub(crate) fn new(seats: usize) -> Self {
        Self { queue: Mutex::new(MintQueue { serving: false, waiting: VecDeque::new() }), seats }
    }

    /// Submits a job and returns its result. The leader calls `work`, which does the jobs in order
    /// and returns one result for each.
    pub(crate) fn serve(&self, job: J, work: impl FnOnce(&[J]) -> Vec<R>) -> Result<R, WaitingRoomError> {
        let mut queue = lock(&self.queue);
        if !queue.serving {
            queue.serving = true;
            drop(queue);
            return self.lead(vec![job], Vec::new(), work);
        }
        if queue.waiting.len() >= self.seats {
            return Err(WaitingRoomError::Full);
        }
        let seat = Arc::new(MintSeat { turn: Mutex::new(MintSeatState::Waiting), called: Condvar::new() });
        queue.waiting.push_back((job, Arc::clone(&seat)));
        drop(queue);
        if let Some(done) = seat.wait() {
            return done.ok_or(WaitingRoomError::Abandoned);
        }
        // Called to lead: who leads is the first in the room.
        let all = std::mem::take(&mut lock(&self.queue).waiting);
        let (jobs, seats): (Vec<J>, Vec<_>) = all.into_iter().unzip();
        self.lead(jobs, seats.into_iter().skip(1).collect(), work)
    }

    /// Does the jobs, the first of which is our own, tells those in the seats, and calls the next
    /// to lead.
    fn lead(
        &self,
        jobs: Vec<J>,
        seats: Vec<Arc<MintSeat<R>>>,
        work: impl FnOnce(&[J]) -> Vec<R>,
    ) -> Result<R, WaitingRoomError> {
        let mut leaving = MintLeaderGuard { room: self, seats: seats.into() };
        let mut results = work(&jobs).into_iter();
        let own = results.next().ok_or(WaitingRoomError::Abandoned);
        for result in results {
            if let Some(seat) = leaving.seats.pop_front() {
                seat.set_state(MintSeatState::Done(Some(result)));
            }
        }
        own
    }
}

/// Cleanup of a leader, also when it panics: nobody waits forever.
struct MintLeaderGuard<'a, J, R> {
    room: &'a WaitingRoom<J, R>,
    seats: VecDeque<Arc<MintSeat<R>>>,
}

impl<J, R> Drop for MintLeaderGuard<'_, J, R> {
    fn drop(&mut self) {
        for seat in self.seats.drain(..) {
            seat.set_state(MintSeatState::Done(None));
        }
        let mut queue = lock(&self.room.queue);
        match queue.waiting.front() {
            Some((_, seat)) => seat.set_state(MintSeatState::Lead),
            None => queue.serving = false,
        }
    }
}

impl<R> MintSeat<R> {
    fn set_state(&self, turn: MintSeatState<R>) {
        *lock(&self.turn) = turn;
        self.called.notify_one();
    }

    /// The result of our job, or nothing if we are called to lead.
    fn wait(&self) -> Option<Option<R>> {
        let mut turn = lock(&self.turn);
        loop {
            match std::mem::replace(&mut *turn, MintSeatState::Waiting) {
                MintSeatState::Waiting => {
                    turn = self.called.wait(turn).unwrap_or_else(|poisoned| poisoned.into_inner());
                }
                MintSeatState::Lead => return None,
                MintSeatState::Done(result) => return Some(result),
            }
        }
    }
}

/// The data behind these locks is consistent at every step, so a poisoned lock is safe to use.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(all(test, loom))]
mod model {
    //! Every interleaving of two and three callers, by loom: `crates/ibi-mint/model`.

    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    use super::*;

    fn all_get_their_own(callers: u32) {
        loom::model(move || {
            let room = Arc::new(WaitingRoom::new(callers as usize));
            let counter = Arc::new(AtomicU32::new(0));
            let others: Vec<_> = (1..callers)
                .map(|job| {
                    let (room, counter) = (Arc::clone(&room), Arc::clone(&counter));
                    thread::spawn(move || call(&room, &counter, job))
                })
                .collect();
            let mut served = vec![call(&room, &counter, 0)];
            served.extend(others.into_iter().map(|other| other.join().unwrap()));
            // Each was served its own job, and each has a number of its own.
            assert!(served.iter().enumerate().all(|(job, (answered, _))| *answered as usize == job));
            let mut numbers: Vec<u32> = served.iter().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=callers).collect::<Vec<_>>());
            assert!(!lock(&room.queue).serving, "the room is idle again");
        });
    }

    fn call(room: &WaitingRoom<u32, (u32, u32)>, counter: &AtomicU32, job: u32) -> (u32, u32) {
        let work = |jobs: &[u32]| {
            // Read, then write: if two led at once, a number would be given twice.
            let number = |job: &u32| {
                let number = counter.load(Ordering::Relaxed) + 1;
                counter.store(number, Ordering::Relaxed);
                (*job, number)
            };
            jobs.iter().map(number).collect()
        };
        room.serve(job, work).unwrap()
    }

    #[test]
    fn two_callers() {
        all_get_their_own(2);
    }

    #[test]
    fn three_callers() {
        all_get_their_own(3);
    }
}
