//! Minting: never the same label twice, durable before released, fair, and nobody waits without being told why.
//!
//! A request goes a straight line. It enters the `waiting_room`, whose leader takes all who wait; the clock is read
//! and judged (`rules`); the norm's distributor gives each its dates (`grants`), around those that were used
//! ahead of their time (`used`); the new mark is made durable, one sync for all; each caller waits until its dates
//! have come; then it has its labels. `opening` says what a state on disk is worth when a minter starts.

pub mod clock;
mod grants;
mod granularity;
pub mod host_check;
mod minter;
mod opening;
mod rules;
mod used;
mod waiting_room;

pub use ibi_store::{Damage, Edition, Mark, Run, State, Subsystem};

pub use grants::{MOST_LABELS, Request};
pub use granularity::{granularity, set_granularity};
pub use minter::{Labels, Minted, Minter, Prefixes};
pub(crate) use opening::subsystem;
pub use opening::{From, Recovered, init, look, open, recover};
pub use rules::{LONGEST_WAIT, Limits};
