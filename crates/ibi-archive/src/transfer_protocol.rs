//! The transfer (hand-over) of an Original (clause 2.1): what a giver and a taker may do next,
//! decided from their durable state without disk or network access. Both Archives and the model
//! (`tests/handover`) call these functions.
//!
//! 1. The giver offers. The taker fetches a verified Copy and replies that it is ready.
//! 2. The giver durably stops being the Original; its epoch grows by one. From here on neither side
//!    can go back alone.
//! 3. The giver grants, repeatedly. The taker asks the giver itself whether it does
//!    ([`giver_confirms`]), because a token holder may claim anything. A third party must also name
//!    the giver (`giver_trust.rs`), because a token holder may be any Archive. Then the taker
//!    durably becomes the Original in that epoch, once, and acknowledges every repeated grant.
//! 4. On the acknowledgment, the giver durably records that the transfer is done. Only then may it
//!    drop its bytes.

use ibi_store::journal::State;
use serde::{Deserialize, Serialize};

/// The highest accepted epoch: larger integers are not portable in JSON.
pub const MAX_EPOCH: u64 = 1 << 53;

/// What is handed over: one item, in one version, in one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferTerms {
    /// The unique name of the transfer.
    pub handover: String,
    /// The epoch in which the taker will have the Original.
    pub epoch: u64,
    /// The first 32 hex digits of the SHA-512 of the item's inventory.
    pub inventory: String,
}

/// An Archive's durable knowledge of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustodyState {
    /// The local state; `None` if the item is not here, or no longer.
    pub state: Option<State>,
    /// The highest epoch of its own: in which it had the Original, or granted, accepted or declared
    /// it. Epochs that peers report do not count: a false one must not block the holder of the
    /// Original.
    pub epoch: u64,
    /// The first 32 hex digits of the SHA-512 of the local inventory.
    pub inventory: Option<String>,
    /// Whether the Archive was restored from a backup and not yet confirmed.
    pub restored: bool,
    /// Whether the item may be handed over.
    pub transferable: bool,
    /// The transfer that was granted and not yet acknowledged.
    pub granted: Option<String>,
}

/// Why a transfer is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TransferDenied {
    /// Not the Original here.
    #[error("it is not the Original here")]
    NotOriginal,
    /// Non-transferable.
    #[error("it is non-transferable: the Original stays where it is")]
    NonTransferable,
    /// Restored and unconfirmed: which items are Originals here is unknown.
    #[error("the Archive was restored from a backup, and is not confirmed: `ibi archive confirm`")]
    Restored,
    /// Changed since it was offered.
    #[error("it was changed since it was offered")]
    Changed,
    /// Already granted.
    #[error("it was granted already, and the taker has not answered")]
    Granted,
    /// Already the Original here.
    #[error("it is the Original here already")]
    IsOriginal,
    /// Removed here.
    #[error("it was removed: there is a tombstone here")]
    Removed,
    /// A later transfer is known.
    #[error("a later hand-over of it is known here")]
    Stale,
    /// Another Archive has the Original.
    #[error(
        "another Archive claims the Original, according to the source of the copy here or the resolver: the \
         operators must find out which one has it"
    )]
    OriginalElsewhere,
    /// Removed elsewhere.
    #[error(
        "it was removed, according to an Archive that had it: a removed item is never restored, and its \
         label is never reused"
    )]
    RemovedElsewhere,
    /// Nobody can confirm that the giver has the Original.
    #[error(
        "the giver's claim is unconfirmed: no former holder and no resolver names it. The operator of the \
         taker can configure a resolver (`ibi archive serve --resolver`) or, if the claim is known to be true, run `ibi archive givers trust GIVER IBI`"
    )]
    Unconfirmed,
    /// Another name of it belongs to an item elsewhere.
    #[error(
        "one of its other labels belongs to an item at another Archive, or to a removed item; the taker's \
         log names it: the operators must find out whose label it is"
    )]
    NameElsewhere,
    /// Nobody can confirm its other names.
    #[error(
        "its other labels, with other prefixes, cannot be verified without a resolver. The operator of the \
         taker can configure one (`ibi archive serve --resolver`) or, if the giver is known, run `ibi archive givers trust GIVER`"
    )]
    NamesUnconfirmed,
    /// More other names than are checked.
    #[error(
        "more than 100 other labels: limit exceeded. The operator of the taker, if all are known to be \
         correct, can run `ibi archive givers trust GIVER IBI`"
    )]
    ManyNames,
    /// The giver does not confirm the transfer.
    #[error("the giver does not confirm this transfer")]
    NotGiven,
}

