//! Moments in which an honest Archive was slow. A resolver waits for better answers for 150 ms
//! (4.2 step 4): what it does while the machine stalls for longer says nothing about the resolver,
//! and is asked again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ask::{get, now};
use crate::world::HonestWorld;

/// Well below the grace: what is asked here is not the very question that the resolver asks.
const STALL_THRESHOLD: Duration = Duration::from_millis(60);

pub struct StallWatch {
    stalls: Arc<Mutex<Vec<(Instant, Instant)>>>,
    over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<()>>,
}

impl StallWatch {
    pub fn begin(world: &HonestWorld) -> Self {
        let mut watch = Self { stalls: Arc::default(), over: Arc::default(), watchers: Vec::new() };
        for archive in &world.archives {
            let (stalls, over) = (Arc::clone(&watch.stalls), Arc::clone(&watch.over));
            let address = archive.address.clone();
            let path = format!(
                "/{}?servicesubject=urlRequest&clientinformation.ipaddress=127.0.0.1&parsedibiurl.ibi={}",
                archive.service, world.items.copied
            );
            watch.watchers.push(std::thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    let since = now();
                    let (_, took) = get(&address, &path, "");
                    if took > STALL_THRESHOLD {
                        let mut stalls = stalls.lock().unwrap_or_else(PoisonError::into_inner);
                        stalls.push((since, now()));
                    }
                    std::thread::sleep(Duration::from_millis(25));
                }
            }));
        }
        watch
    }

    /// Whether there was a stall between these.
    pub fn between(&self, from: Instant, to: Instant) -> bool {
        // One that has only just begun is known a moment later.
        std::thread::sleep(STALL_THRESHOLD * 2);
        let stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        stalls.iter().any(|(begun, over)| *begun <= to && from <= *over)
    }

    pub fn count(&self) -> usize {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        for watcher in self.watchers.drain(..) {
            let _ = watcher.join();
        }
    }
}
