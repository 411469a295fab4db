//! What an Archive keeps.
//!
//! Three small stores, each behind a trait of its own, with a suite in [`conformance`] that every back end must pass:
//!
//! - [`Marks`]: how far a minter has come, so that no label is ever given out twice. [`FileMarks`] keeps it in one small
//!   text file (`docs/formats/minter-state.md`) and takes the locks that make it the only minter of its prefixes
//!   ([`Claims`]).
//! - [`Content`]: the bytes of items. [`Tree`] is an OCFL tree on a local disk that outlives the program
//!   (`docs/formats/tree.md`; [`ocfl`] has its texts and names). A [`Checked`] file gives out no damaged block.
//! - [`Records`]: what is looked up, by label, path, link or change. [`SqliteRecords`] is an index that can be thrown away
//!   and made anew from the tree and the [`Journal`] (`docs/formats/journal.md`).
//!
//! This crate makes things durable and says what it found; what that means is decided by who mints and who archives. The
//! stores in memory are for tests, and are the model that the others are compared with.

mod claims;
pub mod conformance;
pub mod content;
pub mod digests;
mod disk;
mod error;
mod file;
pub mod journal;
mod lock;
mod marks;
mod memory;
pub mod minter_settings;
pub mod ocfl;
pub mod records;
pub mod registry;
pub mod service;
pub mod settings;
mod straight;
mod text;

pub use claims::{Claims, Holder, Witness};
pub use content::{Checked, Content, MemoryContent, Publication, Staging, Tree};
pub use disk::fits;
pub use error::{KeepError, StoreError};
pub use file::{Damage, FileMarks, Opening, State};
pub use journal::Journal;
pub use lock::DataLock;
pub use marks::{Boot, Edition, Mark, Marks, Run, Subsystem};
pub use memory::MemoryMarks;
pub use records::{FileRecord, MemoryRecords, Record, Records, SqliteRecords};
pub use registry::RegistryStore;
pub use service::ServiceState;
pub use straight::Straight;
