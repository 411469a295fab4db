//! Stores an object that was fetched from another Archive, as a Copy or a tombstone.

use std::any::Any;
use std::borrow::Cow;
use std::path::PathBuf;
use std::{fs, io};

use ibi_id::Label;
use ibi_store::journal::{LinkStatement, State, Verb};
use ibi_store::ocfl::Inventory;
use ibi_store::{ContentStorage, StagingId, StorageError};

use super::comparison::{
    LocalReplicaState, PeerReplicaState, ReplicaComparison, compare_replicas, gains_versions, operator_allows,
};
use super::original_witness::SourceStanding;
use crate::archive::{Archive, Holdings};
use crate::deposit::{check_not_future, has_own_prefix};
use crate::dublin_core::DublinCore;
use crate::item::{ItemDescription, MAX_ALIASES};
use crate::links::{LinkAuthority, keys_of};
use crate::object::{DOC_FOLDER, short_digest};
use crate::prepared_change::{BaseVersion, PreparedChange, StagedFile, UnmovedClocks};
use crate::state_change::StateChange;
use crate::{ArchiveError, item_view};

/// Fetched and verified bytes.
#[derive(Debug, Clone)]
pub enum ReplicaBytes {
    /// In memory, if small.
    Here(Vec<u8>),
    /// In a local file.
    At(PathBuf),
}

impl ReplicaBytes {
    /// Reads all bytes.
    pub fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            ReplicaBytes::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            ReplicaBytes::At(file) => fs::read(file).map(Cow::Owned),
        }
    }

    /// Writes them into the staging area of a version.
    pub(crate) fn put(
        &self,
        content: &dyn ContentStorage,
        staging: &StagingId,
        name: &str,
    ) -> Result<(), StorageError> {
        match self {
            ReplicaBytes::Here(bytes) => content.stage_file(staging, name, &mut &bytes[..]).map(drop),
            ReplicaBytes::At(file) => content.stage_local_file(staging, name, file),
        }
    }
}

/// A complete, verified object from another Archive.
#[derive(Debug)]
pub struct ReplicaObject {
    /// The URL of its source.
    pub source: String,
    /// Its state there.
    pub state: State,
    /// Its epoch there.
    pub epoch: u64,
    /// Whether that epoch is trusted, whatever other Archives reported.
    pub believed: bool,
    /// How far the source's claims are trusted.
    pub standing: SourceStanding,
    /// Its history there.
    pub history: Vec<item_view::ItemEvent>,
    /// The link statements known there.
    pub links: Vec<LinkStatement>,
    /// The inventories of all its versions.
    pub inventories: Vec<Vec<u8>>,
    /// The last of them.
    pub inventory: Inventory,
    /// Its files by their paths in the object.
    pub files: Vec<(String, ReplicaBytes)>,
    /// Its description.
    pub item: ItemDescription,
    /// Its metadata.
    pub metadata: DublinCore,
    /// The operator allows local changes to be overwritten.
    pub overwrite: bool,
    /// The operator vouches for the source.
    pub word: bool,
    /// Whether only the tombstone was fetched, without files.
    pub only_tombstone: bool,
    /// Whether the local object is damaged and this one, from a transfer to us, repairs it.
    pub mends: bool,
    /// Held for a large object until it is stored; opaque.
    pub turn: Option<Box<dyn Any + Send + Sync>>,
}

/// The result of fetching an item.
#[derive(Debug)]
pub enum ReplicaArrival {
    /// The whole object.
    Object(Box<ReplicaObject>),
    /// The object is equal here and there.
    Equal(ReplicaStatusUpdate),
}

/// New information about an item whose object is equal here and at another Archive.
#[derive(Debug, Default)]
pub struct ReplicaStatusUpdate {
    /// The path of the item.
    pub path: String,
    /// Statements about its links.
    pub links: Vec<LinkStatement>,
    /// The URL of that Archive, if it is proven to have the Original and this was not known.
    pub original_at: Option<String>,
}

impl ReplicaStatusUpdate {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.original_at.is_none()
    }
}

