//! Changes of an item's state that leave its object as it is (clause 2.1), and removal of a copy
//! from the tree.

use ibi_store::journal::{JournalEntry, LinkStatement, State, Verb};

use crate::ArchiveError;
use crate::archive::{Archive, HeldItem};
use crate::object::StoredObject;

/// What an item is from now on, and why.
#[derive(Debug)]
pub(crate) struct StateChange<'a> {
    pub(crate) verb: Verb,
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) by: &'a str,
    pub(crate) source: Option<String>,
    pub(crate) source_state: Option<State>,
    pub(crate) to: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) past: Option<String>,
    pub(crate) links: Vec<LinkStatement>,
}

impl<'a> StateChange<'a> {
    pub(crate) fn new(verb: Verb, state: State, epoch: u64, by: &'a str) -> Self {
        Self {
            verb,
            state,
            epoch,
            by,
            source: None,
            source_state: None,
            to: None,
            key: None,
            note: None,
            past: None,
            links: Vec::new(),
        }
    }
}

impl Archive {
    /// Makes an item something else, durably.
    pub(crate) fn change_state(
        &mut self,
        path: &str,
        object: &StoredObject,
        restated: StateChange<'_>,
    ) -> Result<(), ArchiveError> {
        self.check_changeable()?;
        let change = self.journal.end().next;
        let full = object.to_indexed_item(path, change, restated.state, restated.epoch)?;
        let left = (full.record.version, full.record.inventory.clone());
        let entry = self.state_change_entry(path, left, restated);
        let records = &*self.holdings.records;
        records.begin()?;
        self.stopped = true;
        records.put_item(&full)?;
        records.add_event(&entry)?;
        self.journal.append(&[entry])?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }

    /// Takes a Copy out of the tree. Its labels stay what they are: nothing else is ever deposited
    /// under them.
    pub(crate) fn remove_copy(
        &mut self,
        holding: &HeldItem,
        by: &str,
        note: Option<String>,
    ) -> Result<(), ArchiveError> {
        self.check_changeable()?;
        let records = &*self.holdings.records;
        let record = records.item(&holding.path)?;
        let inventory = record.map(|record| record.inventory).unwrap_or_default();
        let restated = StateChange { note, ..StateChange::new(Verb::Drop, State::Copy, holding.epoch, by) };
        let entry = self.state_change_entry(&holding.path, (holding.version, inventory), restated);
        let content = &*self.holdings.content;
        let staging = content.begin_staging()?;
        records.begin()?;
        self.stopped = true;
        records.remove_item(&holding.path)?;
        records.add_event(&entry)?;
        self.journal.append(&[entry])?;
        content.move_to_staging(&staging, &holding.path)?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(content.discard(&staging)?)
    }

    fn state_change_entry(
        &self,
        path: &str,
        (version, inventory): (u32, String),
        restated: StateChange<'_>,
    ) -> JournalEntry {
        let change = self.journal.end().next;
        JournalEntry {
            change,
            batch: change,
            time: self.now().to_string(),
            verb: restated.verb,
            path: path.to_owned(),
            version,
            inventory,
            state: restated.state,
            epoch: restated.epoch,
            by: restated.by.to_owned(),
            owner: None,
            source: restated.source,
            source_state: restated.source_state,
            to: restated.to,
            key: restated.key,
            note: restated.note,
            past: restated.past,
            record: None,
            links: restated.links,
            depends_on: None,
        }
    }
}
