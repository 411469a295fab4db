//! The Archive.
//!
//! So far it mints. [`mint::Minter`] gives out labels under the prefixes of one subsystem and keeps the promise of
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

mod error;
pub mod mint;

pub use error::{Refusal, Stop};