impl ReplicaObject {
    /// The item's state at the source, if known: a giver that was named had the Original until the
    /// grant. `None` if only the source itself claims to have or give it.
    fn source_state(&self, standing: SourceStanding) -> Option<State> {
        match (self.state, standing) {
            (State::Deleted, _) => Some(State::Deleted),
            (_, SourceStanding::Witness | SourceStanding::FirstSource) => Some(State::Original),
            (State::Copy, SourceStanding::Unproven) if !self.believed => Some(State::Copy),
            (_, SourceStanding::TrustedGiver | SourceStanding::Unproven) => None,
        }
    }

    fn peer_replica_state<'a>(&'a self, digest: &'a str) -> PeerReplicaState<'a> {
        let removed = self.item.removed.as_ref();
        PeerReplicaState {
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
    /// The parsed inventory of a local item.
    pub fn inventory(&self, path: &str) -> Result<Option<Inventory>, ArchiveError> {
        let head = self.content.head(path)?;
        let parsed = head.map(|head| Inventory::parse(&head.inventory));
        parsed.transpose().map_err(|what| ArchiveError::DamagedObject { path: path.to_owned(), what })
    }

    /// The local state of the item at a path.
    pub fn local_replica_state(&self, path: &str) -> Result<LocalReplicaState, ArchiveError> {
        let stand = self.custody_state(path)?;
        let (inventory, missing, sound) = match self.content.head(path) {
            Ok(None) => (None, true, false),
            Ok(Some(head)) => {
                let sound = stand.inventory.as_deref() == Some(short_digest(&head.digest));
                (Inventory::parse(&head.inventory).ok(), false, sound)
            }
            Err(StorageError::DamagedInventory { .. }) => (None, false, false),
            Err(error) => return Err(error.into()),
        };
        let destroyed = match stand.state {
            Some(State::Deleted) => self.item(path)?.item.removed.is_some_and(|removed| removed.purged),
            _ => false,
        };
        let heard = self.records.last_event(path)?.map_or(0, |last| last.epoch);
        Ok(LocalReplicaState { stand, inventory, missing, sound, destroyed, heard })
    }
}

impl Archive {
    /// Records new information about an item whose object is equal here and at another Archive.
    /// Returns whether there were new link statements.
    pub fn record_status_update(
        &mut self,
        news: &ReplicaStatusUpdate,
        by: &str,
    ) -> Result<bool, ArchiveError> {
        let ReplicaStatusUpdate { path, links, original_at } = news;
        let mut links = links.clone();
        // The state may have changed since the request.
        links.retain(|link| self.holdings.is_unseen_statement(link).unwrap_or(false));
        let has_news = !links.is_empty();
        let source = original_at.clone();
        let Some(source) =
            source.filter(|_| self.holdings.item(path).is_ok_and(|held| held.state == State::Copy))
        else {
            return self.write_link_news(path, links);
        };
        // From now on that Archive is a witness of the Original (`giver_trust.rs`).
        let (holding, object) = self.find_with_object(path)?;
        let restated = StateChange {
            source: Some(source),
            source_state: Some(State::Original),
            links,
            ..StateChange::new(Verb::Refresh, State::Copy, holding.epoch, by)
        };
        self.change_state(&holding.path, &object, restated)?;
        Ok(has_news)
    }

    /// Prepares a fetched object: a Copy, or a tombstone that replaces one. `None` if it must not
    /// be stored any more.
    pub fn prepare_replica(
        &mut self,
        brought: &ReplicaObject,
        by: &str,
    ) -> Result<Option<PreparedChange>, ArchiveError> {
        let holdings = &self.holdings;
        let label = brought.item.labels.primary().to_owned();
        let path = brought
            .item
            .object_path()
            .map_err(|error| ArchiveError::Label { label: label.clone(), error })?;
        let digest = brought.inventories.last().map(|last| Inventory::digest(last)).unwrap_or_default();
        let theirs = brought.peer_replica_state(&digest);
        let mine = holdings.local_replica_state(&path)?;
        // The state may have changed since the request.
        let verdict = compare_replicas(&mine, &theirs);
        // Although the inventories are equal, the files may be damaged, or the local inventory
        // itself.
        let equal = verdict == ReplicaComparison::Equal && (brought.overwrite || brought.mends);
        let damaged =
            mine.stand.state == Some(State::Copy) && (equal || (brought.mends && mine.is_damaged(&digest)));
        if !operator_allows(verdict, &mine, &theirs, (brought.overwrite, brought.word)) && !damaged {
            return Ok(None);
        }
        check_replica_labels(holdings, &brought.item, &path)?;
        let content = &holdings.content;
        content.check_space()?;
        let heard = if brought.believed { 0 } else { mine.heard };
        let epoch = brought.epoch.max(mine.stand.epoch).max(heard);
        let past = item_view::unseen_history(holdings, &path, brought.history.clone())?;
        if brought.only_tombstone {
            return self.prepare_tombstone(&path, brought, (epoch, past), by).map(Some);
        }
        let standing = holdings.current_standing(&path, brought.standing)?;
        let base = holdings.records.item(&path)?.map(|record| BaseVersion {
            path: path.clone(),
            version: record.version,
            inventory: brought.inventory.clone(),
            digest: record.inventory,
        });
        let is_removed = theirs.state == State::Deleted;
        let state = if is_removed { State::Deleted } else { State::Copy };
        let mut becomes = (if base.is_some() { Verb::Refresh } else { Verb::Copy }, state, epoch);
        if verdict == ReplicaComparison::Lacking
            || (verdict == ReplicaComparison::Conflict && gains_versions(&mine, &theirs))
        {
            becomes = (Verb::Refresh, State::Original, mine.heard);
        }
        // Its object was lost here. It regains its state if the same object comes back; otherwise
        // it becomes at most a Copy.
        let last = holdings.records.last_event(&path)?;
        if let Some(last) = last.filter(|last| mine.missing && last.verb != Verb::Drop) {
            match last.state {
                _ if short_digest(&digest) == last.inventory => {
                    becomes = (Verb::Repair, last.state, last.epoch);
                }
                State::Original => return Err(ArchiveError::Lost { label }),
                State::Deleted => return Ok(None),
                State::Copy => {}
            }
        }
        let (verb, state, epoch) = becomes;
        let staging = content.begin_staging()?;
        let put = brought.files.iter().try_for_each(|(name, bytes)| bytes.put(&**content, &staging, name));
        put.inspect_err(|_| drop(content.discard(&staging)))?;
        let digests = brought
            .inventory
            .files()
            .filter_map(|(name, digest, _)| Some((name.strip_prefix(DOC_FOLDER)?, digest)));
        let digests: std::collections::BTreeMap<&str, &str> = digests.collect();
        let files = brought.item.files.iter().map(|file| StagedFile {
            file: file.clone(),
            sha512: digests.get(file.path.as_str()).map(|digest| (*digest).to_owned()).unwrap_or_default(),
            stored: None,
        });
        Ok(Some(PreparedChange {
            staging,
            verb,
            base,
            item: brought.item.clone(),
            metadata: brought.metadata.clone(),
            files: files.collect(),
            state,
            epoch,
            by: by.to_owned(),
            owner: None,
            note: replacement_note(verdict, damaged, brought.mends, state == State::Original, &mine),
            key: None,
            source: Some(brought.source.clone()),
            source_state: brought.source_state(standing),
            past,
            unmoved: UnmovedClocks::default(),
            mint: false,
            whole: Some(brought.inventories.clone()),
            authority: LinkAuthority::OtherArchive,
            links: holdings.unseen_link_statements(
                (&path, &keys_of(&brought.item)),
                &brought.links,
                standing.link_source(),
            )?,
        }))
    }

    /// A tombstone for a copy that had missed more than the removal, so that withdrawn content is
    /// not served.
    fn prepare_tombstone(
        &self,
        path: &str,
        brought: &ReplicaObject,
        (epoch, past): (u64, Option<String>),
        by: &str,
    ) -> Result<PreparedChange, ArchiveError> {
        let (holding, object) = self.find_with_object(path)?;
        let base = BaseVersion::of(&holding, &object);
        let removed = brought.item.removed.clone();
        let standing = self.holdings.current_standing(path, brought.standing)?;
        Ok(PreparedChange {
            staging: self.holdings.content.begin_staging()?,
            verb: Verb::Refresh,
            base: Some(base),
            item: ItemDescription { files: Vec::new(), target: None, url: None, removed, ..object.item },
            metadata: brought.metadata.clone(),
            files: Vec::new(),
            state: State::Deleted,
            epoch,
            by: by.to_owned(),
            owner: None,
            note: None,
            key: None,
            source: Some(brought.source.clone()),
            source_state: brought.source_state(standing),
            past,
            unmoved: UnmovedClocks::default(),
            mint: false,
            whole: None,
            authority: LinkAuthority::OtherArchive,
            links: self.holdings.unseen_link_statements(
                (path, &keys_of(&brought.item)),
                &brought.links,
                standing.link_source(),
            )?,
        })
    }
}

/// The history note on what was replaced, unless that was an earlier version (clause 2.2: nothing
/// is overwritten silently).
fn replacement_note(
    verdict: ReplicaComparison,
    damaged: bool,
    mends: bool,
    gained: bool,
    mine: &LocalReplicaState,
) -> Option<String> {
    let was = match verdict {
        _ if damaged => "damaged",
        ReplicaComparison::Altered => "altered",
        ReplicaComparison::Beyond => "beyond its Original",
        ReplicaComparison::Conflict if !gained => "another Original",
        _ => return None,
    };
    let inventory = mine.stand.inventory.as_deref().unwrap_or_default();
    let word = if mends { "transferred to this Archive" } else { "confirmed by the operator" };
    Some(format!("{word}, replaced: {was}, inventory {inventory}"))
}

/// Rejects labels of this Archive that it never issued, whatever another Archive says, and labels
/// reserved for the items of a token.
fn check_replica_labels(holdings: &Holdings, item: &ItemDescription, path: &str) -> Result<(), ArchiveError> {
    if item.aliases.len() > MAX_ALIASES {
        let what = format!("{} has more than {MAX_ALIASES} aliases: rejected", item.labels.primary());
        return Err(ArchiveError::Value(what));
    }
    let minter = ibi_mint::read_state(&holdings.data)?;
    let aliases = item.aliases.iter().map(String::as_str);
    let labels = item.labels.iter().chain(aliases).chain(item.metadata.iter());
    for label in labels {
        match check_not_future(&minter, label) {
            Err(ArchiveError::NotMinted { label }) => {
                return Err(ArchiveError::NotHandedOver(format!(
                    "{label} has a prefix of this Archive, which has no record of minting it: rejected. If \
                     this Archive was restored from an older backup, run `ibi minter recover`, then retry"
                )));
            }
            other => drop(other?),
        }
        let parsed = Label::parse(label).ok().filter(|label| has_own_prefix(&minter.subsystem, label));
        if let Some(parsed) = parsed
            && holdings.is_reserved(&parsed, (label, path))?
        {
            return Err(ArchiveError::NotHandedOver(format!(
                "{label} was minted here with a token, and no item that the token deposited here has it: \
                 rejected. The operator must find out how the other Archive obtained it"
            )));
        }
    }
    Ok(())
}

impl Holdings {
    /// Whether a label was minted here with a token that did not deposit the item at `path`, and
    /// the item does not already have the label here.
    fn is_reserved(&self, label: &Label<&str>, (text, path): (&str, &str)) -> Result<bool, ArchiveError> {
        if !self.state_file().exists() || self.find(text).is_ok_and(|(held, _)| held.path == path) {
            return Ok(false);
        }
        let Some(minted_by) = self.with_state(|state| state.minted_by(label.instant()))? else {
            return Ok(false);
        };
        let events = self.records.events(path)?;
        let deposited = events.first().filter(|event| event.verb == Verb::Deposit);
        Ok(deposited.is_none_or(|event| event.owner.as_deref() != Some(&minted_by)))
    }
}
