//! Which Archives probably hold an item: those that lately held it, or others of its prefix. Only
//! an order of asking follows from it, and for a short time that one Archive is asked alone; the
//! rules of 4.2 decide on the answers. Bounded, and gone with the process.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::{ArchiveId, OriginalDispute};
use tokio::time::Instant;

/// How long the holder of an Original is asked alone. After that, all are asked again, and notice
/// if another one claims it.
pub(super) const HOLDER_LIFETIME: Duration = Duration::from_secs(60);

/// Maximum number of labels and of prefixes in each of two generations.
const MAX_REMEMBERED_HOLDERS: usize = 8192;
const MAX_LEARNED_PREFIXES: usize = 4096;

/// Maximum number of Archives that are asked first because of a prefix.
const MAX_HOLDERS_PER_PREFIX: usize = 3;

/// What was learned from earlier resolutions.
#[derive(Default)]
pub(super) struct HolderMemory(Mutex<HolderTables>);

struct HolderTables {
    /// The holder of the Original of a label, and until when that is believed.
    holders: RecentMap<Label, (ArchiveId, Instant)>,
    /// Archives that held items of a prefix, the latest first.
    prefixes: RecentMap<String, Vec<ArchiveId>>,
}

impl Default for HolderTables {
    fn default() -> Self {
        Self {
            holders: RecentMap::new(MAX_REMEMBERED_HOLDERS),
            prefixes: RecentMap::new(MAX_LEARNED_PREFIXES),
        }
    }
}

impl HolderMemory {
    /// The Archive that holds the Original of a label, as all Archives confirmed a short time ago.
    pub(super) fn holder(&self, label: &Label, now: Instant) -> Option<ArchiveId> {
        let tables = self.lock();
        tables.holders.get(label).filter(|(_, until)| now < *until).map(|(archive, _)| *archive)
    }

    /// The Archives that held items of the prefix of a label.
    pub(super) fn of_prefix(&self, label: &Label) -> Vec<ArchiveId> {
        self.lock().prefixes.get(label.prefix()).cloned().unwrap_or_default()
    }

    /// An Archive held an item.
    pub(super) fn learn(&self, label: &Label, archive: ArchiveId) {
        let mut tables = self.lock();
        let mut known = tables.prefixes.get(label.prefix()).cloned().unwrap_or_default();
        if known.first() != Some(&archive) {
            known.retain(|other| *other != archive);
            known.insert(0, archive);
            known.truncate(MAX_HOLDERS_PER_PREFIX);
            tables.prefixes.insert(label.prefix().to_owned(), known);
        }
    }

    /// An Archive holds the Original of an item, and no other claimed it.
    pub(super) fn remember(&self, label: &Label, archive: ArchiveId, now: Instant) {
        self.lock().holders.insert(label.clone(), (archive, now + HOLDER_LIFETIME));
    }

    /// The Archive does not have it any more.
    pub(super) fn forget(&self, label: &Label) {
        self.lock().holders.remove(label);
    }

    /// Several Archives claim an Original: none of them is believed more than others.
    pub(super) fn disputed(&self, label: &Label, disputes: &[OriginalDispute]) {
        let mut tables = self.lock();
        tables.holders.remove(label);
        let Some(mut known) = tables.prefixes.get(label.prefix()).cloned() else { return };
        let claims = || disputes.iter().flat_map(|dispute| &dispute.claims);
        known.retain(|archive| claims().all(|claim| claim.archive != *archive));
        tables.prefixes.insert(label.prefix().to_owned(), known);
    }

    fn lock(&self) -> MutexGuard<'_, HolderTables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounded map: when one generation is full, the one before it is dropped.
struct RecentMap<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
    most: usize,
}

impl<K: Hash + Eq, V> RecentMap<K, V> {
    fn new(most: usize) -> Self {
        Self { new: HashMap::new(), old: HashMap::new(), most }
    }

    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.new.get(key).or_else(|| self.old.get(key))
    }

    fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= self.most && !self.new.contains_key(&key) {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, value);
    }

    fn remove(&mut self, key: &K) {
        self.new.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use ibi_protocol::LabelForms;
    use ibi_protocol::analysis::AnswerClaim;

    use super::*;

    fn label(number: usize) -> Label {
        format!("a.br/n{number}/2009/02.16.17.46").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_is_remembered_for_a_short_time() {
        let memory = HolderMemory::default();
        let begun = Instant::now();
        memory.remember(&label(1), ArchiveId(7), begun);
        assert_eq!(memory.holder(&label(2), begun), None);
        let last = begun + HOLDER_LIFETIME - Duration::from_millis(1);
        assert_eq!(memory.holder(&label(1), last), Some(ArchiveId(7)));
        assert_eq!(memory.holder(&label(1), begun + HOLDER_LIFETIME), None);
        memory.forget(&label(1));
        assert_eq!(memory.holder(&label(1), begun), None);
    }

    #[test]
    fn few_archives_are_learned_for_a_prefix_and_a_dispute_unlearns_them() {
        let memory = HolderMemory::default();
        let other: Label = "a.br/n1/2010/01.01.01.01".parse().unwrap();
        [1, 2, 3, 4, 3].into_iter().for_each(|id| memory.learn(&label(1), ArchiveId(id)));
        assert_eq!(memory.of_prefix(&other), [3, 4, 2].map(ArchiveId), "the latest first");
        assert!(memory.of_prefix(&label(2)).is_empty());
        memory.remember(&label(1), ArchiveId(3), Instant::now());
        let claim = |id| AnswerClaim { archive: ArchiveId(id), url: None, timestamp: None };
        let claims = vec![claim(3), claim(2)];
        let dispute = OriginalDispute { ibi: LabelForms::new([label(1)]), claims, counts: true };
        memory.disputed(&label(1), &[dispute]);
        assert_eq!(memory.of_prefix(&other), [ArchiveId(4)]);
        assert_eq!(memory.holder(&label(1), Instant::now()), None);
    }

    #[test]
    fn memory_is_bounded_and_what_is_new_is_kept() {
        let memory = HolderMemory::default();
        let count = 3 * MAX_REMEMBERED_HOLDERS;
        for number in 0..count {
            memory.remember(&label(number), ArchiveId(1), Instant::now());
            memory.learn(&label(number), ArchiveId(1));
        }
        let tables = memory.lock();
        assert!(tables.holders.new.len() + tables.holders.old.len() <= 2 * MAX_REMEMBERED_HOLDERS);
        assert!(tables.prefixes.new.len() + tables.prefixes.old.len() <= 2 * MAX_LEARNED_PREFIXES);
        drop(tables);
        assert!(memory.holder(&label(count - 1), Instant::now()).is_some());
        assert!(memory.holder(&label(0), Instant::now()).is_none());
        assert_eq!(memory.of_prefix(&label(count - 1)).len(), 1);
    }
}
