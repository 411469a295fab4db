//! Links between items, wherever they live (clause 2.4, *Across Archives*).
//!
//! A link is stated with the newer item, in its description. Readers are led along it once the
//! Archive that holds the Original of the older item has accepted it. That Archive's decision is a
//! [`LinkStatement`] in a line of the journal, with a counter; the highest counter is effective.
//! Statements travel with copies and transfers, so every holder of an item knows them.
//!
//! `statements` reads them, `stated_links` derives them from a change, `decisions` are the
//! operator's. Online, `report` is what Archives exchange, `receipts` authenticate decisions;
//! `replication::link_exchange` synchronizes both ends.

#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
mod decisions;
mod migration;
#[cfg(feature = "web")]
pub mod receipts;
pub mod report;
pub(crate) mod stated_links;
pub(crate) mod statements;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod trust;

pub use decisions::{LinkDecision, LinkView};
pub use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus};
pub use stated_links::LinkAuthority;
pub(crate) use stated_links::{link_entries, statements_of};
pub use statements::{LinkComparison, LinkSource};
pub(crate) use statements::{NextEdition, TranslationMember, keys_of};

/// Maximum number of statements about one item, received or sent.
pub(crate) const MAX_STATEMENTS_PER_ITEM: usize = 1000;

/// The highest accepted counter: larger integers are not portable in JSON.
pub(crate) const MAX_LINK_COUNTER: u64 = 1 << 53;
