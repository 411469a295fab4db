//! Minting: labels are unique, durable before release and granted fairly; callers are told why they
//! wait.
//!
//! A request enters the `waiting_room`, whose leader takes all waiting requests. The clock is read
//! and checked (`clock_limits`). The standard's distributor assigns dates to each request
//! (`grants`), skipping those that were used ahead of their time (`used_runs`). One sync makes the
//! new mark durable for all. Each caller then waits until its dates have come and receives its
//! labels. `opening` decides how far a state on disk can be trusted when a minter starts.
//!
//! [`Minter`] issues labels under the prefixes of one subsystem. It guarantees what the
//! standard requires: no label is ever issued twice, whatever crashes and clock changes occur
//! (clause 1.6 of `docs/formats/labels.md`).
//!
//! ```
//! use std::time::Duration;
//! use ibi_mint::{ClockLimits, DistributorEdition, MintRequest, clock::SystemClock};
//! use ibi_id::{Granularity, Host};
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! # let random = [1; 16];
//!
//! // Once: create a prefix. In production, use your own host and refuse private ones.
//! let host = Host::parse("archive.doctest.test")?;
//! let from = ibi_mint::MinterConfig {
//!     host: Some((host, None)),
//!     ip: None,
//!     edition: DistributorEdition::Rtc2015,
//!     allow_private: true,
//! };
//! ibi_mint::init(folder, &from, random, &SystemClock::new())?;
//!
//! // Then: mint.
//! let minter = ibi_mint::open(folder, SystemClock::new(), ClockLimits::default())?;
//! let request = MintRequest {
//!     count: 10,
//!     granularity: Granularity::NANOSECOND,
//!     max_wait: Duration::from_secs(1),
//! };
//! for label in minter.mint(request)?.labels() {
//!     assert!(label.rep.is_some_and(|rep| rep.starts_with("doctest.test/archive/20")));
//! }
//! # drop(minter);
//! # for claims in ["/run/lock", "/var/tmp"] {
//! #     let _ = std::fs::remove_file(format!("{claims}/ibi-doctest.test+archive"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clock;
mod clock_limits;
mod error;
mod grants;
mod granularity;
pub mod host_check;
mod minter;
mod opening;
pub mod trusted_clock;
mod used_runs;
mod waiting_room;

pub use ibi_store::{DistributorEdition, IssuedRange, MarkDamage, MarkFileState, MintMark, Subsystem};

pub use clock_limits::{ClockLimits, MAX_MINT_WAIT};
pub use error::{GranularityError, MintError, MinterHalt};
pub use grants::{MAX_LABELS_PER_REQUEST, MintRequest};
pub use granularity::{granularity, set_granularity};
pub use minter::{MintBatch, MintPrefixes, MintedLabels, Minter};
pub use opening::{MintRecovery, MinterConfig, foreign_claims, init, open, read_state, recover, subsystem};