impl TransferDenied {
    /// The problem type and title: all that the other Archive passes on.
    pub const fn kind(self) -> (&'static str, &'static str) {
        match self {
            TransferDenied::OriginalElsewhere => (
                "original-elsewhere",
                "another Archive claims the Original, according to a witness or the resolver",
            ),
            TransferDenied::RemovedElsewhere => {
                ("removed-elsewhere", "the item was removed, according to a witness or the resolver")
            }
            TransferDenied::Unconfirmed => (
                "giver-unconfirmed",
                "no witness confirms this giver; the taker's operator can run `ibi archive givers trust \
                 GIVER IBI`",
            ),
            TransferDenied::NameElsewhere => (
                "name-elsewhere",
                "one of its other labels belongs to an item at another Archive, or to a removed item",
            ),
            TransferDenied::NamesUnconfirmed => (
                "names-unconfirmed",
                "its other labels cannot be verified without a resolver; the taker's operator can run `ibi \
                 archive givers trust GIVER`",
            ),
            TransferDenied::ManyNames => (
                "many-names",
                "more than 100 other labels; the taker's operator can run `ibi archive givers trust GIVER \
                 IBI`",
            ),
            TransferDenied::NotGiven => ("not-given", "the giver does not confirm this transfer"),
            TransferDenied::IsOriginal => ("is-original", "it is the Original here already"),
            TransferDenied::Removed => ("removed", "it was removed: there is a tombstone here"),
            TransferDenied::Stale => ("stale", "a later hand-over of it is known here"),
            TransferDenied::NotOriginal
            | TransferDenied::NonTransferable
            | TransferDenied::Restored
            | TransferDenied::Changed
            | TransferDenied::Granted => ("conflict", "Conflict with the current state"),
        }
    }
}

/// Whether a giver may grant on these terms. If so, it must first durably become a Copy in that
/// epoch.
pub fn may_grant(stand: &CustodyState, terms: &TransferTerms) -> Result<(), TransferDenied> {
    if stand.granted.is_some() {
        return Err(TransferDenied::Granted);
    }
    may_offer(stand)?;
    if stand.epoch + 1 != terms.epoch || stand.inventory.as_ref() != Some(&terms.inventory) {
        return Err(TransferDenied::Changed);
    }
    Ok(())
}

/// Whether an Archive may offer an item.
pub fn may_offer(stand: &CustodyState) -> Result<(), TransferDenied> {
    match stand.state {
        _ if stand.granted.is_some() => Err(TransferDenied::Granted),
        _ if stand.restored => Err(TransferDenied::Restored),
        Some(State::Original) if stand.transferable => Ok(()),
        Some(State::Original) => Err(TransferDenied::NonTransferable),
        Some(State::Deleted) => Err(TransferDenied::Removed),
        Some(State::Copy) | None => Err(TransferDenied::NotOriginal),
    }
}

/// A taker's reaction to an offer or a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakerAction {
    /// Fetch a Copy of exactly this inventory, then decide again.
    Fetch,
    /// Become the Original in that epoch, durably before replying.
    Accept,
    /// Already accepted.
    Accepted,
}

/// Decides a taker's reaction to a grant, or whether an offer is acceptable. `accepted`: whether it
/// durably accepted this transfer before.
pub fn decide_take(
    stand: &CustodyState,
    accepted: bool,
    terms: &TransferTerms,
) -> Result<TakerAction, TransferDenied> {
    if accepted {
        return Ok(TakerAction::Accepted);
    }
    match stand.state {
        _ if stand.restored => Err(TransferDenied::Restored),
        Some(State::Deleted) => Err(TransferDenied::Removed),
        Some(State::Original) => Err(TransferDenied::IsOriginal),
        // Also after a drop: later epochs are remembered.
        _ if stand.epoch >= terms.epoch => Err(TransferDenied::Stale),
        Some(State::Copy) if stand.inventory.as_ref() == Some(&terms.inventory) => Ok(TakerAction::Accept),
        Some(State::Copy) | None => Ok(TakerAction::Fetch),
    }
}

/// The status of a transfer at its giver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferStep {
    /// Offered.
    Offered,
    /// Granted and not yet acknowledged.
    Granted,
    /// Unknown, finished or cancelled.
    None,
}

/// Whether the giver's own status confirms the message. `granted`: the message is a grant.
pub fn giver_confirms(
    granted: bool,
    terms: &TransferTerms,
    step: TransferStep,
    theirs: Option<&TransferTerms>,
) -> bool {
    let fits = theirs == Some(terms);
    match step {
        TransferStep::Granted => fits,
        TransferStep::Offered => fits && !granted,
        TransferStep::None => false,
    }
}

/// Whether a giver may drop its bytes: only when nothing is granted that was not answered, and it
/// is a Copy here.
pub fn may_drop(stand: &CustodyState) -> Result<(), TransferDenied> {
    match stand.state {
        _ if stand.granted.is_some() => Err(TransferDenied::Granted),
        Some(State::Copy | State::Original) if stand.restored => Err(TransferDenied::Restored),
        Some(State::Copy) => Ok(()),
        Some(State::Original) => Err(TransferDenied::IsOriginal),
        Some(State::Deleted) | None => Err(TransferDenied::Removed),
    }
}
