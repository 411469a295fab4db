//! What an Archive keeps on disk.
//!
//! So far the **marks**: how far a minter has come, so that no label is ever given out twice. [`Marks`] is what a
//! minter needs of a store: the last mark, and a way to make a later one durable. [`FileMarks`] keeps it in one
//! small text file that a person can read (`docs/formats/minter-state.md`) and takes the two locks that make it the
//! only minter of its prefixes on this machine ([`Claims`]). [`conformance`] is the suite that every store of marks
//! must pass; [`MemoryMarks`] passes it too, and fails on demand, for tests.
//!
//! This crate makes things durable and says what it found. Whether that is a reason to refuse to mint is decided by
//! who mints.

mod claims;
pub mod conformance;
mod error;
mod file;
mod marks;
mod memory;
mod text;

pub use claims::{Claims, Holder, Witness};
pub use error::StoreError;
pub use file::{Damage, FileMarks, Opening, State};
pub use marks::{Boot, Edition, Mark, Marks, Run, Subsystem};
pub use memory::MemoryMarks;
