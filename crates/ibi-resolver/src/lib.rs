//! Persistent URLs answered from any number of Archives (clause 4).

mod acknowledge;
pub mod alerts;
pub mod archive;
pub mod ask;
pub mod explain;
pub mod inclusion;
mod keys;
pub mod registry;
pub mod resolve;
pub mod shown;
pub mod told;
pub mod web;

pub use alerts::{Claim, Suspected};
pub use archive::{Archive, Standing};
pub use ask::network::Network;
pub use ask::{Ask, AskFailed, Health};
pub use explain::Explanation;
pub use inclusion::{Answer, Inclusion};
pub use registry::{Registry, RegistryError, Settings};
pub use resolve::{Asked, Known, Outcome, Resolution, Resolver};
pub use told::Told;
