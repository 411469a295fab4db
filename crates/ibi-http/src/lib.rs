//! HTTP infrastructure shared by the servers, independent of what they serve.
//!
//! [`server::serve`] accepts connections within [`ServerLimits`], terminates TLS if given a
//! certificate, and drains on shutdown. [`telemetry`] provides the request log and the metrics at
//! `/metrics`. [`Problem`] is the error type of every API (RFC 9457). [`client::TrustedProxies`]
//! determines the client address. [`secret`] generates and compares secrets. [`body`] reads request
//! bodies with a minimum transfer rate. [`outgoing`] sends requests to other servers;
//! [`pooled_client`] sends many at once, on pooled connections and with an address guard.

pub mod accept;
pub mod body;
pub mod client;
mod client_tls;
mod connection_slots;
pub mod descriptors;
mod forwarded;
mod limits;
mod log_queue;
pub mod memory;
pub mod outgoing;
pub mod page;
pub mod pooled_client;
mod priority;
mod problem;
pub mod rate;
pub mod regular_file;
pub mod robots;
pub mod secret;
pub mod server;
mod stall_guard;
pub mod telemetry;
mod tls;
mod token_name;
pub mod token_store;

pub use client_tls::{CertificateProblem, ClientTls, trust_ca_file};
pub use limits::ServerLimits;
pub use memory::{MemoryBudget, MemoryGrant};
pub use problem::Problem;
pub use tls::{ServerTls, TlsError};
