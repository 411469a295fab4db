//! Acknowledgment keys (clause 3.4). A key carries its issue time and a keyed hash over that time
//! and the item, so the server stores nothing until the key is acknowledged.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long after issue a key can be redeemed.
const ACK_KEY_LIFETIME_SECONDS: i64 = 600;

/// Redeemed keys kept to detect reuse. When full, no key is accepted until old ones expire.
const MAX_SPENT_KEYS: usize = 1 << 20;

/// Issues acknowledgment keys and redeems each at most once.
pub struct AckKeys {
    secret: [u8; 32],
    number: AtomicU64,
    taken: Mutex<SpentAckKeys>,
}

#[derive(Default)]
struct SpentAckKeys {
    keys: HashSet<u128>,
    order: VecDeque<(i64, u128)>,
}

impl AckKeys {
    /// Keys are bound to `secret`: keys of another process are rejected.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret, number: AtomicU64::new(0), taken: Mutex::default() }
    }

    /// A fresh key for an item: time and serial number, then the code, all in digits (clause 3.2).
    pub fn issue_key(&self, now: i64, path: &str) -> String {
        // The code makes the key unguessable; the number only makes it unique.
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let first = format!("{now:010}{number:020}");
        let code = self.code(&first, path);
        format!("{first}-{code:039}")
    }

    /// Redeems a key: true if it was issued here for this item, is fresh and was not redeemed
    /// before.
    pub fn redeem_key(&self, key: &str, now: i64, path: &str) -> bool {
        let Some((first, code)) = key.split_once('-') else { return false };
        let time = first.get(..10).and_then(|time| time.parse::<i64>().ok());
        let Some((time, code)) = time.zip(code.parse::<u128>().ok()) else { return false };
        if first.len() != 30
            || self.code(first, path) != code
            || !(time..=time + ACK_KEY_LIFETIME_SECONDS).contains(&now)
        {
            return false;
        }
        let Ok(mut taken) = self.taken.lock() else { return false };
        while let Some((_, old)) =
            taken.order.pop_front_if(|(time, _)| *time + ACK_KEY_LIFETIME_SECONDS < now)
        {
            taken.keys.remove(&old);
        }
        if taken.keys.len() == MAX_SPENT_KEYS || !taken.keys.insert(code) {
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

impl fmt::Debug for AckKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AckKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clause 3.5: a key counts once, while fresh, for the item that it was issued for (threat K8).
    #[test]
    fn a_key_is_good_once_while_fresh_for_its_item() {
        let keys = AckKeys::new([7; 32]);
        let now = 1_800_000_000;
        let key = keys.issue_key(now, "a/b");
        assert!(ibi_protocol::is_key(&key), "{key}");
        assert_ne!(key, keys.issue_key(now, "a/b"), "fresh for each answer");
        assert!(!keys.redeem_key(&key, now, "a/c"), "of another item");
        assert!(!keys.redeem_key(&key, now + ACK_KEY_LIFETIME_SECONDS + 1, "a/b"), "no longer fresh");
        assert!(!keys.redeem_key(&key, now - 1, "a/b"), "not yet");
        assert!(!AckKeys::new([8; 32]).redeem_key(&key, now, "a/b"), "of another Archive");
        assert!(keys.redeem_key(&key, now + 5, "a/b"));
        assert!(!keys.redeem_key(&key, now + 6, "a/b"), "once");
        for bad in ["", "1", "1800000000-1", &key.replace('-', ""), &format!("{key}0")] {
            assert!(!keys.redeem_key(bad, now, "a/b"), "{bad}");
        }
    }

    #[test]
    fn old_keys_are_forgotten() {
        let keys = AckKeys::new([7; 32]);
        for second in 0..2000 {
            assert!(keys.redeem_key(&keys.issue_key(second, "a/b"), second, "a/b"));
        }
        assert!(keys.taken.lock().unwrap().keys.len() <= ACK_KEY_LIFETIME_SECONDS as usize + 2);
    }
}
