//! Changes of what an item is here, which leave its object as it is (clause 2.1), and taking a copy out of the tree.

use ibi_store::journal::{Entry, LinkStatement, State, Verb};

use crate::ArchiveError;
use crate::archive::{Archive, Holding};
use crate::object::Object;

/// What an item is from now on, and why.
#[derive(Debug)]
pub(crate) struct Restated<'a> {
    pub(crate) verb: Verb,
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) by: &'a str,
    pub(crate) source: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) past: Option<String>,
    pub(crate) links: Vec<LinkStatement>,
}

impl<'a> Restated<'a> {
    pub(crate) fn new(verb: Verb, state: State, epoch: u64, by: &'a str) -> Self {
        Self {
            verb,
            state,
            epoch,
            by,
            source: None,
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
    pub(crate) fn restate(
        &mut self,
        path: &str,
        object: &Object,
        restated: Restated<'_>,
    ) -> Result<(), ArchiveError> {
        if self.stopped {
            return Err(ArchiveError::Stopped);
        }
        let change = self.journal.end().next;
        let full = object.full(path, change, restated.state, restated.epoch)?;
        let left = (full.record.version, full.record.inventory.clone());
        let entry = self.entry(path, left, restated);
        let records = &*self.holdings.records;
        records.begin()?;
        self.stopped = true;
        records.put(&full)?;
        records.happened(&entry)?;
        self.journal.append(&[entry])?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }

    /// Takes a Copy out of the tree. Its labels stay what they are: nothing else is ever deposited under them.
    pub(crate) fn take_out(
        &mut self,
        holding: &Holding,
        by: &str,
        note: Option<String>,
    ) -> Result<(), ArchiveError> {
        if self.stopped {
            return Err(ArchiveError::Stopped);
        }
        let records = &*self.holdings.records;
        let record = records.item(&holding.path)?;
        let inventory = record.map(|record| record.inventory).unwrap_or_default();
        let restated = Restated { note, ..Restated::new(Verb::Drop, State::Copy, holding.epoch, by) };
        let entry = self.entry(&holding.path, (holding.version, inventory), restated);
        let content = &*self.holdings.content;
        let staging = content.stage()?;
        records.begin()?;
        self.stopped = true;
        records.forget(&holding.path)?;
        records.happened(&entry)?;
        self.journal.append(&[entry])?;
        content.take_out(&staging, &holding.path)?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(content.discard(&staging)?)
    }

    fn entry(&self, path: &str, (version, inventory): (u32, String), restated: Restated<'_>) -> Entry {
        let change = self.journal.end().next;
        Entry {
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
            source: restated.source,
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
