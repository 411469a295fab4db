//! Changes, made together: the new versions are durable where they were staged, then the journal tells of them, then each
//! is put in its place (the commit point), then the index follows. A change that breaks a rule is refused by itself.

use std::sync::Arc;

use ibi_store::journal::{Entry, LinkStatement, State, Verb};
use ibi_store::ocfl::{Inventory, User, Version};
use ibi_store::records::Record;
use ibi_store::{KeepError, Publication, Staging};

use crate::archive::{Archive, Holding};
use crate::dublin_core::DublinCore;
use crate::item::{Item, ItemFile};
use crate::links::{LinkAuthority, link_entries, statements_of};
use crate::object::{DESCRIPTION, DOC, METADATA, Object, short};
use crate::{ArchiveError, carried, rules};

/// A change that was staged, before it is made.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) staging: Staging,
    pub(crate) verb: Verb,
    /// What it is based on; nothing for a new item.
    pub(crate) base: Option<Base>,
    pub(crate) item: Item,
    pub(crate) metadata: DublinCore,
    pub(crate) files: Vec<StagedFile>,
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) by: String,
    pub(crate) note: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) source: Option<String>,
    /// What had happened to it elsewhere.
    pub(crate) past: Option<String>,
    /// Which of its two clocks stay where they are (D32).
    pub(crate) unmoved: UnmovedClocks,
    /// Whether its labels are to be minted.
    pub(crate) mint: bool,
    /// The inventories of all its versions, if a whole object comes from another Archive.
    pub(crate) whole: Option<Vec<Vec<u8>>>,
    /// Whose word counts for the links that it states.
    pub(crate) authority: LinkAuthority,
    /// What another Archive told of the item's links.
    pub(crate) links: Vec<LinkStatement>,
}

impl Prepared {
    /// The same, on the word of somebody who may not change every item here (clause 2.4, *Consent*).
    #[must_use]
    pub fn with_authority(self, authority: LinkAuthority) -> Self {
        Self { authority, ..self }
    }
}

/// The clocks that a new version does not move, because it changes nothing that they tell of
/// (clause 2.2, D32).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnmovedClocks {
    /// When the data last changed, if this version leaves them as they are.
    pub(crate) data: Option<String>,
    /// When the metadata last changed, likewise.
    pub(crate) metadata: Option<String>,
}

/// The version that a change is based on.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) path: String,
    pub(crate) version: u32,
    pub(crate) inventory: Inventory,
    /// The first digits of that inventory's digest: after a purge, the first version is another one.
    pub(crate) digest: String,
}

impl Base {
    /// The last version of an item.
    pub(crate) fn of(holding: &Holding, object: &Object) -> Self {
        Self {
            path: holding.path.clone(),
            version: holding.version,
            inventory: object.inventory.clone(),
            digest: short(&object.digest).to_owned(),
        }
    }
}

/// A file of the version to come.
#[derive(Debug)]
pub(crate) struct StagedFile {
    pub(crate) file: ItemFile,
    pub(crate) sha512: String,
    /// Its name on disk, if its bytes came with this version.
    pub(crate) stored: Option<String>,
}

/// A change that keeps to the rules.
struct Admitted {
    index: usize,
    object: String,
    version: u32,
    inventory: Vec<u8>,
    entry: Entry,
    /// What is said of the links that it states, beside the older items.
    links: Vec<Entry>,
    instead: bool,
}

impl Archive {
    /// Makes changes together. Tells of each the path of its object, or why it was refused.
    pub fn commit(&mut self, mut changes: Vec<Prepared>) -> Vec<Result<String, ArchiveError>> {
        let mut results: Vec<Option<ArchiveError>> = changes.iter().map(|_| None).collect();
        let mut admitted = Vec::new();
        if let Err(error) = self.make(&mut changes, &mut results, &mut admitted) {
            // None of those that kept to the rules was acknowledged: they fail together.
            let error = Arc::new(error);
            let left = results.iter_mut().filter(|result| result.is_none());
            left.for_each(|result| *result = Some(ArchiveError::Together(Arc::clone(&error))));
            let _ = self.holdings.records.roll_back();
        }
        if !self.stopped {
            // What is left lies in the staging place, and is swept when the Archive is opened if this fails.
            changes.iter().for_each(|change| drop(self.holdings.content.discard(&change.staging)));
        }
        let mut paths = vec![String::new(); changes.len()];
        admitted.into_iter().for_each(|change: Admitted| paths[change.index] = change.object);
        results.into_iter().zip(paths).map(|(error, path)| error.map_or(Ok(path), Err)).collect()
    }

