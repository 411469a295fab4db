//! Batch commits. The staged versions are made durable, then the journal records them, then each is
//! moved into place (the commit point), then the index is updated. A change that breaks a rule is
//! refused on its own.

use std::sync::Arc;

use ibi_store::index::IndexRecord;
use ibi_store::journal::{JournalEntry, Verb};
use ibi_store::ocfl::{Inventory, InventoryUser, InventoryVersion};
use ibi_store::{StagedVersion, StorageError};

use crate::archive::Archive;
use crate::links::{link_entries, statements_of};
use crate::object::{DESCRIPTION_FILE, DOC_FOLDER, METADATA_FILE, StoredObject};
use crate::prepared_change::PreparedChange;
use crate::{ArchiveError, change_rules, journal_record};

/// A change that passed the rules.
struct AdmittedChange {
    index: usize,
    object: String,
    version: u32,
    inventory: Vec<u8>,
    entry: JournalEntry,
    /// Journal lines about the links that it states, recorded with the older items.
    links: Vec<JournalEntry>,
    instead: bool,
}

impl Archive {
    /// Commits changes as a batch. Returns for each the path of its object, or why it was refused.
    pub fn commit(&mut self, mut changes: Vec<PreparedChange>) -> Vec<Result<String, ArchiveError>> {
        let mut results: Vec<Option<ArchiveError>> = changes.iter().map(|_| None).collect();
        let mut admitted = Vec::new();
        if let Err(error) = self.apply_batch(&mut changes, &mut results, &mut admitted) {
            // None of the admitted changes was acknowledged: they all fail with the same error.
            let error = Arc::new(error);
            let left = results.iter_mut().filter(|result| result.is_none());
            left.for_each(|result| *result = Some(ArchiveError::Batch(Arc::clone(&error))));
            let _ = self.holdings.records.roll_back();
        }
        if !self.stopped {
            // If this fails, the next opening clears the staging area.
            changes.iter().for_each(|change| drop(self.holdings.content.discard(&change.staging)));
        }
        let mut paths = vec![String::new(); changes.len()];
        admitted.into_iter().for_each(|change: AdmittedChange| paths[change.index] = change.object);
        results.into_iter().zip(paths).map(|(error, path)| error.map_or(Ok(path), Err)).collect()
    }

    fn apply_batch(
        &mut self,
        changes: &mut [PreparedChange],
        results: &mut [Option<ArchiveError>],
        admitted: &mut Vec<AdmittedChange>,
    ) -> Result<(), ArchiveError> {
        self.check_changeable()?;
        self.mint_labels(changes)?;
        self.holdings.records.begin()?;
        let batch = self.journal.end().next;
        let mut next = batch;
        for (index, (change, result)) in changes.iter_mut().zip(results).enumerate() {
            match self.admit(change, index, batch, next) {
                Ok(change) => {
                    next += 1 + change.links.len() as u64;
                    admitted.push(change);
                }
                // The index itself failed: nothing can be recorded reliably.
                Err(error @ ArchiveError::Storage(StorageError::Index(_))) => return Err(error),
                Err(error) => *result = Some(error),
            }
        }
        if admitted.is_empty() {
            return Ok(self.holdings.records.roll_back()?);
        }
        let publications: Vec<StagedVersion<'_>> = admitted
            .iter()
            .map(|change| StagedVersion {
                staging: &changes[change.index].staging,
                object: &change.object,
                version: change.version,
                inventory: &change.inventory,
                whole: changes[change.index].whole.as_deref().and_then(older_inventories),
                instead: change.instead,
            })
            .collect();
        self.holdings.content.prepare(&publications).inspect_err(|error| {
            // A failed sync may have lost the data it was to write, and possibly more.
            self.stopped = matches!(error, StorageError::NotDurable { .. });
        })?;
        // From here on, an error leaves the state on disk unknown until the Archive is reopened.
        self.stopped = true;
        let entries = admitted.iter().flat_map(|change| [&change.entry].into_iter().chain(&change.links));
        let entries: Vec<JournalEntry> = entries.cloned().collect();
        self.journal.append(&entries)?;
        self.holdings.content.publish(&publications)?;
        self.holdings.records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }

