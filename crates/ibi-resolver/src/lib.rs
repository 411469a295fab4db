//! Persistent URLs answered from any number of Archives (clause 4).
//!
//! The operator registers Archives in a [`Registry`]; they come on line and go off line by themselves ([`Inclusion`], clause 3.3). A
//! client asks for a persistent URL: the [`Resolver`] asks all Archives that are on line ([`Ask`]; over the network, [`Network`]), has
//! `ibi_protocol::analysis` say what their answers come to, asks again where they lead on, and gives an [`Outcome`] (4.3), with an
//! [`Explanation`] if that is wanted. Two originals of one item are kept as an alert until somebody has looked into it ([`alerts`]);
//! the Archive whose URL was chosen is told so (3.5). [`web`] does all of this over HTTP, and [`Told`] in words.
//!
//! Clock and network are handed in: the scenarios in `tests/scenarios` play both.

mod acknowledge;
pub mod alerts;
pub mod archive;
pub mod ask;
mod evidence;
pub mod explain;
pub mod inclusion;
mod keys;
pub mod link;
pub mod registry;
pub mod resolve;
pub mod schemes;
pub mod shown;
pub mod told;
pub mod web;

pub use alerts::{Claim, Suspected};
pub use archive::{Archive, ArchivePlatform, Standing};
pub use ask::network::Network;
pub use ask::{Ask, AskFailed, Health};
pub use explain::Explanation;
pub use inclusion::{Answer, Inclusion};
pub use registry::{Registry, RegistryError, Settings};
pub use resolve::{Asked, Known, Outcome, Resolution, Resolver};
pub use told::Told;
