//! How what is here stands to what another Archive has, and what is to be done then, decided without any disk or network: nothing in
//! doubt is overwritten (threats S7 to S9).

use ibi_store::journal::State;
use ibi_store::ocfl::Inventory;
use serde::Serialize;

use super::handover::Stand;
use super::whole::{Compared, compare};
use crate::object::short;

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
    /// What is here is later, and the other is but a Copy.
    Ahead,
    /// What is here is later than what the Original has, or is of a later epoch: somebody should look into it.
    Beyond,
    /// What is here is neither earlier nor later: it is left as it is.
    Altered,
    /// The Original is here: nobody else has anything to say of it.
    Original,
    /// The Original is here, and lacks versions that are there: somebody should look into it.
    Lacking,
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
            Verdict::Beyond => "beyond",
            Verdict::Altered => "altered",
            Verdict::Original => "original",
            Verdict::Lacking => "lacking",
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
    /// The SHA-512 of that.
    pub digest: &'a str,
    /// Whether all bytes of it were destroyed.
    pub purged: bool,
    /// Whether it is believed of which epoch the Original is, whatever others have told: it has it, or gives it, and the copy
    /// here came from it, or the operator named it.
    pub believed: bool,
}

/// What is here.
#[derive(Debug, Clone)]
pub struct Mine {
    /// What is durably known of it.
    pub stand: Stand,
    /// The inventory in the tree.
    pub inventory: Option<Inventory>,
    /// Whether nothing of it is in the tree.
    pub missing: bool,
    /// Whether what is in the tree is what the journal says.
    pub sound: bool,
    /// Whether it was removed, and its bytes destroyed.
    pub destroyed: bool,
    /// The epoch that was told of it last.
    pub heard: u64,
}

impl Mine {
    /// Whether the journal knows a Copy that is just what another Archive has, and the tree does not have it so.
    pub fn is_damaged(&self, theirs: &str) -> bool {
        let same = self.stand.inventory.as_deref() == Some(short(theirs));
        same && !self.sound && self.stand.state == Some(State::Copy)
    }
}

/// Compares what is here with what another Archive has.
pub fn judge(mine: &Mine, theirs: &Theirs<'_>) -> Verdict {
    let stand = &mine.stand;
    let Some(state) = stand.state else {
        return if theirs.state == State::Deleted { Verdict::Gone } else { Verdict::New };
    };
    let later = theirs.epoch > stand.epoch;
    let same = stand.inventory.as_deref() == Some(short(theirs.digest));
    match state {
        // Its object is lost: it comes back as it was, and a copy as it is.
        _ if mine.missing && (same || state == State::Copy) && theirs.state != State::Deleted => {
            return Verdict::New;
        }
        // Where bytes are destroyed (law), they are destroyed everywhere.
        State::Deleted if theirs.purged && !mine.destroyed => return Verdict::Removed,
        State::Deleted if theirs.state == State::Deleted => return Verdict::Equal,
        State::Deleted => return Verdict::Gone,
        // Brought back from a backup, it learns here that the Original was handed over since (clause 2.1).
        State::Original if stand.restored && later => {}
        State::Original if theirs.state == State::Original => return Verdict::Conflict,
        State::Original => {
            let ours = mine.inventory.as_ref().filter(|_| mine.sound && theirs.state == State::Copy);
            let lacks = ours.is_some_and(|ours| compare(ours, theirs.inventory) == Compared::Behind);
            return if lacks { Verdict::Lacking } else { Verdict::Original };
        }
        State::Copy if theirs.epoch < stand.epoch || (theirs.epoch < mine.heard && !theirs.believed) => {
            return ahead(theirs);
        }
        State::Copy => {}
    }
    if theirs.purged {
        return Verdict::Removed;
    }
    let Some(ours) = mine.inventory.as_ref().filter(|_| mine.sound) else { return Verdict::Altered };
    match compare(ours, theirs.inventory) {
        Compared::Behind if theirs.state == State::Deleted => Verdict::Removed,
        Compared::Behind => Verdict::Behind,
        // Only who has the Original is known now.
        Compared::Equal if state == State::Original => Verdict::Behind,
        // Likewise if somebody had lied of the epoch.
        Compared::Equal if theirs.believed && theirs.epoch < mine.heard => Verdict::Behind,
        Compared::Equal => Verdict::Equal,
        Compared::Ahead => ahead(theirs),
        Compared::Altered => Verdict::Altered,
    }
}

fn ahead(theirs: &Theirs<'_>) -> Verdict {
    if theirs.state == State::Copy { Verdict::Ahead } else { Verdict::Beyond }
}

/// What the operator's words make of a verdict: whether it is brought all the same. `overwrite`: what is here may go; `word`: that
/// Archive is to be believed.
pub fn is_meant(verdict: Verdict, mine: &Mine, theirs: &Theirs<'_>, (overwrite, word): (bool, bool)) -> bool {
    match verdict {
        Verdict::Altered | Verdict::Beyond => overwrite,
        Verdict::Conflict => overwrite && word && (yields(mine, theirs) || gains(mine, theirs)),
        Verdict::Lacking => overwrite && word,
        verdict => verdict.brings(),
    }
}

/// Of two that say that they have the Original, the one of the earlier epoch yields: not both can. Not before the other has
/// what is here alone (clause 2.2).
fn yields(mine: &Mine, theirs: &Theirs<'_>) -> bool {
    theirs.epoch >= mine.stand.epoch && compared(mine, theirs) != Some(Compared::Ahead)
}

/// The one of the later epoch gets versions that only the other has, and stays the Original.
pub(super) fn gains(mine: &Mine, theirs: &Theirs<'_>) -> bool {
    theirs.epoch < mine.stand.epoch && compared(mine, theirs) == Some(Compared::Behind)
}

fn compared(mine: &Mine, theirs: &Theirs<'_>) -> Option<Compared> {
    mine.inventory.as_ref().filter(|_| mine.sound).map(|ours| compare(ours, theirs.inventory))
}

#[cfg(test)]
mod tests;
