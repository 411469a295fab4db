//! The Archive.
//!
//! So far it mints. [`mint::Minter`] gives out labels under the prefixes of one subsystem and keeps the promise of
//! the norm: never the same label twice, through any crash and any clock (clause 1.6 of `docs/formats/labels.md`).

mod error;
pub mod mint;

pub use error::{Refusal, Stop};
