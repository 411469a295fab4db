//! What an Archive does with an object that another one has: nothing in doubt is overwritten (threats S7 to S9).

use std::path::PathBuf;

use ibi_store::journal::{State, Verb};
use ibi_store::ocfl::Inventory;
use serde::Serialize;

use super::handover::Stand;
use super::whole::{Compared, compare};
use crate::archive::{Archive, Holdings};
use crate::commit::{Base, Prepared, StagedFile};
use crate::dublin_core::DublinCore;
use crate::item::Item;
use crate::object::{DOC, Object, short};
use crate::{ArchiveError, told};

/// How what is here stands to what another Archive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing is here: it is to be copied.
    New,
    /// What is here is an earlier state of that: it is to be brought up to date.
    Behind,
    /// The item was removed there: a tombstone is to take the place of the copy.
    Removed,
    /// The same.
    Equal,
    /// What is here is later.
    Ahead,
    /// What is here is neither earlier nor later: it is left as it is.
    Altered,
    /// The Original is here: nobody else has anything to say of it.
    Original,
    /// Both say that they have the Original.
    Conflict,
    /// It was removed here, or there before it was ever here: it stays so.
    Gone,
}

impl Verdict {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::New => "new",
            Verdict::Behind => "behind",
            Verdict::Removed => "removed",
            Verdict::Equal => "equal",
            Verdict::Ahead => "ahead",
            Verdict::Altered => "altered",
            Verdict::Original => "original",
            Verdict::Conflict => "conflict",
            Verdict::Gone => "gone",
        }
    }

    /// Whether something is to be fetched.
    pub const fn brings(self) -> bool {
        matches!(self, Verdict::New | Verdict::Behind | Verdict::Removed)
    }
}

/// What another Archive says of an item.
#[derive(Debug, Clone)]
pub struct Theirs<'a> {
    /// What it is there.
    pub state: State,
    /// Its epoch there.
    pub epoch: u64,
    /// Its inventory.
    pub inventory: &'a Inventory,
    /// Whether all bytes of it were destroyed.
    pub purged: bool,
}

/// Compares what is here with what another Archive has.
pub fn judge(stand: &Stand, ours: Option<&Inventory>, theirs: &Theirs<'_>) -> Verdict {
    let (Some(state), Some(ours)) = (stand.state, ours) else {
        return if theirs.state == State::Deleted { Verdict::Gone } else { Verdict::New };
    };
    let later = theirs.epoch > stand.epoch;
    match state {
        State::Deleted => return Verdict::Gone,
        // Brought back from a backup, it learns here that the Original was handed over since (clause 2.1).
        State::Original if stand.restored && later => {}
        State::Original if theirs.state == State::Original => return Verdict::Conflict,
        State::Original => return Verdict::Original,
        State::Copy if theirs.epoch < stand.epoch => return Verdict::Ahead,
        State::Copy => {}
    }
    match compare(ours, theirs.inventory) {
        _ if theirs.purged => Verdict::Removed,
        Compared::Behind if theirs.state == State::Deleted => Verdict::Removed,
        Compared::Behind => Verdict::Behind,
        // Only who has the Original is known now.
        Compared::Equal if state == State::Original => Verdict::Behind,
        Compared::Equal => Verdict::Equal,
        Compared::Ahead => Verdict::Ahead,
        Compared::Altered => Verdict::Altered,
    }
}

/// A whole object that was fetched from another Archive and checked.
#[derive(Debug)]
pub struct Brought {
    /// Where it came from.
    pub source: String,
    /// Its epoch there.
    pub epoch: u64,
    /// What had happened to it there.
    pub history: Vec<told::Event>,
    /// The inventories of all its versions.
    pub inventories: Vec<Vec<u8>>,
    /// The last of them.
    pub inventory: Inventory,
    /// Its files by their paths in the object, and where they lie.
    pub files: Vec<(String, PathBuf)>,
    /// Its description.
    pub item: Item,
    /// Its metadata.
    pub metadata: DublinCore,
    /// The operator's word that what was altered here may go.
    pub overwrite: bool,
}

