//! Links between items, wherever they live (clause 2.4, *Across Archives*).
//!
//! A link is stated with the newer item, in its description. Readers are led along it once the
//! Archive that holds the Original of the older item has accepted it. What that Archive says of a
//! link is a [`LinkStatement`] in a line of the journal, with a counter; the highest counter counts.
//! Statements travel with copies and hand-overs, so every holder of an item knows them.
//!
//! `known` reads them, `stated` says which ones a change brings about, `decide` is what the operator
//! says. Online, `report` is what Archives tell each other, `receipts` are codes for decisions, `exchange` keeps both ends in step.

#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
mod decide;
#[cfg(feature = "web")]
pub mod exchange;
mod known;
mod migrate;
#[cfg(feature = "web")]
pub mod receipts;
pub mod report;
mod stated;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod trust;

pub use decide::{LinkDecision, LinkView};
pub use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus};
pub use known::LinksCompared;
pub(crate) use known::{GroupMember, NextEdition};
pub use stated::LinkAuthority;
pub(crate) use stated::{link_entries, statements_of};

/// Statements about one item that are read from another Archive, or told to one.
pub(crate) const MAX_STATEMENTS_PER_ITEM: usize = 1000;

/// The highest counter that is believed: JSON has no larger whole numbers that all programs read alike.
pub(crate) const MAX_COUNTER: u64 = 1 << 53;
