//! The hand-over of an Original (clause 2.1), decided without any disk or network: what a giver and a taker may do next, from
//! what each knows durably. Both Archives and the model (`tests/handover`) call these functions.
//!
//! 1. The giver offers: the taker fetches a verified Copy, and says that it is ready.
//! 2. The giver durably stops being the Original; its epoch grows by one. From here on there is no one-sided way back.
//! 3. The giver grants, again and again. The taker asks it by itself whether it does ([`is_given`]): who has a token may say
//!    anything. Then it durably becomes the Original in that epoch, once, and says so, as often as it is asked.
//! 4. Told so, the giver durably notes that the hand-over is done. Only then may it drop its bytes.

use ibi_store::journal::State;
use serde::{Deserialize, Serialize};

/// What is handed over: one item, as it is, in one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The name of the hand-over: it happens once.
    pub handover: String,
    /// The epoch in which the taker will have the Original.
    pub epoch: u64,
    /// The first 32 hex digits of the SHA-512 of the item's inventory.
    pub inventory: String,
}

/// What an Archive durably knows of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stand {
    /// What it is here; nothing if nothing of it is here, or no longer.
    pub state: Option<State>,
    /// The highest epoch of its own: in which it had the Original, granted it, accepted it or declared it. What others tell of
    /// epochs is hearsay, and a lie must not stand in the way of who has the Original.
    pub epoch: u64,
    /// Those of the inventory that is held.
    pub inventory: Option<String>,
    /// Whether the Archive was brought back from a backup, and nobody has confirmed it.
    pub restored: bool,
    /// Whether the item may be handed over.
    pub transferable: bool,
    /// The hand-over that was granted, and not answered yet.
    pub granted: Option<String>,
}

/// Why there is no hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum No {
    /// It is not the Original.
    #[error("it is not the Original here")]
    NotOriginal,
    /// It may not leave.
    #[error("it is non-transferable: the Original stays where it is")]
    NonTransferable,
    /// Nobody knows yet what is the Original here.
    #[error("the Archive was restored from a backup, and is not confirmed: `ibi archive confirm`")]
    Restored,
    /// It was changed since it was offered.
    #[error("it was changed since it was offered")]
    Changed,
    /// It was granted already, to somebody.
    #[error("it was granted already, and the taker has not answered")]
    Granted,
    /// It is the Original here already.
    #[error("it is the Original here already")]
    IsOriginal,
    /// It was removed.
    #[error("it was removed: there is a tombstone here")]
    Removed,
    /// A later hand-over is known.
    #[error("a later hand-over of it is known here")]
    Stale,
    /// Somebody else has it.
    #[error(
        "the Archive that the copy here came from says that it has the Original, and is not the giver: their operators must find \
         out who has it"
    )]
    OriginalElsewhere,
    /// The giver knows nothing of it.
    #[error("the Archive that is to give it, asked by itself, says that it does not hand it over so")]
    NotGiven,
}

/// Whether a giver may grant on these terms: if so, it must first be durable that it is a Copy here, in that epoch.
pub fn may_grant(stand: &Stand, terms: &Terms) -> Result<(), No> {
    if stand.granted.is_some() {
        return Err(No::Granted);
    }
    may_offer(stand)?;
    if stand.epoch + 1 != terms.epoch || stand.inventory.as_ref() != Some(&terms.inventory) {
        return Err(No::Changed);
    }
    Ok(())
}

/// Whether an Archive may offer an item.
pub fn may_offer(stand: &Stand) -> Result<(), No> {
    match stand.state {
        _ if stand.granted.is_some() => Err(No::Granted),
        _ if stand.restored => Err(No::Restored),
        Some(State::Original) if stand.transferable => Ok(()),
        Some(State::Original) => Err(No::NonTransferable),
        Some(State::Deleted) => Err(No::Removed),
        Some(State::Copy) | None => Err(No::NotOriginal),
    }
}

/// What a taker does when it is offered or granted something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Take {
    /// It lacks a Copy of just that: fetch it, and decide again.
    Fetch,
    /// All is there: it may become the Original, in that epoch, durably before it says so.
    Accept,
    /// It did so before.
    Accepted,
}

/// What a taker does with a grant, and whether it would with an offer. `accepted`: whether it durably accepted the
/// hand-over of this name before.
pub fn take(stand: &Stand, accepted: bool, terms: &Terms) -> Result<Take, No> {
    if accepted {
        return Ok(Take::Accepted);
    }
    match stand.state {
        _ if stand.restored => Err(No::Restored),
        Some(State::Deleted) => Err(No::Removed),
        Some(State::Original) => Err(No::IsOriginal),
        // Also where it was dropped: what came after this grant is remembered.
        _ if stand.epoch >= terms.epoch => Err(No::Stale),
        Some(State::Copy) if stand.inventory.as_ref() == Some(&terms.inventory) => Ok(Take::Accept),
        Some(State::Copy) | None => Ok(Take::Fetch),
    }
}

/// How a hand-over stands at its giver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// It is offered.
    Offered,
    /// It was granted, and nobody has answered.
    Granted,
    /// There is none of that name; or it is over, or was given up.
    None,
}

/// Whether what a taker is told is what the giver, asked by itself, says: `granted` if that is what it is told.
pub fn is_given(granted: bool, terms: &Terms, step: Step, theirs: Option<&Terms>) -> bool {
    let fits = theirs == Some(terms);
    match step {
        Step::Granted => fits,
        Step::Offered => fits && !granted,
        Step::None => false,
    }
}

/// Whether a giver may drop its bytes: only when nothing is granted that was not answered, and it is a Copy here.
pub fn may_drop(stand: &Stand) -> Result<(), No> {
    match stand.state {
        _ if stand.granted.is_some() => Err(No::Granted),
        Some(State::Copy | State::Original) if stand.restored => Err(No::Restored),
        Some(State::Copy) => Ok(()),
        Some(State::Original) => Err(No::IsOriginal),
        Some(State::Deleted) | None => Err(No::Removed),
    }
}
