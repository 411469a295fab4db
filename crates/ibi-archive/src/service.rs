//! The Archive service: what an Archive does on line, apart from HTTP itself.
//!
//! [`Desk`] is where requests come in: readers for those who ask, one writer for those who change something. [`answer`]
//! answers resolvers (clause 3.4); [`UrlKeys`] and [`Statistics`] count what was asked for; [`Drafts`] and [`Tokens`] serve
//! those who deposit; [`borrow`] lets commands on the same folder work while it is on line.

pub mod address;
pub mod answer;
pub mod borrow;
mod counted;
mod described;
mod desk;
mod drafts;
mod keys;
pub mod online;
mod robots;
mod statistics;
mod tokens;

pub use counted::{Counts, Day, counted_as};
pub use described::Described;
pub(crate) use desk::is_temporary;
pub use desk::{Desk, Reader};
pub use drafts::{Draft, DraftFile, Drafts};
pub use keys::UrlKeys;
pub use statistics::{Client, Statistics, What};
pub use tokens::{Role, Token, Tokens, tokens};
