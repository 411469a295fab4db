//! The Archive.
//!
//! It keeps items and mints their labels. [`archive::open`] opens an [`Archive`]: what is deposited is staged, prepared and
//! committed, wholly or not at all (`docs/archive.md`); [`Holdings`] is what it holds, to be read.
//!
//! [`mint::Minter`] gives out labels under the prefixes of one subsystem and keeps the promise of
//! the norm: never the same label twice, through any crash and any clock (clause 1.6 of `docs/formats/labels.md`).
//!
//! ```
//! use std::time::Duration;
//! use ibi_archive::mint::{self, Edition, Limits, Request, clock::SystemClock};
//! use ibi_id::{Granularity, Host};
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! # let random = [1; 16];
//!
//! // Once: start a prefix. For real, the host is yours, and private ones stay refused.
//! let host = Host::parse("archive.doctest.test")?;
//! let from = mint::From { host: Some((host, None)), ip: None, edition: Edition::Rtc2015, allow_private: true };
//! mint::init(folder, &from, random, &SystemClock::new())?;
//!
//! // Then: mint.
//! let minter = mint::open(folder, SystemClock::new(), Limits::default())?;
//! let request =
//!     Request { count: 10, granularity: Granularity::NANOSECOND, max_wait: Duration::from_secs(1) };
//! for label in minter.mint(request)?.labels() {
//!     assert!(label.rep.is_some_and(|rep| rep.starts_with("doctest.test/archive/20")));
//! }
//! # drop(minter);
//! # for claims in ["/run/lock", "/var/tmp"] {
//! #     let _ = std::fs::remove_file(format!("{claims}/ibi-doctest.test+archive"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod access;
pub mod archive;
pub mod audit;
pub mod backup;
pub mod bag;
mod carried;
mod commit;
pub mod deposit;
pub mod dublin_core;
mod error;
mod export;
pub mod full_record;
pub mod holders;
pub mod import;
pub mod item;
pub mod links;
pub mod mint;
mod object;
pub mod plain_tree;
pub mod rebuild;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod relations;
mod restate;
pub mod robots_txt;
mod rules;
#[cfg(feature = "web")]
pub mod service;
pub mod table;
#[cfg(feature = "web")]
pub mod target_check;
pub mod target_url;
pub mod told;
mod update;
#[cfg(feature = "web")]
pub mod web;

/// The language of an item.
pub use ibi_protocol::language;

/// What the store says and has.
pub mod keep {
    pub use ibi_store::KeepError;
    pub use ibi_store::journal::{Entry, State};
    pub use ibi_store::ocfl::raw;
    pub use ibi_store::records::{FileRecord, Role};
}

pub use archive::{Archive, Holding, Holdings};
pub use commit::Prepared;
pub use error::{ArchiveError, Refusal, Stop};
pub use export::Exported;
pub use update::Changes;
