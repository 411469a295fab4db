//! The Archive: stores items and mints their labels.
//!
//! [`opening::open`] opens an [`Archive`]. A deposit is staged, prepared and committed atomically
//! (`docs/archive.md`). [`Holdings`] is the read-only view of what it holds.

pub mod access;
pub mod actor_names;
pub mod archive;
pub mod audit;
pub mod backup;
pub mod bag;
mod change_rules;
mod commit;
pub mod custody;
pub mod deposit;
pub mod dublin_core;
#[cfg(feature = "web")]
pub mod engine;
mod error;
mod export;
pub mod full_record;
pub mod import;
pub mod item;
pub mod item_view;
mod journal_record;
pub mod label_prefix;
pub mod links;
mod media_type;
mod object;
pub mod opening;
pub mod ownership;
pub mod plain_tree;
mod prepared_change;
pub mod rebuild;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod relations;
pub mod replica;
pub mod replication;
pub mod robots_txt;
pub mod salvage;
#[cfg(feature = "web")]
pub mod service;
mod state_change;
pub mod table;
#[cfg(feature = "web")]
pub mod target_check;
pub mod target_url;
pub mod transfer_protocol;
mod update;
#[cfg(feature = "web")]
mod warnings;
#[cfg(feature = "web")]
pub mod web;

/// Languages of items.
pub use ibi_protocol::language;

/// Re-exports from the store.
pub mod store {
    pub use ibi_store::StorageError;
    pub use ibi_store::index::{FileRecord, LabelRole};
    pub use ibi_store::journal::{JournalEntry, State};
    pub use ibi_store::journal_salvage::JournalLineSource;
    pub use ibi_store::ocfl::decode_logical_path;
    pub use ibi_store::private_files::make_new_files_private;
    pub use ibi_store::reserve::release_if_needed;
}

pub use archive::{Archive, HeldItem, Holdings};
pub use error::ArchiveError;
pub use export::ExportReport;
pub use prepared_change::PreparedChange;
pub use update::ItemChanges;
