//! Resolution of persistent URLs across any number of Archives (clause 4).
//!
//! The operator registers Archives in a [`Registry`]; they announce themselves online and offline
//! ([`InclusionService`], clause 3.3). For each persistent URL, the [`Resolver`] queries all
//! Archives that are online ([`ArchiveTransport`]; over the network, [`HttpTransport`]), lets
//! `ibi_protocol::analysis` decide on their answers, queries again where they lead on, and returns
//! a [`ResolutionOutcome`] (4.3), with a [`ResolutionExplanation`] on request. Two originals of one
//! item are stored as an alert until an operator has investigated it ([`alerts`]). The Archive
//! whose URL was chosen gets an acknowledgment (3.5). [`web`] provides all of this over HTTP, and
//! [`OutcomeView`] describes outcomes in words.
//!
//! Clock and network are injected: the scenarios in `tests/scenarios` simulate both.

mod acknowledgments;
pub mod alerts;
pub mod api_view;
pub mod archive;
mod blocking;
pub mod clock;
pub mod directory;
mod error;
mod evidence;
pub mod inclusion;
mod keys;
pub mod link;
pub mod live_status;
pub mod location_index;
pub mod outcome_view;
pub mod registry;
pub mod resolve;
pub mod schemes;
pub mod transport;
pub mod web;

pub use alerts::{RaisedAlert, RaisedClaim, RaisedCopyAlert};
pub use archive::{ArchivePlatform, RegisteredArchive, RegistrationStatus};
pub use clock::ResolverClock;
pub use directory::ArchiveDirectory;
pub use error::{RegistryImportError, ResolverRegistryError};
pub use inclusion::{InclusionAnswer, InclusionService};
pub use outcome_view::OutcomeView;
pub use registry::{Registry, ResolverSettings};
pub use resolve::{ResolutionExplanation, ResolutionOutcome, ResolutionRequest, ResolutionResult, Resolver};
pub use transport::network::HttpTransport;
pub use transport::{ArchiveHealth, ArchiveTransport, ArchiveTransportError, BreakerState};
