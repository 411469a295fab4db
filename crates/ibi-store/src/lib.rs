//! The storage of an Archive.
//!
//! Three small stores, each behind its own trait, with a suite in [`conformance`] that every back
//! end must pass:
//!
//! - [`MarkStorage`]: the progress of a minter, so that no label is ever issued twice.
//!   [`FileMarkStorage`] keeps it in one small text file (`docs/formats/minter-state.md`) and takes
//!   the locks that make it the only minter of its prefixes ([`PrefixLock`]).
//! - [`ContentStorage`]: the bytes of items. [`OcflTree`] is an OCFL tree on a local disk that can
//!   be read without this program (`docs/formats/tree.md`; [`ocfl`] has its texts and names). A
//!   [`VerifiedFile`] never returns a damaged block.
//! - [`IndexStorage`]: lookups by label, path, link or change. [`SqliteIndex`] is an index that can
//!   be deleted and rebuilt from the tree and the [`Journal`] (`docs/formats/journal.md`).
//!
//! This crate makes data durable and reports what it finds; the minter and the Archive decide what
//! that means. The in-memory stores are for tests, and are the model that the others are compared
//! with.

pub mod conformance;
pub mod content;
mod data_lock;
pub mod digests;
mod direct_writer;
mod disk;
mod error;
pub mod index;
pub mod journal;
pub mod journal_salvage;
pub mod location_store;
mod mark_file;
mod marks;
mod memory_marks;
pub mod minter_settings;
pub mod ocfl;
mod prefix_lock;
pub mod private_files;
pub mod registry;
pub mod reserve;
pub mod service;
pub mod settings;
mod shared_memory;
pub mod small_file;
mod subsystem_block;
mod text_block;

pub use content::{ContentStorage, MemoryContentStorage, OcflTree, StagedVersion, StagingId, VerifiedFile};
pub use data_lock::DataFolderLock;
pub use direct_writer::DirectWriter;
pub use disk::{SpaceCheckedWriter, check_disk_space};
pub use error::{IndexWriteFailure, MarkStorageError, PrefixHolder, StorageError};
pub use index::{FileRecord, IndexRecord, IndexStorage, MemoryIndex, SqliteIndex};
pub use journal::Journal;
pub use location_store::{LocationBatch, LocationStore, LocationTable};
pub use mark_file::{FileMarkStorage, LockedMarkFile, MarkDamage, MarkFileState};
pub use marks::{BootTime, DistributorEdition, IssuedRange, MarkStorage, MintMark, Subsystem};
pub use memory_marks::MemoryMarkStorage;
pub use prefix_lock::{MintWitness, PrefixLock, foreign_lock_files};
pub use registry::RegistryStorage;
pub use service::ServiceStorage;
