//! Between Archives: copies, their refreshing and repair, and the hand-over of Originals (clause 2.1).
//!
//! An Archive tells others of an object ([`held`]) and gives them its files (`web/api/object.rs`); who keeps a copy asks it
//! ([`peer`]), fetches what it lacks ([`fetch`]), and takes nothing that is not one whole object ([`whole`]).

#[cfg(feature = "web")]
pub mod fetch;
pub mod handover;
#[cfg(feature = "web")]
pub mod held;
#[cfg(feature = "web")]
pub mod peer;
#[cfg(feature = "web")]
pub(crate) mod reading;
pub mod whole;
