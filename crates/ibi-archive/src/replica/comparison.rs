//! Compares the local replica with another Archive's and decides what to do, without disk or
//! network access. In doubt, nothing is overwritten (threats S7 to S9).

use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;
use serde::Serialize;

use super::object_validation::{HistoryComparison, compare_inventories};
use crate::object::short_digest;
use crate::transfer_protocol::CustodyState;

/// How the local replica compares with another Archive's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplicaComparison {
    /// Not here: copy it.
    New,
    /// The local one is an earlier version: update it.
    Behind,
    /// Removed there: replace the copy by a tombstone.
    Removed,
    /// Equal.
    Equal,
    /// The local one is later, and theirs is only a Copy.
    Ahead,
    /// The local one is later than the Original, or of a later epoch: investigate.
    Beyond,
    /// Neither earlier nor later: keep the local one.
    Altered,
    /// The Original is here and takes precedence.
    Original,
    /// The Original is here but lacks versions that are there: investigate.
    Lacking,
    /// Both claim the Original.
    Conflict,
    /// Removed here, or there before it was ever here: it stays removed.
    Gone,
}

impl ReplicaComparison {
    /// The serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            ReplicaComparison::New => "new",
            ReplicaComparison::Behind => "behind",
            ReplicaComparison::Removed => "removed",
            ReplicaComparison::Equal => "equal",
            ReplicaComparison::Ahead => "ahead",
            ReplicaComparison::Beyond => "beyond",
            ReplicaComparison::Altered => "altered",
            ReplicaComparison::Original => "original",
            ReplicaComparison::Lacking => "lacking",
            ReplicaComparison::Conflict => "conflict",
            ReplicaComparison::Gone => "gone",
        }
    }

    /// Whether something is to be fetched.
    pub const fn needs_fetch(self) -> bool {
        matches!(self, ReplicaComparison::New | ReplicaComparison::Behind | ReplicaComparison::Removed)
    }
}

/// Another Archive's replica of an item.
#[derive(Debug, Clone)]
pub struct PeerReplicaState<'a> {
    /// Its state there.
    pub state: State,
    /// Its epoch there.
    pub epoch: u64,
    /// Its inventory.
    pub inventory: &'a Inventory,
    /// The SHA-512 of the inventory.
    pub digest: &'a str,
    /// Whether all its bytes were destroyed.
    pub purged: bool,
    /// Whether its epoch is trusted over other reports: it has or gives the Original, and the copy
    /// here came from it or the operator named it.
    pub believed: bool,
}

/// The local replica.
#[derive(Debug, Clone)]
pub struct LocalReplicaState {
    /// Its durable state.
    pub stand: CustodyState,
    /// The inventory in the tree.
    pub inventory: Option<Inventory>,
    /// Whether the object is missing from the tree.
    pub missing: bool,
    /// Whether the tree matches the journal.
    pub sound: bool,
    /// Whether it was removed and its bytes destroyed.
    pub destroyed: bool,
    /// The epoch last reported by a peer.
    pub heard: u64,
}

impl LocalReplicaState {
    /// Whether the journal has a Copy equal to the peer's, but the tree does not match it.
    pub fn is_damaged(&self, theirs: &str) -> bool {
        let same = self.stand.inventory.as_deref() == Some(short_digest(theirs));
        same && !self.sound && self.stand.state == Some(State::Copy)
    }
}

