//! Places for files that arrive: so many in all, and of one who deposits only some, so that one whose files stall does not keep
//! the others waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files that arrive at a time; others wait.
const ALL: usize = 32;

/// The same of one token.
const OF_ONE: usize = 8;

#[derive(Debug)]
pub(super) struct Arriving {
    all: Arc<Semaphore>,
    /// By token, while somebody has a place or waits for one.
    of_one: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place that is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    arriving: &'a Arriving,
    token: String,
    own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for Arriving {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), of_one: Mutex::default() }
    }
}

impl Arriving {
    /// Waits for a place: among the files of the token first.
    pub(super) async fn place(&self, token: &str) -> Option<Place<'_>> {
        let own = {
            let mut of_one = self.of_one.lock().ok()?;
            let own = of_one.entry(token.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(OF_ONE)));
            Arc::clone(own)
        };
        // Dropped with all that it has when the client goes while it waits.
        let mut place = Place { arriving: self, token: token.to_owned(), own: None, _of_all: None };
        place.own = Some(own.acquire_owned().await.ok()?);
        place._of_all = Some(Arc::clone(&self.all).acquire_owned().await.ok()?);
        Some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        drop(self.own.take());
        let Ok(mut of_one) = self.arriving.of_one.lock() else { return };
        // Nobody else has it or waits for it.
        if of_one.get(&self.token).is_some_and(|own| Arc::strong_count(own) == 1) {
            of_one.remove(&self.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_who_stalls_keeps_nobody_else_waiting() {
        let arriving = Arriving::default();
        let mut stalled = Vec::new();
        for _ in 0..OF_ONE {
            stalled.push(arriving.place("a").await.unwrap());
        }
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, arriving.place("a")).await.is_err(), "its own wait");
        let other = tokio::time::timeout(soon, arriving.place("b")).await.unwrap().unwrap();
        drop(stalled.pop());
        let next = tokio::time::timeout(soon, arriving.place("a")).await.unwrap().unwrap();
        drop((stalled, other, next));
        assert!(arriving.of_one.lock().unwrap().is_empty(), "nothing is remembered");
    }
}
