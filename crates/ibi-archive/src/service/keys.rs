//! Keys of answers (clause 3.4): each carries its time and a code over it and the item, so that nothing is remembered of an
//! answer before it is acknowledged.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a key can be acknowledged, in seconds.
const FRESH: i64 = 600;

/// Keys that are remembered as acknowledged. Beyond, none is counted until old ones are no longer fresh.
const MOST: usize = 1 << 20;

/// Makes keys and takes them back, each once.
pub struct UrlKeys {
    secret: [u8; 32],
    number: AtomicU64,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    keys: HashSet<u128>,
    order: VecDeque<(i64, u128)>,
}

impl UrlKeys {
    /// Keys under a secret of their own: those of another process are no good.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret, number: AtomicU64::new(0), taken: Mutex::default() }
    }

    /// A fresh key for an item: a time and a number, then a code, all in digits (clause 3.2).
    pub fn make(&self, now: i64, path: &str) -> String {
        // The code makes it unguessable; the number only makes it another one.
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let first = format!("{now:010}{number:020}");
        let code = self.code(&first, path);
        format!("{first}-{code:039}")
    }

    /// Whether a key is one of ours for this item, fresh, and was not taken before.
    pub fn take(&self, key: &str, now: i64, path: &str) -> bool {
        let Some((first, code)) = key.split_once('-') else { return false };
        let time = first.get(..10).and_then(|time| time.parse::<i64>().ok());
        let Some((time, code)) = time.zip(code.parse::<u128>().ok()) else { return false };
        if first.len() != 30 || self.code(first, path) != code || !(time..=time + FRESH).contains(&now) {
            return false;
        }
        let Ok(mut taken) = self.taken.lock() else { return false };
        while let Some((_, old)) = taken.order.pop_front_if(|(time, _)| *time + FRESH < now) {
            taken.keys.remove(&old);
        }
        if taken.keys.len() == MOST || !taken.keys.insert(code) {
            return false;
        }
        taken.order.push_back((time, code));
        true
    }

    fn code(&self, first: &str, path: &str) -> u128 {
        let hash = blake3::keyed_hash(&self.secret, [first, " ", path].concat().as_bytes());
        let mut code = [0; 16];
        code.copy_from_slice(&hash.as_bytes()[..16]);
        u128::from_le_bytes(code)
    }
}

impl fmt::Debug for UrlKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clause 3.5: counted once, while fresh, for the item that it was issued for (threat K8).
    #[test]
    fn a_key_is_good_once_while_fresh_for_its_item() {
        let keys = UrlKeys::new([7; 32]);
        let now = 1_800_000_000;
        let key = keys.make(now, "a/b");
        assert!(ibi_protocol::is_key(&key), "{key}");
        assert_ne!(key, keys.make(now, "a/b"), "fresh for each answer");
        assert!(!keys.take(&key, now, "a/c"), "of another item");
        assert!(!keys.take(&key, now + FRESH + 1, "a/b"), "no longer fresh");
        assert!(!keys.take(&key, now - 1, "a/b"), "not yet");
        assert!(!UrlKeys::new([8; 32]).take(&key, now, "a/b"), "of another Archive");
        assert!(keys.take(&key, now + 5, "a/b"));
        assert!(!keys.take(&key, now + 6, "a/b"), "once");
        for bad in ["", "1", "1800000000-1", &key.replace('-', ""), &format!("{key}0")] {
            assert!(!keys.take(bad, now, "a/b"), "{bad}");
        }
    }

    #[test]
    fn old_keys_are_forgotten() {
        let keys = UrlKeys::new([7; 32]);
        for second in 0..2000 {
            assert!(keys.take(&keys.make(second, "a/b"), second, "a/b"));
        }
        assert!(keys.taken.lock().unwrap().keys.len() <= FRESH as usize + 2);
    }
}
