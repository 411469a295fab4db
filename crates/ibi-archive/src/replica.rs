//! Objects as they cross between Archives (clause 2.1).
//!
//! - [`object_description`] is what an Archive says of an object, `object_reader` reads its files
//!   for another Archive.
//! - [`object_validation`] checks that what came is one whole object, [`comparison`] compares it
//!   with the local one, [`replica_object`] commits it.
//! - [`original_witness`] finds who said where the Original is; [`stale_copies`] are behind it.

pub mod comparison;
#[cfg(feature = "web")]
pub mod file_repair;
#[cfg(feature = "web")]
pub mod object_description;
#[cfg(feature = "web")]
pub(crate) mod object_reader;
pub mod object_validation;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod original_witness;
pub mod replica_object;
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod stale_copies;

pub use comparison::ReplicaComparison;
