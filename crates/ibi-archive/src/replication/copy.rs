//! Replicates one item: inspects it at the source, fetches it and stores it here.

use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;

use super::ReplicationError;
use super::fetch::{self, FetchedObject};
use super::peer::{PeerArchive, PeerError};
use super::witness_check::find_standing;
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::archive::partial_fetch_folder;
use crate::audit::AuditOptions;
use crate::dublin_core::DublinCore;
use crate::engine::ArchiveEngine;
use crate::item::{ItemDescription, LabelKey};
use crate::item_view::ItemEvent;
use crate::links::keys_of;
use crate::object::{DESCRIPTION_FILE, METADATA_FILE, short_digest};
use crate::replica::comparison::{PeerReplicaState, ReplicaComparison, compare_replicas, operator_allows};
use crate::replica::object_description::ObjectDescription;
use crate::replica::object_validation::MAX_PEER_INVENTORY_BYTES;
use crate::replica::original_witness::SourceStanding;
use crate::replica::replica_object::{ReplicaObject, ReplicaStatusUpdate};

/// Access to the local holdings for tasks that wait for the network in between.
pub trait LocalView: Send + Sync {
    /// Runs `look` on the holdings. It must be short.
    fn with_holdings<T>(
        &self,
        look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError>;

    /// Waits until no other large object is being fetched: each needs several times the size of its
    /// inventory in memory.
    fn large_object_permit(&self) -> impl Future<Output = Option<LargeObjectPermit>> + Send {
        async { None }
    }

    /// Maximum size of an inventory that is accepted.
    fn max_inventory_bytes(&self) -> usize {
        MAX_PEER_INVENTORY_BYTES
    }
}

/// Held while a large object is fetched and stored.
pub type LargeObjectPermit = Box<dyn Any + Send + Sync>;

impl LocalView for Mutex<Holdings> {
    fn with_holdings<T>(
        &self,
        look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LocalView for ArchiveEngine {
    fn with_holdings<T>(
        &self,
        look: impl FnOnce(&Holdings) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let reader = self.read()?;
        look(&reader)
    }

    async fn large_object_permit(&self) -> Option<LargeObjectPermit> {
        let turn = self.large_objects().acquire_owned().await.ok()?;
        Some(Box::new(turn))
    }

    fn max_inventory_bytes(&self) -> usize {
        usize::try_from(self.memory().bytes() / 4).unwrap_or(usize::MAX).min(MAX_PEER_INVENTORY_BYTES)
    }
}

/// Where copies come from, and how far that Archive is trusted.
#[derive(Debug, Clone)]
pub struct ReplicaSource {
    /// The Archive.
    pub peer: PeerArchive,
    /// The operator allows local changes to be overwritten.
    pub overwrite: bool,
    /// The operator vouches for this Archive, even though the copy came from another one.
    pub word: bool,
    /// Whether to verify every local byte too.
    pub thorough: bool,
    /// Whether it is the giver of a transfer to us, and has confirmed that.
    pub gives: bool,
    /// Whether a witness or the resolver named it as the holder of the Original, or as the holder
    /// until the grant to us.
    pub is_named: bool,
    /// For a giver: the name under which its own events are recorded, as the resolver knows it.
    /// Events that it reports of other Archives are dropped, since they could be forged. Without a
    /// name, none are recorded.
    pub giver_name: Option<GiverName>,
    /// Whether it is asked only because the copy came from it. Then follow `given_to` if it no
    /// longer holds the item.
    pub follows: bool,
}

impl ReplicaSource {
    /// An Archive without further trust or options.
    pub fn new(peer: PeerArchive) -> Self {
        Self {
            peer,
            overwrite: false,
            word: false,
            thorough: false,
            gives: false,
            is_named: false,
            giver_name: None,
            follows: false,
        }
    }
}

/// What a giver calls itself, and the name it is known by here.
#[derive(Debug, Clone)]
pub struct GiverName {
    /// The name it states.
    pub told: String,
    /// The name the resolver knows, if there is a resolver.
    pub known: String,
    /// Its URL if there is no resolver, so that the name is only its own claim.
    pub told_by: Option<String>,
}

impl GiverName {
    /// The events of a history that happened at the giver itself, under its known name.
    pub fn own_events(&self, events: Vec<ItemEvent>) -> Vec<ItemEvent> {
        let is_own = |event: &ItemEvent| event.at.as_ref().is_none_or(|at| *at == self.told);
        let own = events.into_iter().filter(is_own);
        own.map(|event| ItemEvent { at: Some(self.known.clone()), told_by: self.told_by.clone(), ..event })
            .collect()
    }
}

/// An item at a source, compared with what is here.
#[derive(Debug)]
pub struct ReplicaInspection {
    /// The Archive that holds it.
    peer: PeerArchive,
    /// The object there.
    pub held: ObjectDescription,
    /// How the local replica compares.
    pub verdict: ReplicaComparison,
    /// Whether it is to be fetched.
    pub brings: bool,
    /// Whether its epoch is trusted.
    believed: bool,
    /// Whether only the tombstone is fetched.
    only_tombstone: bool,
    /// Whether the local object is damaged, and the fetched one repairs it.
    mends: bool,
    /// How far its claims are trusted.
    standing: SourceStanding,
    /// New information about it, if the object is unchanged.
    pub news: ReplicaStatusUpdate,
    /// Held for a large object until it is stored.
    turn: Option<LargeObjectPermit>,
}

/// Compares an item at a source with what is here.
pub async fn inspect_replica(
    here: &impl LocalView,
    source: &ReplicaSource,
    label: &str,
) -> Result<ReplicaInspection, ReplicationError> {
    let (peer, held) = find_current_holder(source, label).await?;
    let peer = &peer.with_max_inventory(here.max_inventory_bytes());
    // Small files are embedded in the description.
    let is_large = !held.files.contains_key("inventory.json")
        || !held.files.keys().any(|path| path.ends_with(&format!("/content/{DESCRIPTION_FILE}")));
    let turn = if is_large { here.large_object_permit().await } else { None };
    if here.with_holdings(|here| Ok(here.settings().service.has_label(&held.archive)))? {
        return Err(ReplicationError::Itself { url: peer.url().to_owned() });
    }
    let (mine, known) =
        here.with_holdings(|here| Ok((here.local_replica_state(&held.path)?, local_path(here, label)?)))?;
    if known.is_some_and(|known| known != held.path) {
        return Err(unexpected_answer(peer, format!("asked for {label}, it tells of {}", held.item)));
    }
    // The Original's holder was confirmed for this label only: another name of the item could
    // belong to another item.
    if source.gives && LabelKey::parse(label).is_ok_and(|asked| asked.folded != held.path) {
        return Err(unexpected_answer(
            peer,
            format!("it hands over {label}, which is another name of {}", held.item),
        ));
    }
    let same = mine.sound && mine.stand.inventory.as_deref() == Some(short_digest(&held.inventory));
    let theirs = match mine.inventory.clone().filter(|_| same) {
        Some(ours) => ours,
        None => {
            let bytes = fetch_small_file(peer, &held, "inventory.json", &held.inventory).await?;
            Inventory::parse(&bytes).map_err(|what| unexpected_answer(peer, what))?
        }
    };
    let purged = match held.state {
        State::Deleted => {
            let removed = fetch_description(peer, &held, &theirs).await?.removed;
            removed
                .ok_or_else(|| unexpected_answer(peer, format!("{} is Deleted, and not removed", held.item)))?
                .purged
        }
        State::Original | State::Copy => false,
    };
    let known = here.with_holdings(|here| here.replica_source(&held.path))?;
    // Compares `source.peer`, so a successor that the source names counts as the source.
    let is_source = source.word || known.as_deref() == Some(source.peer.url());
    let believed = match held.state {
        // The copy came from it, or it was named.
        State::Original => true,
        State::Copy => source.gives,
        State::Deleted => is_source,
    };
    let (state, epoch) = (held.state, held.epoch);
    let told =
        PeerReplicaState { state, epoch, inventory: &theirs, digest: &held.inventory, purged, believed };
    let mut verdict = compare_replicas(&mine, &told);
    let damaged = match verdict {
        // The tree does not match the journal, while the journal matches the peer.
        ReplicaComparison::Altered => mine.is_damaged(&held.inventory),
        ReplicaComparison::Equal | ReplicaComparison::Behind => {
            source.thorough && is_damaged(here, &held.path)?
        }
        _ => false,
    };
    if damaged && source.gives {
        // Nobody's changes are lost: these bytes become the Original.
        verdict = if mine.is_damaged(&held.inventory) { ReplicaComparison::Equal } else { verdict };
    } else if damaged {
        verdict = ReplicaComparison::Altered;
    }
    if verdict == ReplicaComparison::Removed && !is_source {
        // Accept a removal only from the copy's source: a tombstone is permanent (threats S7, S9).
        let (item, url) = (held.item, peer.url().to_owned());
        return Err(ReplicationError::NotItsSource { item, url, from: known.unwrap_or_default() });
    }
    let ours_now = mine.inventory.as_ref().map_or(0, Inventory::head_number);
    if mine.stand.state == Some(State::Copy)
        && matches!(verdict, ReplicaComparison::Behind | ReplicaComparison::Equal)
    {
        // Recorded even if nothing is fetched now: readers learn that this copy is behind (clause
        // 2.1).
        let noted = here
            .with_holdings(|here| here.record_peer_version(&held.path, (ours_now, held.version), peer.url()));
        if let Err(error) = noted {
            tracing::warn!(%error, "cannot record that the copy is outdated");
        }
    }
    let mends = damaged && source.gives;
    let brings = mends || operator_allows(verdict, &mine, &told, (source.overwrite, source.word));
    let only_tombstone =
        held.state == State::Deleted && brings && !purged && theirs.head_number() > ours_now + 1;
    let standing = find_standing(here, source, (peer, &held)).await?;
    let is_told = verdict == ReplicaComparison::Equal && (is_source || standing == SourceStanding::Witness);
    let news = match is_told && !brings {
        true => here.with_holdings(|here| status_update(here, (&held, peer.url()), standing))?,
        false => ReplicaStatusUpdate::default(),
    };
    let peer = peer.clone();
    Ok(ReplicaInspection {
        peer,
        held,
        verdict,
        brings,
        believed,
        only_tombstone,
        mends,
        standing,
        news,
        turn,
    })
}

/// What another Archive reports of an item whose object is equal here: link statements, and that it
/// has the Original, if that is proven and was not known.
fn status_update(
    here: &Holdings,
    (held, url): (&ObjectDescription, &str),
    standing: SourceStanding,
) -> Result<ReplicaStatusUpdate, ArchiveError> {
    let ours = here.item(&held.path)?;
    let links =
        here.unseen_link_statements((&held.path, &keys_of(&ours.item)), &held.links, standing.link_source())?;
    let is_shown =
        ours.state == State::Copy && held.state == State::Original && standing == SourceStanding::Witness;
    let is_new = is_shown && here.original_witnesses(&held.path)?.source.as_deref() != Some(url);
    Ok(ReplicaStatusUpdate { path: held.path.clone(), links, original_at: is_new.then(|| url.to_owned()) })
}

/// The description of an item and the Archive that has it now, following a transfer. The token is
/// sent to the first Archive only.
async fn find_current_holder(
    source: &ReplicaSource,
    label: &str,
) -> Result<(PeerArchive, ObjectDescription), PeerError> {
    const MAX_CUSTODY_REDIRECTS: usize = 5;
    let mut peer = source.peer.clone();
    for _ in 0..MAX_CUSTODY_REDIRECTS {
        match peer.describe_object(label).await {
            Err(PeerError::Unknown { given_to: Some(url), .. }) if source.follows => {
                peer = PeerArchive::new(&url, None)?;
            }
            held => return Ok((peer, held?)),
        }
    }
    Err(peer.not_an_archive(format!(
        "{label} was handed over more than {MAX_CUSTODY_REDIRECTS} times, from one to the next"
    )))
}

/// The local path of a label's item, if it is held here.
pub(super) fn local_path(here: &Holdings, label: &str) -> Result<Option<String>, ArchiveError> {
    match here.find(label) {
        Ok((holding, _)) => Ok(Some(holding.path)),
        Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_damaged(here: &impl LocalView, path: &str) -> Result<bool, ArchiveError> {
    let options = AuditOptions { rate: None, anew: true, tell: &|_| (), progress: &|_| () };
    let audit = || here.with_holdings(|here| here.audit_item(path, &options));
    Ok(!tokio::task::block_in_place(audit)?.findings.is_empty())
}

/// Fetches what was inspected into a folder of its own, from which an interrupted fetch resumes.
pub async fn fetch_replica(
    here: &impl LocalView,
    data: &Path,
    source: &ReplicaSource,
    (label, looked): (&str, ReplicaInspection),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<ReplicaObject, ReplicationError> {
    let ReplicaInspection { peer, held, only_tombstone, believed, mends, standing, turn, .. } = looked;
    let peer = &peer;
    let fetched = if only_tombstone {
        fetch_tombstone(peer, &held).await?
    } else {
        let known = here.with_holdings(|here| local_files_by_digest(here, &held.path))?;
        let have = |sha512: &str| known.get(sha512).cloned();
        fetch::fetch_object(peer, label, &held, &have, &partial_fetch_folder(data, &held.path), progress)
            .await?
    };
    let FetchedObject { inventory, inventories, files, item, metadata } = fetched;
    let history = match (source.gives, &source.giver_name) {
        (false, _) => {
            let named = held.history.into_iter().map(|mut event| {
                event.at.get_or_insert_with(|| held.archive.clone());
                event.told_by = Some(peer.url().to_owned());
                event
            });
            named.collect()
        }
        (true, Some(name)) => name.own_events(held.history),
        (true, None) => Vec::new(),
    };
    Ok(ReplicaObject {
        source: peer.url().to_owned(),
        state: held.state,
        epoch: held.epoch,
        believed,
        standing,
        history,
        links: held.links,
        inventories,
        inventory,
        files,
        item,
        metadata,
        overwrite: source.overwrite,
        word: source.word,
        only_tombstone,
        mends,
        turn,
    })
}

/// The tombstone of a removed item, without any of its files.
async fn fetch_tombstone(
    peer: &PeerArchive,
    held: &ObjectDescription,
) -> Result<FetchedObject, ReplicationError> {
    let bytes = fetch_small_file(peer, held, "inventory.json", &held.inventory).await?;
    let inventory = Inventory::parse(&bytes).map_err(|what| unexpected_answer(peer, what))?;
    let item = fetch_description(peer, held, &inventory).await?;
    let metadata = fetch_text(peer, held, &inventory, METADATA_FILE).await?;
    let metadata = String::from_utf8(metadata).map_err(|error| unexpected_answer(peer, error.to_string()))?;
    let metadata =
        DublinCore::from_xml(&metadata).map_err(|error| unexpected_answer(peer, error.to_string()))?;
    if item.object_path().ok().as_deref() != Some(&held.path) {
        return Err(unexpected_answer(
            peer,
            format!("it describes {} as {}", held.item, item.labels.primary()),
        ));
    }
    Ok(FetchedObject { inventory, inventories: vec![bytes], files: Vec::new(), item, metadata })
}

/// Removes the partial fetch of an item once it is stored.
pub fn remove_partial_fetch(data: &Path, path: &str) {
    // If this fails, the next fetch finds and checks the files.
    let _ = fetch::remove_fetch_folder(&partial_fetch_folder(data, path));
}

/// Replicates an item on a server. Returns how the local replica compared, and whether the item was
/// stored.
pub async fn replicate_item(
    desk: &Arc<ArchiveEngine>,
    source: &ReplicaSource,
    label: &str,
    by: &str,
) -> Result<(ReplicaComparison, bool), ReplicationError> {
    let looked = inspect_replica(&**desk, source, label).await?;
    let verdict = looked.verdict;
    let path = looked.held.path.clone();
    if !looked.brings {
        // A crash may have left an earlier partial fetch.
        remove_partial_fetch(desk.data(), &path);
        let (news, by) = (looked.news, by.to_owned());
        let noted = !news.is_empty()
            && desk.with_archive(move |archive| archive.record_status_update(&news, &by)).await?;
        return Ok((verdict, noted));
    }
    let brought = fetch_replica(&**desk, desk.data(), source, (label, looked), &|_| ()).await?;
    let by = by.to_owned();
    let changed = desk.change(move |archive| archive.prepare_replica(&brought, &by)).await?;
    remove_partial_fetch(desk.data(), &path);
    Ok((verdict, changed.is_some()))
}

/// The local file for each digest of an item's manifest.
fn local_files_by_digest(here: &Holdings, path: &str) -> Result<HashMap<String, PathBuf>, ArchiveError> {
    let object = here.data().join("tree").join(path);
    let manifest =
        here.local_replica_state(path)?.inventory.map(|inventory| inventory.manifest).unwrap_or_default();
    let first =
        manifest.into_iter().filter_map(|(digest, files)| Some((digest, object.join(files.first()?))));
    Ok(first.collect())
}

async fn fetch_description(
    peer: &PeerArchive,
    held: &ObjectDescription,
    theirs: &Inventory,
) -> Result<ItemDescription, ReplicationError> {
    ItemDescription::parse(&fetch_text(peer, held, theirs, DESCRIPTION_FILE).await?)
        .map_err(|what| unexpected_answer(peer, what))
}

async fn fetch_text(
    peer: &PeerArchive,
    held: &ObjectDescription,
    theirs: &Inventory,
    name: &str,
) -> Result<Vec<u8>, ReplicationError> {
    let found = theirs.files().find(|(logical, ..)| *logical == name);
    let Some((_, digest, Some(place))) = found else {
        return Err(unexpected_answer(peer, format!("its inventory has no {name}")));
    };
    fetch_small_file(peer, held, place, digest).await
}

/// Fetches a small file of an object and verifies its digest.
pub(super) async fn fetch_small_file(
    peer: &PeerArchive,
    held: &ObjectDescription,
    file: &str,
    digest: &str,
) -> Result<Vec<u8>, ReplicationError> {
    let bytes = match held.embedded_file(file) {
        Some(bytes) => bytes,
        None => {
            let mut coming = peer.file(&held.item, file, None).await?;
            let mut bytes = Vec::new();
            while let Some(piece) = coming.next_chunk().await? {
                let most = peer.max_inventory_bytes();
                if bytes.len() + piece.len() > most {
                    let url = peer.url().to_owned();
                    return Err(PeerError::TooLong { url, most: most as u64 }.into());
                }
                bytes.extend_from_slice(&piece);
            }
            bytes
        }
    };
    if ibi_store::digests::sha512(&bytes) != digest {
        return Err(unexpected_answer(peer, format!("digest mismatch in {file} of {}", held.item)));
    }
    Ok(bytes)
}

fn unexpected_answer(peer: &PeerArchive, what: String) -> ReplicationError {
    PeerError::NotAnArchive { url: peer.url().to_owned(), what }.into()
}