    fn make(
        &mut self,
        changes: &mut [Prepared],
        results: &mut [Option<ArchiveError>],
        admitted: &mut Vec<Admitted>,
    ) -> Result<(), ArchiveError> {
        if self.stopped {
            return Err(ArchiveError::Stopped);
        }
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
                // The index itself failed: nothing can be trusted to be recorded.
                Err(error @ ArchiveError::Keep(KeepError::Index(_))) => return Err(error),
                Err(error) => *result = Some(error),
            }
        }
        if admitted.is_empty() {
            return Ok(self.holdings.records.roll_back()?);
        }
        let publications: Vec<Publication<'_>> = admitted
            .iter()
            .map(|change| Publication {
                staging: &changes[change.index].staging,
                object: &change.object,
                version: change.version,
                inventory: &change.inventory,
                whole: changes[change.index].whole.as_deref().and_then(older),
                instead: change.instead,
            })
            .collect();
        self.holdings.content.secure(&publications).inspect_err(|error| {
            // A sync that failed may have lost what it was asked to write: nobody knows what else.
            self.stopped = matches!(error, KeepError::NotDurable { .. });
        })?;
        // From here on, only opening anew can tell what is on disk after an error.
        self.stopped = true;
        let entries = admitted.iter().flat_map(|change| [&change.entry].into_iter().chain(&change.links));
        let entries: Vec<Entry> = entries.cloned().collect();
        self.journal.append(&entries)?;
        self.holdings.content.publish(&publications)?;
        self.holdings.records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }

    /// Checks a change against the rules, and writes and records all of it but its commit point.
    fn admit(
        &self,
        change: &mut Prepared,
        index: usize,
        batch: u64,
        number: u64,
    ) -> Result<Admitted, ArchiveError> {
        let holdings = &self.holdings;
        if let Some(base) = &change.base {
            let now = holdings.records.item(&base.path)?;
            let is_same = |record: &Record| record.version == base.version && record.inventory == base.digest;
            if !now.as_ref().is_some_and(is_same) {
                return Err(ArchiveError::Changed { label: base.path.clone() });
            }
        }
        let path = rules::check(holdings, change)?;
        let before = match &change.base {
            Some(base) => Some(holdings.item(&base.path)?.item),
            None => None,
        };
        let now = self.now().to_string();
        let bytes = match change.whole.as_ref().map(|whole| whole.last()) {
            Some(last) => last.cloned().unwrap_or_default(),
            None => self.new_version_of(change, &now)?.to_bytes(),
        };
        let damaged = |what| ArchiveError::DamagedObject { path: path.clone(), what };
        let inventory = Inventory::parse(&bytes).map_err(damaged)?;
        let digest = Inventory::digest(&bytes);
        let version = inventory.number();
        let object =
            Object { inventory, digest, item: change.item.clone(), metadata: change.metadata.clone() };
        let full = object.full(&path, number, change.state, change.epoch)?;
        let entry = Entry {
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
            source: change.source.clone(),
            to: None,
            key: change.key.clone(),
            note: change.note.clone(),
            past: change.past.clone(),
            record: carried::write(&full),
            links: std::mem::take(&mut change.links),
            depends_on: None,
        };
        let statements = statements_of(holdings, &change.item, before.as_ref(), &change.authority)?;
        let numbers = (batch, number + 1);
        let links = link_entries(self, statements, &change.by, numbers, Some(number))?;
        holdings.records.put(&full)?;
        holdings.records.happened(&entry)?;
        for link in &links {
            holdings.records.touch(&link.path, link.change)?;
            holdings.records.happened(link)?;
        }
        let instead = change.verb == Verb::Purge || (change.whole.is_some() && change.base.is_some());
        Ok(Admitted { index, object: path, version, inventory: bytes, entry, links, instead })
    }

    /// Says when, and makes the inventory.
    fn new_version_of(&self, change: &mut Prepared, now: &str) -> Result<Inventory, ArchiveError> {
        let item = &mut change.item;
        let before = change.base.as_ref().and_then(|base| base.inventory.last());
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
        // One that would tell the same as `updated` is left out.
        let kept = |clock: &Option<String>| clock.clone().filter(|time| *time != item.updated);
        item.data_updated = kept(&change.unmoved.data);
        item.metadata_updated = kept(&change.unmoved.metadata);
        item.format = item.needed_format();
        item.files = change.files.iter().map(|file| file.file.clone()).collect();
        self.write(change, made)
    }

    /// Stages description and metadata, and makes the inventory of a version made at this time.
    fn write(&self, change: &Prepared, made: String) -> Result<Inventory, ArchiveError> {
        let content = &self.holdings.content;
        let id = format!("ibi:{}", change.item.labels.primary());
        let base = change.base.as_ref().filter(|_| change.verb != Verb::Purge);
        let mut inventory = base.map_or_else(|| Inventory::new(id), |base| base.inventory.clone());
        let stored = change.files.iter().filter_map(|file| Some((file.sha512.clone(), file.stored.clone()?)));
        let mut stored: Vec<(String, String)> = stored.collect();
        let mut files: Vec<(String, String)> = change
            .files
            .iter()
            .map(|file| (format!("{DOC}{}", file.file.path), file.sha512.clone()))
            .collect();
        let texts =
            [(DESCRIPTION, change.item.to_bytes()), (METADATA, change.metadata.to_xml().into_bytes())];
        for (name, text) in texts {
            let digest = ibi_store::digests::sha512(&text);
            let known = inventory.manifest.contains_key(&digest)
                || stored.iter().any(|(stored, _)| *stored == digest);
            if !known {
                content.put(&change.staging, name, &mut &text[..])?;
                stored.push((digest.clone(), name.to_owned()));
            }
            files.push((name.to_owned(), digest));
        }
        let version = Version {
            created: made,
            message: message(change),
            user: User { name: change.by.clone(), address: self.address() },
            state: std::collections::BTreeMap::new(),
        };
        inventory.add(version, files, stored);
        Ok(inventory)
    }

    /// Where who works here can be asked about: the Archive service.
    fn address(&self) -> String {
        format!("ibi:{}", self.holdings.settings.service.primary())
    }
}

/// The inventories of all versions but the last.
fn older(whole: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    whole.split_last().map(|(_, older)| older)
}

fn message(change: &Prepared) -> String {
    let what = match change.verb {
        Verb::Deposit => "deposited",
        Verb::Update => "updated",
        Verb::Remove => "removed",
        Verb::Purge => "removed, bytes destroyed",
        other => other.name(),
    };
    change.note.as_ref().map_or_else(|| what.to_owned(), |note| format!("{what}: {note}"))
}
