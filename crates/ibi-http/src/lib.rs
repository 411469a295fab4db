//! What the servers share, without a word of what they serve.
//!
//! [`server::serve`] takes connections within [`Limits`], speaks TLS if it is given a certificate, and drains when it is told
//! to stop. [`telemetry`] tells what happens: a line a request, and figures at `/metrics`. [`Problem`] is every error of an
//! API (RFC 9457). [`client::Proxies`] finds out who asks. [`token`] makes secrets and compares them. [`paced`] reads bodies
//! that arrive fast enough. [`outgoing`] asks others; [`asking`] asks many at once, fast and guarded.

pub mod accept;
pub mod asking;
pub mod client;
mod forwarded;
mod limits;
pub mod outgoing;
pub mod paced;
pub mod page;
mod problem;
pub mod server;
mod stream;
pub mod telemetry;
mod tls;
pub mod token;
pub mod tokens;

pub use limits::Limits;
pub use problem::Problem;
pub use tls::{Tls, TlsError};