    /// Checks a change against the rules, then writes and records everything up to its commit
    /// point.
    fn admit(
        &self,
        change: &mut PreparedChange,
        index: usize,
        batch: u64,
        number: u64,
    ) -> Result<AdmittedChange, ArchiveError> {
        let holdings = &self.holdings;
        if let Some(base) = &change.base {
            let now = holdings.records.item(&base.path)?;
            let is_same =
                |record: &IndexRecord| record.version == base.version && record.inventory == base.digest;
            if !now.as_ref().is_some_and(is_same) {
                return Err(ArchiveError::Changed { label: base.path.clone() });
            }
        }
        // The reserved disk space is for operations that free space (`docs/security.md`).
        if !matches!(change.verb, Verb::Remove | Verb::Purge) {
            holdings.content.check_space()?;
        }
        let path = change_rules::check_change(holdings, change)?;
        let before = match &change.base {
            Some(base) => Some(holdings.item(&base.path)?.item),
            None => None,
        };
        let now = self.now().to_string();
        let bytes = match change.whole.as_ref().map(|whole| whole.last()) {
            Some(last) => last.cloned().unwrap_or_default(),
            None => self.date_and_stage(change, &now)?.to_bytes(),
        };
        let damaged = |what| ArchiveError::DamagedObject { path: path.clone(), what };
        let inventory = Inventory::parse(&bytes).map_err(damaged)?;
        let digest = Inventory::digest(&bytes);
        let version = inventory.head_number();
        let object =
            StoredObject { inventory, digest, item: change.item.clone(), metadata: change.metadata.clone() };
        let full = object.to_indexed_item(&path, number, change.state, change.epoch)?;
        let entry = JournalEntry {
            change: number,
            batch,
            time: now,
            verb: change.verb,
            path: path.clone(),
            version,
            inventory: full.record.inventory.clone(),
            state: change.state,
            epoch: change.epoch,
            by: change.by.clone(),
            owner: change.owner.clone(),
            source: change.source.clone(),
            source_state: change.source_state,
            to: None,
            key: change.key.clone(),
            note: change.note.clone(),
            past: change.past.clone(),
            record: journal_record::write(&full),
            links: std::mem::take(&mut change.links),
            depends_on: None,
        };
        let statements = statements_of(holdings, &change.item, before.as_ref(), &change.authority)?;
        let numbers = (batch, number + 1);
        let links = link_entries(self, statements, &change.by, numbers, Some(number))?;
        holdings.records.put_item(&full)?;
        holdings.records.add_event(&entry)?;
        for link in &links {
            holdings.records.set_last_change(&link.path, link.change)?;
            holdings.records.add_event(link)?;
        }
        let instead = change.verb == Verb::Purge || (change.whole.is_some() && change.base.is_some());
        Ok(AdmittedChange { index, object: path, version, inventory: bytes, entry, links, instead })
    }

    /// Sets the dates and builds the inventory.
    fn date_and_stage(&self, change: &mut PreparedChange, now: &str) -> Result<Inventory, ArchiveError> {
        let item = &mut change.item;
        let before = change.base.as_ref().and_then(|base| base.inventory.head_version());
        let before = before.map(|version| version.created.clone()).unwrap_or_default();
        // Versions are in order of time, also when the clock was set back.
        let made = now.to_owned().max(before);
        // A new item may bring the dates that it had elsewhere (clause 2.2).
        if change.base.is_some() || item.updated.is_empty() {
            item.updated.clone_from(&made);
        }
        if item.created.is_empty() {
            item.created.clone_from(&item.updated);
        }
        // A clock equal to `updated` is omitted.
        let kept = |clock: &Option<String>| clock.clone().filter(|time| *time != item.updated);
        item.data_updated = kept(&change.unmoved.data);
        item.metadata_updated = kept(&change.unmoved.metadata);
        item.metadata_created = item.metadata_created.take().filter(|time| *time != item.created);
        item.format = item.needed_format();
        item.files = change.files.iter().map(|file| file.file.clone()).collect();
        self.stage_description(change, made)
    }

    /// Stages description and metadata, and builds the inventory of a version with this date.
    fn stage_description(&self, change: &PreparedChange, made: String) -> Result<Inventory, ArchiveError> {
        let content = &self.holdings.content;
        let id = format!("ibi:{}", change.item.labels.primary());
        let base = change.base.as_ref().filter(|_| change.verb != Verb::Purge);
        let mut inventory = base.map_or_else(|| Inventory::new(id), |base| base.inventory.clone());
        let stored = change.files.iter().filter_map(|file| Some((file.sha512.clone(), file.stored.clone()?)));
        let mut stored: Vec<(String, String)> = stored.collect();
        let mut files: Vec<(String, String)> = change
            .files
            .iter()
            .map(|file| (format!("{DOC_FOLDER}{}", file.file.path), file.sha512.clone()))
            .collect();
        let texts = [
            (DESCRIPTION_FILE, change.item.to_bytes()),
            (METADATA_FILE, change.metadata.to_xml().into_bytes()),
        ];
        for (name, text) in texts {
            let digest = ibi_store::digests::sha512(&text);
            let known = inventory.manifest.contains_key(&digest)
                || stored.iter().any(|(stored, _)| *stored == digest);
            if !known {
                content.stage_file(&change.staging, name, &mut &text[..])?;
                stored.push((digest.clone(), name.to_owned()));
            }
            files.push((name.to_owned(), digest));
        }
        let version = InventoryVersion {
            created: made,
            message: version_message(change),
            user: InventoryUser { name: change.by.clone(), address: self.service_address() },
            state: std::collections::BTreeMap::new(),
        };
        inventory.add_version(version, files, stored);
        Ok(inventory)
    }

    /// The contact for questions about whoever works here: the Archive service.
    fn service_address(&self) -> String {
        format!("ibi:{}", self.holdings.settings.service.primary())
    }
}

/// The inventories of all versions but the last.
fn older_inventories(whole: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    whole.split_last().map(|(_, older)| older)
}

fn version_message(change: &PreparedChange) -> String {
    let what = match change.verb {
        Verb::Deposit => "deposited",
        Verb::Update => "updated",
        Verb::Remove => "removed",
        Verb::Purge => "removed, bytes destroyed",
        other => other.name(),
    };
    change.note.as_ref().map_or_else(|| what.to_owned(), |note| format!("{what}: {note}"))
}
