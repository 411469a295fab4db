//! What an Archive does with an object that was fetched from another one: it is put here, as a Copy or a tombstone.

use std::borrow::Cow;
use std::path::PathBuf;
use std::{fs, io};

use ibi_store::journal::{LinkStatement, State, Verb};
use ibi_store::ocfl::Inventory;
use ibi_store::{Content, KeepError, Staging};

use super::verdict::{Mine, Theirs, Verdict, gains, is_meant, judge};
use crate::archive::{Archive, Holdings};
use crate::commit::{Base, Prepared, StagedFile, UnmovedClocks};
use crate::deposit::check_not_ahead;
use crate::dublin_core::DublinCore;
use crate::item::Item;
use crate::links::LinkAuthority;
use crate::object::{DOC, short};
use crate::{ArchiveError, mint, told};

/// Bytes that were brought, and checked.
#[derive(Debug, Clone)]
pub enum Bytes {
    /// In memory: they are few.
    Here(Vec<u8>),
    /// In a file on this disk.
    At(PathBuf),
}

impl Bytes {
    /// All of them.
    pub fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Bytes::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            Bytes::At(file) => fs::read(file).map(Cow::Owned),
        }
    }

    /// Puts them where a version is staged.
    pub(super) fn put(&self, content: &dyn Content, staging: &Staging, name: &str) -> Result<(), KeepError> {
        match self {
            Bytes::Here(bytes) => content.put(staging, name, &mut &bytes[..]).map(drop),
            Bytes::At(file) => content.put_file(staging, name, file),
        }
    }
}

/// A whole object that was fetched from another Archive and checked.
#[derive(Debug)]
pub struct Brought {
    /// Where it came from.
    pub source: String,
    /// What it is there.
    pub state: State,
    /// Its epoch there.
    pub epoch: u64,
    /// Whether that is believed, whatever others have told.
    pub believed: bool,
    /// What had happened to it there.
    pub history: Vec<told::Event>,
    /// What is known there of its links.
    pub links: Vec<LinkStatement>,
    /// The inventories of all its versions.
    pub inventories: Vec<Vec<u8>>,
    /// The last of them.
    pub inventory: Inventory,
    /// Its files by their paths in the object.
    pub files: Vec<(String, Bytes)>,
    /// Its description.
    pub item: Item,
    /// Its metadata.
    pub metadata: DublinCore,
    /// The operator's word that what was altered here may go.
    pub overwrite: bool,
    /// The operator's word that this Archive is to be believed.
    pub word: bool,
    /// Whether only its removal came, and none of its files.
    pub only_tombstone: bool,
    /// Whether what is here is damaged, and this puts it right: it is handed over to us.
    pub mends: bool,
}

/// What came of an item.
#[derive(Debug)]
pub enum Arrival {
    /// The whole object.
    Object(Box<Brought>),
    /// The object is here as it is there: only statements about its links are news.
    Links {
        /// The path of the item.
        path: String,
        /// The statements.
        links: Vec<LinkStatement>,
    },
}