impl Brought {
    fn theirs(&self) -> Theirs<'_> {
        let removed = self.item.removed.as_ref();
        Theirs {
            // Whether it is an Original there makes no difference to what is fetched.
            state: if removed.is_some() { State::Deleted } else { State::Copy },
            epoch: self.epoch,
            inventory: &self.inventory,
            purged: removed.is_some_and(|removed| removed.purged),
        }
    }
}

impl Holdings {
    /// The inventory of an item that is here.
    pub fn inventory(&self, path: &str) -> Result<Option<Inventory>, ArchiveError> {
        let head = self.content.head(path)?;
        let parsed = head.map(|head| Inventory::parse(&head.inventory));
        parsed.transpose().map_err(|what| ArchiveError::DamagedObject { path: path.to_owned(), what })
    }

    /// How what is here stands to what another Archive says that it has.
    pub fn judge(&self, path: &str, theirs: &Theirs<'_>) -> Result<Verdict, ArchiveError> {
        Ok(judge(&self.stand(path)?, self.inventory(path)?.as_ref(), theirs))
    }
}

impl Archive {
    /// Prepares an object that was brought from another Archive: a Copy, or a tombstone in the place of one. Nothing if it is
    /// not to be put here any more.
    pub fn prepare_brought(&mut self, brought: &Brought, by: &str) -> Result<Option<Prepared>, ArchiveError> {
        let holdings = &self.holdings;
        let label = brought.item.labels.primary().to_owned();
        let path = brought.item.object_path().map_err(|error| ArchiveError::Label { label, error })?;
        // Things may have changed since it was asked for.
        let verdict = holdings.judge(&path, &brought.theirs())?;
        let may_go = verdict == Verdict::Altered && brought.overwrite;
        if !verdict.brings() && !may_go {
            return Ok(None);
        }
        let content = &holdings.content;
        content.room()?;
        let here = holdings.records.item(&path)?;
        let here_is_none = here.is_none();
        let base = match here {
            None => None,
            Some(record) => {
                let object = Object::read(&**content, &path)?;
                object.map(|object| Base {
                    path: path.clone(),
                    version: record.version,
                    inventory: object.inventory,
                })
            }
        };
        let theirs = brought.theirs();
        let mut to = (if base.is_some() { Verb::Refresh } else { Verb::Copy }, theirs.state);
        let mut epoch = brought.epoch.max(holdings.stand(&path)?.epoch);
        // Its object was lost here: it is what it was if it comes back as it was, and never more than a Copy otherwise.
        let lost = holdings.records.last_event(&path)?.filter(|last| here_is_none && last.verb != Verb::Drop);
        if let Some(last) = lost {
            let digest = brought.inventories.last().map(|last| Inventory::digest(last)).unwrap_or_default();
            match last.state {
                _ if short(&digest) == last.inventory => {
                    to = (Verb::Repair, last.state);
                    epoch = last.epoch;
                }
                State::Original => {
                    return Err(ArchiveError::Lost { label: brought.item.labels.primary().to_owned() });
                }
                State::Deleted => return Ok(None),
                State::Copy => {}
            }
        }
        let staging = content.stage()?;
        let put = brought.files.iter().try_for_each(|(name, file)| content.put_file(&staging, name, file));
        put.inspect_err(|_| drop(content.discard(&staging)))?;
        let digests =
            brought.inventory.files().filter_map(|(name, digest, _)| Some((name.strip_prefix(DOC)?, digest)));
        let digests: std::collections::BTreeMap<&str, &str> = digests.collect();
        let files = brought.item.files.iter().map(|file| StagedFile {
            file: file.clone(),
            sha512: digests.get(file.path.as_str()).map(|digest| (*digest).to_owned()).unwrap_or_default(),
            stored: None,
        });
        Ok(Some(Prepared {
            staging,
            verb: to.0,
            base,
            item: brought.item.clone(),
            metadata: brought.metadata.clone(),
            files: files.collect(),
            state: to.1,
            epoch,
            by: by.to_owned(),
            note: None,
            key: None,
            source: Some(brought.source.clone()),
            past: super::stand::past_of(brought.history.clone()),
            mint: false,
            whole: Some(brought.inventories.clone()),
        }))
    }
}
