//! Usage per client in bounded memory: the generic cell rate algorithm, with one timestamp per
//! client.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::RateQuota;

/// Number of independently locked shards.
const BUCKET_SHARDS: usize = 16;

/// Maximum number of clients per shard.
const MAX_CLIENTS_PER_SHARD: usize = 4096;

/// The state of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketState {
    /// Whole units left.
    pub(super) left: u64,
    /// Nanoseconds until the bucket is full.
    pub(super) full: u64,
    /// Nanoseconds until the requested units are available.
    pub(super) retry: u64,
}

/// Per client, the time at which its bucket is full, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct BucketTable {
    shards: [Mutex<HashMap<u64, u64>>; BUCKET_SHARDS],
}

/// Nanoseconds in which this many units refill.
fn refill_nanos(quota: RateQuota, units: u32) -> u64 {
    let time = u128::from(units) * quota.window.as_nanos() / u128::from(quota.count.max(1));
    u64::try_from(time).unwrap_or(u64::MAX)
}

fn window_nanos(quota: RateQuota) -> u64 {
    u64::try_from(quota.window.as_nanos()).unwrap_or(u64::MAX)
}

impl BucketTable {
    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u64>> {
        let number = usize::try_from(key >> 60).unwrap_or(0) % BUCKET_SHARDS;
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes units from a client's quota; takes nothing if refused.
    pub(super) fn take_units(
        &self,
        key: u64,
        quota: RateQuota,
        cost: u32,
        now: u64,
    ) -> Result<BucketState, BucketState> {
        let (window, time) = (window_nanos(quota), refill_nanos(quota, cost));
        let mut shard = self.shard(key);
        let used = shard.get(&key).map_or(0, |full_at| full_at.saturating_sub(now));
        let needed = used.saturating_add(time);
        let state = |used: u64, retry: u64| {
            let left =
                u128::from(window.saturating_sub(used)) * u128::from(quota.count) / u128::from(window.max(1));
            BucketState { left: u64::try_from(left).unwrap_or(u64::MAX), full: used, retry }
        };
        if needed > window {
            // More units than the bucket holds never become available: report the whole window.
            let retry = if time > window { window } else { needed - window };
            return Err(state(used, retry));
        }
        if shard.len() >= MAX_CLIENTS_PER_SHARD && !shard.contains_key(&key) {
            forget_clients(&mut shard, now);
        }
        shard.insert(key, now.saturating_add(needed));
        Ok(state(needed, 0))
    }

    /// Returns units.
    pub(super) fn give_back(&self, key: u64, quota: RateQuota, cost: u32) {
        if let Some(full_at) = self.shard(key).get_mut(&key) {
            *full_at = full_at.saturating_sub(refill_nanos(quota, cost));
        }
    }

    /// Forgets all clients.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    #[cfg(test)]
    pub(super) fn clients(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }
}

/// Removes clients with full buckets; if there are none, the quarter that has used the least, so
/// that heavy users stay limited.
fn forget_clients(shard: &mut HashMap<u64, u64>, now: u64) {
    shard.retain(|_, full_at| *full_at > now);
    if shard.len() >= MAX_CLIENTS_PER_SHARD {
        let mut all: Vec<u64> = shard.values().copied().collect();
        let quarter = all.len() / 4;
        let (_, least, _) = all.select_nth_unstable(quarter);
        let least = *least;
        shard.retain(|_, full_at| *full_at > least);
    }
}
