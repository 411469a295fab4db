//! Records in memory: the model that other stores are compared with.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::KeepError;
use crate::journal::{Entry, LinkStatement, LinkStatus, Position, Verb};
use crate::records::{FileRecord, Found, Full, LinkKind, LinkRecord, PlacedStatement, Record, Records, Role};

/// Records in memory.
#[derive(Debug, Default)]
pub struct MemoryRecords {
    state: RefCell<State>,
    before: RefCell<Option<State>>,
}

#[derive(Debug, Default, Clone)]
struct State {
    position: Option<Position>,
    items: BTreeMap<String, Full>,
    events: BTreeMap<u64, Entry>,
}

impl MemoryRecords {
    fn some<T>(&self, all: impl Fn(&Full) -> Option<T>) -> Vec<T> {
        self.state.borrow().items.values().filter_map(all).collect()
    }
}

impl MemoryRecords {
    fn statements(&self, wanted: impl Fn(&LinkStatement) -> bool) -> Vec<LinkStatement> {
        let state = self.state.borrow();
        let all = state.events.values().flat_map(|event| &event.links);
        all.filter(|link| wanted(link)).cloned().collect()
    }
}

impl Records for MemoryRecords {
    fn position(&self) -> Result<Position, KeepError> {
        Ok(self.state.borrow().position.unwrap_or(Position::START))
    }

    fn find(&self, folded: &str, canonical: &str) -> Result<Vec<Found>, KeepError> {
        let found = |spelled: bool| {
            self.some(|item| {
                let mut labels = item.labels.iter();
                let label = match spelled {
                    true => labels.find(|label| label.folded == folded)?,
                    false => labels.find(|label| label.canonical == canonical)?,
                };
                Some(Found { path: item.record.path.clone(), role: label.role, spelled })
            })
        };
        let spelled = found(true);
        Ok(if spelled.is_empty() { found(false) } else { spelled })
    }

    fn held(&self, folded: &str) -> Result<Option<(Record, Role)>, KeepError> {
        let mut found = self.some(|item| {
            let label = item.labels.iter().find(|label| label.folded == folded)?;
            Some((item.record.clone(), label.role))
        });
        Ok(found.pop())
    }

    fn item(&self, path: &str) -> Result<Option<Record>, KeepError> {
        Ok(self.state.borrow().items.get(path).map(|item| item.record.clone()))
    }

