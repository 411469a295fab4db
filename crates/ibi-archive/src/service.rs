//! The Archive service: everything an Archive does online, except HTTP itself.
//!
//! [`answer`] responds to resolvers (clause 3.4). [`AckKeys`] and [`Statistics`] count usage.
//! [`DraftStore`] and [`ServiceTokens`] serve depositors. All requests go through
//! [`crate::engine::ArchiveEngine`].

mod ack_keys;
pub mod acknowledgment;
pub mod address;
pub mod answer;
mod drafts;
pub mod followers;
mod item_patch;
pub mod location_feed;
pub mod registration;
mod statistics;
mod statistics_report;
mod tokens;
pub mod usage_report;

pub use ack_keys::AckKeys;
pub use drafts::{DraftFile, DraftQuota, DraftRecord, DraftStore};
pub use item_patch::ItemPatch;
pub use statistics::{Statistics, StatisticsClient, StatisticsEvent};
pub use statistics_report::{StatisticsDay, StatisticsReport, statistics_subject};
pub use tokens::{ServiceRole, ServiceToken, ServiceTokens, check_operator_name, open_tokens};