impl Brought {
    fn theirs<'a>(&'a self, digest: &'a str) -> Theirs<'a> {
        let removed = self.item.removed.as_ref();
        Theirs {
            state: if removed.is_some() { State::Deleted } else { self.state },
            epoch: self.epoch,
            inventory: &self.inventory,
            digest,
            purged: removed.is_some_and(|removed| removed.purged),
            believed: self.believed,
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

    /// What is here of the item at a path.
    pub fn mine(&self, path: &str) -> Result<Mine, ArchiveError> {
        let stand = self.stand(path)?;
        let (inventory, missing, sound) = match self.content.head(path) {
            Ok(None) => (None, true, false),
            Ok(Some(head)) => {
                let sound = stand.inventory.as_deref() == Some(short(&head.digest));
                (Inventory::parse(&head.inventory).ok(), false, sound)
            }
            Err(KeepError::DamagedInventory { .. }) => (None, false, false),
            Err(error) => return Err(error.into()),
        };
        let destroyed = match stand.state {
            Some(State::Deleted) => self.item(path)?.item.removed.is_some_and(|removed| removed.purged),
            _ => false,
        };
        let heard = self.records.last_event(path)?.map_or(0, |last| last.epoch);
        Ok(Mine { stand, inventory, missing, sound, destroyed, heard })
    }
}

impl Archive {
    /// Prepares an object that was brought from another Archive: a Copy, or a tombstone in the place of one. Nothing if it is
    /// not to be put here any more.
    pub fn prepare_brought(&mut self, brought: &Brought, by: &str) -> Result<Option<Prepared>, ArchiveError> {
        let holdings = &self.holdings;
        let label = brought.item.labels.primary().to_owned();
        let path = brought
            .item
            .object_path()
            .map_err(|error| ArchiveError::Label { label: label.clone(), error })?;
        let digest = brought.inventories.last().map(|last| Inventory::digest(last)).unwrap_or_default();
        let theirs = brought.theirs(&digest);
        let mine = holdings.mine(&path)?;
        // Things may have changed since it was asked for.
        let verdict = judge(&mine, &theirs);
        // Equal by its inventory, its files may be damaged; or that inventory itself.
        let equal = verdict == Verdict::Equal && (brought.overwrite || brought.mends);
        let damaged =
            mine.stand.state == Some(State::Copy) && (equal || (brought.mends && mine.is_damaged(&digest)));
        if !is_meant(verdict, &mine, &theirs, (brought.overwrite, brought.word)) && !damaged {
            return Ok(None);
        }
        check_labels_of(holdings, &brought.item)?;
        let content = &holdings.content;
        content.room()?;
        let heard = if brought.believed { 0 } else { mine.heard };
        let epoch = brought.epoch.max(mine.stand.epoch).max(heard);
        let past = told::news(holdings, &path, brought.history.clone())?;
        if brought.only_tombstone {
            return self.prepare_tombstone(&path, brought, (epoch, past), by).map(Some);
        }
        let base = holdings.records.item(&path)?.map(|record| Base {
            path: path.clone(),
            version: record.version,
            inventory: brought.inventory.clone(),
            digest: record.inventory,
        });
        let is_removed = theirs.state == State::Deleted;
        let state = if is_removed { State::Deleted } else { State::Copy };
        let mut becomes = (if base.is_some() { Verb::Refresh } else { Verb::Copy }, state, epoch);
        if verdict == Verdict::Lacking || (verdict == Verdict::Conflict && gains(&mine, &theirs)) {
            becomes = (Verb::Refresh, State::Original, mine.heard);
        }
        // Its object was lost here: it is what it was if it comes back as it was, and never more than a Copy otherwise.
        let last = holdings.records.last_event(&path)?;
        if let Some(last) = last.filter(|last| mine.missing && last.verb != Verb::Drop) {
            match last.state {
                _ if short(&digest) == last.inventory => becomes = (Verb::Repair, last.state, last.epoch),
                State::Original => return Err(ArchiveError::Lost { label }),
                State::Deleted => return Ok(None),
                State::Copy => {}
            }
        }
        let (verb, state, epoch) = becomes;
        let staging = content.stage()?;
        let put = brought.files.iter().try_for_each(|(name, bytes)| bytes.put(&**content, &staging, name));
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
            verb,
            base,
            item: brought.item.clone(),
            metadata: brought.metadata.clone(),
            files: files.collect(),
            state,
            epoch,
            by: by.to_owned(),
            note: replaced(verdict, damaged, brought.mends, state == State::Original, &mine),
            key: None,
            source: Some(brought.source.clone()),
            past,
            unmoved: UnmovedClocks::default(),
            mint: false,
            whole: Some(brought.inventories.clone()),
            authority: LinkAuthority::OtherArchive,
            links: holdings.link_news(&brought.links)?,
        }))
    }

    /// A tombstone over what is here, of a copy that had missed more than the removal: nobody is given what was withdrawn.
    fn prepare_tombstone(
        &self,
        path: &str,
        brought: &Brought,
        (epoch, past): (u64, Option<String>),
        by: &str,
    ) -> Result<Prepared, ArchiveError> {
        let (holding, object) = self.found(path)?;
        let base = Base::of(&holding, &object);
        let removed = brought.item.removed.clone();
        Ok(Prepared {
            staging: self.holdings.content.stage()?,
            verb: Verb::Refresh,
            base: Some(base),
            item: Item { files: Vec::new(), target: None, url: None, removed, ..object.item },
            metadata: brought.metadata.clone(),
            files: Vec::new(),
            state: State::Deleted,
            epoch,
            by: by.to_owned(),
            note: None,
            key: None,
            source: Some(brought.source.clone()),
            past,
            unmoved: UnmovedClocks::default(),
            mint: false,
            whole: None,
            authority: LinkAuthority::OtherArchive,
            links: self.holdings.link_news(&brought.links)?,
        })
    }
}

/// What an item's history says of what was here before, where that is not an earlier state (clause 2.2: nothing is overwritten
/// in silence).
fn replaced(verdict: Verdict, damaged: bool, mends: bool, gained: bool, mine: &Mine) -> Option<String> {
    let was = match verdict {
        _ if damaged => "damaged",
        Verdict::Altered => "altered",
        Verdict::Beyond => "beyond its Original",
        Verdict::Conflict if !gained => "another Original",
        _ => return None,
    };
    let inventory = mine.stand.inventory.as_deref().unwrap_or_default();
    let word = if mends { "handed over to this Archive" } else { "on the operator's word" };
    Some(format!("{word}, in the place of what was here: {was}, inventory {inventory}"))
}

/// Labels of this Archive's own that it has not given out are nobody's, whatever another Archive says.
fn check_labels_of(holdings: &Holdings, item: &Item) -> Result<(), ArchiveError> {
    const MOST: usize = 1000;
    if item.aliases.len() > MOST {
        let what = format!("{} has more than {MOST} aliases: it is not taken", item.labels.primary());
        return Err(ArchiveError::Value(what));
    }
    let minter = mint::look(&holdings.data)?;
    let aliases = item.aliases.iter().map(String::as_str);
    let mut labels = item.labels.iter().chain(aliases).chain(item.metadata.iter());
    labels.try_for_each(|label| match check_not_ahead(&minter, label) {
        Err(ArchiveError::NotMinted { label }) => Err(ArchiveError::NotHandedOver(format!(
            "{label} has a prefix of this Archive, which does not know that it minted it: it is not taken. If this Archive was restored \
             from a backup of before, run `ibi minter recover`, then try again"
        ))),
        other => other.map(drop),
    })
}