    fn list(&self, after: &str, limit: usize) -> Result<Vec<Record>, KeepError> {
        let mut items = self.some(|item| (item.record.path.as_str() > after).then(|| item.record.clone()));
        items.truncate(limit);
        Ok(items)
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<Record>, KeepError> {
        let mut items = self.some(|item| (item.record.change > after).then(|| item.record.clone()));
        items.sort_by_key(|item| item.change);
        items.truncate(limit);
        Ok(items)
    }

    fn files(&self, path: &str, after: &str, limit: usize) -> Result<Vec<FileRecord>, KeepError> {
        let state = self.state.borrow();
        let mut files = state.items.get(path).map(|item| item.files.clone()).unwrap_or_default();
        files.retain(|file| file.name.as_str() > after);
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.truncate(limit);
        Ok(files)
    }

    fn file(&self, path: &str, name: &str) -> Result<Option<FileRecord>, KeepError> {
        Ok(self.files(path, "", usize::MAX)?.into_iter().find(|file| file.name == name))
    }

    fn size(&self, path: &str) -> Result<u64, KeepError> {
        Ok(self.files(path, "", usize::MAX)?.iter().map(|file| file.size).sum())
    }

    fn events(&self, path: &str) -> Result<Vec<Entry>, KeepError> {
        let state = self.state.borrow();
        let events = state.events.values().filter(|event| event.path == path).cloned();
        // Links are asked for by their own.
        Ok(events.map(|event| Entry { links: Vec::new(), ..event }).collect())
    }

    fn last_event(&self, path: &str) -> Result<Option<Entry>, KeepError> {
        Ok(self.events(path)?.pop())
    }

    fn links(&self, path: &str) -> Result<Vec<LinkRecord>, KeepError> {
        let mut links =
            self.state.borrow().items.get(path).map(|item| item.links.clone()).unwrap_or_default();
        links.sort_by_key(|link| link.kind as u8);
        Ok(links)
    }

    fn linking(&self, after: &str, limit: usize) -> Result<Vec<String>, KeepError> {
        let mut paths = self.some(|item| {
            let links = !item.links.is_empty() && item.record.path.as_str() > after;
            links.then(|| item.record.path.clone())
        });
        paths.truncate(limit);
        Ok(paths)
    }

    fn linked(&self, kind: LinkKind, to: &str) -> Result<Vec<String>, KeepError> {
        Ok(self.some(|item| {
            let links = item.links.iter().any(|link| link.kind == kind && link.to == to);
            links.then(|| item.record.path.clone())
        }))
    }

    fn links_to_older(&self, kind: LinkKind, older: &str) -> Result<Vec<LinkStatement>, KeepError> {
        Ok(self.statements(|link| link.kind == kind && link.older == older))
    }

    fn links_from_newer(&self, kind: LinkKind, newer: &str) -> Result<Vec<LinkStatement>, KeepError> {
        Ok(self.statements(|link| link.kind == kind && link.newer == newer))
    }

    fn link_statements(
        &self,
        status: Option<LinkStatus>,
        after: (u64, u64),
        limit: usize,
    ) -> Result<Vec<PlacedStatement>, KeepError> {
        let state = self.state.borrow();
        let all = state.events.values().flat_map(|event| {
            event.links.iter().zip(0..).map(|(link, number)| ((event.change, number), link.clone()))
        });
        let all = all.filter(|(place, _)| *place > after);
        let all = all.filter(|(_, link)| status.is_none_or(|status| status == link.status));
        Ok(all.take(limit).collect())
    }

    fn made_by(&self, key: &str) -> Result<Option<String>, KeepError> {
        let state = self.state.borrow();
        let event = state.events.values().find(|event| event.key.as_deref() == Some(key));
        Ok(event.map(|event| event.path.clone()))
    }

    fn begin(&self) -> Result<(), KeepError> {
        *self.before.borrow_mut() = Some(self.state.borrow().clone());
        Ok(())
    }

    fn put(&self, item: &Full) -> Result<(), KeepError> {
        for label in &item.labels {
            let other = self.held(&label.folded)?.filter(|(other, _)| other.path != item.record.path);
            if let Some((Record { path, .. }, _)) = other {
                return Err(KeepError::LabelTaken { label: label.folded.clone(), path });
            }
        }
        self.state.borrow_mut().items.insert(item.record.path.clone(), item.clone());
        Ok(())
    }

    fn forget(&self, path: &str) -> Result<(), KeepError> {
        self.state.borrow_mut().items.remove(path);
        Ok(())
    }

    fn lost(&self) -> Result<Vec<String>, KeepError> {
        let state = self.state.borrow();
        let last: BTreeMap<&String, Verb> =
            state.events.values().map(|event| (&event.path, event.verb)).collect();
        let lost =
            last.into_iter().filter(|(path, verb)| *verb != Verb::Drop && !state.items.contains_key(*path));
        Ok(lost.map(|(path, _)| path.clone()).collect())
    }

    fn touch(&self, path: &str, change: u64) -> Result<(), KeepError> {
        if let Some(item) = self.state.borrow_mut().items.get_mut(path) {
            item.record.change = change;
        }
        Ok(())
    }

    fn happened(&self, entry: &Entry) -> Result<(), KeepError> {
        self.state.borrow_mut().events.insert(entry.change, entry.clone());
        Ok(())
    }

    fn did_not_happen(&self, changes: &[u64]) -> Result<(), KeepError> {
        self.state.borrow_mut().events.retain(|change, _| !changes.contains(change));
        Ok(())
    }

    fn commit(&self, position: Position) -> Result<(), KeepError> {
        self.state.borrow_mut().position = Some(position);
        *self.before.borrow_mut() = None;
        Ok(())
    }

    fn roll_back(&self) -> Result<(), KeepError> {
        if let Some(before) = self.before.borrow_mut().take() {
            *self.state.borrow_mut() = before;
        }
        Ok(())
    }
}
