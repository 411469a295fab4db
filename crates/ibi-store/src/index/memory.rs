//! The index in memory: the model that other stores are compared with.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::StorageError;
use crate::index::{
    FileRecord, IndexMatch, IndexRecord, IndexStorage, IndexedItem, LabelRole, LinkKind, LinkRecord,
    MAX_INLINE_METADATA_BYTES, PlacedStatement,
};
use crate::journal::{JournalEntry, JournalPosition, LinkStatement, LinkStatus, Verb};

/// The index in memory.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    state: RefCell<MemoryIndexState>,
    before: RefCell<Option<MemoryIndexState>>,
}

#[derive(Debug, Default, Clone)]
struct MemoryIndexState {
    position: Option<JournalPosition>,
    items: BTreeMap<String, IndexedItem>,
    events: BTreeMap<u64, JournalEntry>,
}

impl MemoryIndex {
    fn filter_items<T>(&self, all: impl Fn(&IndexedItem) -> Option<T>) -> Vec<T> {
        self.state.borrow().items.values().filter_map(all).collect()
    }
}

impl MemoryIndex {
    fn statements(&self, matches: impl Fn(&LinkStatement) -> bool) -> Vec<LinkStatement> {
        let state = self.state.borrow();
        let all = state.events.values().flat_map(|event| &event.links);
        all.filter(|link| matches(link)).cloned().collect()
    }
}

/// A record as reads return it: without long metadata.
fn without_long_metadata(record: &IndexRecord) -> IndexRecord {
    let mut read = record.clone();
    if read.metadata.len() > MAX_INLINE_METADATA_BYTES {
        read.metadata.clear();
    }
    read
}

impl IndexStorage for MemoryIndex {
    fn position(&self) -> Result<JournalPosition, StorageError> {
        Ok(self.state.borrow().position.unwrap_or(JournalPosition::START))
    }

    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<IndexMatch>, StorageError> {
        let found = |spelled: bool| {
            self.filter_items(|item| {
                let mut labels = item.labels.iter();
                let label = match spelled {
                    true => labels.find(|label| label.folded == folded)?,
                    false => labels.find(|label| label.canonical == canonical)?,
                };
                Some(IndexMatch { path: item.record.path.clone(), role: label.role, spelled })
            })
        };
        let spelled = found(true);
        Ok(if spelled.is_empty() { found(false) } else { spelled })
    }

    fn find_exact(&self, folded: &str) -> Result<Option<(IndexRecord, LabelRole)>, StorageError> {
        let mut found = self.filter_items(|item| {
            let label = item.labels.iter().find(|label| label.folded == folded)?;
            Some((without_long_metadata(&item.record), label.role))
        });
        Ok(found.pop())
    }

    fn item(&self, path: &str) -> Result<Option<IndexRecord>, StorageError> {
        Ok(self.state.borrow().items.get(path).map(|item| without_long_metadata(&item.record)))
    }