/// Compares what is here with what another Archive has.
pub fn compare_replicas(mine: &LocalReplicaState, theirs: &PeerReplicaState<'_>) -> ReplicaComparison {
    let stand = &mine.stand;
    let Some(state) = stand.state else {
        return if theirs.state == State::Deleted { ReplicaComparison::Gone } else { ReplicaComparison::New };
    };
    let later = theirs.epoch > stand.epoch;
    let same = stand.inventory.as_deref() == Some(short_digest(theirs.digest));
    match state {
        // The object is lost: restore the same one, or for a Copy the current one.
        _ if mine.missing && (same || state == State::Copy) && theirs.state != State::Deleted => {
            return ReplicaComparison::New;
        }
        // Bytes destroyed by law are destroyed everywhere.
        State::Deleted if theirs.purged && !mine.destroyed => return ReplicaComparison::Removed,
        State::Deleted if theirs.state == State::Deleted => return ReplicaComparison::Equal,
        State::Deleted => return ReplicaComparison::Gone,
        // A restored Archive learns that the Original was handed over since the backup (clause
        // 2.1).
        State::Original if stand.restored && later => {}
        State::Original if theirs.state == State::Original => return ReplicaComparison::Conflict,
        State::Original => {
            let ours = mine.inventory.as_ref().filter(|_| mine.sound && theirs.state == State::Copy);
            let lacks = ours
                .is_some_and(|ours| compare_inventories(ours, theirs.inventory) == HistoryComparison::Behind);
            return if lacks { ReplicaComparison::Lacking } else { ReplicaComparison::Original };
        }
        State::Copy if theirs.epoch < stand.epoch || (theirs.epoch < mine.heard && !theirs.believed) => {
            return ahead_of_peer(theirs);
        }
        State::Copy => {}
    }
    if theirs.purged {
        return ReplicaComparison::Removed;
    }
    let Some(ours) = mine.inventory.as_ref().filter(|_| mine.sound) else {
        return ReplicaComparison::Altered;
    };
    match compare_inventories(ours, theirs.inventory) {
        HistoryComparison::Behind if theirs.state == State::Deleted => ReplicaComparison::Removed,
        HistoryComparison::Behind => ReplicaComparison::Behind,
        // Only the holder of the Original is new information.
        HistoryComparison::Equal if state == State::Original => ReplicaComparison::Behind,
        // Likewise if a false epoch was reported before.
        HistoryComparison::Equal if theirs.believed && theirs.epoch < mine.heard => ReplicaComparison::Behind,
        HistoryComparison::Equal => ReplicaComparison::Equal,
        HistoryComparison::Ahead => ahead_of_peer(theirs),
        HistoryComparison::Altered => ReplicaComparison::Altered,
    }
}

fn ahead_of_peer(theirs: &PeerReplicaState<'_>) -> ReplicaComparison {
    if theirs.state == State::Copy { ReplicaComparison::Ahead } else { ReplicaComparison::Beyond }
}

/// Whether the operator's flags allow fetching despite the verdict. `overwrite`: local changes may
/// be overwritten; `word`: the operator vouches for that Archive.
pub fn operator_allows(
    verdict: ReplicaComparison,
    mine: &LocalReplicaState,
    theirs: &PeerReplicaState<'_>,
    (overwrite, word): (bool, bool),
) -> bool {
    match verdict {
        ReplicaComparison::Altered | ReplicaComparison::Beyond => overwrite,
        ReplicaComparison::Conflict => {
            overwrite && word && (yields_original(mine, theirs) || gains_versions(mine, theirs))
        }
        ReplicaComparison::Lacking => overwrite && word,
        verdict => verdict.needs_fetch(),
    }
}

/// Of two that claim the Original, the one of the earlier epoch yields, so never both. It yields
/// only once the other has every version that is here (clause 2.2).
fn yields_original(mine: &LocalReplicaState, theirs: &PeerReplicaState<'_>) -> bool {
    theirs.epoch >= mine.stand.epoch && compare_histories(mine, theirs) != Some(HistoryComparison::Ahead)
}

/// The claimant of the later epoch takes over versions that only the other has, and stays the
/// Original.
pub(super) fn gains_versions(mine: &LocalReplicaState, theirs: &PeerReplicaState<'_>) -> bool {
    theirs.epoch < mine.stand.epoch && compare_histories(mine, theirs) == Some(HistoryComparison::Behind)
}

fn compare_histories(mine: &LocalReplicaState, theirs: &PeerReplicaState<'_>) -> Option<HistoryComparison> {
    mine.inventory.as_ref().filter(|_| mine.sound).map(|ours| compare_inventories(ours, theirs.inventory))
}

#[cfg(test)]
mod tests;
