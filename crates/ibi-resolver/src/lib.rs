//! Persistent URLs answered from any number of Archives (clause 4).

pub mod archive;
pub mod ask;

pub use archive::{Archive, Standing};
pub use ask::{Ask, AskFailed};