    fn list(&self, after: &str, limit: usize) -> Result<Vec<IndexRecord>, StorageError> {
        let mut items = self.filter_items(|item| {
            (item.record.path.as_str() > after).then(|| without_long_metadata(&item.record))
        });
        items.truncate(limit);
        Ok(items)
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<IndexRecord>, StorageError> {
        let mut items = self
            .filter_items(|item| (item.record.change > after).then(|| without_long_metadata(&item.record)));
        items.sort_by_key(|item| item.change);
        items.truncate(limit);
        Ok(items)
    }

    fn metadata(&self, path: &str) -> Result<Option<String>, StorageError> {
        Ok(self.state.borrow().items.get(path).map(|item| item.record.metadata.clone()))
    }

    fn metadata_size(&self, path: &str) -> Result<u64, StorageError> {
        Ok(self.metadata(path)?.map_or(0, |metadata| metadata.len() as u64))
    }

    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, StorageError> {
        let state = self.state.borrow();
        let mut files = state.items.get(path).map(|item| item.files.clone()).unwrap_or_default();
        files.retain(|file| file.name.as_str() > after);
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.truncate(limit);
        Ok(files)
    }

    fn has_more_files(&self, path: &str, many: usize) -> Result<bool, StorageError> {
        Ok(self.state.borrow().items.get(path).is_some_and(|item| item.files.len() > many))
    }

    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, StorageError> {
        Ok(self.files(path, "", usize::MAX)?.into_iter().find(|file| file.name == name))
    }

    fn total_file_size(&self, path: &str) -> Result<u64, StorageError> {
        Ok(self.files(path, "", usize::MAX)?.iter().map(|file| file.size).sum())
    }

    fn events(&self, path: &str) -> Result<Vec<JournalEntry>, StorageError> {
        let state = self.state.borrow();
        let events = state.events.values().filter(|event| event.path == path).cloned();
        // Links have their own queries.
        Ok(events.map(|event| JournalEntry { links: Vec::new(), ..event }).collect())
    }

    fn last_event(&self, path: &str) -> Result<Option<JournalEntry>, StorageError> {
        Ok(self.events(path)?.pop())
    }

    fn changed_paths(&self, after: u64, limit: usize) -> Result<Vec<(u64, String)>, StorageError> {
        let state = self.state.borrow();
        let events = state.events.range(after.saturating_add(1)..);
        Ok(events.take(limit).map(|(change, event)| (*change, event.path.clone())).collect())
    }

    fn event_at(&self, change: u64) -> Result<Option<JournalEntry>, StorageError> {
        let event = self.state.borrow().events.get(&change).cloned();
        Ok(event.map(|event| JournalEntry { links: Vec::new(), ..event }))
    }

    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, StorageError> {
        let mut links =
            self.state.borrow().items.get(path).map(|item| item.links.clone()).unwrap_or_default();
        links.sort_by_key(|link| link.kind as u8);
        Ok(links)
    }

    fn items_with_links(&self, after: &str, limit: usize) -> Result<Vec<String>, StorageError> {
        let mut paths = self.filter_items(|item| {
            let links = !item.links.is_empty() && item.record.path.as_str() > after;
            links.then(|| item.record.path.clone())
        });
        paths.truncate(limit);
        Ok(paths)
    }

    fn items_linking_to(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, StorageError> {
        Ok(self.filter_items(|item| {
            let links = item.links.iter().any(|link| link.kind == kind && link.to == to);
            links.then(|| item.record.path.clone())
        }))
    }

    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, StorageError> {
        Ok(self.statements(|link| link.kind == kind && link.older == older))
    }

    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, StorageError> {
        Ok(self.statements(|link| link.kind == kind && link.newer == newer))
    }

    fn linked_labels(&self, kind: LinkKind, labels: &[String]) -> Result<Vec<String>, StorageError> {
        let is_linked = |label: &&String| {
            let names = |link: &LinkStatement| link.older == **label || link.newer == **label;
            !self.statements(|link| link.kind == kind && names(link)).is_empty()
        };
        Ok(labels.iter().filter(is_linked).cloned().collect())
    }

    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, StorageError> {
        let state = self.state.borrow();
        let all = state.events.values().flat_map(|event| {
            event.links.iter().zip(0..).map(|(link, number)| ((event.change, number), link.clone()))
        });
        let all = all.filter(|(place, _)| *place > after);
        let all = all.filter(|(_, link)| status.is_none_or(|status| status == link.status));
        Ok(all.take(limit).collect())
    }

    fn by_request(&self, key: &str) -> Result<Option<String>, StorageError> {
        let state = self.state.borrow();
        let event = state.events.values().find(|event| event.key.as_deref() == Some(key));
        Ok(event.map(|event| event.path.clone()))
    }

    fn begin(&self) -> Result<(), StorageError> {
        *self.before.borrow_mut() = Some(self.state.borrow().clone());
        Ok(())
    }

    fn put_item(&self, item: &IndexedItem) -> Result<(), StorageError> {
        for label in &item.labels {
            let other = self.find_exact(&label.folded)?.filter(|(other, _)| other.path != item.record.path);
            if let Some((IndexRecord { path, .. }, _)) = other {
                return Err(StorageError::LabelTaken { label: label.folded.clone(), path });
            }
        }
        self.state.borrow_mut().items.insert(item.record.path.clone(), item.clone());
        Ok(())
    }

    fn remove_item(&self, path: &str) -> Result<(), StorageError> {
        self.state.borrow_mut().items.remove(path);
        Ok(())
    }

    fn missing_items(&self) -> Result<Vec<String>, StorageError> {
        let state = self.state.borrow();
        let last: BTreeMap<&String, Verb> =
            state.events.values().map(|event| (&event.path, event.verb)).collect();
        let lost =
            last.into_iter().filter(|(path, verb)| *verb != Verb::Drop && !state.items.contains_key(*path));
        Ok(lost.map(|(path, _)| path.clone()).collect())
    }

    fn set_last_change(&self, path: &str, change: u64) -> Result<(), StorageError> {
        if let Some(item) = self.state.borrow_mut().items.get_mut(path) {
            item.record.change = change;
        }
        Ok(())
    }

    fn add_event(&self, entry: &JournalEntry) -> Result<(), StorageError> {
        self.state.borrow_mut().events.insert(entry.change, entry.clone());
        Ok(())
    }

    fn remove_events(&self, changes: &[u64]) -> Result<(), StorageError> {
        self.state.borrow_mut().events.retain(|change, _| !changes.contains(change));
        Ok(())
    }

    fn commit(&self, position: JournalPosition) -> Result<(), StorageError> {
        self.state.borrow_mut().position = Some(position);
        *self.before.borrow_mut() = None;
        Ok(())
    }

    fn roll_back(&self) -> Result<(), StorageError> {
        if let Some(before) = self.before.borrow_mut().take() {
            *self.state.borrow_mut() = before;
        }
        Ok(())
    }
}
